//! The same as a graph, and for the page.

use std::collections::{BTreeMap, BTreeSet};

use chase_analyzer::{Exchange, Use};
use chase_html::{Diagram, Label, PartUse};
use chase_viz::{Graph, GraphArrow, GraphNode};

use super::{Parts, bytes, kind};
use crate::report::Report;
use crate::terminal::plural;

/// Programs in a picture, those that are alike as one.
pub(super) const PROGRAMS: usize = 24;
/// Rows of the page's table.
const USES: usize = 60;

impl Parts {
    /// Programs that are drawn, by place in the picture: those that exchanged most, and the first of the rest.
    fn drawn_programs(&self, most: usize) -> BTreeSet<usize> {
        let mut exchanged = vec![0_u64; self.picture.programs.len()];
        for Exchange { from, to, bytes, .. } in &self.picture.exchanges {
            for end in [*from, *to] {
                exchanged[end] = exchanged[end].saturating_add(*bytes);
            }
        }
        let mut places: Vec<usize> = (0..exchanged.len()).collect();
        places.sort_by_key(|&place| std::cmp::Reverse(exchanged[place]));
        places.into_iter().take(most).collect()
    }

    /// The graph, with `most` programs.
    pub(super) fn drawn_graph(&self, most: usize) -> Graph {
        let mut graph = Graph::default();
        let node = |graph: &mut Graph, lines, is_round| {
            graph.nodes.push(GraphNode { lines, is_round, is_marked: false });
            graph.nodes.len() - 1
        };
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for at in self.drawn_programs(most) {
            let program = &self.picture.programs[at];
            let mut lines = vec![self.drawn(at)];
            if program.threads > program.programs.len() {
                lines.push(format!("{} threads", program.threads));
            }
            places.insert(at, node(&mut graph, lines, false));
        }
        let mut arrow = |from: Option<usize>, to: Option<usize>, label: String| {
            if let (Some(from), Some(to)) = (from, to) {
                let is_dashed = label.is_empty();
                graph.arrows.push(GraphArrow { from, to, label, is_dashed });
            }
        };
        let place = |at: usize| places.get(&at).copied();
        for &at in places.keys() {
            if let Some(parent) = self.picture.programs[at].parent {
                arrow(place(parent), place(at), String::new());
            }
        }
        for exchange in &self.picture.exchanges {
            let sent = bytes(exchange.bytes);
            let label = match exchange.things.len() {
                1 => sent,
                many => format!("{sent}, {}", plural(many as u64, kind(exchange.kind))),
            };
            arrow(place(exchange.from), place(exchange.to), label);
        }
        for things in self.worth_telling() {
            let users: Vec<(usize, usize)> =
                self.users(&things).into_iter().filter_map(|at| Some((at, place(at)?))).collect();
            if users.is_empty() {
                continue;
            }
            let lines = vec![self.described(&things)];
            let drawn = node(&mut graph, lines, true);
            let mut arrow = |from, to, label| {
                graph.arrows.push(GraphArrow { from, to, label, is_dashed: false });
            };
            for (at, program) in users {
                let written = self.sum(&things, at, |used| used.written);
                let read = self.sum(&things, at, |used| used.read);
                if written > 0 {
                    arrow(program, drawn, bytes(written));
                }
                if read > 0 {
                    arrow(drawn, program, bytes(read));
                }
                if read + written == 0 && self.sum(&things, at, |used| u64::from(used.maps)) > 0 {
                    arrow(drawn, program, "maps".to_owned());
                }
            }
        }
        graph
    }
}

/// For the page; `None` where single system calls were not kept.
pub(in crate::view) fn for_page(report: &Report) -> Option<chase_html::Parts> {
    let parts = Parts::from_report(report).ok()?;
    let used = |used: &Use| PartUse {
        program: parts.program(used.program).into(),
        thing: parts.described(&[used.thing]).into(),
        read: used.read,
        reads: used.reads,
        read_ns: used.read_ns.as_f64(),
        written: used.written,
        writes: used.writes,
        write_ns: used.write_ns.as_f64(),
    };
    Some(chase_html::Parts {
        diagram: Diagram::from(&parts.drawn_graph(PROGRAMS)),
        more_programs: parts.picture.programs.len().saturating_sub(PROGRAMS),
        sentences: parts.sentences().into_iter().map(Label::from).collect(),
        missing: parts.missing().into(),
        uses: parts.parts.uses.iter().take(USES).map(used).collect(),
        more_uses: parts.parts.uses.len().saturating_sub(USES),
    })
}
