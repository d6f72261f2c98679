//! Findings: the few things that would save most, each with its evidence.
//!
//! # When there is a finding
//!
//! A finding tells how much sooner the thread that gains most from it would be done ([`Finding::saves_ns`]), which is
//! an upper bound of what the program can gain. It is material if that is at least [`MATERIAL_SHARE`] of the wall
//! time of its group's processes, and at least [`MATERIAL_NS`]: less is within the difference between two runs. The
//! kinds have thresholds of their own, named and justified in their modules. If nothing passes them, there are no
//! findings.
//!
//! Each cause is reported once. A slow call counts for the innermost API that explains half of it. A thread that is
//! slow because of a slow first call, or because of rare slow calls, is not reported as a slow thread; nor is one
//! that others wait for at a barrier, which is a straggler. A call that lasts as long as the program's function that it calls back
//! is that function's time; where the thread is said to be slow, it is not said again.

mod acknowledgements;
mod again;
mod anew;
mod behind;
mod calls;
mod crowded;
mod ends;
mod event_loops;
mod exceptions;
mod files;
mod flows;
mod holders;
mod interpreter;
mod joint;
mod jvm;
mod kept;
mod kinds;
mod locks;
mod machine;
mod mutual;
mod parts;
mod peers;
mod polling;
mod processes;
mod sites;
mod sleepers;
mod spinning;
mod stages;
mod starts;
mod syncs;
mod system;
mod threads;
mod ticks;
mod transfers;
mod uneven;
mod uses;
mod waits;

use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::bounds::Bounds;
pub(crate) use crate::bounds::{MATERIAL_NS, MATERIAL_SHARE};
use crate::causes::{CauseRow, Party, WaitObject, lock_key};
use crate::clock::Ns;
use crate::groups::{GroupRow, Groups};
use crate::tail::Tails;
use crate::watched::Watched;
pub use kinds::FindingKind;
pub use parts::{Inside, SubGroupSummary};

/// The maximum number of findings.
const MOST: usize = 7;

/// Something that costs time, and how much.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The threads concerned, by number in [`Analysis::threads`], the one that gains most first.
    pub threads: Vec<u32>,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code, or if it is about no single API.
    pub api: Option<u32>,
    /// How much sooner the thread that gains most would be done; 0 if nothing is lost.
    pub saves_ns: Ns,
    /// The same as a share of the run's wall time.
    pub share: f64,
    /// How much sooner the run would be done, at most `saves_ns`: another thread may end later, or wait for something else. As
    /// [`what_if`](crate::what_if()) has it for the lock, for calls that sync files or transfer little, and for the thread or the group that
    /// others wait for; `None` where that is not known.
    pub run_saves_ns: Option<Ns>,
    /// What is waited for, where, and because of whom, if a companion observed that.
    #[serde(skip)]
    pub blame: Option<Blame>,
    /// Where the function only lasts as long as what it calls back: that, by number in [`Watched::called_back`].
    #[serde(skip)]
    pub called_back: Option<u32>,
    /// The kind of finding, and its figures.
    #[serde(flatten)]
    pub kind: FindingKind,
}

/// What threads wait for or use, where, and because of whom.
#[derive(Clone, Debug, Default)]
pub struct Blame {
    /// A process in which the addresses are valid, by number in [`Analysis::processes`].
    pub process: usize,
    /// What they wait for.
    pub object: Option<WaitObject>,
    /// Name of the file, if samples showed it.
    pub file: Option<String>,
    /// The API in which they wait longest.
    pub api: Option<u32>,
    /// Return address of the call in which they wait longest.
    pub site: Option<CodeAddress>,
    /// Whether a tenth or more of the calls, or of the waits, is in other places.
    pub elsewhere: bool,
    /// How long all of them wait.
    pub wait_ns: Ns,
    /// The party that mostly has it meanwhile.
    pub holder: Option<Party>,
    /// The party that mostly ends the waits.
    pub waker: Option<Party>,
}

