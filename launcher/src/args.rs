//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chase_format::session::MOST_SAMPLES;
use chase_logic::events::Events;
use clap::{Args, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  chase record ./app --its-option      run it and record; ends with a summary
  chase attach 4711 --duration 10s     a process that runs already
  chase top 4711                       what it does now, while it is recorded
  chase report                         the newest run, in full (chase-report)
  chase check ./app                    what can be seen of it, before it runs
  chase doctor                         what works on this machine

Exit status of record: the program's own; 125 if chase failed, 126 if the program can't be started,
127 if it was not found.";

const RECORD_EXAMPLES: &str = "\
Examples:
  chase record ./app --its-option             writes chase.data/
  chase record -o before -- make -j4          all that make starts, into before/
  chase record --follow none -- ./test.sh     the shell, and not what it starts
  chase record --follow 'cc1*,ld' -- make     the compiler and the linker
  chase record --libs 'libz*,:pthread_*' -- ./app
  chase record --threads 'worker*' -- ./app   only threads that run worker_1, worker_2, ...
  chase record --timing all -q -- ./app       every call timed; no summary
  chase record --delay 5s --duration 30s -- ./server    once it is warm, for half a minute
  chase record --start-on USR1 -- ./server    from kill -USR1 (to chase) to the next one
  chase record --start-on call:deflate -- ./app    from the first call of zlib's deflate
  chase record --print-env -- ./app           how to do the same without chase

Options are also taken from chase.toml, here or in $XDG_CONFIG_HOME/chase/, and from the variables
CHASE_OUTPUT, CHASE_TIMING, ... The command line comes first, then variables, then the files:

  timing = \"all\"
  exclude = [\":pthread_mutex_*\"]

Signals that are sent to chase by other processes reach the program; those of the terminal do so
anyway. With -q there is no chase beside the program: it is started in its place.";

const ATTACH_EXAMPLES: &str = "\
Examples:
  chase attach 4711                           until Ctrl-C
  chase attach --duration 10s 4711            for ten seconds
  chase attach -o before -d 30s $(pidof -s redis-server)

The process stands still for some milliseconds at the beginning and at the end. When chase leaves,
all that it changed is as it was; the library stays mapped, unused, since a call that began meanwhile
may return through it. Calls that were under way when chase came are not seen.

Not possible with: static programs, musl, 32-bit programs, processes of other users (but for root),
under a debugger, under a filter of system calls (seccomp) that kills, or where Yama forbids it.";

const CHECK_EXAMPLES: &str = "\
Examples:
  chase check ./app
  chase check ls                       as the shell would find it";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  chase doctor";

/// Records which shared-library calls a program makes, and where their time goes
#[derive(Debug, Parser)]
#[command(name = "chase", version = chase_version::VERSION, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run a program and record it
    #[command(after_help = RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Record a process that runs already, for a while
    #[command(after_help = ATTACH_EXAMPLES)]
    Attach(AttachArgs),
    /// Show what a process that is being recorded does now
    #[command(disable_help_flag = true)]
    Top {
        /// What `chase-report top` takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Say what can and can't be seen of a program, without running it
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Say what works on this machine, and what to do about the rest
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor,
    /// Show a recording: the same as chase-report
    #[command(disable_help_flag = true)]
    Report {
        /// What chase-report takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Write man pages and completions
    #[command(hide = true)]
    Generate {
        /// Where to
        directory: PathBuf,
    },
}

/// How a program is recorded.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Begin so long after the program's start: 500ms, 10s, 2m. (It takes some tenths of a second to come in)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) delay: Option<Duration>,
    /// Begin when chase gets this signal (HUP, USR1 or USR2), and end with the next one; or with the first call of a library's
    /// function, in each process: call:FUNCTION or call:OBJECT:FUNCTION, globs
    #[arg(long, value_name = "SIGNAL|call:FUNCTION", value_parser = start_on)]
    pub(crate) start_on: Option<StartOn>,
    /// End after so long; the program goes on
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Show the command that does the same without chase, and run nothing
    #[arg(long)]
    pub(crate) print_env: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = false)]
    pub(crate) command: Vec<OsString>,
}

