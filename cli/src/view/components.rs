//! What a run is made of: programs, and what they read, write and share.

mod alike;
mod drawing;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use chase_analyzer::{Components, Exchange, Picture, Thing, ThingKind, Use, components};
use chase_viz::{Heading, Sheet};
use serde_json::Value;

use super::Show;
use super::narrate::not_told;
use crate::args::GraphFormat;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Look, Terminal, clean, count, elapsed, plural};

/// Things that are drawn and told.
const TOLD: usize = 12;
/// As many of files of several programs, and of things of a single one in any case.
const LEAST: usize = 3;
/// Sentences.
const SENTENCES: usize = 10;

use drawing::PROGRAMS;
pub(super) use drawing::for_page;

pub(super) struct Parts {
    parts: Components,
    picture: Picture,
}

impl Parts {
    pub(super) fn from_report(report: &Report) -> anyhow::Result<Self> {
        let Some(parts) = components(&report.loaded.images) else { bail!(not_told(report)) };
        Ok(Self { picture: parts.picture(), parts })
    }

    fn uses(&self, thing: usize) -> &[Use] {
        let uses = &self.parts.uses;
        let from = uses.partition_point(|used| used.thing < thing);
        let to = uses.partition_point(|used| used.thing <= thing);
        &uses[from..to]
    }

    /// A program, with its role where it has one.
    fn program(&self, at: usize) -> String {
        let program = &self.parts.programs[at];
        let name = if program.role.is_empty() { &program.name } else { &program.role };
        format!("{} ({})", clean(name), program.pid)
    }

    /// Programs that are drawn as one.
    fn drawn(&self, at: usize) -> String {
        match &*self.picture.programs[at].programs {
            [only] => self.program(*only),
            all => {
                let program = &self.parts.programs[all[0]];
                let name = if program.role.is_empty() { &program.name } else { &program.role };
                format!("{} × {}", all.len(), clean(name))
            }
        }
    }

    /// What things that are told as one are called.
    fn described(&self, things: &[usize]) -> String {
        let things: Vec<&Thing> = things.iter().map(|&at| &self.parts.things[at]).collect();
        alike::described(&things)
    }

    /// Who uses things, by place in the picture.
    fn users(&self, things: &[usize]) -> BTreeSet<usize> {
        things.iter().flat_map(|&thing| self.users_of(thing)).collect()
    }

    fn users_of(&self, thing: usize) -> BTreeSet<usize> {
        self.uses(thing).iter().map(|used| self.picture.of_program[used.program]).collect()
    }

    /// What all programs of a place did with things.
    fn sum(&self, things: &[usize], place: usize, of: fn(&Use) -> u64) -> u64 {
        let uses = things.iter().flat_map(|&thing| self.uses(thing));
        uses.filter(|used| self.picture.of_program[used.program] == place).map(of).sum()
    }

    /// Whether a program reads what another one writes.
    fn is_shared(&self, thing: usize) -> bool {
        let uses = || self.uses(thing).iter().filter(|used| used.read > 0 || used.written > 0);
        uses().count() > 1
            && uses().any(|used| used.read > 0)
            && uses().any(|used| used.written > 0)
    }

    /// Things that are drawn and told by themselves: those of several programs, and of the rest what most went through. Those that are
    /// alike are told as one.
    fn worth_telling(&self) -> Vec<Vec<usize>> {
        // Not libraries, and what the C library reads at a start.
        let is_own = |thing: &usize| {
            let thing = &self.parts.things[*thing];
            matches!(thing.kind, ThingKind::Pipe | ThingKind::Socket)
                || !is_of_the_system(&thing.name)
        };
        let all: Vec<usize> = self.picture.things.iter().copied().filter(is_own).collect();
        let mut all = alike::together(&self.parts.things, &all, |at| self.users_of(at));
        let bytes = |at: &usize| self.parts.things[*at].read + self.parts.things[*at].written;
        all.sort_by_key(|things| std::cmp::Reverse(things.iter().map(bytes).sum::<u64>()));
        let is_shared = |things: &Vec<usize>| things.iter().any(|&at| self.is_shared(at));
        let (shared, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_shared);
        // What connects programs is the story; beside it there is less of the rest.
        let room = TOLD.saturating_sub(self.picture.exchanges.len()).max(LEAST);
        let is_file = |things: &Vec<usize>| self.parts.things[things[0]].kind == ThingKind::File;
        let (files, others): (Vec<_>, Vec<_>) = shared.into_iter().partition(is_file);
        let mut told: Vec<Vec<usize>> = others.into_iter().take(TOLD).collect();
        told.extend(files.into_iter().take(LEAST));
        let left = room.saturating_sub(told.len());
        told.extend(rest.into_iter().take(left));
        told
    }

    fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        let drawn = || self.picture.programs.iter().enumerate();
        for (at, program) in drawn() {
            let children: Vec<String> = drawn()
                .filter(|(_, child)| child.parent == Some(at))
                .map(|(child, _)| self.drawn(child))
                .collect();
            let name = self.drawn(at);
            let threads = match program.threads {
                threads if threads <= program.programs.len() => String::new(),
                threads => format!(", with {threads} threads,"),
            };
            if !children.is_empty() {
                said.push(format!("{name}{threads} started {}.", listed(&children)));
            } else if !threads.is_empty() {
                said.push(format!("{name} had {} threads.", program.threads));
            }
        }
        let mut rest = self.exchanged();
        rest.extend(self.worth_telling().into_iter().filter_map(|things| self.sentence(&things)));
        // Who started whom takes half of them at most, if there is more to tell.
        said.truncate(SENTENCES.saturating_sub(rest.len()).max(SENTENCES / 2));
        said.append(&mut rest);
        said.truncate(SENTENCES);
        said
    }

    /// What programs sent each other, both ways in one sentence.
    fn exchanged(&self) -> Vec<String> {
        let mut said = Vec::new();
        let all = &self.picture.exchanges;
        for (at, one) in all.iter().enumerate() {
            let is_back = |other: &&Exchange| {
                (other.from, other.to, other.kind) == (one.to, one.from, one.kind)
            };
            if all[..at].iter().any(|other| is_back(&other)) {
                continue;
            }
            let took = |exchange: &Exchange| match exchange.read_ns.0 / 1_000_000 {
                0 => String::new(),
                _ => format!(" (reading took {})", elapsed(exchange.read_ns.0)),
            };
            let back = all.iter().find(is_back).map_or_else(String::new, |back| {
                format!(" and got {} back{}", bytes(back.bytes), took(back))
            });
            said.push(format!(
                "{} sent {} {}{}{back}, through {}.",
                self.drawn(one.from),
                self.drawn(one.to),
                bytes(one.bytes),
                took(one),
                self.through(one),
            ));
        }
        said
    }

    /// A pipe, or connections with the address that all of them have in common.
    fn through(&self, exchange: &Exchange) -> String {
        let number = exchange.things.len() as u64;
        let kind = match number {
            1 => format!("a {}", kind(exchange.kind)),
            more => plural(more, kind(exchange.kind)),
        };
        let names = exchange.things.iter().map(|&thing| &*self.parts.things[thing].name);
        match alike::common_end(names) {
            None => kind,
            Some(end) => format!("{kind} at {}", clean(end)),
        }
    }

    /// Who wrote and read things that are told as one.
    fn sentence(&self, things: &[usize]) -> Option<String> {
        let part = |done: u64, calls: u64, place: usize| {
            let calls =
                if calls == 1 { "one call".to_owned() } else { format!("{} calls", count(calls)) };
            format!("{} in {calls} by {}", bytes(done), self.drawn(place))
        };
        let places = self.users(things);
        let sum = |place: usize, of: fn(&Use) -> u64| self.sum(things, place, of);
        let writers: Vec<String> = places
            .iter()
            .filter(|&&place| sum(place, |used| used.written) > 0)
            .map(|&place| {
                part(sum(place, |used| used.written), sum(place, |used| used.writes), place)
            })
            .collect();
        let readers: Vec<String> = places
            .iter()
            .filter(|&&place| sum(place, |used| used.read) > 0)
            .map(|&place| {
                let ns = sum(place, |used| used.read_ns.0);
                let waited = match ns / 1_000_000 {
                    0 => String::new(),
                    _ => format!(" (which took {})", elapsed(ns)),
                };
                let read = part(sum(place, |used| used.read), sum(place, |used| used.reads), place);
                format!("{read}{waited}")
            })
            .collect();
        let kind = self.parts.things[*things.first()?].kind;
        let are = if kind == ThingKind::Socket && things.len() > 1 { "were" } else { "was" };
        let what = self.described(things);
        match (writers.is_empty(), readers.is_empty()) {
            (false, false) => Some(format!(
                "{what} {are} written {} and read {}.",
                listed(&writers),
                listed(&readers)
            )),
            (false, true) => Some(format!("{what} {are} written {}.", listed(&writers))),
            (true, false) => Some(format!("{what} {are} read {}.", listed(&readers))),
            (true, true) => {
                let by: Vec<String> = places.iter().map(|&place| self.drawn(place)).collect();
                (kind == ThingKind::Memory).then(|| format!("{what} is shared by {}.", listed(&by)))
            }
        }
    }

    /// The graph as `format`, into `output`, or as what is to be printed.
    pub(super) fn graph(
        &self,
        report: &Report,
        format: GraphFormat,
        output: Option<&Path>,
    ) -> anyhow::Result<String> {
        let text = match format {
            GraphFormat::Dot => self.drawn_graph(usize::MAX).dot("components"),
            GraphFormat::Svg => {
                let mut subtitle = super::processes::subtitle(report);
                let more = self.picture.programs.len().saturating_sub(PROGRAMS);
                if more > 0 {
                    let more = plural(more as u64, "program");
                    subtitle += &format!("; {more} that exchanged less are not drawn");
                }
                let heading = Heading { title: "Components of the run", subtitle: &subtitle };
                let chart = chase_viz::graph(&Sheet::alone(heading), &self.drawn_graph(PROGRAMS));
                chart.context("cannot draw the graph")?.svg().to_owned()
            }
        };
        match output {
            Some(path) => super::files::save(path, text.as_bytes()).map(|()| String::new()),
            None => Ok(text),
        }
    }

    /// What is missing for lack of room, in words; empty if nothing is.
    fn missing(&self) -> String {
        match self.parts.lost {
            0 => String::new(),
            lost => format!("Missing for lack of room: at least {}", plural(lost, "system call")),
        }
    }
}