/// The data that findings are made from.
struct Evidence<'a> {
    analysis: &'a Analysis,
    groups: &'a Groups,
    tails: &'a Tails,
    watched: &'a Watched,
}

/// Returns the findings of a run, the largest saving first: at most seven, and perhaps none.
#[must_use]
pub fn findings(
    analysis: &Analysis,
    groups: &Groups,
    tails: &Tails,
    watched: &Watched,
) -> Vec<Finding> {
    let evidence = Evidence { analysis, groups, tails, watched };
    let explained = calls::Explained::new(&evidence);
    let loading = system::loading(&evidence);
    let mut found = calls::first(&evidence, &explained, loading.as_ref());
    found.extend(calls::rare(&evidence, &explained));
    found.extend(calls::tiny(&evidence, &explained));
    for group in (0..).zip(&groups.rows) {
        found.extend(threads::slow(&evidence, &explained, group));
        found.extend(threads::sub_groups(&evidence, group));
        if watched.causes.is_empty() {
            found.extend(waits::lock(&evidence, group));
            found.extend(waits::starved(&evidence, group));
        } else {
            found.extend(locks::find(&evidence, group));
            found.extend(mutual::waits(&evidence, group));
            found.extend(stages::last_at_barrier(&evidence, group));
            found.extend(stages::last_to_end(&evidence, group));
            found.extend(peers::slow(&evidence, group));
            found.extend(polling::find(&evidence, group));
            found.extend(ticks::idle(&evidence, group));
        }
    }
    found.extend(ends::last_of_several(&evidence, &found));
    found.extend(acknowledgements::delayed(&evidence));
    found.extend(event_loops::held_up(&evidence));
    found.extend(uneven::work(&evidence));
    found.extend(stages::limiting(&evidence));
    found.extend(sleepers::sleeping(&evidence));
    found.extend(transfers::small(&evidence));
    found.extend(spinning::spinning(&evidence));
    found.extend(exceptions::thrown(&evidence));
    found.extend(again::looked_up(&evidence));
    found.extend(anew::made(&evidence));
    found.extend(syncs::syncing(&evidence));
    found.extend(syncs::synchronous_writes(&evidence));
    found.extend(system::name_resolution(&evidence));
    found.extend(loading);
    found.extend(starts::slow_libraries(&evidence));
    found.extend(system::mapping_churn(&evidence));
    found.extend(machine::few_processors(&evidence));
    let groups_and_numbers = (0..).zip(&groups.rows);
    let short: Vec<Finding> =
        groups_and_numbers.filter_map(|group| starts::short_threads(&evidence, group)).collect();
    found.retain(|finding| !starts::is_of_short_threads(&short, finding));
    found.extend(short);
    if let Some(short) = processes::short_processes(&evidence) {
        // Who waits for short processes is limited by them: that is the same.
        found.retain(|stage| !processes::is_of_short_processes(&evidence, stage));
        found.push(short);
    }
    for finding in &mut found {
        finding.called_back = evidence.called_back(finding);
    }
    let mut found = locks::each_once(claimed_once(&evidence, uneven::without_turns(found)));
    found.sort_by_key(|finding| (std::cmp::Reverse(finding.saves_ns), finding.group));
    found.truncate(MOST);
    for finding in &mut found {
        finding.run_saves_ns = evidence.of_run(finding);
        sites::name(&evidence, finding);
    }
    found
}

