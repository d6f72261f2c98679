//! What can be typed. Layers: what is looked at, how it is shown, and what each view adds.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use globset::{GlobBuilder, GlobMatcher};

const EXAMPLES: &str = "\
Examples:
  LD_PRELOAD=libchase.so ./app         record: writes chase.data/
  chase-report                         what the newest run in chase.data did
  chase-report apis --lib 'libz*'      the functions of one library
  chase-report tree --thread worker    what the threads called worker call, and from where
  chase-report threads --json          every thread, for a program to read
  chase-report charts -o out           charts as SVG and PNG
  chase-report old.data/app-4711.chase libs

Exit status: 0 all is shown, 1 nothing could be read, 2 wrong usage.";

/// Shows where a program's time went, library by library.
///
/// Reads recordings made with LD_PRELOAD=libchase.so. Without a view it prints a summary.
#[derive(Debug, Parser)]
#[command(name = "chase-report", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    path: PathArg,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) view: Option<View>,
}

impl Cli {
    /// The path, wherever it was given.
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        let of_view = self.view.as_ref().and_then(|view| match view {
            View::Libs { path, .. }
            | View::Apis { path, .. }
            | View::Threads { path, .. }
            | View::Tree { path, .. }
            | View::Charts { path, .. } => path.path.as_ref(),
        });
        of_view.or(self.path.path.as_ref())
    }
}

#[derive(Debug, Args)]
pub(crate) struct PathArg {
    /// A recording, or a directory of recordings, whose newest run is shown
    /// [default: $CHASE_OUTPUT, or chase.data]
    path: Option<PathBuf>,
}

/// What is looked at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SourceArgs {
    /// The Nth newest run of the directory; 1 is the newest
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, global = true)]
    pub(crate) run: usize,
    /// Only this process of the run; without it all of them, added up
    #[arg(long, value_name = "PID", global = true)]
    pub(crate) process: Option<u32>,
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
    },
    /// Time and calls of each library function, with its quantiles
    Apis {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        lib: LibFilter,
        #[command(flatten)]
        api: ApiFilter,
    },
    /// Each thread: who started it where, how long it lived, what it did
    Threads {
        #[command(flatten)]
        path: PathArg,
        #[command(flatten)]
        thread: ThreadFilter,
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
    },
    /// Draw charts: time by library (pie) and by function (bars), as SVG and PNG
    Charts {
        #[command(flatten)]
        path: PathArg,
        /// Directory for the charts; made if it isn't there
        #[arg(short, long, value_name = "DIR", default_value = "chase.charts")]
        output: PathBuf,
    },
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct LibFilter {
    /// Only libraries whose name or path matches, such as 'libc.so*'; may be repeated
    #[arg(long = "lib", value_name = "GLOB", value_parser = glob)]
    pub(crate) libs: Vec<GlobMatcher>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct ApiFilter {
    /// Only functions whose name matches, such as 'pthread_*'; may be repeated
    #[arg(long = "api", value_name = "GLOB", value_parser = glob)]
    pub(crate) apis: Vec<GlobMatcher>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct ThreadFilter {
    /// Only threads with this id, or whose name matches; may be repeated
    #[arg(long = "thread", value_name = "TID|GLOB", value_parser = glob)]
    pub(crate) threads: Vec<GlobMatcher>,
}

/// Whether one of `names` matches one of `globs`, or there are none to match.
pub(crate) fn matches(globs: &[GlobMatcher], names: &[&str]) -> bool {
    globs.is_empty() || globs.iter().any(|glob| names.iter().any(|name| glob.is_match(name)))
}

fn glob(text: &str) -> Result<GlobMatcher, String> {
    // Names are no paths: `*` matches `/` and `::` alike.
    let glob = GlobBuilder::new(text).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

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
            assert_eq!(cli.path(), Some(&PathBuf::from("some.data")));
            assert!(cli.output.json && cli.output.top == Some(3), "{arguments:?}");
            assert!(matches!(cli.view, Some(View::Libs { .. })));
        }
        assert!(parse(&[]).expect("accepted").path().is_none());
        assert!(parse(&["libs", "--json", "--csv"]).is_err());
        assert!(parse(&["apis", "--api", "["]).is_err());
    }

    #[test]
    fn globs_match_any_of_the_names() {
        let star = glob("std::*").expect("a glob");
        assert!(matches(&[], &["x"]));
        assert!(matches(std::slice::from_ref(&star), &["x", "std::a/b::c"]));
        assert!(!matches(&[star], &["x"]));
    }
}
