//! `chase-companion`: watches the syscalls and waits of recorded processes, as long as they live.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chase_companion::calibrate::{Cost, untraced_ns};
use chase_companion::clock::now_ns;
use chase_companion::drain::{Drain, Traced};
use chase_companion::others;
use chase_companion::program::Program;
use chase_companion::rate::Rate;
use chase_companion::session::Session;
use chase_companion::unprivileged::Unprivileged;
use chase_companion::watcher::Watcher;
use chase_format::session::{DISMISS, SAMPLES};
use clap::{CommandFactory, Parser};

/// How often rows are copied.
const INTERVAL: Duration = Duration::from_millis(100);

/// A process takes no longer than this from finding the companion to sending its hello.
const LAST_LOOK: Duration = Duration::from_millis(20);
/// If this many processes have ended in a round, the next round begins immediately, since rows may run out.
const MANY_ENDED: usize = 64;

const EXAMPLES: &str = "\
Examples:
  chase-companion --output tried.data --patience 0   whether it can work here: ready, or why not
  chase-companion --output watched.data -- ./app     a program without libchase.so

By itself it is of use where nothing can start it beside the program. For a container, start it
outside, with the directory of the recordings as --output, and a --patience of some seconds; it
ends after the last process that it has watched. Elsewhere, `chase record` and libchase.so start it.

Exit status: 1 if it can't work; else 0, or with a command, that of the command.";