/// Removes findings that another finding explains better.
fn claimed_once(evidence: &Evidence<'_>, found: Vec<Finding>) -> Vec<Finding> {
    use FindingKind as Kind;
    let is_said = |finding: &Finding, better: fn(&Kind) -> bool, same_api: bool| {
        found.iter().any(|other| {
            better(&other.kind)
                && other.group == finding.group
                && (!same_api || other.api == finding.api)
                && (same_api || other.threads.first() == finding.threads.first())
        })
    };
    let of_calls = |kind: &Kind| {
        matches!(
            kind,
            Kind::Syncing { .. }
                | Kind::NameResolution { .. }
                | Kind::SlowLoading { .. }
                | Kind::SmallTransfers { .. }
                | Kind::MappingChurn { .. }
                | Kind::LookedUpAgain { .. }
                | Kind::MadeAgain { .. }
                | Kind::Spinning { .. }
        )
    };
    let is_waited_for_by = |stage: &Finding, group: u32| match &stage.kind {
        Kind::LimitingStage { waiting, .. } => waiting.contains(&group),
        Kind::SleepingStage { waiting, .. } => *waiting == group,
        _ => false,
    };
    let waits_for_stage = |group: u32| found.iter().any(|other| is_waited_for_by(other, group));
    // A call that lasts as long as what it calls back is one piece of the thread's work.
    let is_of_slow_thread = |finding: &Finding| {
        found.iter().any(|other| {
            let is_work = matches!(
                other.kind,
                Kind::SlowThreads { .. }
                    | Kind::BarrierStraggler { .. }
                    | Kind::LateAtBarrier { .. }
                    | Kind::LastToEnd { .. }
                    | Kind::UnevenWork { .. }
            );
            is_work
                && other.group == finding.group
                && other.threads.iter().any(|thread| finding.threads.contains(thread))
        })
    };
    let is_uneven = |group: u32| {
        let is_work = |other: &Finding| matches!(other.kind, Kind::UnevenWork { .. });
        found.iter().any(|other| is_work(other) && other.group == group)
    };
    let has_lock = |group: u32| {
        let is_lock = |other: &Finding| matches!(other.kind, Kind::SerialisingLock { .. });
        found.iter().any(|other| is_lock(other) && other.group == group)
    };
    let is_needed = |finding: &Finding| {
        match finding.kind {
            Kind::SlowFirstCall { .. } | Kind::RareSlowCalls { .. }
                if waits_for_stage(finding.group) =>
            {
                false
            }
            Kind::SlowFirstCall { .. } | Kind::RareSlowCalls { .. }
                if finding.called_back.is_some() && is_of_slow_thread(finding) =>
            {
                false
            }
            Kind::SlowFirstCall { .. }
            | Kind::RareSlowCalls { .. }
            | Kind::ManyTinyCalls { .. } => !is_said(finding, of_calls, true),
            Kind::SlowPeer { .. } | Kind::LimitingStage { .. } => !found.iter().any(|other| {
                let is_delay = matches!(other.kind, Kind::DelayedAcknowledgements { .. });
                is_delay && (other.group == finding.group || is_waited_for_by(finding, other.group))
            }),
            Kind::LateAtBarrier { .. } => {
                !is_said(finding, |kind| matches!(kind, Kind::BarrierStraggler { .. }), false)
            }
            // (Of threads that are started for each round, the last one ends last.)
            Kind::LastToEnd { .. } if is_uneven(finding.group) => false,
            // The lock is told.
            Kind::LastToEnd { .. }
                if has_lock(finding.group) && ends::is_late_by_locks(evidence, finding) =>
            {
                false
            }
            Kind::LastToEnd { .. } => !is_said(
                finding,
                |kind| {
                    matches!(
                        kind,
                        Kind::BarrierStraggler { .. }
                            | Kind::SlowThreads { .. }
                            | Kind::LateAtBarrier { .. }
                            | Kind::UnevenWork { .. }
                            | Kind::SleepingStage { .. }
                    )
                },
                false,
            ),
            Kind::SlowThreads { .. } => {
                let is_better = |kind: &Kind| {
                    matches!(kind, Kind::LateAtBarrier { .. } | Kind::UnevenWork { .. })
                };
                let spins = is_said(finding, |kind| matches!(kind, Kind::Spinning { .. }), true);
                !is_said(finding, is_better, false) && !spins
            }
            Kind::SubGroups { .. } => !is_uneven(finding.group),
            // The lock of a queue is part of handing over: a thread that gets space continues only when the other one
            // unlocks it.
            Kind::SerialisingLock { .. } | Kind::InterpreterLock { .. } => {
                !found.iter().any(|other| {
                    let blame = finding.blame.as_ref();
                    let has_it =
                        blame.and_then(|blame| blame.holder.as_ref().or(blame.waker.as_ref()));
                    is_waited_for_by(other, finding.group)
                        && other.saves_ns >= finding.saves_ns
                        && has_it.is_some_and(|party| party.group == Some(other.group))
                })
            }
            // Who maps memory again and again waits for the map in these calls, too: the larger of both is told.
            Kind::MemoryMapLock { .. } => !found.iter().any(|other| {
                matches!(other.kind, Kind::MappingChurn { .. })
                    && other.group == finding.group
                    && other.saves_ns >= finding.saves_ns
            }),
            Kind::MappingChurn { .. } => !found.iter().any(|other| {
                matches!(other.kind, Kind::MemoryMapLock { .. })
                    && other.group == finding.group
                    && other.saves_ns > finding.saves_ns
            }),
            // Where that is known to be a lock, a barrier or a queue, it is said better.
            Kind::MutualWaits { .. } => {
                let is_explained = found.iter().any(|other| {
                    let explains = matches!(
                        other.kind,
                        Kind::SerialisingLock { .. }
                            | Kind::AllocatorContention { .. }
                            | Kind::InterpreterLock { .. }
                            | Kind::MemoryMapLock { .. }
                            | Kind::LateAtBarrier { .. }
                            | Kind::BarrierStraggler { .. }
                    );
                    explains && other.group == finding.group
                });
                !is_explained && !waits_for_stage(finding.group)
            }
            // A thread that sleeps while it holds what others wait for is not polling.
            Kind::Polling { .. } => !found.iter().any(|other| {
                let blame = other.blame.as_ref();
                let has_it = blame.and_then(|blame| blame.holder.as_ref().or(blame.waker.as_ref()));
                let is_lock = matches!(
                    other.kind,
                    Kind::SerialisingLock { .. }
                        | Kind::StarvedWriter { .. }
                        | Kind::MutualWaits { .. }
                );
                // What one is said to do while others wait for it is no poll.
                let is_awaited = matches!(
                    other.kind,
                    Kind::SleepingStage { .. }
                        | Kind::LastToEnd { .. }
                        | Kind::UnevenWork { .. }
                        | Kind::LateAtBarrier { .. }
                );
                is_awaited && other.group == finding.group
                    || is_lock
                        && has_it.is_some_and(|party| {
                            party.group == Some(finding.group)
                        // (Of threads that wait for each other, one that sleeps.)
                        && (other.group != finding.group || party.api == finding.api)
                        })
            }),
            _ => true,
        }
    };
    let keep: Vec<bool> = found.iter().map(is_needed).collect();
    found.into_iter().zip(keep).filter_map(|(finding, keep)| keep.then_some(finding)).collect()
}

