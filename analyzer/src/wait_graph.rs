//! Which thread groups wait for each other, and how long.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::causes::{CauseRow, Party, PartyKind, Purpose};
use crate::clock::Ns;
use crate::critical::PathPart;

/// A group counts as waiting for nobody if it waits for less than this part of what others wait for it.
const FOR_NOBODY: f64 = 0.2;
/// A bottleneck is what at least this part of all waits of the groups with work are for.
const MATTERS: f64 = 0.1;

/// Groups, and their waits for each other.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WaitGraph {
    /// Waits, longest first.
    pub edges: Vec<WaitEdge>,
    /// The group that others with work wait for longest, for whatever but its end, and that hardly waits for others, by number in [`crate::Groups::rows`].
    pub bottleneck: Option<u32>,
}

/// A bottleneck has at least this part of the critical path: with less, the run gains next to nothing from it.
const ON_PATH: f64 = 0.05;

impl WaitGraph {
    /// Takes the bottleneck away if it has hardly a part in the critical path, and returns it with its part: what waits for it has time,
    /// as a thread that is joined before a slower one.
    pub fn take_off_path(&mut self, path: &[PathPart]) -> Option<(u32, f64)> {
        let group = self.bottleneck?;
        let own = path.iter().filter(|part| part.group == group);
        // (The sum of nothing is -0.)
        let share = own.map(|part| part.share).sum::<f64>() + 0.0;
        if path.is_empty() || share >= ON_PATH {
            return None;
        }
        self.bottleneck = None;
        Some((group, share))
    }
}

/// Waits of one group for another, or for something that is no thread of the run.
#[derive(Clone, Debug, Serialize)]
pub struct WaitEdge {
    /// The group that waits, by number in [`crate::Groups::rows`].
    pub group: u32,
    /// What it waits for: a thread of the run, or another kind of party.
    pub kind: PartyKind,
    /// The group waited for, if it is one.
    pub of_group: Option<u32>,
    /// The total time.
    pub wait_ns: Ns,
    /// The number of waits.
    pub waits: u64,
    /// The longest of the causes in this sum, by index.
    #[serde(skip)]
    pub longest: usize,
}

/// Adds up which group waits for which. For a lock, that is the group of the holder; otherwise of who ends the wait.
/// Parties that are missing in a row with very many count as unknown. `idle` says of each group whether it has nothing to do.
#[must_use]
pub fn wait_graph(causes: &[CauseRow], idle: &[bool]) -> WaitGraph {
    #[derive(Default)]
    struct Sums {
        ns: u64,
        waits: u64,
        longest: (u64, usize),
    }
    let mut sums: BTreeMap<(u32, PartyKind, Option<u32>), Sums> = BTreeMap::new();
    for (number, row) in causes.iter().enumerate() {
        let total_of = |parties: &[Party]| {
            parties.iter().map(|party| party.wait_ns.0).fold(0, u64::saturating_add)
        };
        let held = total_of(&row.holders);
        let parties = if row.purpose.is_lock() && held > row.wait_ns.0 / 2 {
            &row.holders
        } else {
            &row.wakers
        };
        let rest = Party {
            kind: PartyKind::Unknown,
            group: None,
            name: String::new(),
            api: None,
            site: None,
            process: row.process,
            waits: row.waits.saturating_sub(parties.iter().map(|party| party.waits).sum()),
            wait_ns: Ns(row.wait_ns.0.saturating_sub(total_of(parties))),
            by_thread: Vec::new(),
        };
        for party in parties.iter().chain([&rest]).filter(|party| party.wait_ns.0 > 0) {
            let sums = sums.entry((row.group, party.kind, party.group)).or_default();
            sums.ns = sums.ns.saturating_add(party.wait_ns.0);
            sums.waits = sums.waits.saturating_add(party.waits);
            sums.longest = sums.longest.max((party.wait_ns.0, number));
        }
    }
    let mut edges: Vec<WaitEdge> = sums
        .into_iter()
        .map(|((group, kind, of_group), sums)| WaitEdge {
            group,
            kind,
            of_group,
            wait_ns: Ns(sums.ns),
            waits: sums.waits,
            longest: sums.longest.1,
        })
        .collect();
    edges.sort_by_key(|edge| (std::cmp::Reverse(edge.wait_ns), edge.group, edge.kind));
    WaitGraph { bottleneck: bottleneck(causes, &edges, idle), edges }
}

fn bottleneck(causes: &[CauseRow], edges: &[WaitEdge], idle: &[bool]) -> Option<u32> {
    // A thread that waits for the end of others has no other work; that doesn't make these slow.
    let ends = |edge: &WaitEdge| {
        let purpose = causes.get(edge.longest).map(|row| row.purpose);
        matches!(purpose, Some(Purpose::Join | Purpose::Child))
    };
    let sum = |wanted: &dyn Fn(&WaitEdge) -> bool| -> f64 {
        let edges = edges.iter().filter(|edge| wanted(edge) && !ends(edge));
        edges.map(|edge| edge.wait_ns.as_f64()).sum()
    };
    // Who waits for a process that was not recorded waits for others, too.
    let for_others = |edge: &WaitEdge| {
        edge.kind == PartyKind::Process || edge.of_group.is_some_and(|of| of != edge.group)
    };
    // Who waits to be told of work all its life is not held up by who gives it some.
    let has_work = |edge: &WaitEdge| idle.get(edge.group as usize) != Some(&true);
    let all = sum(&has_work);
    let candidates = (0..idle.len() as u32).filter_map(|group| {
        let is_awaited = |edge: &WaitEdge| edge.of_group == Some(group) && for_others(edge);
        let awaited = sum(&|edge| is_awaited(edge) && has_work(edge));
        let waits = sum(&|edge| edge.group == group && for_others(edge));
        let matters = awaited > 0.0 && awaited >= MATTERS * all;
        (matters && waits <= FOR_NOBODY * awaited).then_some((group, awaited))
    });
    candidates.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(group, _)| group)
}
