//! What can be typed. Layers: what is looked at, how it is shown, and what each view adds.

mod choices;
mod condition;
mod examples;
mod filters;
mod gate;
mod piece;
mod sort;
mod span;
mod top;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use choices::{ExportFormat, GraphFormat, SyscallsBy};
pub(crate) use condition::{Condition, Figure, Kind, Limit, Unit};
pub(crate) use filters::{ApiFilter, GroupFilter, LibFilter, ThreadFilter, matches};
pub(crate) use gate::GateArgs;
pub(crate) use piece::{Piece, PieceKind, WithoutArg};
pub(crate) use sort::{Sort, SortArg};
pub(crate) use span::SpanArgs;
pub(crate) use top::{TopArgs, TopTable};

const EXAMPLES: &str = "\
Examples:
  chase record ./app                   record: writes chase.data/
  chase-report                         what the newest run in chase.data did
  chase-report apis --lib 'libz*'      the functions of one library
  chase-report hot                     the functions that the processor was in, with lines
  chase-report tree --thread worker    what the threads called worker call, and from where
  chase-report threads --json          every thread, for a program to read
  chase-report tree --group worker     where the threads of one group differ
  chase-report syscalls --api 'fread'  which system calls fread makes, and how often
  chase-report compare old.data new.data   what became slower, and whether that is noise
  chase-report html -o report.html     everything as one page, to be opened in a browser
  chase-report charts -o out           charts as SVG and PNG
  chase-report export --format pprof -o app.pb.gz
                                       for other tools (docs/exports.md)
  chase-report old.data/app.4711.chase libs
  chase-report --run all fleet.data    all runs there, added up: one program on many machines

  chase-report --fail-if 'wait:mutex > 10%'   for CI: exit status 3 if it is so (docs/gate.md)

Exit status: 0 all is shown, 1 nothing could be read, 2 wrong usage, 3 a --fail-if is met.";

const FOLD_EXAMPLES: &str = "\
Examples:
  chase-report fold                    what is in chase.data
  tar -xf chase.data/folded-*.tar.zst  the recordings, one by one, again

`chase record` does so by itself after a run of more than 50 processes.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  chase-report compare old.data new.data               all functions, most changed first
  chase-report compare old.data new.data --api malloc  one of them in full
  chase-report compare glibc.data jemalloc.data --api malloc --api je_malloc
  chase-report compare --api fread --api read         two functions of the newest run
  chase-report compare --before a1.data --before a2.data --after b.data
  chase-report compare old.data new.data --fail-if 'lib:libz.so*.self > +5%'
                                       for CI: exit status 3 if it is so (docs/gate.md)

Changes can be told from noise with several runs on each side: record the same command four times
or more into one directory per side (CHASE_OUTPUT).";

/// Shows where a program's time went, library by library.
///
/// Reads recordings made by `chase record`, or with LD_PRELOAD=libchase.so. Without a view it prints a summary.
#[derive(Debug, Parser)]
#[command(name = "chase-report", version = chase_version::VERSION, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_precedence_over_arg = true, mut_subcommands = examples::add)]
pub(crate) struct Cli {
    #[command(flatten)]
    path: PathArg,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(subcommand)]
    pub(crate) view: Option<View>,
}

impl Cli {
    /// The paths, wherever they were given.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let of_view = self.view.as_ref().map_or(&[][..], |view| match view {
            View::Libs { path, .. }
            | View::Apis { path, .. }
            | View::Hot { path, .. }
            | View::Threads { path, .. }
            | View::Tail { path, .. }
            | View::Waits { path, .. }
            | View::Findings { path }
            | View::Graph { path, .. }
            | View::Path { path, .. }
            | View::Tree { path, .. }
            | View::Syscalls { path, .. }
            | View::Narrate { path, .. }
            | View::Components { path, .. }
            | View::NotSeen { path }
            | View::Brief { path }
            | View::Charts { path, .. }
            | View::Export { path, .. } => &path.paths,
            View::Html { recordings, .. } => &recordings[recordings.len().saturating_sub(1)..],
            View::Compare(_) | View::Generate { .. } | View::Fold { .. } | View::Top(_) => &[],
        });
        if of_view.is_empty() { self.path.paths.clone() } else { of_view.to_vec() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PathArg {
    /// A recording, or a directory of recordings, whose newest run is shown; of several paths, all
    /// that is there is shown together [default: $CHASE_OUTPUT, or chase.data]
    #[arg(value_name = "PATH", num_args = 0..)]
    paths: Vec<PathBuf>,
}

/// Which runs of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The Nth newest.
    Nth(usize),
    All,
}

impl FromStr for Runs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            _ => text.parse().map(Self::Nth).map_err(|_| "a number, or all".to_owned()),
        }
    }
}

