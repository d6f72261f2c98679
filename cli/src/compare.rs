//! The two sides of a comparison: which recordings, and which functions.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use chase_analyzer::{
    Analysis, ApiName, Comparison, Image, Pair, Selection, compare, load_run, match_apis,
};
use globset::GlobMatcher;

use crate::args::{CompareArgs, Runs, SourceArgs, Usage, matches};
use crate::companion;
use crate::names::Names;
use crate::report::default_path;

/// Functions named where a glob matches too many.
const NAMED: usize = 8;

/// Recordings of one side.
pub(crate) struct Side {
    pub(crate) paths: Vec<PathBuf>,
    /// The command of the newest run.
    pub(crate) command: String,
    pub(crate) runs: Vec<Analysis>,
    /// Runs of other commands, at the same paths.
    pub(crate) others: usize,
}

/// A comparison and what it is of.
pub(crate) struct Compared {
    pub(crate) before: Side,
    /// `None` where two functions of one side are compared.
    pub(crate) after: Option<Side>,
    pub(crate) comparison: Comparison,
    /// Whether functions were named, so that each is shown in full.
    pub(crate) is_pair: bool,
}

impl Compared {
    /// Reads both sides and compares them.
    pub(crate) fn open(arguments: &CompareArgs, source: &SourceArgs) -> anyhow::Result<Self> {
        let globs = &arguments.api.apis;
        if globs.len() > 2 {
            return Err(usage("one --api selects functions, two are compared: give no more"));
        }
        let (before, after) = sides(arguments)?;
        let before = Side::open(&before, source)?;
        let after = if after.is_empty() { None } else { Some(Side::open(&after, source)?) };
        let other = after.as_ref().unwrap_or(&before);
        let pairs = match globs.as_slice() {
            [one, two] => vec![Pair {
                before: Some(one_api(&before, one, "before")?),
                after: Some(one_api(other, two, "after")?),
            }],
            globs => selected(&before, other, globs, arguments)?,
        };
        let is_pair = !globs.is_empty() && pairs.len() == 1;
        let comparison = compare(&before.runs, &other.runs, &pairs);
        Ok(Self { before, after, comparison, is_pair })
    }
}

/// Paths of both sides; none after where two functions of one side are compared.
fn sides(arguments: &CompareArgs) -> anyhow::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let CompareArgs { before, after, paths, api, .. } = arguments;
    match (before.is_empty(), after.is_empty(), paths.as_slice()) {
        (false, false, []) => Ok((before.clone(), after.clone())),
        (false, false, _) => {
            Err(usage("recordings are named after --before and --after, or without them: not both"))
        }
        (true, true, [one, two]) => Ok((vec![one.clone()], vec![two.clone()])),
        (true, true, [one]) if api.apis.len() == 2 => Ok((vec![one.clone()], Vec::new())),
        (true, true, []) if api.apis.len() == 2 => Ok((vec![default_path()], Vec::new())),
        (true, true, [] | [_]) => Err(usage(
            "name two recordings, `compare BEFORE AFTER`, or two functions of one, \
             `compare --api ONE --api OTHER`",
        )),
        (true, true, _) => Err(usage(
            "`compare` takes two recordings; with --before X --before Y --after Z each side may \
             have several",
        )),
        _ => Err(usage("--before and --after go together: name a recording with each")),
    }
}

fn usage(message: &str) -> anyhow::Error {
    Usage(message.to_owned()).into()
}

impl Side {
    fn open(paths: &[PathBuf], source: &SourceArgs) -> anyhow::Result<Self> {
        let mut side =
            Self { paths: paths.into(), command: String::new(), runs: Vec::new(), others: 0 };
        let mut wanted: Option<Vec<String>> = None;
        for path in paths {
            let catalog = companion::scan(std::slice::from_ref(path))?;
            let runs = match source.run {
                None | Some(Runs::All) => &catalog.runs[..],
                Some(Runs::Nth(number)) => {
                    let at = number.checked_sub(1).filter(|&at| at < catalog.runs.len());
                    let at = at.with_context(|| {
                        let (path, runs) = (path.display(), catalog.runs.len());
                        format!("--run {number}: {path} has runs 1 (the newest) to {runs}")
                    })?;
                    &catalog.runs[at..=at]
                }
            };
            for run in runs {
                let mut images = load_run(run)?.images;
                let command = command(&images[0]);
                // What a directory holds besides is something else.
                if wanted.get_or_insert_with(|| command.clone()) != &command && !is_file(path) {
                    side.others += 1;
                    continue;
                }
                if let Some(pid) = source.process {
                    images = crate::report::of_process(images, pid)?;
                }
                side.runs.push(Analysis::new(&images, Selection::All));
            }
        }
        side.command = wanted.unwrap_or_default().join(" ");
        Ok(side)
    }
}

fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// What was run: its arguments, with the program by its name alone.
fn command(image: &Image) -> Vec<String> {
    let program = image.started_as();
    std::iter::once(program).chain(image.command().into_iter().skip(1)).collect()
}

/// The one function that a glob means: a name that is just so goes before those it matches.
fn one_api(side: &Side, glob: &GlobMatcher, which: &str) -> anyhow::Result<ApiName> {
    let mut found: Vec<(f64, ApiName)> = Vec::new();
    let mut exact = Vec::new();
    for run in &side.runs {
        let names = Names::new(run);
        for (number, api) in run.apis.iter().enumerate().filter(|(_, api)| api.measures.calls > 0) {
            let shown = [&*api.symbol, names.short(number), names.full(number)];
            if !matches(std::slice::from_ref(glob), &shown) {
                continue;
            }
            let name = ApiName { library: api.library.clone(), symbol: api.symbol.clone() };
            let is_exact = shown.contains(&glob.glob().glob());
            let list = if is_exact { &mut exact } else { &mut found };
            match list.iter_mut().find(|(_, known)| *known == name) {
                Some((self_ns, _)) => *self_ns += api.measures.self_ns.as_f64(),
                None => list.push((api.measures.self_ns.as_f64(), name)),
            }
        }
    }
    if !exact.is_empty() {
        found = exact;
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let symbols: std::collections::BTreeSet<&str> =
        found.iter().map(|(_, name)| &*name.symbol).collect();
    let glob = glob.glob().glob();
    if symbols.len() > 1 {
        let named: Vec<&str> = symbols.iter().take(NAMED).copied().collect();
        bail!("--api '{glob}' means {} functions: {}; name one", symbols.len(), named.join(", "));
    }
    // The same function of several libraries: the one that did most.
    let first = found.into_iter().next();
    let (_, name) = first.with_context(|| {
        format!(
            "--api '{glob}': nothing of that name was called {which} (chase-report apis lists all)"
        )
    })?;
    Ok(name)
}

/// The matched functions that the filters let pass.
fn selected(
    before: &Side,
    after: &Side,
    globs: &[GlobMatcher],
    arguments: &CompareArgs,
) -> anyhow::Result<Vec<Pair>> {
    let is_wanted = |name: &Option<ApiName>| {
        let Some(name) = name else { return false };
        let full = chase_symbols::demangle(&name.symbol);
        let short = chase_symbols::shorten(&full);
        matches(globs, &[&name.symbol, &full, &short])
            && matches(&arguments.lib.libs, &[&name.library])
    };
    let mut pairs = match_apis(&before.runs, &after.runs);
    pairs.retain(|pair| is_wanted(&pair.before) || is_wanted(&pair.after));
    if pairs.is_empty() && (!globs.is_empty() || !arguments.lib.libs.is_empty()) {
        bail!("no function called on either side matches --api and --lib");
    }
    Ok(pairs)
}
