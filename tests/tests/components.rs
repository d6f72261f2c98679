//! What runs are made of: programs, and what goes from one to the other.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::collections::BTreeSet;
use std::process::Command;

use chase_tests::need;
use chase_tests::report;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::Trial;
use serde_json::Value;

/// A shell that runs this, all of whose system calls are told.
fn recorded(what: &str, script: &str) -> Option<Trial> {
    companion(what)?;
    let trial = Trial::new("/bin/sh").args(["-c", script]);
    let trial = trial.hooked_env("CHASE_NARRATE", "1").hooked_env("CHASE_SYSCALLS", "require");
    let outcome = trial.hooked();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    Tagged::finished(&trial.output()).assert_nothing_lost();
    Some(trial)
}

/// What `components` says of a run.
struct Found {
    programs: Vec<Value>,
    things: Vec<Value>,
    uses: Vec<Value>,
    text: String,
    svg: String,
}

impl Found {
    fn new(trial: &Trial) -> Self {
        let document = report::document(&trial.output(), "components");
        let rows = |name: &str| document[name].as_array().expect("rows").clone();
        Self {
            programs: rows("programs"),
            things: rows("things"),
            uses: rows("uses"),
            text: report::text(&trial.output(), &["components"]),
            svg: report::text(&trial.output(), &["components", "--graph", "svg"]),
        }
    }

    /// Places of the programs with a name, or a role.
    fn programs(&self, name: &str) -> BTreeSet<u64> {
        let is_it = |row: &Value| row["name"] == name || row["role"] == name;
        let found: BTreeSet<u64> =
            (0..).zip(&self.programs).filter(|(_, row)| is_it(row)).map(|(at, _)| at).collect();
        assert!(!found.is_empty(), "{name}: {:#?}", self.programs);
        found
    }

    /// What the one wrote that the others read, and what these read of it, through connections that no other uses, in bytes.
    fn sent(&self, from: &str, to: &str) -> (u64, u64) {
        let (from, to) = (self.programs(from), self.programs(to));
        let mut sums = (0, 0);
        for thing in
            (0_u64..).zip(&self.things).filter(|(_, of)| of["kind"] == "socket").map(|(at, _)| at)
        {
            let of_thing = || self.uses.iter().filter(|used| used["thing"] == thing);
            let programs: BTreeSet<u64> =
                of_thing().map(|used| used["program"].as_u64().expect("a place")).collect();
            let is_between = programs.iter().any(|at| from.contains(at))
                && programs.iter().any(|at| to.contains(at))
                && programs.iter().all(|at| from.contains(at) || to.contains(at));
            for used in of_thing().filter(|_| is_between) {
                let at = used["program"].as_u64().expect("a place");
                let number = |key: &str| used[key].as_u64().expect("a number");
                sums.0 += if from.contains(&at) { number("written") } else { 0 };
                sums.1 += if to.contains(&at) { number("read") } else { 0 };
            }
        }
        sums
    }

    /// All that the one sent has arrived, at least so much, and both the sentences and the graph say who sent whom. (How much is
    /// known if no call is missing, for which a busy machine may have no room.)
    fn assert_exchange(&self, from: &str, to: &str, least: u64) {
        let (sent, arrived) = self.sent(from, to);
        let is_whole = !self.text.contains("Missing for lack of room");
        let expected = if is_whole { sent == arrived && sent >= least } else { sent > 0 };
        assert!(expected, "{from} to {to}: {sent} and {arrived}\n{}", self.text);
        let told = self.text.lines().any(|line| {
            let at = |name: &str| line.find(name);
            line.contains(" sent ") && at(from).is_some() && at(to).is_some()
        });
        assert!(told, "{from} to {to}:\n{}", self.text);
        let drawn = self.svg.split("<title>").filter_map(|rest| rest.split("</title>").next());
        let is_arrow = |title: &str| {
            title.split_once(" → ").is_some_and(|(start, end)| {
                start.contains(from) && end.contains(to) && end.contains(": ")
            })
        };
        assert!(drawn.into_iter().any(is_arrow), "{from} to {to}:\n{}", self.svg);
    }
}

#[test]
fn a_pipeline_is_drawn_with_its_pipes() {
    let Some(trial) = recorded("components", "seq 1000 | cat | wc -l") else { return };
    let document = report::document(&trial.output(), "components");
    let rows = |name: &str| document[name].as_array().expect("rows").clone();
    let things = rows("things");
    let pipes: Vec<&Value> = things.iter().filter(|thing| thing["kind"] == "pipe").collect();
    assert_eq!(pipes.len(), 2, "{things:#?}");
    // The numbers from 1 to 1000, a line each.
    let bytes = 9 * 2 + 90 * 3 + 900 * 4 + 5;
    assert!(
        pipes.iter().all(|pipe| pipe["read"] == bytes && pipe["written"] == bytes),
        "{pipes:?}"
    );
    let uses = rows("uses");
    let of = |name: &str, what: &str| {
        let own = uses.iter().filter(|used| used["name"] == name && used["of"] == "A pipe");
        own.map(|used| used[what].as_u64().expect("a number")).sum::<u64>()
    };
    assert_eq!((of("seq", "written"), of("seq", "read")), (bytes, 0));
    assert_eq!((of("cat", "written"), of("cat", "read")), (bytes, bytes));
    assert_eq!((of("wc", "written"), of("wc", "read")), (0, bytes));
    let programs = rows("programs");
    let shell = programs.iter().position(|row| row["parent"].is_null()).expect("the shell");
    for name in ["seq", "cat", "wc"] {
        let row = programs.iter().find(|row| row["name"] == name).expect("the program");
        assert_eq!(row["parent"].as_u64(), Some(shell as u64), "{programs:#?}");
    }
    let text = report::text(&trial.output(), &["components"]);
    assert!(text.contains("started"), "{text}");
    let svg = report::text(&trial.output(), &["components", "--graph", "svg"]);
    assert!(svg.contains("<svg") && svg.contains("seq ("), "{svg}");
}

