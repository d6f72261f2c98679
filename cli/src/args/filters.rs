//! Options that select what is shown.

use clap::Args;
use globset::{GlobBuilder, GlobMatcher};

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

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct GroupFilter {
    /// Only thread groups whose name matches, as `threads` shows it; may be repeated
    #[arg(long = "group", value_name = "GLOB", value_parser = glob)]
    pub(crate) groups: Vec<GlobMatcher>,
}

/// Whether one of `names` matches one of `globs`, or there are none to match.
pub(crate) fn matches(globs: &[GlobMatcher], names: &[&str]) -> bool {
    globs.is_empty() || globs.iter().any(|glob| names.iter().any(|name| glob.is_match(name)))
}

/// Parses a pattern of names.
pub(super) fn glob(text: &str) -> Result<GlobMatcher, String> {
    // Names are no paths: `*` matches `/` and `::` alike.
    let glob = GlobBuilder::new(text).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_any_of_the_names() {
        let star = glob("std::*").expect("a glob");
        assert!(matches(&[], &["x"]));
        assert!(matches(std::slice::from_ref(&star), &["x", "std::a/b::c"]));
        assert!(!matches(&[star], &["x"]));
    }
}
