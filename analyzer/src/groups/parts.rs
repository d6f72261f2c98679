//! The parts of a group: by where its threads were created, and by their names.
//!
//! Parts are only made if they are informative: they must spend at least [`DIFFERENT`] of their time in different
//! places. Compilers turn one call site into several, and programs number their threads, which means nothing.

use std::collections::{BTreeMap, HashMap};

use super::key::{Naming, Place, folded, place_of};
use super::rows::{GroupPart, PartLevel};
use super::vectors::Vectors;
use crate::analysis::Analysis;
use crate::clock::Ns;

/// Half the sum of the differences between two parts' shares of time, by function, running and waiting.
const DIFFERENT: f64 = 0.2;
/// With more parts than this, they are not kinds of threads any more.
const MOST: usize = 8;
/// Calls no further apart than this, in bytes of code, may be one call in the source: compilers unroll the loops in
/// which threads are created.
const NEAR: u64 = 256;

/// What distinguishes the threads of a level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Mark {
    CreatedIn(String),
    Site(Option<Place>),
    Name(String),
}

/// Returns the parts of a group on the first informative level; none if there is no such level.
pub(super) fn parts(
    analysis: &Analysis,
    naming: &dyn Naming,
    members: &[u32],
    vectors: &Vectors,
) -> Vec<GroupPart> {
    if members.len() < 2 {
        return Vec::new();
    }
    let levels = [
        (PartLevel::CreationSite, sites(analysis, naming, members)),
        (PartLevel::Name, names(analysis, members)),
    ];
    for (level, marks) in levels {
        let Some(part_of) = split(&marks) else { continue };
        let mut found: Vec<Part> = Vec::new();
        for (&member, &part) in members.iter().zip(&part_of) {
            found.resize_with(found.len().max(part + 1), Part::default);
            found[part].members.push(member);
        }
        found.iter_mut().enumerate().for_each(|(at, part)| part.add(vectors, &part_of, at));
        let tells = |a: &Part| found.iter().any(|b| distance(&a.profile, &b.profile) >= DIFFERENT);
        if !found.iter().any(tells) {
            continue;
        }
        let first_marks = (0..found.len())
            .map(|part| part_of.iter().position(|&of| of == part).map(|at| &marks[at]));
        let row = |(part, mark): (&Part, Option<&Mark>)| {
            let first = &analysis.threads[part.members[0] as usize];
            GroupPart {
                level,
                created_in: match mark {
                    Some(Mark::CreatedIn(function)) => Some(function.clone()),
                    _ => None,
                },
                creation_site: first.creation_site,
                name: folded(&first.name),
                threads: part.members.len(),
                useful_ns: Ns::from_f64(part.useful),
                wait_ns: Ns::from_f64(part.wait),
                members: part.members.clone(),
            }
        };
        return found.iter().zip(first_marks).map(row).collect();
    }
    Vec::new()
}

/// Returns the number of each thread's part, in order of first appearance; `None` if there is only one part, or too
/// many.
fn split(marks: &[Mark]) -> Option<Vec<usize>> {
    let mut numbers: HashMap<&Mark, usize> = HashMap::new();
    let mut part_of = Vec::with_capacity(marks.len());
    for mark in marks {
        let next = numbers.len();
        part_of.push(*numbers.entry(mark).or_insert(next));
    }
    (2..=MOST).contains(&numbers.len()).then_some(part_of)
}

/// Shares of time by API, running or waiting.
type Profile = HashMap<(u32, bool), f64>;

#[derive(Default)]
struct Part {
    members: Vec<u32>,
    profile: Profile,
    /// In ns.
    useful: f64,
    wait: f64,
}

impl Part {
    /// Adds the times of the threads in part number `at`.
    fn add(&mut self, vectors: &Vectors, part_of: &[usize], at: usize) {
        for api in &vectors.apis {
            for entry in &api.entries {
                if part_of[entry.thread as usize] == at {
                    *self.profile.entry((api.api, false)).or_default() += entry.useful;
                    *self.profile.entry((api.api, true)).or_default() += entry.wait;
                    self.useful += entry.useful;
                    self.wait += entry.wait;
                }
            }
        }
        let whole = (self.useful + self.wait).max(1.0);
        self.profile.values_mut().for_each(|time| *time /= whole);
    }
}

fn distance(a: &Profile, b: &Profile) -> f64 {
    let share = |of: &Profile, key| of.get(key).copied().unwrap_or(0.0);
    let only_in_b = b.iter().filter(|(key, _)| !a.contains_key(key)).map(|(_, share)| *share);
    let in_a = a.iter().map(|(key, own)| (own - share(b, key)).abs());
    in_a.chain(only_in_b).sum::<f64>() / 2.0
}

fn names(analysis: &Analysis, members: &[u32]) -> Vec<Mark> {
    let name = |&thread: &u32| Mark::Name(folded(&analysis.threads[thread as usize].name));
    members.iter().map(name).collect()
}

fn sites(analysis: &Analysis, naming: &dyn Naming, members: &[u32]) -> Vec<Mark> {
    let mark = |&number: &u32| {
        let thread = &analysis.threads[number as usize];
        let function = thread.creation_site.and_then(|_| naming.created_in(thread));
        match function {
            Some(function) => Mark::CreatedIn(function),
            None => Mark::Site(place_of(thread.process, thread.creation_site)),
        }
    };
    let mut marks: Vec<Mark> = members.iter().map(mark).collect();
    join_near(&mut marks);
    marks
}

/// Gives nearby sites the place of the first.
fn join_near(marks: &mut [Mark]) {
    let mut sites: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for mark in &*marks {
        if let Mark::Site(Some(Place::File(object, svma))) = mark {
            sites.entry(*object).or_default().push(*svma);
        }
    }
    sites.values_mut().for_each(|all| {
        all.sort_unstable();
        all.dedup();
    });
    for mark in marks {
        let Mark::Site(Some(Place::File(object, svma))) = mark else { continue };
        let all = &sites[object];
        let at = all.partition_point(|site| site < svma);
        let chain = (1..=at).rev().take_while(|&at| all[at] - all[at - 1] <= NEAR);
        *svma = all[chain.last().map_or(at, |at| at - 1)];
    }
}
