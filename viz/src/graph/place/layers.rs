//! Which layer each node is in, and where arrows cross the others.

use super::{Point, Stop};
use crate::graph::Graph;

/// The stops of a graph, those of nodes first, and of each arrow its stops between its ends, in the order of layers.
pub(super) fn layers(
    graph: &Graph,
    size: &dyn Fn(usize) -> Point,
    labels: &[Point],
) -> (Vec<Stop>, Vec<Vec<usize>>) {
    let forward = forward(graph);
    let layer = longest(graph.nodes.len(), &forward);
    let stop = |layer, size, is_bare| Stop { layer, size, is_bare, before: vec![], after: vec![] };
    let mut stops: Vec<Stop> =
        (0..graph.nodes.len()).map(|node| stop(2 * layer[node], size(node), false)).collect();
    let mut chains = vec![Vec::new(); graph.arrows.len()];
    for &(arrow, from, to) in &forward {
        let mut last = from;
        for between in 2 * layer[from] + 1..2 * layer[to] {
            let has_label = between == 2 * layer[from] + 1 && !graph.arrows[arrow].label.is_empty();
            let size = if has_label { labels[arrow] } else { (0.0, 0.0) };
            let next = stops.len();
            stops.push(stop(between, size, !has_label));
            stops[last].after.push(next);
            stops[next].before.push(last);
            chains[arrow].push(next);
            last = next;
        }
        stops[last].after.push(to);
        stops[to].before.push(last);
    }
    (stops, chains)
}

/// All arrows but loops, with the ends that they have if those that would close a circle are turned around.
fn forward(graph: &Graph) -> Vec<(usize, usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (number, arrow) in graph.arrows.iter().enumerate() {
        if arrow.from != arrow.to {
            leaving[arrow.from].push(number);
        }
    }
    let mut seen = vec![Seen::No; graph.nodes.len()];
    let mut forward = Vec::new();
    for root in 0..graph.nodes.len() {
        if seen[root] != Seen::No {
            continue;
        }
        seen[root] = Seen::Open;
        // Nodes, and how many of their arrows were followed.
        let mut open = vec![(root, 0)];
        while let Some((node, next)) = open.last_mut() {
            let Some(&number) = leaving[*node].get(*next) else {
                seen[*node] = Seen::Done;
                open.pop();
                continue;
            };
            *next += 1;
            let (from, to) = (*node, graph.arrows[number].to);
            match seen[to] {
                Seen::Open => forward.push((number, to, from)),
                Seen::Done => forward.push((number, from, to)),
                Seen::No => {
                    forward.push((number, from, to));
                    seen[to] = Seen::Open;
                    open.push((to, 0));
                }
            }
        }
    }
    forward.sort_unstable();
    forward
}

/// The layer of each node: behind all nodes with an arrow to it, by the longest way.
fn longest(nodes: usize, forward: &[(usize, usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; nodes];
    // Without circles no way has more steps than there are nodes.
    for _ in 0..nodes {
        let mut is_settled = true;
        for &(_, from, to) in forward {
            if layer[to] <= layer[from] {
                layer[to] = layer[from] + 1;
                is_settled = false;
            }
        }
        if is_settled {
            break;
        }
    }
    layer
}
