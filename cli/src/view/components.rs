//! What a run is made of: programs, and what they read, write and share.

use std::path::Path;

use anyhow::bail;
use chase_analyzer::{Components, Thing, ThingKind, Use, components};
use serde_json::Value;

use super::Show;
use super::narrate::NOT_TOLD;
use crate::args::GraphFormat;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Look, Terminal, clean, count, elapsed};

/// Things that are drawn and told.
const TOLD: usize = 12;
/// Sentences.
const SENTENCES: usize = 10;

pub(super) struct Parts {
    parts: Components,
}

impl Parts {
    pub(super) fn from_report(report: &Report) -> anyhow::Result<Self> {
        match components(&report.loaded.images) {
            Some(parts) => Ok(Self { parts }),
            None => bail!(NOT_TOLD),
        }
    }

    fn uses(&self, thing: usize) -> impl Iterator<Item = &Use> {
        self.parts.uses.iter().filter(move |used| used.thing == thing)
    }

    fn program(&self, at: usize) -> String {
        let program = &self.parts.programs[at];
        format!("{} ({})", clean(&program.name), program.pid)
    }

    /// Things worth telling: what connects programs, and of the rest what most went through.
    fn worth_telling(&self) -> Vec<usize> {
        let connects = |thing: &usize| {
            let of: Vec<&Use> = self.uses(*thing).collect();
            of.iter()
                .any(|a| of.iter().any(|b| a.program != b.program && a.written > 0 && b.read > 0))
        };
        let all = || 0..self.parts.things.len();
        let mut told: Vec<usize> = all().filter(connects).take(TOLD).collect();
        let rest = all().filter(|thing| !connects(thing)).filter(|&thing| {
            let thing = &self.parts.things[thing];
            // Libraries, and what the C library reads at a start.
            !matches!(thing.kind, ThingKind::File | ThingKind::Memory)
                || !is_of_the_system(&thing.name)
        });
        let room = TOLD - told.len();
        told.extend(rest.take(room));
        told
    }

    fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        for (at, program) in self.parts.programs.iter().enumerate() {
            let children: Vec<String> = (0..self.parts.programs.len())
                .filter(|&child| self.parts.programs[child].parent == Some(at))
                .map(|child| self.program(child))
                .collect();
            let threads = match program.threads {
                0 | 1 => String::new(),
                more => format!(", which has {more} threads,"),
            };
            if !children.is_empty() {
                said.push(format!("{}{threads} started {}.", self.program(at), listed(&children)));
            } else if program.threads > 1 {
                said.push(format!("{} has {} threads.", self.program(at), program.threads));
            }
        }
        for thing in self.worth_telling() {
            said.extend(self.sentence(thing));
        }
        said.truncate(SENTENCES);
        said
    }

    fn sentence(&self, at: usize) -> Option<String> {
        let thing = &self.parts.things[at];
        let part = |done: u64, calls: u64, program: usize| {
            let calls =
                if calls == 1 { "one call".to_owned() } else { format!("{} calls", count(calls)) };
            format!("{} in {calls} by {}", bytes(done), self.program(program))
        };
        let writers: Vec<String> = self
            .uses(at)
            .filter(|used| used.written > 0)
            .map(|used| part(used.written, used.writes, used.program))
            .collect();
        let readers: Vec<String> = self
            .uses(at)
            .filter(|used| used.read > 0)
            .map(|used| {
                let long = used.read_ns.0 / 1_000_000 > 0;
                let waited = if long {
                    format!(", who took {} for that", elapsed(used.read_ns.0))
                } else {
                    String::new()
                };
                format!("{}{waited}", part(used.read, used.reads, used.program))
            })
            .collect();
        let what = described(thing);
        match (writers.is_empty(), readers.is_empty()) {
            (false, false) => Some(format!(
                "{what} was written {} and read {}.",
                listed(&writers),
                listed(&readers)
            )),
            (false, true) => Some(format!("{what} was written {}.", listed(&writers))),
            (true, false) => Some(format!("{what} was read {}.", listed(&readers))),
            (true, true) => {
                let by: Vec<String> =
                    self.uses(at).map(|used| self.program(used.program)).collect();
                (thing.kind == ThingKind::Memory)
                    .then(|| format!("{what} is shared by {}.", listed(&by)))
            }
        }
    }

    fn dot(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut out = String::from("digraph components {\n    rankdir=LR;\n");
        for (at, program) in self.parts.programs.iter().enumerate() {
            let threads = if program.threads > 1 {
                format!("\\n{} threads", program.threads)
            } else {
                String::new()
            };
            let name = quoted(&self.program(at));
            out.push_str(&format!("    p{at} [shape=box, label=\"{name}{threads}\"];\n"));
            if let Some(parent) = program.parent {
                out.push_str(&format!(
                    "    p{parent} -> p{at} [style=dashed, label=\"starts\"];\n"
                ));
            }
        }
        for thing in self.worth_telling() {
            let label = quoted(&described(&self.parts.things[thing]));
            out.push_str(&format!("    t{thing} [shape=ellipse, label=\"{label}\"];\n"));
            for used in self.uses(thing) {
                let program = used.program;
                if used.written > 0 {
                    let label = bytes(used.written);
                    out.push_str(&format!("    p{program} -> t{thing} [label=\"{label}\"];\n"));
                }
                if used.read > 0 {
                    let label = bytes(used.read);
                    out.push_str(&format!("    t{thing} -> p{program} [label=\"{label}\"];\n"));
                }
                if used.maps && used.read + used.written == 0 {
                    out.push_str(&format!("    t{thing} -> p{program} [label=\"maps\"];\n"));
                }
            }
        }
        out.push_str("}\n");
        out
    }

    /// The graph as `format`, into `output`, or as what is to be printed.
    pub(super) fn graph(
        &self,
        format: GraphFormat,
        output: Option<&Path>,
    ) -> anyhow::Result<String> {
        let text = match format {
            GraphFormat::Dot => self.dot(),
            GraphFormat::Svg => chase_viz::graph(&self.dot())?,
        };
        match output {
            Some(path) => super::export::save(path, text.as_bytes()).map(|()| String::new()),
            None => Ok(text),
        }
    }
}

fn is_of_the_system(name: &str) -> bool {
    name.contains(".so")
        || name.ends_with(".pyc")
        || name.ends_with("gconv-modules.cache")
        || [
            "/proc/",
            "/sys/",
            "/usr/lib/locale",
            "/usr/share/locale",
            "/etc/ld",
            "/usr/share/zoneinfo",
        ]
        .iter()
        .any(|of| name.starts_with(of))
}

fn described(thing: &Thing) -> String {
    let kind = match thing.kind {
        ThingKind::Pipe => "A pipe",
        ThingKind::Socket => "A socket",
        ThingKind::Device => "The device",
        ThingKind::Memory => "The shared memory",
        ThingKind::File => "The file",
    };
    let name = clean(&thing.name);
    if name.is_empty() { kind.to_owned() } else { format!("{kind} {name}") }
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
        let left_out = self.parts.things.len().saturating_sub(self.worth_telling().len());
        if left_out > 0 {
            let line = format!("\n{left_out} more things, libraries among them, are in --json\n");
            out.push_str(&terminal.paint(Look::Faint, &line));
        }
        if self.parts.lost > 0 {
            let line = format!(
                "{} system calls or more are missing: there was no room for them\n",
                self.parts.lost
            );
            out.push_str(&terminal.paint(Look::Warning, &line));
        }
        Ok(out)
    }

    fn tables(&self, _: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let programs = self.parts.programs.iter().take(top).map(|row| machine::row(row, []));
        let things = self.parts.things.iter().take(top).map(|row| machine::row(row, []));
        let uses = self.parts.uses.iter().take(top).map(|used| {
            let program = &self.parts.programs[used.program];
            let thing = Value::from(described(&self.parts.things[used.thing]));
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
                &["pid", "name", "parent", "threads"],
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
