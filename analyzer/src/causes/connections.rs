//! Waits for many connections that differ in nothing but a port that the kernel has chosen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::{Key, Sums, WaitObject};
use crate::clock::Ns;

/// So many connections are told one by one, the longest waited for.
const LONGEST: usize = 8;

/// Several connections with one end in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Connections {
    /// The address that they have in common.
    pub address: String,
    /// Whether that is their own end, at which they were accepted; otherwise it is the other end, which they were made to.
    pub accepted: bool,
    /// How many there are.
    pub number: usize,
    /// Those waited for longest, at most eight.
    pub longest: Vec<Connection>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Connection {
    /// Its ends.
    pub name: String,
    /// The number of waits for it.
    pub waits: u64,
    /// Their total time.
    pub wait_ns: Ns,
}

/// The ends of a connection between two addresses, each with its port: own, other.
pub(crate) fn ends(object: &WaitObject) -> Option<(&str, &str)> {
    let WaitObject::File { name } = object else { return None };
    let (own, other) = name.strip_prefix("socket ")?.split_once(" to ")?;
    (own.contains(':') && other.contains(':')).then_some((own, other))
}

/// Which connections there are, by what else tells their waits apart (`K`) and by each end.
pub(crate) struct Ends<K>(HashMap<(K, String, bool), BTreeSet<String>>);

impl<K: Clone + Eq + std::hash::Hash> Ends<K> {
    pub(crate) fn new<'o>(waits: impl Iterator<Item = (K, &'o WaitObject)>) -> Self {
        let mut by_end: HashMap<_, BTreeSet<String>> = HashMap::new();
        for (key, object) in waits {
            let Some((own, other)) = ends(object) else { continue };
            for (end, rest, accepted) in [(own, other, true), (other, own, false)] {
                let folded = (key.clone(), end.to_owned(), accepted);
                by_end.entry(folded).or_default().insert(rest.to_owned());
            }
        }
        Self(by_end)
    }

    /// The end that a connection has in common with others, and whether that is its own: a server's connections have its own address
    /// in common, a client's that of the other end.
    pub(crate) fn shared(&self, key: &K, object: &WaitObject) -> Option<(K, String, bool)> {
        let (own, other) = ends(object)?;
        let mut both = [(other, false), (own, true)].map(|(end, accepted)| {
            let folded = (key.clone(), end.to_owned(), accepted);
            (self.0.get(&folded).map_or(0, BTreeSet::len), folded)
        });
        both.sort_by_key(|(number, folded)| (*number, folded.2));
        let [_, (number, folded)] = both;
        (number > 1).then_some(folded)
    }
}

impl Connections {
    /// Connections that were waited for so often and so long, which have this address in common.
    pub(crate) fn of(address: String, accepted: bool, mut all: Vec<Connection>) -> Self {
        all.sort_by(|a, b| (b.wait_ns, &a.name).cmp(&(a.wait_ns, &b.name)));
        let number = all.len();
        all.truncate(LONGEST);
        Self { address, accepted, number, longest: all }
    }
}

/// Folds waits that only differ in the connection. Returns those of each connection that was folded.
pub(super) fn fold(sums: &mut HashMap<Key, Sums>) -> Vec<(Key, Sums)> {
    let of_all = |key: &Key| {
        let mut key = key.clone();
        key.4 = WaitObject::None;
        key
    };
    let by_end = Ends::new(sums.keys().map(|key| (of_all(key), &key.4)));
    let shared = |key: &Key| by_end.shared(&of_all(key), &key.4);
    let mut folded: HashMap<(Key, String, bool), Vec<(Key, Sums)>> = HashMap::new();
    let found: Vec<_> = sums.keys().filter_map(|key| Some((key.clone(), shared(key)?))).collect();
    for (key, of) in found {
        if let Some(own) = sums.remove(&key) {
            folded.entry(of).or_default().push((key, own));
        }
    }
    let mut each = Vec::new();
    for ((mut key, address, accepted), mut connections) in folded {
        connections.sort_by_key(|(key, sums)| (Reverse(sums.wait_ns), ends(&key.4).map(owned)));
        let mut all = Sums { process: usize::MAX, ..Sums::default() };
        connections.iter().for_each(|(_, sums)| all.merge(sums));
        let each_one = connections.iter().map(|(key, sums)| Connection {
            name: match &key.4 {
                WaitObject::File { name } => name.clone(),
                _ => String::new(),
            },
            waits: sums.waits,
            wait_ns: Ns(sums.wait_ns),
        });
        let of = Connections::of(address, accepted, each_one.collect());
        key.4 = WaitObject::Connections(of);
        sums.insert(key, all);
        each.extend(connections);
    }
    each
}

fn owned((own, other): (&str, &str)) -> (String, String) {
    (own.to_owned(), other.to_owned())
}

impl Sums {
    fn merge(&mut self, other: &Self) {
        self.process = self.process.min(other.process);
        for (sum, more) in [
            (&mut self.waits, other.waits),
            (&mut self.calls, other.calls),
            (&mut self.wait_ns, other.wait_ns),
            (&mut self.ready_ns, other.ready_ns),
        ] {
            super::add(sum, more);
        }
        self.max_ns = self.max_ns.max(other.max_ns);
        add_threads(&mut self.by_thread, &other.by_thread);
        for (parties, more) in
            [(&mut self.holders, &other.holders), (&mut self.wakers, &other.wakers)]
        {
            for (key, more) in more {
                let party = parties.entry(key.clone()).or_default();
                super::add(&mut party.waits, more.waits);
                super::add(&mut party.wait_ns, more.wait_ns);
                add_threads(&mut party.by_thread, &more.by_thread);
            }
        }
    }
}

fn add_threads(sums: &mut BTreeMap<u32, u64>, more: &BTreeMap<u32, u64>) {
    for (&thread, &ns) in more {
        super::add(sums.entry(thread).or_default(), ns);
    }
}
