//! What the run would gain at most without what a finding is about.
//!
//! A finding says how much sooner the thread would be done that gains most. The run may gain less: another thread may end later, or
//! wait for something else. So the run is replayed (see [`what_if`](mod@crate::critical)) without the waits for a lock, as
//! `chase-report path --without` does it; or without the calls of a function; or with a thread, or a group of threads, taking no time
//! for what it does.
//!
//! Only waits of a millisecond or more are replayed. Shorter ones can cost the run as much as they are in all, so those that the
//! thread or group ends are added; for a lock, that is part of the replay.

use std::collections::HashSet;

use crate::analysis::Analysis;
use crate::causes::{CauseRow, LockKey, Party, PartyKind};
use crate::clock::Ns;
use crate::critical::{Pieces, Without, replay_without};
use crate::groups::Groups;
use crate::long_waits::{LongWait, OffCpuTimes};

/// The minimum saving of a finding, as a share of the wall time.
pub(crate) const MATERIAL_SHARE: f64 = 0.05;
/// The minimum saving of a finding, in ns.
pub(crate) const MATERIAL_NS: f64 = 1e6;

/// A run of which all long waits are known.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) groups: &'a Groups,
    pub(crate) causes: &'a [CauseRow],
    /// By thread of the analysis.
    pub(crate) times: &'a [OffCpuTimes],
}

impl Bounds<'_> {
    /// What the run gains, at most, without the waits for a lock.
    pub(crate) fn of_lock(&self, lock: LockKey) -> Option<Ns> {
        let pieces = Pieces { apis: Vec::new(), locks: HashSet::from([lock]) };
        self.of_pieces(&pieces, &pieces.times(self.analysis, self.causes))
    }

    /// The same without the calls of a function that makes no others, in all threads; but for waits of others of less than a millisecond.
    pub(crate) fn of_long_calls(&self, api: u32) -> Option<Ns> {
        let (pieces, spent) = self.calls(api);
        self.of_pieces(&pieces, &spent)
    }

    /// The calls of a function, and how much of each thread's time they take.
    fn calls(&self, api: u32) -> (Pieces, Vec<Ns>) {
        let apis = (0..self.analysis.apis.len() as u32).map(|one| one == api).collect();
        let pieces = Pieces { apis, locks: HashSet::new() };
        let spent = pieces.times(self.analysis, self.causes);
        (pieces, spent)
    }

    /// The same with these waits.
    pub(crate) fn of_calls(&self, api: u32) -> Option<Ns> {
        let (pieces, spent) = self.calls(api);
        // Others may wait for these calls, for less than a millisecond each time.
        let calls = |thread: u32| spent[thread as usize] > Ns(0);
        let short = self.short_waits(&calls, |party| {
            let spans = party.by_thread.iter().filter(|span| calls(span.thread));
            spans.fold(0, |sum: u64, span| sum.saturating_add(span.ns.0))
        });
        let all = spent.iter().fold(0, |sum: u64, ns| sum.saturating_add(ns.0));
        let gain = self.of_pieces(&pieces, &spent)?.0.saturating_add(short.min(all));
        Some(Ns(gain.min(self.analysis.wall_ns.0)))
    }

    /// `spent` is how much of each thread's time they take.
    fn of_pieces(&self, pieces: &Pieces, spent: &[Ns]) -> Option<Ns> {
        self.gain(&Without {
            wait: &|wait| pieces.has(wait),
            time: &|thread| spent[thread as usize],
            thread: &|_| false,
        })
    }

    /// What it gains if a thread takes no time for what it does.
    pub(crate) fn of_thread(&self, thread: u32) -> Option<Ns> {
        let ended = |party: &Party| {
            let spans = party.by_thread.iter().filter(|span| span.thread == thread);
            spans.fold(0, |sum: u64, span| sum.saturating_add(span.ns.0))
        };
        self.of_threads(&|one| one == thread, ended)
    }

    /// The same of all threads of a group.
    pub(crate) fn of_group(&self, group: u32) -> Option<Ns> {
        let is_one = |thread: u32| self.groups.of_thread.get(thread as usize) == Some(&group);
        let ended = |party: &Party| if party.group == Some(group) { party.wait_ns.0 } else { 0 };
        self.of_threads(&is_one, ended)
    }

    /// `ended` is as for `short_waits`.
    fn of_threads(
        &self,
        is_one: &dyn Fn(u32) -> bool,
        ended: impl Fn(&Party) -> u64,
    ) -> Option<Ns> {
        let gain = self.gain(&Without { wait: &|_| false, time: &|_| Ns(0), thread: is_one })?;
        let short = self.short_waits(is_one, ended);
        Some(Ns(gain.0.saturating_add(short).min(self.analysis.wall_ns.0)))
    }

    /// How long the waits of less than a millisecond are, in all, that these threads end; `ended` tells how long all waits are that
    /// they end, of one party.
    fn short_waits(&self, is_one: &dyn Fn(u32) -> bool, ended: impl Fn(&Party) -> u64) -> u64 {
        let wakers = self.causes.iter().flat_map(|row| &row.wakers);
        let wakers = wakers.filter(|party| party.kind == PartyKind::Thread);
        let all = wakers.map(ended).fold(0, u64::saturating_add);
        let waits = self.times.iter().flat_map(|own| &own.waits);
        let long = waits
            .filter(|wait| wait.waker.is_some_and(is_one))
            .map(|wait| wait.end_ns.saturating_sub(wait.begin_ns))
            .fold(0, u64::saturating_add);
        all.saturating_sub(long)
    }

    fn gain(&self, without: &Without<'_>) -> Option<Ns> {
        let waits: Vec<&[LongWait]> = self.times.iter().map(|own| &*own.waits).collect();
        let found = replay_without(self.analysis, self.groups, &waits, without)?;
        Some(found.saves_at_most_ns)
    }
}
