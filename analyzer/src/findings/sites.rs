//! Where the calls are made that a finding is about.

use std::collections::HashMap;

use super::joint::ONE_PLACE;
use super::{Blame, Evidence, Finding, FindingKind, system};
use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::rows::{ContextRow, ObjectRow};

/// A place is named if so much of what the finding is about is there.
const MOSTLY: f64 = 0.5;

/// A place of calls, a process in which it is valid, and whether there are others besides.
type Place = (usize, CodeAddress, bool);

/// Adds the place to a finding about calls of a function, if it is known: of all calls where contexts are told apart by places
/// (`CHASE_SITES`), of waits where a companion saw them, of other calls by samples, or of those that took long.
pub(super) fn name(evidence: &Evidence<'_>, finding: &mut Finding) {
    use FindingKind as Kind;
    let is_of_calls = matches!(
        finding.kind,
        Kind::ManyTinyCalls { .. }
            | Kind::MappingChurn { .. }
            | Kind::SlowLoading { .. }
            | Kind::SmallTransfers { .. }
            | Kind::Syncing { .. }
            | Kind::NameResolution { .. }
            | Kind::LookedUpAgain { .. }
            | Kind::MadeAgain { .. }
            | Kind::Spinning { .. }
            | Kind::ShortProcesses { .. }
    );
    let (Some(api), Some(&thread)) = (finding.api, finding.threads.first()) else { return };
    let is_known = finding.blame.as_ref().is_some_and(|blame| blame.site.is_some());
    if !is_of_calls || is_known {
        return;
    }
    let by_calls = matches!(finding.kind, Kind::ManyTinyCalls { .. } | Kind::Spinning { .. });
    let found = of_calls(evidence, thread, api, by_calls)
        .or_else(|| of_waits(evidence, finding.group, (thread, api), finding.saves_ns));
    let Some((process, site, elsewhere)) = found else { return };
    // Where an allocator makes system calls in few of its calls, the place of most of all is not the place of these.
    if matches!(finding.kind, Kind::MappingChurn { by_allocator: true, .. })
        && (elsewhere || !system::maps_mostly(evidence, api))
    {
        return;
    }
    match &mut finding.blame {
        // (Its addresses are of this process.)
        Some(blame) if blame.object.is_some() && blame.process != process => {}
        Some(blame) => {
            (blame.process, blame.site, blame.elsewhere) = (process, Some(site), elsewhere);
        }
        None => {
            let waits = evidence.waits_in(&evidence.groups.rows[finding.group as usize], api);
            let wait_ns = Ns::from_f64(waits.iter().map(|(ns, _)| ns).sum());
            let (api, site) = (Some(api), Some(site));
            finding.blame =
                Some(Blame { process, api, site, elsewhere, wait_ns, ..Blame::default() });
        }
    }
}

/// Returns the place of single calls, if contexts are told apart by places: that of most of the time of those calls, given with
/// their contexts.
pub(super) fn of_contexts(
    evidence: &Evidence<'_>,
    calls: impl Iterator<Item = (u32, f64)>,
) -> Option<Blame> {
    let mut sums: HashMap<CodeAddress, (usize, f64)> = HashMap::new();
    let (mut all, mut api) = (0.0, None);
    for (context, ns) in calls {
        let row = evidence.analysis.contexts.get(context as usize)?;
        (all, api) = (all + ns, Some(row.api));
        if let Some(site) = row.site {
            sums.entry(site).or_insert((row.process, 0.0)).1 += ns;
        }
    }
    let (process, site, elsewhere) = most(sums, all)?;
    Some(Blame { process, api, site: Some(site), elsewhere, ..Blame::default() })
}

/// Returns the place of most calls that the thread makes of a function, or of most of their time, and a process in which it is
/// valid.
fn of_calls(evidence: &Evidence<'_>, thread: u32, api: u32, by_calls: bool) -> Option<Place> {
    let rows = &evidence.analysis.contexts;
    let mut sums: HashMap<CodeAddress, (usize, f64)> = HashMap::new();
    let mut all = 0.0;
    for part in &evidence.analysis.threads[thread as usize].contexts {
        let row = &rows[part.context as usize];
        if row.api != api {
            continue;
        }
        let value = if by_calls { part.calls as f64 } else { part.total_ns.as_f64() };
        all += value;
        let row = in_program(evidence, row);
        if let Some(site) = row.site {
            sums.entry(site).or_insert((row.process, 0.0)).1 += value;
        }
        // (Samples tell calls apart, not their time: what a thread's calls of a context take is divided alike.)
        let places = if by_calls { &row.places } else { row.places_by_time() };
        for place in places {
            if let Some(site) = place.address {
                sums.entry(site).or_insert((place.process, 0.0)).1 += value * place.share;
            }
        }
    }
    most(sums, all)
}

/// Returns the context of the calls, or, where the library of C++ makes them, that of its call by which the program has it do so: if
/// places of that are known.
fn in_program<'a>(evidence: &Evidence<'a>, row: &'a ContextRow) -> &'a ContextRow {
    let Analysis { contexts, objects, .. } = evidence.analysis;
    let mut around = row;
    while objects.get(around.caller as usize).is_some_and(ObjectRow::is_library_of_cpp) {
        let Some(parent) = around.parent.and_then(|parent| contexts.get(parent as usize)) else {
            return row;
        };
        around = parent;
    }
    match around.site.is_some() || !around.places_by_time().is_empty() {
        true => around,
        false => row,
    }
}

/// Returns the place of most waits of a thread in a function, if these are most of what the finding is about.
fn of_waits(
    evidence: &Evidence<'_>,
    group: u32,
    (thread, api): (u32, u32),
    saves_ns: Ns,
) -> Option<Place> {
    let mut sums: HashMap<CodeAddress, (usize, f64)> = HashMap::new();
    let mut all = 0.0;
    for row in evidence.causes_of(group).filter(|row| row.api == Some(api)) {
        let own = row.by_thread.iter().filter(|span| span.thread == thread);
        let ns: f64 = own.map(|span| span.ns.as_f64()).sum();
        all += ns;
        if let Some(site) = row.site {
            sums.entry(site).or_insert((row.process, 0.0)).1 += ns;
        }
    }
    if all < MOSTLY * saves_ns.as_f64() {
        return None;
    }
    most(sums, all)
}

/// Returns the place of most calls, if it is that of half of all.
pub(super) fn most(sums: HashMap<CodeAddress, (usize, f64)>, all: f64) -> Option<Place> {
    // (Calls whose place is not known say nothing of other places.)
    let known: f64 = sums.values().map(|&(_, value)| value).sum();
    let key = |site: &CodeAddress| (site.object, site.svma, site.avma);
    let longest = sums.into_iter().max_by(|(a, (_, of_a)), (b, (_, of_b))| {
        of_a.total_cmp(of_b).then_with(|| key(b).cmp(&key(a)))
    });
    let (site, (process, value)) = longest?;
    let elsewhere = value < ONE_PLACE * known;
    (value > 0.0 && value >= MOSTLY * all).then_some((process, site, elsewhere))
}