impl<'a> Evidence<'a> {
    /// Returns the causes of a group's waits.
    fn causes_of(&self, group: u32) -> impl Iterator<Item = &'a CauseRow> + use<'a> {
        self.watched.causes.iter().filter(move |row| row.group == group)
    }

    /// The causes of all waits, each connection by itself.
    fn each_cause(&self) -> impl Iterator<Item = &'a CauseRow> + use<'a> {
        let is_one = |row: &&CauseRow| !matches!(row.object, WaitObject::Connections(_));
        self.watched.causes.iter().filter(is_one).chain(&self.watched.connections)
    }

    /// Whether a saving of a group is large enough to report.
    fn is_material(&self, saves_ns: f64) -> bool {
        saves_ns >= MATERIAL_NS && saves_ns >= MATERIAL_SHARE * self.analysis.wall_ns.as_f64()
    }

    /// The same for time on the CPU of a thread: its waits for a processor don't count as part of the run.
    fn is_material_to(&self, thread: u32, saves_ns: f64) -> bool {
        let row = self.analysis.threads.get(thread as usize);
        let waited = row.and_then(|row| row.off_cpu.runnable_ns).unwrap_or_default();
        let wall = self.analysis.wall_ns.0.saturating_sub(waited.0) as f64;
        saves_ns >= MATERIAL_NS && saves_ns >= MATERIAL_SHARE * wall
    }

