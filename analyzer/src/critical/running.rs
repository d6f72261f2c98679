//! What threads run on the path: which functions, and whose code.
//!
//! A step tells when a thread runs, but not what. The time that a thread runs on the path is divided in the proportions of the
//! samples that were taken of it in these steps. Where these are fewer than [`ENOUGH`], it is divided as all its life: by
//! all its samples, or by the times of its calls and of its own code where these are too few as well. The parts add up to it to the nanosecond.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::rows::ThreadRow;
use crate::timed_samples::TimedSample;

/// With so many samples, a part of a half has a standard deviation of a sixth of the whole.
const ENOUGH: usize = 10;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Runs {
    /// The innermost library call that the thread is in, by number in [`Analysis::apis`]; `None`: it is in none.
    pub api: Option<u32>,
    /// The object whose code runs, by number in [`Analysis::objects`]; without samples, that of the function.
    pub object: u32,
}

/// What each thread ran, in ns.
pub(super) struct Ran<'a> {
    analysis: &'a Analysis,
    /// By process and number of the thread there, of threads that have enough.
    samples: HashMap<(u32, u32), BTreeMap<Runs, u64>>,
    /// Of each thread, by time.
    timed: Vec<Vec<TimedSample>>,
}

impl<'a> Ran<'a> {
    pub(super) fn new(analysis: &'a Analysis, timed: Vec<Vec<TimedSample>>) -> Self {
        let mut samples: HashMap<_, (u64, BTreeMap<Runs, u64>)> = HashMap::new();
        for row in &analysis.on_cpu.of_threads {
            let runs = Runs { api: row.api, object: row.object };
            let (number, ran) = samples.entry((row.process, row.thread)).or_default();
            *number = number.saturating_add(row.samples);
            let ns = ran.entry(runs).or_default();
            *ns = ns.saturating_add(row.ns.0);
        }
        let samples = samples
            .into_iter()
            .filter(|(_, (number, _))| *number >= ENOUGH as u64)
            .map(|(thread, (_, ran))| (thread, ran))
            .collect();
        Self { analysis, samples, timed }
    }

    /// Divides the times in which a thread runs (from, to); what it ran is `None` where nothing is known of that.
    pub(super) fn divide(&self, thread: u32, times: &[(Ns, Ns)]) -> Vec<(Option<Runs>, u64)> {
        let ns: u64 = times.iter().map(|(from, to)| to.0 - from.0).sum();
        let row = &self.analysis.threads[thread as usize];
        let whole_life = || self.samples.get(&(row.process as u32, row.thread)).cloned();
        let sampled = self.within(thread, times).or_else(whole_life);
        let sampled = sampled.filter(|ran| ran.values().any(|&ns| ns > 0));
        let ran = sampled.unwrap_or_else(|| self.by_calls(row));
        let all: u128 = ran.values().map(|&ns| u128::from(ns)).sum();
        if all == 0 {
            return vec![(None, ns)];
        }
        // (Up to here, and up to the next: so the rounding of one part is made up for by the next.)
        let (mut before, mut given) = (0, 0);
        let mut part = |(runs, weight): (Runs, u64)| {
            before += u128::from(weight);
            let up_to = (u128::from(ns) * before / all) as u64;
            let part = up_to - given;
            given = up_to;
            (Some(runs), part)
        };
        ran.into_iter().map(&mut part).collect()
    }

    /// What a thread ran in some times, in samples, if there are enough.
    fn within(&self, thread: u32, times: &[(Ns, Ns)]) -> Option<BTreeMap<Runs, u64>> {
        let all = self.timed.get(thread as usize)?;
        let (mut found, mut ran) = (0, BTreeMap::new());
        for &(from, to) in times {
            let first = all.partition_point(|sample| sample.at_ns < from);
            for sample in all[first..].iter().take_while(|sample| sample.at_ns < to) {
                found += 1;
                let runs = Runs { api: sample.api, object: sample.object };
                *ran.entry(runs).or_default() += u64::from(sample.stands_for);
            }
        }
        (found >= ENOUGH).then_some(ran)
    }

    /// Times of calls and of own code, without waits.
    fn by_calls(&self, row: &ThreadRow) -> BTreeMap<Runs, u64> {
        let off = [row.application_wait_ns, row.application_preempted_ns];
        let off = off.into_iter().flatten().fold(0, |sum: u64, ns| sum.saturating_add(ns.0));
        let own = Runs { api: None, object: row.own_object };
        let mut ran = BTreeMap::from([(own, row.application_ns.0.saturating_sub(off))]);
        for call in row.apis.iter() {
            let off = call.wait_ns.0.saturating_add(call.preempted_ns.0);
            let object = self.analysis.apis[call.api as usize].object;
            let ns = ran.entry(Runs { api: Some(call.api), object }).or_default();
            *ns = ns.saturating_add(call.self_ns.0.saturating_sub(off));
        }
        ran
    }
}