/// What is recorded, and where.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    /// Directory for the recordings [default: chase.data]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Which calls are timed [default: adaptive]
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) timing: Option<Timing>,
    /// Whether system calls, waits and samples are recorded, by the companion [default: auto]
    #[arg(long, value_name = "WHETHER", value_enum)]
    pub(crate) syscalls: Option<Syscalls>,
    /// Samples of what runs, per second and processor, or off [default: 997]
    #[arg(long, value_name = "HZ|off", value_parser = sample)]
    pub(crate) sample: Option<String>,
    /// Which single calls are kept for the timeline: off, slow, slow:TIME, all, all=OBJECT:FUNCTION, a size like 64MB, first,
    /// last, or several of these with commas [default: slow:100us,8MB]
    #[arg(long, value_name = "WHICH", value_parser = events)]
    pub(crate) events: Option<String>,
    /// Keep each system call with its arguments, for `chase-report narrate` and `components`
    #[arg(long)]
    pub(crate) narrate: bool,
    /// Tell contexts apart by the line that calls, too, for `chase-report tree`; times all calls, and slows them down
    #[arg(long)]
    pub(crate) sites: bool,
    /// Most that the recording of each process may grow to, as 64MB (what the companion writes of it comes on top); what comes then is counted in what is there, and said to be missing
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<String>,
    /// Only calls that an item matches: OBJECT, OBJECT:FUNCTION or :FUNCTION, globs; may be repeated
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = item)]
    pub(crate) libs: Vec<String>,
    /// Not calls that an item matches
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = item)]
    pub(crate) exclude: Vec<String>,
    /// Objects whose calls to themselves through their own PLT are recorded too
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = item)]
    pub(crate) internal: Vec<String>,
    /// Which programs: all that are started; none but the first; or those that a glob matches, with
    /// all that they start. A glob is for the name of the executable or script, with a slash for the
    /// executable's path, with a space for the command line [default: all]
    #[arg(long, value_name = "all|none|GLOB", value_delimiter = ',', value_parser = item)]
    pub(crate) follow: Vec<String>,
    /// Which threads: those whose start routine, or its object, an item matches: ROUTINE, OBJECT or OBJECT:ROUTINE, globs; `main`
    /// is the first one. Nothing is recorded of the others [default: all]
    #[arg(long, value_name = "GLOB", value_delimiter = ',', value_parser = item)]
    pub(crate) threads: Vec<String>,
    /// No summary; `record`: the program takes chase's place
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say at the start where each recording is, or why there is none
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// A process that runs already.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The process
    #[arg(value_name = "PID", value_parser = process)]
    pub(crate) pid: i32,
    /// How long, as 30s, 500ms or 2m [default: until Ctrl-C, or the process's end]
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// End a recording that an earlier `chase attach` began and could not end
    #[arg(long)]
    pub(crate) leave: bool,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timing {
    /// All, but of hot, short, even calls a random sample
    Adaptive,
    /// All
    All,
    /// None: calls are counted
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Syscalls {
    /// If that is possible
    Auto,
    /// Not
    Off,
    /// If that is not possible, the program is not started
    Require,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The program, as it would be typed
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: PathBuf,
}

/// An item of a list.
fn item(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("an item of the list is empty".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// A number of samples, as the companion takes it.
pub(crate) fn sample(text: &str) -> Result<String, String> {
    match text.parse::<u32>() {
        Ok(1..=MOST_SAMPLES) => Ok(text.to_owned()),
        _ if text == "off" => Ok(text.to_owned()),
        _ => Err(format!("off, or samples per second, from 1 to {MOST_SAMPLES}")),
    }
}

/// What begins a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartOn {
    /// A signal that chase gets.
    Signal(i32),
    /// The first call of this function, as the library takes it.
    Call(String),
}

/// What begins a recording, as it is typed.
pub(crate) fn start_on(text: &str) -> Result<StartOn, String> {
    match text.strip_prefix("SIG").unwrap_or(text) {
        "HUP" => Ok(StartOn::Signal(libc::SIGHUP)),
        "USR1" => Ok(StartOn::Signal(libc::SIGUSR1)),
        "USR2" => Ok(StartOn::Signal(libc::SIGUSR2)),
        _ => {
            match text.strip_prefix("call:") {
                Some(name) if !name.trim_start_matches(':').is_empty() => {
                    Ok(StartOn::Call(name.to_owned()))
                }
                _ => Err("HUP, USR1 or USR2, or a call, as call:deflate or call:libz.so*:deflate"
                    .to_owned()),
            }
        }
    }
}

/// The number of a process.
pub(crate) fn process(text: &str) -> Result<i32, String> {
    let number = text.parse::<i32>().ok().filter(|&number| number > 0);
    number.ok_or_else(|| {
        "the number of a process, which `pidof -s NAME` or `pgrep NAME` tells".to_owned()
    })
}

/// Which single calls are kept, as the library reads it.
pub(crate) fn events(text: &str) -> Result<String, String> {
    match Events::read(text.to_owned().leak().as_bytes()).is_unknown {
        false => Ok(text.to_owned()),
        true => Err("off, slow, slow:TIME, all, all=OBJECT:FUNCTION, a size like 64MB, first or last, or several of these with commas"
            .to_owned()),
    }
}

/// A number of bytes, as the library reads it.
pub(crate) fn size(text: &str) -> Result<String, String> {
    const UNITS: [(&str, u64); 9] = [
        ("KB", 1 << 10),
        ("kB", 1 << 10),
        ("K", 1 << 10),
        ("k", 1 << 10),
        ("MB", 1 << 20),
        ("M", 1 << 20),
        ("GB", 1 << 30),
        ("G", 1 << 30),
        ("", 0),
    ];
    const LEAST: u64 = 256 << 10;
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let unit = UNITS.iter().find(|(unit, _)| *unit == &text[digits.len()..]);
    let bytes = unit.zip(digits.parse::<u64>().ok()).and_then(|((_, of), n)| n.checked_mul(*of));
    match bytes {
        Some(LEAST..) => Ok(text.to_owned()),
        _ => Err("a size of 256KB or more, as 64MB".to_owned()),
    }
}

/// A length of time, as `30s`, `500ms`, `2m`, or seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
    let time =
        seconds.map(Duration::from_secs_f64).or_else(|| humantime::parse_duration(text).ok());
    time.ok_or_else(|| "a time, as 30s, 500ms or 2m".to_owned())
}