    fn finding(
        &self,
        group: u32,
        threads: Vec<u32>,
        api: Option<u32>,
        saves_ns: f64,
        kind: FindingKind,
    ) -> Finding {
        let wall = self.analysis.wall_ns.as_f64();
        // Estimates may add up to more than the run took.
        let saves_ns = saves_ns.min(wall);
        let share = if wall > 0.0 { saves_ns / wall } else { 0.0 };
        let saves_ns = Ns::from_f64(saves_ns);
        Finding {
            group,
            threads,
            api,
            saves_ns,
            share,
            run_saves_ns: None,
            blame: None,
            called_back: None,
            kind,
        }
    }

    /// Returns what the calls that a finding is about call back in the thread that gains most, if that is most of what runs in them.
    fn called_back(&self, finding: &Finding) -> Option<u32> {
        use FindingKind as Kind;
        let is_of_calls = matches!(
            finding.kind,
            Kind::SlowThreads { .. }
                | Kind::BarrierStraggler { .. }
                | Kind::SlowFirstCall { .. }
                | Kind::RareSlowCalls { .. }
        );
        let (api, &thread) = (finding.api.filter(|_| is_of_calls)?, finding.threads.first()?);
        let rows = (0..).zip(&self.watched.called_back);
        rows.filter(|(_, one)| (one.thread, one.api) == (thread, api)).map(|(at, _)| at).next()
    }

    /// Returns how much of what a finding saves the run gains, at most.
    fn of_run(&self, finding: &Finding) -> Option<Ns> {
        use FindingKind as Kind;
        let &Self { analysis, groups, watched, .. } = self;
        let (causes, times) = (&watched.causes, watched.times.as_ref()?);
        let bounds = Bounds { analysis, groups, causes, times };
        let bound = match finding.kind {
            Kind::SerialisingLock { .. }
            | Kind::StarvedWriter { .. }
            | Kind::AllocatorContention { .. } => {
                let blame = finding.blame.as_ref()?;
                let key = lock_key(blame.object.as_ref()?, blame.process)?;
                bounds.of_lock(key)
            }
            Kind::Syncing { .. } | Kind::SmallTransfers { .. } => bounds.of_calls(finding.api?),
            Kind::LimitingStage { .. } | Kind::SleepingStage { .. } => match *finding.threads {
                [thread] => bounds.of_thread(thread),
                _ => bounds.of_group(finding.group),
            },
            Kind::LateAtBarrier { .. }
            | Kind::BarrierStraggler { .. }
            | Kind::LastToEnd { .. }
            | Kind::SlowThreads { .. }
            | Kind::UnevenWork { .. } => match *finding.threads {
                [thread] => bounds.of_thread(thread),
                _ => None,
            },
            _ => None,
        };
        bound.map(|bound| bound.min(finding.saves_ns))
    }

    /// Returns the wait of each member in an API.
    fn waits_in(&self, group: &GroupRow, api: u32) -> Vec<(f64, u32)> {
        let wait = |&thread: &u32| {
            let apis = &self.analysis.threads[thread as usize].apis;
            let found = apis.iter().find(|row| row.api == api);
            (found.map_or(0.0, |row| row.wait_ns.as_f64()), thread)
        };
        group.members.iter().map(wait).collect()
    }
}