fn is_of_the_system(name: &str) -> bool {
    const FILES: [&str; 7] = [
        "/dev/null",
        "/dev/urandom",
        "/etc/nsswitch.conf",
        "/etc/passwd",
        "/etc/group",
        "/etc/localtime",
        "/etc/mime.types",
    ];
    const DIRECTORIES: [&str; 7] = [
        "/proc/",
        "/sys/",
        "/usr/lib/locale/",
        "/usr/share/locale/",
        "/usr/share/zoneinfo/",
        "/usr/lib/ssl/",
        "/etc/ssl/",
    ];
    // With `ld.so.cache` and `ld.so.preload`.
    name.ends_with(".so")
        || name.contains(".so.")
        || name.ends_with(".pyc")
        || name.ends_with("gconv-modules.cache")
        || FILES.contains(&name)
        || DIRECTORIES.iter().any(|directory| name.starts_with(directory))
}

fn kind(kind: ThingKind) -> &'static str {
    match kind {
        ThingKind::Pipe => "pipe",
        ThingKind::Socket => "socket",
        ThingKind::Device => "device",
        ThingKind::Memory => "shared memory",
        ThingKind::File => "file",
    }
}

fn listed(all: &[String]) -> String {
    const MOST: usize = 6;
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if all.len() <= MOST => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", all[..MOST].join(", "), all.len() - MOST),
    }
}

fn bytes(number: u64) -> String {
    chase_viz::bytes(number)
}

impl Show for Parts {
    const NAME: &'static str = "components";

    fn text(&self, _: &Report, terminal: Terminal, _: usize) -> anyhow::Result<String> {
        let mut out: String = self.sentences().iter().map(|line| format!("{line}\n")).collect();
        let told: usize = self.worth_telling().iter().map(Vec::len).sum();
        let left_out = self.picture.things.len().saturating_sub(told);
        if left_out > 0 {
            let line = format!("\n{left_out} more things, libraries among them, are in --json\n");
            out.push_str(&terminal.paint(Look::Faint, &line));
        }
        let missing = self.missing();
        if !missing.is_empty() {
            let line = format!("{missing}\n");
            out.push_str(&terminal.paint(Look::Warning, &line));
        }
        Ok(out)
    }

    fn tables(&self, _: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let programs = self.parts.programs.iter().take(top).map(|row| machine::row(row, []));
        let things = self.parts.things.iter().take(top).map(|row| machine::row(row, []));
        let uses = self.parts.uses.iter().take(top).map(|used| {
            let program = &self.parts.programs[used.program];
            let thing = Value::from(self.described(&[used.thing]));
            machine::row(
                used,
                [("pid", program.pid.into()), ("name", (*program.name).into()), ("of", thing)],
            )
        });
        let table =
            |name, columns: &[&'static str], rows| Rows { name, columns: columns.to_vec(), rows };
        Ok(vec![
            table(
                "uses",
                &[
                    "pid", "name", "of", "reads", "read", "read_ns", "writes", "written",
                    "write_ns", "maps",
                ],
                uses.collect::<anyhow::Result<_>>()?,
            ),
            table(
                "programs",
                &["pid", "name", "role", "parent", "threads"],
                programs.collect::<anyhow::Result<_>>()?,
            ),
            table(
                "things",
                &["kind", "name", "read", "written"],
                things.collect::<anyhow::Result<_>>()?,
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_the_system;

    #[test]
    fn files_of_the_system_are_those_and_no_others() {
        for name in ["/etc/passwd", "/etc/ld.so.cache", "/lib/libc.so.6", "/a/lib.so", "/proc/1/fd"]
        {
            assert!(is_of_the_system(name), "{name}");
        }
        for name in ["/etc/passwd-", "/etc/groups.db", "/etc/ldap.conf", "/data/all.sorted"] {
            assert!(!is_of_the_system(name), "{name}");
        }
    }
}
