//! What formats are made from.

use serde::{Deserialize, Serialize};

/// A function, in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// Name of the library or program that it is in.
    pub library: String,
    /// Path of that file, or empty.
    pub path: String,
    /// Its build id in hexadecimal digits, or empty.
    pub build_id: String,
}

/// Calls of one function in one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number of the node that it was called in, which is lower than its own; `None` at the root.
    pub parent: Option<u32>,
    /// Its function, by number in [`Stacks::frames`].
    pub frame: u32,
    /// Calls.
    pub calls: u64,
    /// Time without what was called inside, nanoseconds.
    pub self_ns: u64,
}

/// A calling-context tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stacks {
    /// The functions.
    pub frames: Vec<Frame>,
    /// The contexts, callers before callees.
    pub nodes: Vec<Node>,
}

impl Stacks {
    /// Frames of a node, outermost first. A parent that is not before its child ends the path.
    pub(crate) fn path(&self, node: usize) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            path.push(node.frame);
            at = node.parent.map(|parent| parent as usize).filter(|&parent| Some(parent) < at);
        }
        path.reverse();
        path
    }

    /// Nodes that are worth a line of their own.
    pub(crate) fn with_values(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.self_ns > 0 || node.calls > 0)
    }
}

#[cfg(test)]
pub(crate) mod sample {
    use super::*;

    /// An application that waits in one library and works in two, with names that are none.
    pub(crate) fn stacks() -> Stacks {
        let frame = |function: &str, library: &str| Frame {
            function: function.into(),
            library: library.into(),
            path: format!("/lib/{library}"),
            build_id: "0123abcd".into(),
        };
        let node = |parent, frame, calls, self_ns| Node { parent, frame, calls, self_ns };
        Stacks {
            frames: vec![
                frame("app", "app"),
                frame("deflate", "libz.so.1"),
                frame("memcpy", "libc.so.6"),
                frame("odd;<img src=x>\n 12", "libodd.so"),
                frame("counted", "libc.so.6"),
            ],
            nodes: vec![
                node(None, 0, 0, 500),
                node(Some(0), 1, 3, 70),
                node(Some(1), 2, 40, 30),
                node(Some(0), 3, 1, 9),
                node(Some(0), 4, 2, 0),
            ],
        }
    }

    #[test]
    fn a_loop_of_parents_ends() {
        let mut stacks = stacks();
        stacks.nodes[1].parent = Some(2);
        assert_eq!(stacks.path(2), [1, 2]);
    }
}
