//! The components of a run as they are drawn and told: programs that are alike as one, and what two of them exchange through
//! pipes and connections as one arrow.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Components, ThingKind, Use};
use crate::clock::Ns;

/// What there is to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Programs; those of the same name and role that the same one started are one, unless they exchange something.
    pub programs: Vec<DrawnPrograms>,
    /// By index in [`Components::programs`]: which of them each program is in.
    pub of_program: Vec<usize>,
    /// What programs send each other, sorted by bytes.
    pub exchanges: Vec<Exchange>,
    /// What else they use: things by index, sorted as in [`Components::things`].
    pub things: Vec<usize>,
}

/// One program, or several that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnPrograms {
    /// By index in [`Components::programs`].
    pub programs: Vec<usize>,
    /// Who started them, by index in [`Picture::programs`].
    pub parent: Option<usize>,
    /// Threads of all together.
    pub threads: usize,
}

/// What one sends another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Who writes, by index in [`Picture::programs`].
    pub from: usize,
    /// Who reads.
    pub to: usize,
    /// Through what.
    pub kind: ThingKind,
    /// By index in [`Components::things`].
    pub things: Vec<usize>,
    /// Bytes that arrived; those that were written if nobody read them.
    pub bytes: u64,
    /// How long the reads took.
    pub read_ns: Ns,
}

impl Components {
    /// Returns what there is to be drawn.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let mut users: BTreeMap<usize, Vec<&Use>> = BTreeMap::new();
        for used in &self.uses {
            users.entry(used.thing).or_default().push(used);
        }
        let (programs, of_program) = self.alike(&users);
        let mut exchanges: BTreeMap<(usize, usize, ThingKind), Exchange> = BTreeMap::new();
        let mut things = Vec::new();
        for (&thing, uses) in &users {
            let kind = self.things[thing].kind;
            let ends: BTreeSet<usize> = uses.iter().map(|used| of_program[used.program]).collect();
            let is_between_two = ends.len() == 2 && connects(kind);
            let mut is_told = false;
            for from in uses.iter().filter(|used| is_between_two && used.written > 0) {
                let from = of_program[from.program];
                let Some(&to) = ends.iter().find(|&&end| end != from) else { continue };
                let sum = |end: usize, of: fn(&Use) -> u64| {
                    uses.iter()
                        .filter(|used| of_program[used.program] == end)
                        .map(|used| of(used))
                        .sum()
                };
                let exchange = exchanges.entry((from, to, kind)).or_insert_with(|| Exchange {
                    from,
                    to,
                    kind,
                    things: Vec::new(),
                    bytes: 0,
                    read_ns: Ns(0),
                });
                is_told = true;
                if exchange.things.last() == Some(&thing) {
                    continue;
                }
                let (arrived, sent): (u64, u64) =
                    (sum(to, |used| used.read), sum(from, |used| used.written));
                exchange.things.push(thing);
                exchange.bytes += if arrived > 0 { arrived } else { sent };
                exchange.read_ns.0 += sum(to, |used| used.read_ns.0);
            }
            if !is_told {
                things.push(thing);
            }
        }
        let mut exchanges: Vec<Exchange> = exchanges.into_values().collect();
        exchanges.sort_by_key(|exchange| {
            (std::cmp::Reverse(exchange.bytes), exchange.from, exchange.to)
        });
        Picture { programs, of_program, exchanges, things }
    }

    /// Programs that are alike, and which of these each program is in.
    fn alike(&self, users: &BTreeMap<usize, Vec<&Use>>) -> (Vec<DrawnPrograms>, Vec<usize>) {
        // Who has a thing in common with another of its kind is drawn by itself.
        let key = |at: usize| {
            let program = &self.programs[at];
            (&*program.name, &*program.role, program.parent)
        };
        let mut exchanging: BTreeSet<usize> = BTreeSet::new();
        for (&thing, uses) in users {
            if !connects(self.things[thing].kind) {
                continue;
            }
            for a in uses.iter().filter(|used| used.written > 0) {
                for b in uses.iter().filter(|used| used.read > 0 && used.program != a.program) {
                    if key(a.program) == key(b.program) {
                        exchanging.extend([a.program, b.program]);
                    }
                }
            }
        }
        let parents: HashSet<usize> =
            self.programs.iter().filter_map(|program| program.parent).collect();
        let mut drawn: Vec<DrawnPrograms> = Vec::new();
        let mut known: HashMap<(&str, &str, Option<usize>), usize> = HashMap::new();
        let mut of_program = Vec::with_capacity(self.programs.len());
        for (at, program) in self.programs.iter().enumerate() {
            let next = drawn.len();
            let place = match parents.contains(&at) || exchanging.contains(&at) {
                true => next,
                false => *known.entry(key(at)).or_insert(next),
            };
            if place == next {
                drawn.push(DrawnPrograms::default());
            }
            drawn[place].programs.push(at);
            drawn[place].threads += program.threads;
            of_program.push(place);
        }
        for programs in &mut drawn {
            let first = programs.programs[0];
            programs.parent = self.programs[first].parent.map(|parent| of_program[parent]);
        }
        (drawn, of_program)
    }
}

