//! Servers under load, for `cargo xtask servers`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::attached::Rounds;
use crate::compile::{Build, programs};

/// A server that runs.
pub struct Server {
    /// Its processes that are attached to, in turns.
    pub pids: Vec<u32>,
    /// Has it do something; how many operations that were, or what it answered wrongly.
    pub load: Box<dyn FnMut() -> Result<f64, String> + Send>,
    /// Ends it, and says whether all that it has answered was right.
    pub finish: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

/// Starts a server, with a directory for its files.
pub type Start = fn(&Path) -> Result<Server, String>;

/// All that are known.
pub const ALL: [(&str, Start); 6] = [
    ("python3, 4 threads", python),
    ("C++, 64 threads", cpp),
    ("java", java),
    ("redis", redis),
    ("nginx, 2 workers", nginx),
    ("postgres, 4 backends", postgres),
];

/// More than a start takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is ended with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: it is our child, and its process group's first.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

fn start(mut command: Command) -> Result<Running, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.env("LD_BIND_NOW", "1").env_remove("LD_PRELOAD");
    command.spawn().map(Running).map_err(|error| format!("{command:?}: {error}"))
}

/// What a command says, if it succeeds.
fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) -> Result<(), String> {
    let since = Instant::now();
    while !is() {
        if since.elapsed() > PATIENCE {
            return Err(what.to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

// ---- programs that work in rounds, which say the same each time ---------------------------------------

fn in_rounds(command: impl Fn() -> Command) -> Server {
    let mut command_now = command();
    command_now.env("LD_BIND_NOW", "1");
    let program = Rounds::start(command_now);
    let pids = vec![program.pid()];
    // Its lines are those of another one that nobody attaches to.
    let mut bare = Rounds::start(command());
    let lines = Arc::new(Mutex::new((Some(program), Vec::new())));
    let of_load = Arc::clone(&lines);
    Server {
        pids,
        load: Box::new(move || {
            let mut state = of_load.lock().map_err(|_| "it has ended")?;
            let line = state.0.as_mut().ok_or("it has ended")?.round();
            state.1.push(line);
            Ok(1.0)
        }),
        finish: Box::new(move || {
            let mut state = lines.lock().map_err(|_| "it has ended")?;
            if let Some(program) = state.0.take() {
                program.end();
            }
            let differs = state.1.iter().position(|line| bare.round() != *line);
            bare.end();
            differs.map_or(Ok(()), |at| Err(format!("round {at} differs")))
        }),
    }
}

fn python(_: &Path) -> Result<Server, String> {
    Ok(in_rounds(|| {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(programs().join("rounds.py"));
        command
    }))
}

fn cpp(_: &Path) -> Result<Server, String> {
    let program = Build::program("rounds.cpp").without_libtrap().flags("-pthread -lz").build();
    Ok(in_rounds(move || Command::new(&program)))
}

fn java(scratch: &Path) -> Result<Server, String> {
    let mut javac = Command::new("javac");
    output_of(javac.arg("-d").arg(scratch).arg(programs().join("Rounds.java")))?;
    let classes = scratch.to_owned();
    Ok(in_rounds(move || {
        let mut command = Command::new("java");
        command.arg("-cp").arg(&classes).arg("Rounds");
        command
    }))
}

// ---- servers ------------------------------------------------------------------------------------------

fn redis(scratch: &Path) -> Result<Server, String> {
    const REQUESTS: usize = 5_000;
    let socket = scratch.join("socket");
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
    let server = start({
        command.current_dir(scratch);
        command
    })?;
    let ask = move |words: &[&str]| {
        let mut command = Command::new("redis-cli");
        output_of(command.arg("-s").arg(&socket).args(words))
    };
    wait_until("redis does not answer", || {
        ask(&["ping"]).is_ok_and(|answer| answer.trim() == "PONG")
    })?;
    let socket = scratch.join("socket");
    let mut sent = 0;
    let count = Arc::new(Mutex::new(0));
    let of_load = Arc::clone(&count);
    Ok(Server {
        pids: vec![server.0.id()],
        load: Box::new(move || {
            let mut command = Command::new("redis-benchmark");
            command.arg("-s").arg(&socket).args(["-c", "8", "-q", "-n", &REQUESTS.to_string()]);
            output_of(command.args(["incr", "total"]))?;
            sent += REQUESTS;
            *of_load.lock().map_err(|_| "it has ended")? = sent;
            Ok(REQUESTS as f64)
        }),
        finish: Box::new(move || {
            let total = ask(&["get", "total"])?;
            let _server = server;
            let sent = *count.lock().map_err(|_| "it has ended")?;
            match total.trim() == sent.to_string() {
                true => Ok(()),
                false => Err(format!("{} of {sent} were done", total.trim())),
            }
        }),
    })
}

fn nginx(scratch: &Path) -> Result<Server, String> {
    const REQUESTS: usize = 500;
    // Free just now.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.map_err(|error| error.to_string())?.port();
    let page = "chase ".repeat(2_000);
    fs::write(scratch.join("page"), &page).map_err(|error| error.to_string())?;
    let at = scratch.display();
    let config = format!(
        "daemon off; worker_processes 2; pid {at}/pid; error_log {at}/errors; user root;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log {at}/accesses; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;\n\
         fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; root {at}; }} }}\n"
    );
    fs::write(scratch.join("config"), config).map_err(|error| error.to_string())?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(scratch.join("config")).arg("-p").arg(scratch);
    let server = start(command)?;
    let pid = server.0.id();
    wait_until("nginx has no workers", || children(pid).len() == 2)?;
    let address = format!("http://127.0.0.1:{port}/page");
    Ok(Server {
        pids: children(pid),
        load: Box::new(move || {
            let mut command = Command::new("ab");
            let said = output_of(
                command.args(["-q", "-c", "8", "-n", &REQUESTS.to_string()]).arg(&address),
            )?;
            let field = |name: &str| {
                let line = said.lines().find(|line| line.starts_with(name)).unwrap_or("");
                line.split_whitespace().filter_map(|word| word.parse::<usize>().ok()).next()
            };
            let is_whole = field("Complete requests:") == Some(REQUESTS)
                && field("Failed requests:") == Some(0)
                && field("Document Length:") == Some(page.len())
                && !said.contains("Non-2xx");
            if is_whole { Ok(REQUESTS as f64) } else { Err(said) }
        }),
        finish: Box::new(move || {
            drop(server);
            Ok(())
        }),
    })
}

/// Where Debian has the programs of the newest version.
fn postgres_programs() -> Result<PathBuf, String> {
    let versions = fs::read_dir("/usr/lib/postgresql").map_err(|error| error.to_string())?;
    let newest = versions.flatten().map(|entry| entry.path()).max().ok_or("no postgres")?;
    Ok(newest.join("bin"))
}

fn postgres(scratch: &Path) -> Result<Server, String> {
    const TRANSACTIONS: usize = 100;
    const CLIENTS: usize = 4;
    // It does not run as root.
    let as_postgres = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
        command.current_dir("/tmp");
        command
    };
    let programs = postgres_programs()?;
    let own = scratch.join("postgres");
    fs::create_dir(&own).map_err(|error| error.to_string())?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(scratch, open).map_err(|error| error.to_string())?;
    output_of(Command::new("chown").arg("postgres:postgres").arg(&own))?;
    let data = own.join("data");
    output_of(as_postgres(&programs.join("initdb")).arg("-D").arg(&data).args(["-A", "trust"]))?;
    let mut command = as_postgres(&programs.join("postgres"));
    command.arg("-D").arg(&data).arg("-k").arg(&own).args(["-c", "listen_addresses="]);
    let server = start(command)?;
    let pid = server.0.id();
    let with = move |program: &str, own: &Path| {
        let mut command = as_postgres(&programs.join(program));
        command.arg("-h").arg(own);
        command
    };
    wait_until("postgres does not answer", || {
        output_of(with("psql", &own).args(["-c", "select 1", "postgres"])).is_ok()
    })?;
    output_of(with("pgbench", &own).args(["-i", "-q", "-s", "2", "postgres"]))?;
    // Backends that stay, and work as long as the server does.
    let mut steady = with("pgbench", &own);
    steady.args(["-c", &CLIENTS.to_string(), "-T", "100000", "postgres"]);
    let steady = start(steady)?;
    let backends = || {
        let is_backend = |pid: &u32| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("[local]")
        };
        children(pid).into_iter().filter(is_backend).collect::<Vec<u32>>()
    };
    wait_until("postgres has no backends", || backends().len() == CLIENTS)?;
    let pids = backends();
    let place = own.clone();
    let query = with.clone();
    Ok(Server {
        pids,
        load: Box::new(move || {
            let mut command = with("pgbench", &place);
            let said = output_of(command.args([
                "-c",
                "1",
                "-n",
                "-t",
                &TRANSACTIONS.to_string(),
                "postgres",
            ]))?;
            let is_whole = said.contains(&format!("{TRANSACTIONS}/{TRANSACTIONS}"))
                && said.contains("failed transactions: 0 ");
            if is_whole { Ok(TRANSACTIONS as f64) } else { Err(said) }
        }),
        finish: Box::new(move || {
            drop(steady);
            let sums = "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history), \
                        (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history)";
            let answer = output_of(query("psql", &own).args(["-At", "-c", sums, "postgres"]))?;
            drop(server);
            match answer.trim() {
                "t|t" => Ok(()),
                other => Err(format!("the sums differ: {other}")),
            }
        }),
    })
}
