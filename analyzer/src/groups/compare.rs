//! Compares the threads of a group, for its row.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use super::key::{self, GroupKey, GroupKind, Naming};
use super::parts;
use super::rows::{
    CausedWait, GroupApi, GroupComparison, GroupRow, Outlier, OutlierApi, Spread, SubGroup,
    ThreadSpan,
};
use super::vectors::{ApiVector, OWN_CODE, Vectors};
use super::why::Usual;
use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::clusters;
use crate::image::Ending;
use crate::rows::{ThreadOrigin, ThreadRow};
use crate::stats::{Robust, imbalance};

/// Lifetimes are unlike if the longest is more than this multiple of the shortest.
const UNLIKE: f64 = 2.0;
/// If starts vary this many times as much as ends, one event ended the threads.
const ENDED_TOGETHER: f64 = 4.0;
/// With fewer threads there is no meaningful median.
const LEAST_THREADS: usize = 3;
/// An excess below this share of the median useful time makes no outlier.
const LEAST_EXCESS: f64 = 0.05;
/// The maximum number of APIs listed for a sub-group, and the minimum share of each.
const SUB_GROUP_APIS: usize = 3;
const SUB_GROUP_SHARE: f64 = 0.1;

/// Returns waits in library calls and, if the scheduler was observed, in the thread's own code.
fn wait_ns(thread: &ThreadRow) -> Ns {
    Ns(thread.measures.wait_ns.0.saturating_add(thread.outside_wait_ns().unwrap_or(Ns(0)).0))
}

pub(super) fn row(
    analysis: &Analysis,
    naming: &dyn Naming,
    key: GroupKey,
    members: Vec<u32>,
) -> GroupRow {
    let threads: Vec<&ThreadRow> =
        members.iter().map(|&thread| &analysis.threads[thread as usize]).collect();
    let first = threads[0];
    let sum = |part: fn(&ThreadRow) -> Ns| {
        Ns(threads.iter().fold(0, |sum: u64, row| sum.saturating_add(part(row).0)))
    };
    let start = threads.iter().map(|row| row.start_ns.0).min().unwrap_or(0);
    let end = threads.iter().map(|row| row.end_ns.0).max().unwrap_or(0);
    let paused = analysis.pauses.between(Ns(start), Ns(end));
    let wall_ns = Ns(end.saturating_sub(start).saturating_sub(paused.0));
    let vectors = Vectors::new(analysis, &members);
    let lifetime = spread(&members, vectors.lifetimes.iter().copied());
    let unlike = lifetime.max_ns.as_f64() > UNLIKE * lifetime.min_ns.as_f64();
    let as_rates = unlike && ended_together(&threads);
    let compared = imbalance(&scaled(&vectors.useful, &vectors.lifetimes, as_rates));
    let mean = vectors.useful.iter().sum::<f64>() / threads.len() as f64;
    let takes_any_task = naming.takes_any_task(first);
    // Commands that ran one after the other don't share work. (There may be very many, which it would take long to compare.)
    let is_unknown = key.kind == GroupKind::Found && is_unnamed(analysis, first);
    let comparable = key.kind != GroupKind::Main
        && !(takes_any_task || is_unknown || are_commands(analysis, &key, &threads));
    let parts = match comparable {
        true => parts::parts(analysis, naming, &members, &vectors),
        false => Vec::new(),
    };
    // If names or creation sites distinguish the threads, no clustering is needed.
    let sub_groups = match comparable && parts.is_empty() {
        true => sub_groups(&vectors, &members),
        false => Vec::new(),
    };
    let alike: Vec<&[u32]> = match *parts {
        [] => sub_groups.iter().map(|part| &*part.members).collect(),
        _ => parts.iter().map(|part| &*part.members).collect(),
    };
    let outliers = if comparable {
        outliers(analysis, &vectors, &members, &alike, as_rates)
    } else {
        Vec::new()
    };
    GroupRow {
        label: key::label(analysis, &key, first),
        kind: key.kind,
        executable: key.executable,
        program: key.program,
        start_routine: first.start_routine.filter(|_| key.routine.is_some()),
        creation_site: first.creation_site.filter(|_| key.routine.is_some()),
        name: common_name(&threads),
        source: key.closure.and_then(|_| {
            let closure = naming.closure(first)?;
            // The threads' name tells more than a line of a library.
            let is_named = !common_name(&threads).is_empty();
            closure.source.filter(|_| closure.is_in_program || !is_named)
        }),
        threads: threads.len(),
        concurrency: concurrency(&threads),
        wall_ns,
        lifetime_ns: sum(|row| row.lifetime_ns),
        application_ns: sum(|row| row.application_ns),
        library_ns: sum(|row| row.measures.self_ns),
        wait_ns: sum(wait_ns),
        useful_ns: Ns::from_f64(vectors.useful.iter().sum()),
        overlap_ns: sum(|row| row.overlap_ns),
        calls: threads.iter().fold(0, |sum, row| sum.saturating_add(row.measures.calls)),
        lifetime,
        useful: spread(&members, vectors.useful.iter().copied()),
        comparison: GroupComparison {
            imbalance_ns: Ns::from_f64(compared.time),
            imbalance: compared.share,
            load_balance: compared.load_balance,
            parallel_efficiency: if wall_ns.0 > 0 { mean / wall_ns.as_f64() } else { 0.0 },
        },
        as_rates,
        takes_any_task,
        is_unknown,
        unlike_lifetimes: unlike,
        waits: waits(analysis, &vectors, &members),
        apis: api_rows(&vectors, &members),
        outliers,
        parts,
        sub_groups,
        members,
    }
}

