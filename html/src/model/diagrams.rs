//! Who waits for whom, and what the run is made of.

use chase_viz::{Graph, GraphArrow, GraphNode};
use serde::{Deserialize, Serialize};

use crate::Label;

/// Nodes, and arrows between them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Diagram {
    /// The nodes.
    pub nodes: Vec<DiagramNode>,
    /// The arrows.
    pub arrows: Vec<DiagramArrow>,
}

/// A node; as [`GraphNode`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiagramNode {
    /// What stands in it, line by line.
    pub lines: Vec<Label>,
    /// Whether it is an ellipse; otherwise it is a box.
    #[serde(default)]
    pub is_round: bool,
    /// Whether it has a thick outline.
    #[serde(default)]
    pub is_marked: bool,
}

/// An arrow; as [`GraphArrow`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiagramArrow {
    /// Where it begins, by index.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// What stands beside it; may be empty.
    pub label: Label,
    /// Whether it is dashed.
    #[serde(default)]
    pub is_dashed: bool,
}

/// Who waits for whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WaitsForWhom {
    /// The longest of the waits.
    pub diagram: Diagram,
    /// The group that others wait for longest, and that hardly waits for others; empty if there is none.
    pub bottleneck: Label,
    /// All waits, longest first.
    pub waits: Vec<GroupWaits>,
}

/// Waits of a group for another, or for what is no thread of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GroupWaits {
    /// Who waits.
    pub group: Label,
    /// For whom.
    pub target: Label,
    /// How long in all, nanoseconds.
    pub ns: f64,
    /// How many waits.
    pub waits: u64,
    /// Where most of it is.
    pub place: Label,
    /// What is waited for there: a lock, a file.
    pub object: Label,
}

/// The programs of a run, and what they read, write and share.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parts {
    /// The programs, and what connects them.
    pub diagram: Diagram,
    /// How many more programs there are than it has.
    pub more_programs: usize,
    /// The same in sentences.
    pub sentences: Vec<Label>,
    /// What is missing; empty if nothing is.
    pub missing: Label,
    /// Which program did what with what.
    pub uses: Vec<PartUse>,
    /// How many more uses there are.
    pub more_uses: usize,
}

/// What a program did with a file, a pipe, a connection, shared memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PartUse {
    /// The program.
    pub program: Label,
    /// The thing.
    pub thing: Label,
    /// Bytes read.
    pub read: u64,
    /// The number of reads.
    pub reads: u64,
    /// Their time, nanoseconds.
    pub read_ns: f64,
    /// Bytes written.
    pub written: u64,
    /// The number of writes.
    pub writes: u64,
    /// Their time, nanoseconds.
    pub write_ns: f64,
}

impl From<&Graph> for Diagram {
    fn from(graph: &Graph) -> Self {
        let node = |node: &GraphNode| DiagramNode {
            lines: node.lines.iter().map(Label::from).collect(),
            is_round: node.is_round,
            is_marked: node.is_marked,
        };
        let arrow = |arrow: &GraphArrow| DiagramArrow {
            from: arrow.from,
            to: arrow.to,
            label: Label::from(&arrow.label),
            is_dashed: arrow.is_dashed,
        };
        Self {
            nodes: graph.nodes.iter().map(node).collect(),
            arrows: graph.arrows.iter().map(arrow).collect(),
        }
    }
}

impl Diagram {
    /// As it can be drawn.
    pub(crate) fn graph(&self) -> Graph {
        let node = |node: &DiagramNode| GraphNode {
            lines: node.lines.iter().map(ToString::to_string).collect(),
            is_round: node.is_round,
            is_marked: node.is_marked,
        };
        let arrow = |arrow: &DiagramArrow| GraphArrow {
            from: arrow.from,
            to: arrow.to,
            label: arrow.label.to_string(),
            is_dashed: arrow.is_dashed,
        };
        Graph {
            nodes: self.nodes.iter().map(node).collect(),
            arrows: self.arrows.iter().map(arrow).collect(),
        }
    }
}