/// A program that was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launched {
    pub(crate) pid: u32,
    /// The session that it belongs to at first.
    pub(crate) session: u32,
    /// When, ns since 1970.
    pub(crate) since_ns: u64,
}

impl FromStr for Launched {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text.split(',').filter_map(|number| number.parse().ok()).collect();
        match *numbers {
            [pid, session, since_ns] => {
                Ok(Self { pid: pid as u32, session: session as u32, since_ns })
            }
            _ => Err("three numbers".to_owned()),
        }
    }
}

/// What is looked at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SourceArgs {
    /// The Nth newest run of the directory, or all of them, added up; compare takes each by itself
    /// [default: 1, the newest; all with compare and of several paths]
    #[arg(long, value_name = "N|all", global = true)]
    pub(crate) run: Option<Runs>,
    /// Only this process of the run; without it all of them, added up
    #[arg(long, value_name = "PID", global = true)]
    pub(crate) process: Option<u32>,
    /// Instead, the run of what `chase record` has started
    #[arg(long, value_name = "PID,SESSION,NS", global = true, hide = true, conflicts_with = "run")]
    pub(crate) launched: Option<Launched>,
    /// Look for debug information here first (build-id tree, mirror of absolute paths, or loose
    /// files); may be repeated
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) debug_dir: Vec<PathBuf>,
}

/// How it is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// As JSON, every row and every figure (docs/json.md describes it)
    #[arg(long, global = true, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// As CSV, every row; times in nanoseconds
    #[arg(long, global = true)]
    pub(crate) csv: bool,
    /// At most N rows, the costliest first; 0 is all [default: 30; all with --json and --csv]
    #[arg(long, value_name = "N", global = true)]
    pub(crate) top: Option<usize>,
    /// Colours: auto uses them on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Colour::Auto, global = true)]
    pub(crate) color: Colour,
    /// Never through $PAGER
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