/// A server and its clients' many connections, within the machine.
#[test]
fn redis_and_its_benchmark_are_drawn_with_what_they_send() {
    let what = "the components of redis";
    if need::tool(what, "redis-server").is_none() || need::tool(what, "redis-benchmark").is_none() {
        return;
    }
    let script = "redis-server --port 0 --save '' --unixsocket s > log & \
        until redis-cli -s s ping 2> errors | grep -q PONG; do sleep 0.1; done; \
        redis-benchmark -s s -c 2 -n 100 -t set,get -q > said && redis-cli -s s shutdown nosave; wait";
    let Some(trial) = recorded(what, script) else { return };
    let found = Found::new(&trial);
    // Each request has more than twenty bytes, and each answer five or more.
    found.assert_exchange("redis-benchmark", "redis-server", 200 * 20);
    found.assert_exchange("redis-server", "redis-benchmark", 200 * 5);
}

/// A server in front of another one.
#[test]
fn nginx_in_front_of_a_server_is_drawn_between_that_and_the_client() {
    let what = "the components of nginx";
    let tools = ["nginx", "curl", "python3"];
    if !tools.iter().all(|tool| need::tool(what, tool).is_some()) || !need::root(what) {
        return;
    }
    let script = r#"
python3 -u -c '
import http.server
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "50000")
        self.end_headers()
        self.wfile.write(b"x" * 50000)
    def log_message(self, *of): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
open("port.new", "w").write(str(server.server_address[1]))
import os; os.rename("port.new", "port")
for _ in range(5): server.handle_request()
' & backend=$!
until [ -s port ]; do sleep 0.1; done
cat > config <<END
daemon off; worker_processes 1; pid $PWD/pid; error_log $PWD/errors; user root;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy;
fastcgi_temp_path $PWD/fastcgi; uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
server { listen unix:$PWD/socket; location / { proxy_pass http://127.0.0.1:$(cat port); } } }
END
nginx -c $PWD/config -p $PWD & front=$!
until [ -S socket ]; do sleep 0.1; done
for i in 1 2 3 4 5; do curl -s --unix-socket socket http://localhost/ | wc -c; done
wait $backend
kill -QUIT $front
wait $front
"#;
    let Some(trial) = recorded(what, script) else { return };
    let found = Found::new(&trial);
    found.assert_exchange("nginx: worker process", "curl", 5 * 50_000);
    found.assert_exchange("nginx: worker process", "python3", 5 * 20);
    found.assert_exchange("python3", "nginx: worker process", 5 * 50_000);
}

/// A process for each connection. (It does not run as root, and of a program that changes its user no system calls are told: it is root
/// that has another number.)
#[test]
fn postgres_and_its_benchmark_are_drawn_with_what_they_send() {
    let what = "the components of postgres";
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let programs = installed.map(|entry| entry.path().join("bin"));
    let whole = programs.filter(|bin| bin.join("initdb").exists() && bin.join("pgbench").exists());
    let Some(programs) = whole.max() else {
        return need::skip(what, "postgres is not installed");
    };
    if need::tool(what, "unshare").is_none() || !need::root(what) {
        return;
    }
    let other_user = ["--user", "--map-user=1000", "--map-group=1000", "true"];
    if !Command::new("unshare").args(other_user).status().is_ok_and(|status| status.success()) {
        return need::skip(what, "no user namespaces here");
    }
    let script = r#"
preload=$LD_PRELOAD; unset LD_PRELOAD
server() { "$@" -U postgres -h $PWD; }
initdb -D data -A trust -U postgres --no-sync > log 2>&1
LD_PRELOAD=$preload postgres -D data -k $PWD -c listen_addresses= > log 2>&1 & server=$!
until server psql -c 'select 1' postgres > said 2>&1; do sleep 0.1; done
server pgbench -i -q -s 1 postgres > said 2>&1
LD_PRELOAD=$preload pgbench -U postgres -h $PWD -c 2 -t 25 -n postgres > said 2>&1
pg_ctl -D data -m fast stop > said 2>&1
wait $server
"#;
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let script = format!(
        "export PATH={path}; exec unshare --user --map-user=1000 --map-group=1000 sh -c '{}'",
        script.replace('\'', r"'\''")
    );
    let Some(trial) = recorded(what, &script) else { return };
    let found = Found::new(&trial);
    found.assert_exchange("pgbench", "postgres: client", 50 * 100);
    found.assert_exchange("postgres: client", "pgbench", 50 * 20);
}
