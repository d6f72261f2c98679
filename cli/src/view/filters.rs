//! Filters that match nothing: an empty table would not say why it is empty.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::bail;
use globset::GlobMatcher;

use crate::args::{Cli, View, matches};
use crate::report::Report;
use crate::terminal::clean;

/// Names that are shown of what there is.
const SHOWN: usize = 12;

/// Fails if a `--lib`, `--api` or `--thread` matches nothing in the run. A program that reads the output gets its
/// empty table, and people a line on standard error.
pub(super) fn check(cli: &Cli, report: &Report) -> anyhow::Result<()> {
    let Some(view) = &cli.view else { return Ok(()) };
    let analysis = &report.analysis;
    let Err(error) = look_at(view, report, analysis) else { return Ok(()) };
    if !cli.output.json && !cli.output.csv {
        return Err(error);
    }
    // Where standard error is closed, nobody is left to tell.
    let _ = writeln!(std::io::stderr(), "chase-report: {}", clean(&error.to_string()));
    Ok(())
}

fn look_at(
    view: &View,
    report: &Report,
    analysis: &chase_analyzer::Analysis,
) -> anyhow::Result<()> {
    let (libs, apis, threads) = match view {
        View::Libs { lib, .. } | View::Hot { lib, .. } => (&*lib.libs, &[][..], &[][..]),
        View::Apis { lib, api, .. }
        | View::Tail { lib, api, .. }
        | View::Waits { lib, api, .. } => (&*lib.libs, &*api.apis, &[][..]),
        View::Threads { thread, .. } | View::Narrate { thread, .. } => {
            (&[][..], &[][..], &*thread.threads)
        }
        View::Tree { lib, api, thread, .. } | View::Syscalls { lib, api, thread, .. } => {
            (&*lib.libs, &*api.apis, &*thread.threads)
        }
        _ => return Ok(()),
    };
    if !libs.is_empty() {
        let libraries = analysis.libraries.iter().map(|row| [&*row.name, &*row.path]);
        let objects = analysis.objects.iter().map(|row| [&*row.name, &*row.path]);
        let names: Vec<_> = libraries.chain(objects).collect();
        expect("--lib", "library", libs, &names)?;
    }
    if !apis.is_empty() {
        let names: Vec<_> = (0..analysis.apis.len())
            .map(|api| {
                let names = &report.names;
                [names.full(api), names.short(api), names.bare(api), &analysis.apis[api].symbol]
            })
            .collect();
        expect("--api", "function", apis, &names)?;
    }
    if !threads.is_empty() {
        let ids: Vec<String> = analysis.threads.iter().map(|row| row.tid.to_string()).collect();
        let names: Vec<_> =
            analysis.threads.iter().zip(&ids).map(|(row, id)| [&*row.name, id]).collect();
        expect("--thread", "thread", threads, &names)?;
    }
    Ok(())
}

/// Each of `globs` matches some of `names`, of which the first of each row is shown.
fn expect<const N: usize>(
    option: &str,
    what: &str,
    globs: &[GlobMatcher],
    names: &[[&str; N]],
) -> anyhow::Result<()> {
    for glob in globs {
        let one = std::slice::from_ref(glob);
        if names.iter().any(|names| matches(one, names)) {
            continue;
        }
        let all: BTreeSet<&str> = names.iter().map(|names| names[0]).collect();
        let mut shown: Vec<&str> = all.iter().take(SHOWN).copied().collect();
        if all.len() > SHOWN {
            shown.push("…");
        }
        bail!("{option} {}: no {what} of that name; there are: {}", glob.glob(), shown.join(", "));
    }
    Ok(())
}
