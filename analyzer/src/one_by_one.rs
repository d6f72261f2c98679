//! Programs that a run starts one after the other, each when the one before has ended.
//!
//! Whether they depend on each other, nobody can see from outside. So this is no finding, but it is said where it is most of the run.

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::causes::{CauseRow, Purpose};
use crate::clock::Ns;
use crate::groups::Groups;
use crate::rows::ProcessRow;

/// Fewer programs are steps of something.
const MANY: usize = 5;
/// The part of the run in which they live.
const MOST: f64 = 0.5;

/// A program that is started again and again, never twice at a time.
#[derive(Clone, Debug)]
pub struct OneByOne<'a> {
    /// The program.
    pub program: String,
    /// How often it is started.
    pub processes: usize,
    /// How long these processes live, together.
    pub lived_ns: Ns,
    /// The same as a share of the run.
    pub share: f64,
    /// The longest waits for ends of children, by a thread of another program.
    pub wait: Option<&'a CauseRow>,
}

/// Finds the program whose processes live for most of the run, one after the other; `causes` are the waits of the run.
#[must_use]
pub fn one_by_one<'a>(
    analysis: &Analysis,
    groups: &Groups,
    causes: &'a [CauseRow],
) -> Option<OneByOne<'a>> {
    let mut programs: BTreeMap<&str, Vec<&ProcessRow>> = BTreeMap::new();
    for row in &analysis.processes {
        if row.parent.is_some() && row.is_recorded && !row.forked && !row.end_is_estimate {
            programs.entry(&row.program).or_default().push(row);
        }
    }
    let is_of = |row: &CauseRow, program: &str| {
        let members = groups.rows.get(row.group as usize).map_or(&[][..], |group| &group.members);
        let process = |&thread: &u32| analysis.threads[thread as usize].process;
        members.iter().any(|thread| analysis.processes[process(thread)].program == program)
    };
    let found = programs.into_iter().filter_map(|(program, mut rows)| {
        rows.sort_by_key(|row| row.start_ns);
        let end = |row: &ProcessRow| row.start_ns.0.saturating_add(row.wall_ns.0);
        let apart = rows.windows(2).all(|pair| end(pair[0]) <= pair[1].start_ns.0);
        let lived = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.wall_ns.0));
        let share = Ns(lived).as_f64() / analysis.wall_ns.as_f64().max(1.0);
        let waits = causes.iter().filter(|row| row.purpose == Purpose::Child);
        (apart && rows.len() >= MANY && share >= MOST).then(|| OneByOne {
            program: program.to_owned(),
            processes: rows.len(),
            lived_ns: Ns(lived),
            share,
            wait: waits.filter(|row| !is_of(row, program)).max_by_key(|row| row.wait_ns),
        })
    });
    found.max_by_key(|one| one.lived_ns)
}