/// What of a run is shown.
#[derive(Debug, Subcommand)]
pub(crate) enum View {
    /// Time and calls of each library
    Libs {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        sort: SortArg,
    },
    /// Time and calls of each library function, with its quantiles
    Apis {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        api: ApiFilter,
        #[command(flatten)]
        sort: SortArg,
    },
    /// Functions by the time that the processor was in them, own code as well as libraries', whoever called them
    Hot {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
    },
    /// Thread groups, how evenly they share work and which threads differ; then each thread: who
    /// started it where, how long it lived, what it did
    Threads {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        thread: ThreadFilter,
        #[command(flatten)]
        group: GroupFilter,
        #[command(flatten)]
        sort: SortArg,
        /// Only the groups
        #[arg(long = "groups")]
        only_groups: bool,
    },
    /// The slowest calls of each function in each thread group, and who makes them
    Tail {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        api: ApiFilter,
        #[command(flatten)]
        group: GroupFilter,
    },
    /// What threads wait for: locks, conditions, barriers, joins, sleep, input and output
    Waits {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        api: ApiFilter,
        #[command(flatten)]
        group: GroupFilter,
    },
    /// What is worth a sentence: causes that cost time, with the lock, file or thread behind them, and where
    Findings {
        #[command(flatten)]
        path: PathArg,
    },
    /// Who waits for whom, thread group by thread group, and which group limits the others
    Graph {
        #[command(flatten)]
        path: PathArg,
        /// As a picture or for Graphviz, instead of a table
        #[arg(long, value_name = "FORMAT", value_enum)]
        format: Option<GraphFormat>,
        /// The file to write [default: standard output]
        #[arg(short, long, value_name = "FILE", requires = "format")]
        output: Option<PathBuf>,
    },
    /// The critical path: what the run's length is made of, walked from its end back to its start
    Path {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        without: WithoutArg,
        #[command(flatten)]
        span: SpanArgs,
    },
    /// The calling contexts: which library call was made inside which, and what it took
    Tree {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        api: ApiFilter,
        #[command(flatten)]
        thread: ThreadFilter,
        #[command(flatten)]
        group: GroupFilter,
    },
    /// System calls: which library calls made them, how many per call, errors, wall and CPU time
    Syscalls {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        api: ApiFilter,
        #[command(flatten)]
        thread: ThreadFilter,
        /// Only this table [default: all but thread and context; with --csv: api]
        #[arg(long, value_name = "TABLE", value_enum)]
        by: Option<SyscallsBy>,
    },
    /// What happened in order, one line for each system call, with its arguments and its result, below the library calls that
    /// made it; needs a recording made with --narrate
    Narrate {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        thread: ThreadFilter,
        #[command(flatten)]
        span: SpanArgs,
    },
    /// What the run is made of: programs, and the files, pipes and sockets that they read and write; needs a recording made
    /// with --narrate
    Components {
        #[command(flatten)]
        path: PathArg,
        /// As a graph instead
        #[arg(long, value_name = "FORMAT", value_enum)]
        graph: Option<GraphFormat>,
        /// The file for the graph [default: standard output]
        #[arg(short, long, value_name = "FILE", requires = "graph")]
        output: Option<PathBuf>,
    },
    /// What the figures do not contain, in full
    NotSeen {
        #[command(flatten)]
        path: PathArg,
    },
    /// The run in a few lines, as `chase record` ends with
    #[command(hide = true)]
    Brief {
        #[command(flatten)]
        path: PathArg,
    },
    /// Write man pages and completions
    #[command(hide = true)]
    Generate {
        /// Where to
        directory: PathBuf,
    },
    /// What a process that is being recorded does now: a live view
    #[command(after_help = top::EXAMPLES)]
    Top(TopArgs),
    /// Put the recordings of ended processes into one file, much smaller; nothing is lost, and reports read it as before
    #[command(after_help = FOLD_EXAMPLES)]
    Fold {
        /// Directories of recordings [default: $CHASE_OUTPUT, or chase.data]
        #[arg(value_name = "DIRECTORY")]
        directories: Vec<PathBuf>,
    },
    /// What changed between two recordings, or how two functions differ
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Everything as one HTML page that needs nothing else: pictures, tables, flame graphs
    Html {
        /// A recording, or a directory of recordings, whose newest run is shown; of two, the first
        /// is what the second is compared with, as by `compare` [default: $CHASE_OUTPUT, or
        /// chase.data]
        #[arg(value_name = "RECORDING", num_args = 0..=2)]
        recordings: Vec<PathBuf>,
        /// The file to write
        #[arg(short, long, value_name = "FILE", default_value = "report.html")]
        output: PathBuf,
        /// Overwrite the file, if it is there, without asking
        #[arg(long)]
        force: bool,
    },
    /// The calling contexts, or the timeline, in the format of another tool
    Export {
        #[command(flatten)]
        path: PathArg,
        /// The format; docs/exports.md says what opens each
        #[arg(long, value_name = "FORMAT", value_enum)]
        format: ExportFormat,
        /// The file to write [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Draw charts, all that the HTML page has and two more, as SVG and PNG
    Charts {
        #[command(flatten)]
        path: PathArg,
        /// Directory for the charts; made if it isn't there
        #[arg(short, long, value_name = "DIR", default_value = "chase.charts")]
        output: PathBuf,
    },
}

/// What is compared.
#[derive(Debug, Default, Args)]
pub(crate) struct CompareArgs {
    /// Two recordings or directories, before and after; or one, with two --api. All runs of a
    /// directory that ran the same command as its newest are taken
    #[arg(value_name = "PATH", num_args = 0..)]
    pub(crate) paths: Vec<PathBuf>,
    /// A recording or directory of the side before; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) before: Vec<PathBuf>,
    /// A recording or directory of the side after; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) after: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lib: LibFilter,
    #[command(flatten)]
    pub(crate) api: ApiFilter,
    /// Draw what the time of a call is spent on, as stacked bars, into this .svg or .png file
    #[arg(long, value_name = "FILE")]
    pub(crate) chart: Option<PathBuf>,
}

/// What was typed makes no sense; known only after all of it was looked at.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["chase-report"], arguments].concat())
    }

    #[test]
    fn the_definition_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn path_and_options_on_either_side_of_the_view() {
        for arguments in [
            &["some.data", "libs", "--json", "--top", "3"][..],
            &["--json", "--top=3", "libs", "some.data"],
            &["libs", "--top", "3", "some.data", "--json"],
        ] {
            let cli = parse(arguments).expect("accepted");
            assert_eq!(cli.paths(), [PathBuf::from("some.data")]);
            assert!(cli.output.json && cli.output.top == Some(3), "{arguments:?}");
            assert!(matches!(cli.view, Some(View::Libs { .. })));
        }
        assert!(parse(&[]).expect("accepted").paths().is_empty());
        for arguments in [&["a", "b", "libs", "--run", "all"][..], &["libs", "a", "b", "--run=all"]]
        {
            let cli = parse(arguments).expect("accepted");
            assert_eq!(cli.paths(), [PathBuf::from("a"), PathBuf::from("b")]);
            assert_eq!(cli.source.run, Some(Runs::All));
            assert!(matches!(cli.view, Some(View::Libs { .. })));
        }
        assert!(parse(&["--run", "some"]).is_err());
        assert!(parse(&["libs", "--json", "--csv"]).is_err());
        assert!(parse(&["apis", "--api", "["]).is_err());
    }
}
