//! Who had a word of memory while others waited for it.
//!
//! A thread whose wait is over has it from then on, and until it ends the next wait. Where somebody else ends that, it had let go of it, and
//! the other one had it: if that one never waits for it, it hands something over.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::causes::{self, LockKey, NamingPlaces, Turns, lock_key};
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::{LongWait, OffCpuTimes, long_waits};
use crate::object_causes::ObjectCauses;

/// The long waits for each word.
pub(crate) struct TurnsAt<'a>(HashMap<LockKey, Vec<(u32, &'a LongWait)>>);

impl<'a> TurnsAt<'a> {
    /// `times` are those of all threads.
    pub(crate) fn new(times: &'a [OffCpuTimes]) -> Self {
        let mut of_words: HashMap<LockKey, Vec<(u32, &LongWait)>> = HashMap::new();
        for (thread, own) in (0..).zip(times) {
            for wait in &own.waits {
                if let Some(key) = lock_key(&wait.wait.object, wait.wait.process) {
                    of_words.entry(key).or_default().push((thread, wait));
                }
            }
        }
        Self(of_words)
    }
}

impl Turns for TurnsAt<'_> {
    fn part_of(&self, word: &LockKey, is_one: &dyn Fn(u32) -> bool) -> Option<f64> {
        let waits = self.0.get(word)?;
        let over = |&(thread, wait): &(u32, &LongWait)| {
            let woken = wait.woken_ns?.clamp(wait.begin_ns, wait.end_ns);
            Some((woken, wait.waker?, thread, wait.end_ns))
        };
        let mut turns: Vec<(u64, u32, u32, u64)> = waits.iter().filter_map(over).collect();
        turns.sort_unstable();
        // From when on each one had it, and how long anybody, and one of these, had had it by then.
        let (mut begins, mut since) = (Vec::with_capacity(turns.len()), 0);
        let (mut all_ns, mut ones_ns) = (0, 0);
        let mut got = None;
        for &(until, owner, thread, runs) in &turns {
            let from = got.filter(|got: &(u32, u64)| got.0 == owner).map_or(since, |got| got.1);
            let from = from.clamp(since, until);
            begins.push((from, all_ns, ones_ns));
            all_ns += until - from;
            ones_ns += if is_one(owner) { until - from } else { 0 };
            (since, got) = (until, Some((thread, runs)));
        }
        let by = |at: u64| {
            let turn = turns.partition_point(|turn| turn.0 < at);
            let Some(&(from, all_before, ones_before)) = begins.get(turn) else {
                return (all_ns, ones_ns);
            };
            let ns = at.saturating_sub(from);
            (all_before + ns, ones_before + if is_one(turns[turn].1) { ns } else { 0 })
        };
        let (mut waited_ns, mut for_ones_ns) = (0.0, 0.0);
        for (begin, (woken, ..)) in
            waits.iter().filter_map(|wait| Some((wait.1.begin_ns, over(wait)?)))
        {
            let (before, after) = (by(begin), by(woken));
            waited_ns += (after.0 - before.0) as f64;
            for_ones_ns += (after.1 - before.1) as f64;
        }
        (waited_ns > 0.0).then(|| for_ones_ns / waited_ns)
    }
}

/// Finds what waits are for, in functions whose name does not tell. `images` are those of `analysis`.
#[must_use]
pub fn object_causes(
    images: &[Image],
    analysis: &Analysis,
    naming: &dyn NamingPlaces,
) -> ObjectCauses {
    if !causes::are_untold(images, analysis) {
        return ObjectCauses::default();
    }
    let groups = Groups { rows: Vec::new(), of_thread: Vec::new() };
    let times = long_waits(images, analysis, &groups, naming);
    causes::object_causes(images, analysis, naming, &TurnsAt::new(&times))
}