/// Whether what is written there is read by another.
fn connects(kind: ThingKind) -> bool {
    matches!(kind, ThingKind::Pipe | ThingKind::Socket)
}

#[cfg(test)]
mod tests {
    use super::super::{Program, Thing};
    use super::*;

    fn program(name: &str, parent: Option<usize>) -> Program {
        Program { name: name.into(), parent, threads: 1, ..Program::default() }
    }

    fn thing(kind: ThingKind) -> Thing {
        Thing { kind, name: String::new(), read: 0, written: 0 }
    }

    fn used(program: usize, thing: usize, read: u64, written: u64) -> Use {
        Use { program, thing, read, written, ..Use::default() }
    }

    #[test]
    fn connections_of_two_programs_are_one_arrow_each_way() {
        let found = Components {
            programs: vec![
                program("sh", None),
                program("server", Some(0)),
                program("client", Some(0)),
                program("client", Some(0)),
            ],
            things: vec![
                thing(ThingKind::Socket),
                thing(ThingKind::Socket),
                thing(ThingKind::File),
            ],
            uses: vec![
                used(1, 0, 10, 500),
                used(2, 0, 500, 10),
                used(1, 1, 7, 70),
                used(3, 1, 0, 7),
                used(1, 2, 5, 0),
            ],
            lost: 0,
        };
        let picture = found.picture();
        let programs: Vec<_> = picture.programs.iter().map(|drawn| &*drawn.programs).collect();
        assert_eq!(programs, [&[0][..], &[1], &[2, 3]]);
        assert_eq!(picture.of_program, [0, 1, 2, 2]);
        let told: Vec<_> =
            picture.exchanges.iter().map(|e| (e.from, e.to, e.bytes, e.things.len())).collect();
        // The second client never read what was written to it.
        assert_eq!(told, [(1, 2, 570, 2), (2, 1, 17, 2)]);
        assert_eq!(picture.things, [2]);
    }

    #[test]
    fn programs_that_write_to_each_other_stay_apart_and_a_pipe_of_three_stays_a_thing() {
        let found = Components {
            programs: vec![
                program("sh", None),
                program("cat", Some(0)),
                program("cat", Some(0)),
                program("tee", Some(0)),
            ],
            things: vec![thing(ThingKind::Pipe), thing(ThingKind::Pipe)],
            uses: vec![
                used(1, 0, 0, 9),
                used(2, 0, 9, 0),
                used(1, 1, 0, 3),
                used(2, 1, 0, 3),
                used(3, 1, 6, 0),
            ],
            lost: 0,
        };
        let picture = found.picture();
        assert_eq!(picture.programs.len(), 4);
        assert_eq!(picture.exchanges.len(), 1);
        assert_eq!((picture.exchanges[0].from, picture.exchanges[0].to), (1, 2));
        assert_eq!(picture.things, [1]);
    }
}