#[derive(Parser)]
#[command(
    name = "chase-companion",
    version = chase_version::VERSION,
    about = "Watches the system calls and waits of recorded processes, and takes samples of what runs",
    after_help = EXAMPLES,
    max_term_width = 100
)]
struct Arguments {
    /// Number by which processes ask to be watched; without it, one is made up
    #[arg(long)]
    session: Option<u64>,
    /// Directory for what is seen of processes that have no recording
    #[arg(long, default_value = "chase.data")]
    output: PathBuf,
    /// Write "ready", or why not, as one line to this open file instead of standard error
    #[arg(long)]
    ready_fd: Option<i32>,
    /// This open file is the session's, and is locked
    #[arg(long, hide = true)]
    lock_fd: Option<i32>,
    /// Give up when no process has asked for so many seconds
    #[arg(long, default_value = "10", value_parser = seconds)]
    patience: Duration,
    /// Stay for so many seconds after the last process has ended, so that the next one need not wait
    #[arg(long, default_value = "0", value_parser = seconds)]
    linger: Duration,
    /// Ask this user's other companions that have nobody to watch to end: they slow what is recorded here
    #[arg(long, hide = true)]
    dismiss: bool,
    /// Watch this process from the start, where only samples can be taken
    #[arg(long, hide = true)]
    watch: Option<u32>,
    /// Samples of what runs, per second and CPU, or "off" [default: $CHASE_SAMPLE, or 997, or less where that would
    /// cost more than 1 %]
    #[arg(long)]
    sample: Option<String>,
    /// Write the man page and completions to this directory
    #[arg(long, hide = true)]
    generate: Option<PathBuf>,
    /// Start this program, with the session in `CHASE_SESSION`, and end with its status
    #[arg(last = true)]
    command: Vec<std::ffi::OsString>,
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether to end as soon as there is nothing to watch.
static DISMISSED: AtomicBool = AtomicBool::new(false);

extern "C" fn leave_when_idle(_: i32) {
    DISMISSED.store(true, Ordering::Relaxed);
}

extern "C" fn stop(_: i32) {
    STOP.store(true, Ordering::Relaxed);
}

/// A handler that does nothing. If the signal were ignored, the application would inherit that.
extern "C" fn pass(_: i32) {}

type Handler = extern "C" fn(i32);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(directory) = &arguments.generate {
        return generate(directory);
    }
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            report_line(&arguments, &format!("chase: syscalls are not recorded: {error:#}"));
            note_failure(&arguments, &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn generate(directory: &Path) -> ExitCode {
    match chase_manual::generate(Arguments::command(), directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, nothing reads it.
            let _ = writeln!(io::stderr(), "chase-companion: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

/// Reads a number of seconds.
///
/// # Errors
/// If it is none, or no duration.
fn seconds(text: &str) -> Result<Duration> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

/// Writes a line to the process that started the companion, or to `companion.log` if that process has ended.
fn report_line(arguments: &Arguments, line: &str) {
    let written = match arguments.ready_fd {
        // SAFETY: the caller passed the descriptor to be used; it is not closed here.
        Some(fd) => writeln!(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }), "{line}"),
        None => writeln!(io::stderr(), "{line}"),
    };
    let written = written.or_else(|_| {
        let log = arguments.output.join("companion.log");
        // (The directory may be one that others may write to.)
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut log =
            File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(log)?;
        writeln!(log, "{line}")
    });
    // Nothing reads it any more.
    let _ = written;
}

/// Stores the reason for later processes, in case the launcher no longer waits for it.
fn note_failure(arguments: &Arguments, reason: &str) {
    let Some(fd) = arguments.lock_fd else { return };
    // SAFETY: the caller passed the descriptor to be used; it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    // If this fails, the next process finds out by itself.
    let _ = Session::fail(&file, reason);
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    // SAFETY: they only ask for numbers.
    let (user, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
    if user != effective {
        bail!("the companion must not be a set-id program");
    }
    own_limits();
    if arguments.dismiss {
        others::dismiss();
    }
    let session = arguments.session.map_or_else(random, Ok)?;
    let wish = arguments.sample.clone().or_else(|| std::env::var("CHASE_SAMPLE").ok());
    let rate = Rate::wished(wish.as_deref())?;
    let begun = begin(arguments, session, user, rate)?;
    let Begun { mut watcher, said, mut later } = begun;
    fs::create_dir_all(&arguments.output)
        .with_context(|| format!("can't create {}", arguments.output.display()))?;
    if let Some(pid) = arguments.watch {
        watcher.follow(pid).map_err(anyhow::Error::from_boxed)?;
    }
    handle_signals();
    let announced = announce(arguments, &said, wish.as_deref().unwrap_or_default())?;
    let mut child = None;
    if let [name, rest @ ..] = arguments.command.as_slice() {
        let mut command = Command::new(name);
        command.args(rest).env("CHASE_SESSION", session.to_string());
        let started = command.spawn().with_context(|| format!("can't start {}", name.display()))?;
        watcher.follow(started.id()).map_err(anyhow::Error::from_boxed)?;
        later.extend(give_up_rights(&mut *watcher));
        child = Some(started);
        // No process reads the file in this case.
        later.extend(
            said.strip_prefix(SAMPLES)
                .map(|why| format!("chase: syscalls are not recorded: {why}")),
        );
    } else {
        later.extend(give_up_rights(&mut *watcher));
        let answer = if said.starts_with(SAMPLES) { &said } else { "ready" };
        match arguments.ready_fd {
            // The process that started the companion may have stopped waiting.
            // SAFETY: as in `report_line`.
            Some(fd) => drop(writeln!(unsafe { File::from_raw_fd(fd) }, "{answer}")),
            None => report_line(arguments, answer),
        }
    }
    let status = watch_to_the_end(&mut *watcher, &announced, child, arguments)?;
    report_what_is_missing(arguments, &*watcher, later);
    Ok(status)
}

fn handle_signals() {
    // Signals that a terminal sends to all processes are for the application, whose end is still to be recorded. A
    // limit on file sizes shows as an error of the write.
    for (signal, handler) in [
        (libc::SIGTERM, stop as Handler),
        (DISMISS, leave_when_idle),
        (libc::SIGINT, pass),
        (libc::SIGHUP, pass),
        (libc::SIGXFSZ, pass),
    ] {
        // SAFETY: the handlers store a flag, or do nothing.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    // The process that started the companion may have blocked signals for itself.
    // SAFETY: the kernel reads an empty set.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Writes the session's file, from which processes know of this companion.
fn announce(arguments: &Arguments, said: &str, sampling: &str) -> Result<Session> {
    let output = arguments.output.display();
    let announced = match arguments.lock_fd {
        Some(fd) => {
            // SAFETY: the process that started the companion passed the descriptor to be used and closed here.
            let file = unsafe { File::from_raw_fd(fd) };
            Session::adopt(file, said.to_owned(), sampling).map(Some)
        }
        None => Session::announce(&arguments.output, said.to_owned(), sampling),
    };
    announced
        .with_context(|| format!("can't announce the session in {output}"))?
        .with_context(|| format!("another companion is at work in {output}"))
}

/// Watches as long as the arguments say, and then the processes that have sent their hello in the last moment.
fn watch_to_the_end(
    watcher: &mut dyn Watcher,
    session: &Session,
    child: Option<Child>,
    arguments: &Arguments,
) -> Result<ExitCode> {
    let status = watch(watcher, session, child, arguments.patience, arguments.linger)?;
    session.close()?;
    sleep(LAST_LOOK);
    while watcher.round().live > 0 && !STOP.load(Ordering::Relaxed) {
        // Another companion may accept hellos by now; these processes are ours.
        let again = session.reopen()?;
        watch(watcher, session, None, Duration::ZERO, Duration::ZERO)?;
        if again {
            session.close()?;
        }
        sleep(LAST_LOOK);
    }
    watcher.stop();
    Ok(status)
}

/// Tells the user what could not be recorded. `later`: lines from the start.
fn report_what_is_missing(arguments: &Arguments, watcher: &dyn Watcher, later: Vec<String>) {
    if let Some((path, error)) = watcher.failure() {
        report_line(
            arguments,
            &format!("chase: syscalls are incomplete: {}: {error}", path.display()),
        );
    }
    for line in later {
        report_line(arguments, &line);
    }
    for (count, what) in watcher.left_out().into_iter().filter(|(count, _)| *count > 0) {
        report_line(arguments, &format!("chase: left out: {count} {what}"));
    }
}

/// The result of starting.
struct Begun {
    watcher: Box<dyn Watcher>,
    /// The second line of the session file.
    said: String,
    /// Lines for the user, to be printed at the end.
    later: Vec<String>,
}

/// Gives up what is not needed any more; returns a line for the user if that fails. (Not before the program is started, which may inherit
/// rights.)
fn give_up_rights(watcher: &mut dyn Watcher) -> Option<String> {
    let error = watcher.give_up_rights().err()?;
    Some(format!("chase: the companion keeps rights that it does not need: {error}"))
}

/// Starts the eBPF program, or, if that is not possible, only takes samples.
fn begin(arguments: &Arguments, session: u64, user: u32, rate: Rate) -> Result<Begun> {
    let started = Program::load(session, user).and_then(|mut program| {
        let before_ns = untraced_ns();
        program.attach().map(|()| (program, before_ns))
    });
    match started {
        Ok((program, before_ns)) => Ok(trace(program, arguments, session, rate, before_ns)),
        Err(error) if rate == Rate::Off => Err(error.into()),
        Err(error) => {
            let hz = rate.unprivileged_hz();
            match Unprivileged::start(&arguments.output, hz) {
                Ok(sampled) => Ok(Begun {
                    watcher: Box::new(sampled),
                    said: format!("{SAMPLES}{error}"),
                    later: Vec::new(),
                }),
                Err(no_samples) => bail!("{error}; nor are samples taken: {no_samples}"),
            }
        }
    }
}

fn trace(
    mut program: Program,
    arguments: &Arguments,
    session: u64,
    rate: Rate,
    before_ns: u64,
) -> Begun {
    let cost = Cost::measure(&mut program, session, before_ns);
    let mut sample_hz = rate.hz();
    let mut later = Vec::new();
    if sample_hz > 0
        && let Err(error) = program.sample(sample_hz)
    {
        sample_hz = 0;
        later.push(format!("chase: no samples are taken: {error}"));
    }
    let mut drain = Drain::new(arguments.output.clone(), cost, sample_hz);
    // The process that was measured is not part of the results.
    drain.forget(&mut program);
    let watcher = Box::new(Traced { program, drain });
    Begun { watcher, said: Session::line(session), later }
}

/// Watches until the last process has ended and no other came for `linger`, or none came at all within `patience`, or
/// a signal asks to stop.
fn watch(
    watcher: &mut dyn Watcher,
    session: &Session,
    mut child: Option<Child>,
    patience: Duration,
    linger: Duration,
) -> Result<ExitCode> {
    let start = Instant::now();
    let mut any = false;
    let mut latest = start;
    let mut said_idle = false;
    let mut status = ExitCode::SUCCESS;
    loop {
        let round_ns = now_ns(libc::CLOCK_MONOTONIC);
        let found = watcher.round();
        if found.live + found.ended > 0 {
            (any, latest) = (true, Instant::now());
        }
        let is_idle = found.live == 0;
        if is_idle || said_idle {
            session.say_idle(if is_idle { round_ns } else { 0 })?;
            said_idle = is_idle;
        }
        if let Some(running) = &mut child
            && let Some(ended) = running.try_wait()?
        {
            const SIGNALLED: i32 = 128;
            let code = ended.code().unwrap_or_else(|| SIGNALLED + ended.signal().unwrap_or(0));
            status = ExitCode::from(code as u8);
            // Processes that have not come by now are not waited for.
            (child, any) = (None, true);
            continue;
        }
        let is_unwanted = || session.is_gone() || DISMISSED.load(Ordering::Relaxed);
        let over = match any {
            true => is_idle && (latest.elapsed() >= linger || is_unwanted()),
            false => start.elapsed() > patience || session.is_gone(),
        };
        if child.is_none() && over || STOP.load(Ordering::Relaxed) {
            return Ok(status);
        }
        if found.ended < MANY_ENDED {
            pause();
        }
    }
}

/// Waits for the next round, or for a signal, after which it may be over.
fn pause() {
    let milliseconds = i32::try_from(INTERVAL.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: no descriptors are waited for.
    unsafe { libc::poll(ptr::null_mut(), 0, milliseconds) };
}

/// Resets limits that were inherited from the application: the companion needs a file for each process, and time on
/// any processor.
fn own_limits() {
    // SAFETY: the kernel reads and fills in structures of the right type; what it refuses stays as
    // it is.
    unsafe {
        let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut files) == 0 {
            files.rlim_cur = files.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const files);
        }
        let parameters = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters);
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        for cpu in 0..libc::CPU_SETSIZE as usize {
            libc::CPU_SET(cpu, &mut all);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const all);
    }
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: the kernel writes as many bytes as there are.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(io::Error::last_os_error()).context("no random number for the session");
    }
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        assert_eq!(seconds("1.5").ok(), Some(std::time::Duration::from_millis(1500)));
        for text in ["-1", "nan", "inf", "1e30", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
