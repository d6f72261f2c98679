//! Things that are told as one: a server's connections to clients that were not recorded, and files that took each other's place.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chase_analyzer::{Thing, ThingKind};

use super::kind;
use crate::terminal::{clean, plural};

/// Who uses a thing, and what is common to those that are alike: a name, or one end.
type Likeness<'a> = (ThingKind, BTreeSet<usize>, &'a str);

fn ends(name: &str) -> impl Iterator<Item = &str> {
    name.split(" – ").filter(|end| !end.is_empty())
}

fn port(end: &str) -> Option<u16> {
    end.rsplit(':').next()?.parse().ok()
}

/// The end that connections of these names have in common. Of a single one, the lower port is mostly that of the server.
pub(super) fn common_end<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut common: Vec<&str> = ends(names.next()?).collect();
    for name in names {
        common.retain(|end| ends(name).any(|other| other == *end));
    }
    common.into_iter().min_by_key(|end| port(end).unwrap_or(u16::MAX))
}

/// Puts together those of `all` that are alike, each in the place of the first of them.
pub(super) fn together(
    things: &[Thing],
    all: &[usize],
    users: impl Fn(usize) -> BTreeSet<usize>,
) -> Vec<Vec<usize>> {
    let mut with_end: HashMap<&str, usize> = HashMap::new();
    for end in all.iter().flat_map(|&at| ends(&things[at].name)) {
        *with_end.entry(end).or_default() += 1;
    }
    let mut places: BTreeMap<Likeness<'_>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &at in all {
        let thing = &things[at];
        let common = match thing.kind {
            ThingKind::Socket => ends(&thing.name).max_by_key(|end| with_end[end]),
            _ => Some(&*thing.name).filter(|name| !name.is_empty()),
        };
        let next = groups.len();
        let place = common
            .map_or(next, |common| *places.entry((thing.kind, users(at), common)).or_insert(next));
        if place == next {
            groups.push(Vec::new());
        }
        groups[place].push(at);
    }
    groups
}

/// What things that are told as one are called.
pub(super) fn described(things: &[&Thing]) -> String {
    let [first, ..] = things else { return String::new() };
    let (name, number) = (clean(&first.name), things.len() as u64);
    let kind = kind(first.kind);
    match first.kind {
        ThingKind::Socket if number > 1 => {
            let end = common_end(things.iter().map(|thing| &*thing.name));
            format!("{} at {}", plural(number, kind), clean(end.unwrap_or_default()))
        }
        ThingKind::Pipe | ThingKind::Socket if name.is_empty() => format!("A {kind}"),
        ThingKind::Pipe | ThingKind::Socket => format!("A {kind} {name}"),
        _ if name.is_empty() => format!("The {kind}"),
        _ if number == 1 => format!("The {kind} {name}"),
        _ => format!("The {kind} {name} ({number} of that name)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ab's 300 connections to nginx were 300 things of the same sentence; sqlite's journal, which it removes and makes anew, was two of
    /// the same name.
    #[test]
    fn connections_to_one_server_are_told_as_one_and_so_are_files_of_one_name() {
        let thing = |kind, name: &str| Thing { kind, name: name.into(), read: 1, written: 1 };
        let socket = |port: u16| thing(ThingKind::Socket, &format!("[::1]:80 – [::1]:{port}"));
        let file = |name| thing(ThingKind::File, name);
        let things = [
            socket(5001),
            file("/a/x-journal"),
            socket(5002),
            thing(ThingKind::Pipe, ""),
            file("/a/x-journal"),
            thing(ThingKind::Pipe, ""),
            socket(5003),
            file("/a/y"),
        ];
        // The last connection is another worker's.
        let users = |at: usize| BTreeSet::from([usize::from(at == 6)]);
        let groups = together(&things, &[0, 1, 2, 3, 4, 5, 6, 7], users);
        assert_eq!(groups, [vec![0, 2], vec![1, 4], vec![3], vec![5], vec![6], vec![7]]);
        let told = groups.iter().map(|group| {
            let things: Vec<&Thing> = group.iter().map(|&at| &things[at]).collect();
            described(&things)
        });
        let told: Vec<String> = told.collect();
        assert_eq!(
            told,
            [
                "2 sockets at [::1]:80",
                "The file /a/x-journal (2 of that name)",
                "A pipe",
                "A pipe",
                "A socket [::1]:80 – [::1]:5003",
                "The file /a/y",
            ]
        );
    }
}