/// Whether a thread was given no name: then it has that of the program, which may have been changed since.
fn is_unnamed(analysis: &Analysis, thread: &ThreadRow) -> bool {
    // What the kernel keeps of a name.
    const LONGEST: usize = 15;
    let executable = analysis.processes[thread.process].executable.rsplit('/').next();
    let is_of_program = executable
        .is_some_and(|name| thread.name.as_bytes() == &name.as_bytes()[..name.len().min(LONGEST)]);
    let is_main = |row: &&ThreadRow| row.process == thread.process && row.thread == 0;
    let main = analysis.threads.iter().find(is_main);
    is_of_program || main.is_some_and(|main| main.name == thread.name)
}

/// Whether these are forks of a shell, or of another program that starts programs: most become commands, which share no work, nor does
/// what the others are for.
fn are_commands(analysis: &Analysis, key: &GroupKey, threads: &[&ThreadRow]) -> bool {
    let is_replaced = |row: &&&ThreadRow| analysis.processes[row.process].ending == Ending::Exec;
    key.kind == GroupKind::Forked && 2 * threads.iter().filter(is_replaced).count() >= threads.len()
}

/// Returns the name that all threads have, with digits at its end folded; empty if they have several, and for main
/// threads.
fn common_name(threads: &[&ThreadRow]) -> String {
    let name = |thread: &ThreadRow| match thread.origin {
        ThreadOrigin::Main => String::new(),
        _ => key::folded(&thread.name),
    };
    let first = name(threads[0]);
    if threads.iter().all(|thread| name(thread) == first) { first } else { String::new() }
}

/// Returns minimum, median and maximum of one value per member.
pub(crate) fn spread(members: &[u32], values: impl Iterator<Item = f64>) -> Spread {
    let mut values: Vec<(f64, u32)> = values.zip(members.iter().copied()).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
        return Spread::default();
    };
    let mut sorted: Vec<f64> = values.iter().map(|value| value.0).collect();
    Spread {
        min_ns: Ns::from_f64(first.0),
        median_ns: Ns::from_f64(crate::stats::median(&mut sorted)),
        max_ns: Ns::from_f64(last.0),
        min_thread: first.1,
        max_thread: last.1,
    }
}

/// Returns the maximum number of threads alive at one time. If one ends at the moment at which another starts, they
/// don't overlap.
fn concurrency(threads: &[&ThreadRow]) -> usize {
    let starts = threads.iter().map(|row| (row.start_ns, 1_i64));
    let ends = threads.iter().map(|row| (row.end_ns.max(Ns(row.start_ns.0.saturating_add(1))), -1));
    let mut events: Vec<(Ns, i64)> = starts.chain(ends).collect();
    events.sort_unstable();
    let mut alive = 0;
    let counts = events.into_iter().map(|(_, change)| {
        alive += change;
        alive
    });
    counts.max().unwrap_or(0) as usize
}

/// Whether threads started at different times and were ended by one event, such as the end of the process: then their
/// lifetimes say nothing about them.
fn ended_together(threads: &[&ThreadRow]) -> bool {
    let variance = |of: fn(&ThreadRow) -> Ns| {
        let values = || threads.iter().map(|row| of(row).as_f64());
        let mean = values().sum::<f64>() / threads.len() as f64;
        values().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    variance(|row| row.start_ns).sqrt() > ENDED_TOGETHER * variance(|row| row.end_ns).sqrt()
}

/// Returns the values, or what they would be in the longest lifetime at the same rate.
fn scaled(values: &[f64], lifetimes: &[f64], as_rates: bool) -> Vec<f64> {
    let longest = lifetimes.iter().copied().fold(0.0, f64::max);
    let scale = |(value, lifetime): (&f64, &f64)| {
        if as_rates && *lifetime > 0.0 { value / lifetime * longest } else { *value }
    };
    values.iter().zip(lifetimes).map(scale).collect()
}

fn waits(analysis: &Analysis, vectors: &Vectors, members: &[u32]) -> Vec<CausedWait> {
    let mut by_cause: BTreeMap<Cause, Vec<f64>> = BTreeMap::new();
    for api in &vectors.apis {
        let place = (api.api != OWN_CODE).then_some(api.api);
        for entry in api.entries.iter().filter(|entry| entry.wait > 0.0) {
            let thread = entry.thread as usize;
            for (cause, part) in analysis.parts_of_waits(place, members[thread]) {
                let by_thread = by_cause.entry(cause).or_insert_with(|| vec![0.0; members.len()]);
                by_thread[thread] += entry.wait * part;
            }
        }
    }
    let mut rows: Vec<CausedWait> = by_cause
        .into_iter()
        .map(|(cause, by_thread)| {
            let most = spread(members, by_thread.iter().copied());
            CausedWait {
                cause,
                wait_ns: Ns::from_f64(by_thread.iter().sum()),
                threads: by_thread.iter().filter(|&&wait| wait > 0.0).count(),
                max: ThreadSpan { thread: most.max_thread, ns: most.max_ns },
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.wait_ns));
    rows
}

fn api_rows(vectors: &Vectors, members: &[u32]) -> Vec<GroupApi> {
    let mut values = vec![0.0; members.len()];
    let row = |api: &ApiVector| {
        let sum = |part: fn(&super::vectors::Entry) -> f64| api.entries.iter().map(part).sum();
        let (useful, wait): (f64, f64) = (sum(|entry| entry.useful), sum(|entry| entry.wait));
        values.fill(0.0);
        for entry in &api.entries {
            let value = if wait > useful { entry.wait } else { entry.useful };
            values[entry.thread as usize] = value;
        }
        let compared = imbalance(&values);
        GroupApi {
            api: (api.api != OWN_CODE).then_some(api.api),
            calls: api.calls,
            useful_ns: Ns::from_f64(useful),
            wait_ns: Ns::from_f64(wait),
            threads: api.entries.len(),
            spread: spread(members, values.iter().copied()),
            imbalance_ns: Ns::from_f64(compared.time),
            imbalance: compared.share,
        }
    };
    let mut rows: Vec<GroupApi> = vectors.apis.iter().map(row).collect();
    rows.sort_by_key(|row| {
        (std::cmp::Reverse(row.useful_ns.0.saturating_add(row.wait_ns.0)), row.api)
    });
    rows
}

fn sub_groups(vectors: &Vectors, members: &[u32]) -> Vec<SubGroup> {
    let points = vectors.points();
    let Some(found) = clusters::find(&points) else { return Vec::new() };
    let clusters = found.of_point.iter().max().map_or(0, |last| last + 1);
    (0..clusters)
        .map(|cluster| {
            let own = || (0..members.len()).filter(|&at| found.of_point[at] == cluster);
            let useful_ns: f64 = own().map(|at| vectors.useful[at]).sum();
            let mut apis: BTreeMap<u32, f64> = BTreeMap::new();
            for at in own() {
                for &(api, share) in &points[at] {
                    *apis.entry(api).or_default() += share * vectors.useful[at] / useful_ns;
                }
            }
            let mut apis: Vec<(Option<u32>, f64)> = apis
                .into_iter()
                .filter(|&(_, share)| share >= SUB_GROUP_SHARE)
                .map(|(api, share)| ((api != OWN_CODE).then_some(api), share))
                .collect();
            apis.sort_by(|a, b| b.1.total_cmp(&a.1));
            apis.truncate(SUB_GROUP_APIS);
            SubGroup {
                members: own().map(|at| members[at]).collect(),
                useful_ns: Ns::from_f64(useful_ns),
                apis,
                silhouette: found.silhouette,
            }
        })
        .collect()
}

/// Finds threads that differ from those that behave like them.
fn outliers(
    analysis: &Analysis,
    vectors: &Vectors,
    members: &[u32],
    alike: &[&[u32]],
    as_rates: bool,
) -> Vec<Outlier> {
    let all = || vec![(0..members.len() as u32).collect::<Vec<u32>>()];
    let place = |thread: &u32| members.binary_search(thread).unwrap_or(0) as u32;
    let parts = match alike {
        [] => all(),
        _ => alike.iter().map(|part| part.iter().map(place).collect()).collect(),
    };
    let mut found: Vec<Outlier> = parts
        .iter()
        .filter(|part| part.len() >= LEAST_THREADS)
        .flat_map(|part| outliers_among(analysis, vectors, members, part, as_rates))
        .collect();
    found.sort_by_key(|outlier| {
        (std::cmp::Reverse(outlier.excess_ns.unsigned_abs()), outlier.thread)
    });
    found
}

fn outliers_among(
    analysis: &Analysis,
    vectors: &Vectors,
    members: &[u32],
    part: &[u32],
    as_rates: bool,
) -> Vec<Outlier> {
    let of_part = |values: &[f64]| part.iter().map(|&at| values[at as usize]).collect::<Vec<_>>();
    let lifetimes = of_part(&vectors.lifetimes);
    let longest = lifetimes.iter().copied().fold(0.0, f64::max);
    let useful = scaled(&of_part(&vectors.useful), &lifetimes, as_rates);
    let normal = Robust::from_values(&mut useful.clone());
    let least = LEAST_EXCESS * normal.median;
    let mut by_thread: BTreeMap<u32, Vec<OutlierApi>> = BTreeMap::new();
    let mut values = vec![0.0; vectors.useful.len()];
    for api in &vectors.apis {
        values.fill(0.0);
        api.entries.iter().for_each(|entry| values[entry.thread as usize] = entry.useful);
        let of_api = scaled(&of_part(&values), &lifetimes, as_rates);
        let most = of_api.iter().copied().fold(0.0, f64::max);
        if most < least {
            continue;
        }
        let robust = Robust::from_values(&mut of_api.clone());
        let usual = LazyCell::new(|| {
            let threads = part.iter().map(|&at| members[at as usize]);
            Usual::from_threads(analysis, threads, api.api, as_rates)
        });
        for ((&at, &value), &lifetime) in part.iter().zip(&of_api).zip(&lifetimes) {
            if !robust.is_outlier(value) || (value - robust.median).abs() < least {
                continue;
            }
            // Converts the rate back to this thread's own lifetime.
            let own = if as_rates && longest > 0.0 { lifetime / longest } else { 1.0 };
            by_thread.entry(at).or_default().push(OutlierApi {
                api: (api.api != OWN_CODE).then_some(api.api),
                useful_ns: Ns::from_f64(value * own),
                median_ns: Ns::from_f64(robust.median * own),
                excess_ns: ((value - robust.median) * own).round() as i64,
                score: robust.score(value),
                why: usual.why(&analysis.threads[members[at as usize] as usize]),
            });
        }
    }
    let outlier = |(at, mut apis): (u32, Vec<OutlierApi>)| {
        apis.sort_by_key(|api| std::cmp::Reverse(api.excess_ns.unsigned_abs()));
        let own = if as_rates { vectors.lifetimes[at as usize] / longest.max(1.0) } else { 1.0 };
        Outlier {
            thread: members[at as usize],
            useful_ns: Ns::from_f64(vectors.useful[at as usize]),
            median_ns: Ns::from_f64(normal.median * own),
            excess_ns: apis.iter().fold(0, |sum: i64, api| sum.saturating_add(api.excess_ns)),
            apis,
        }
    };
    by_thread.into_iter().map(outlier).collect()
}
