//! Where the nodes of a graph are, and which way its arrows go: in layers, after K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual
//! Understanding of Hierarchical System Structures" (1981).
//!
//! Arrows go from layer to layer, but for those that would close a circle. Nodes have the even layers. On each layer between its
//! ends an arrow has a *stop*; its label stands at the first of them. The order within a layer, and then the places, follow those
//! of the neighbours.

mod layers;
mod order;

use super::Graph;

/// Free space between two layers that have something, pixels.
const BETWEEN_LAYERS: f64 = 22.0;
/// Free space between neighbours in a layer: nodes or labels, and arrows alone.
const BESIDE: f64 = 22.0;
const BESIDE_ARROW: f64 = 12.0;
/// How often places are moved towards those of the neighbours.
const ROUNDS: usize = 12;
/// Steps of a curve.
const STEPS: usize = 12;
/// Size of the loop of an arrow that leads back to its own node.
const LOOP: (f64, f64) = (24.0, 24.0);

type Point = (f64, f64);

/// A graph whose parts have places, in pixels from the upper left.
#[derive(Debug, Default)]
pub(super) struct Placed {
    pub(super) size: Point,
    /// By node.
    pub(super) centres: Vec<Point>,
    /// By arrow: from its beginning to its end.
    pub(super) ways: Vec<Vec<Point>>,
    /// By arrow: the middle of its label.
    pub(super) labels: Vec<Point>,
}

/// What has a place in a layer: a node, or where an arrow crosses the layer.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    layer: usize,
    /// Extent from layer to layer, and within the layer.
    size: Point,
    is_bare: bool,
    /// Neighbours in the layer before, and in the next.
    before: Vec<usize>,
    after: Vec<usize>,
}

/// Finds places for nodes, and labels of arrows, of these sizes; layers are from left to right, or else downwards.
pub(super) fn place(graph: &Graph, sizes: &[Point], labels: &[Point], is_across: bool) -> Placed {
    let turned = |(a, b): Point| if is_across { (a, b) } else { (b, a) };
    let loops = |node: usize| -> Vec<usize> {
        let of_node = |at: &usize| graph.arrows[*at].from == node && graph.arrows[*at].to == node;
        (0..graph.arrows.len()).filter(of_node).collect()
    };
    // A loop is beside its node, in the same layer.
    let beside = |node: usize| match &*loops(node) {
        [] => (0.0, 0.0),
        of_node => of_node.iter().fold(turned(LOOP), |(along, across), &arrow| {
            let label = turned(labels[arrow]);
            (along.max(label.0), across + label.1 + 4.0)
        }),
    };
    let whole = |node: usize| {
        let (own, beside) = (turned(sizes[node]), beside(node));
        (own.0.max(beside.0), own.1 + beside.1)
    };
    let labels_turned: Vec<Point> = labels.iter().map(|&label| turned(label)).collect();
    let (mut stops, chains) = layers::layers(graph, &whole, &labels_turned);
    let rows = order::order(&mut stops);
    let across = within_layers(&stops, &rows);
    let along = along_layers(&stops, &rows);
    let middle = |stop: usize| (along[stops[stop].layer], across[stop]);
    // Of a node with loops, the box is at the upper edge of its room.
    let centre = |node: usize| {
        let (x, y) = middle(node);
        (x, y - beside(node).1 / 2.0)
    };
    let mut placed = Placed { labels: vec![(0.0, 0.0); graph.arrows.len()], ..Placed::default() };
    for (arrow, chain) in graph.arrows.iter().zip(&chains) {
        let number = placed.ways.len();
        let (from, to) = (centre(arrow.from), centre(arrow.to));
        let half = |node: usize| turned(sizes[node]);
        if arrow.from == arrow.to {
            let edge = from.1 + half(arrow.from).1 / 2.0;
            let position = loops(arrow.from).iter().position(|&at| at == number).unwrap_or(0);
            let before: f64 =
                loops(arrow.from)[..position].iter().map(|&at| labels_turned[at].1 + 4.0).sum();
            let (width, depth) = turned(LOOP);
            placed.labels[number] =
                (from.0, edge + depth + before + labels_turned[number].1 / 2.0 + 4.0);
            placed.ways.push(round((from.0, edge), width, depth));
            continue;
        }
        let is_back = stops[arrow.from].layer > stops[arrow.to].layer;
        let (first, last) = if is_back { (arrow.to, arrow.from) } else { (arrow.from, arrow.to) };
        let (start, end) = if is_back { (to, from) } else { (from, to) };
        let mut points = vec![(start.0 + half(first).0 / 2.0, start.1)];
        for &stop in chain {
            let (x, y) = middle(stop);
            let extent = stops[stop].size.0 / 2.0;
            points.extend([(x - extent, y), (x + extent, y)]);
            if !stops[stop].is_bare {
                placed.labels[number] = (x, y);
            }
        }
        points.push((end.0 - half(last).0 / 2.0, end.1));
        let mut way = curve(&points);
        if is_back {
            way.reverse();
        }
        placed.ways.push(way);
    }
    let extent = |of: &dyn Fn(usize) -> f64| (0..stops.len()).map(of).fold(0.0, f64::max);
    let size = (
        extent(&|at| middle(at).0 + stops[at].size.0 / 2.0),
        extent(&|at| middle(at).1 + stops[at].size.1 / 2.0),
    );
    placed.size = turned((size.0 + 2.0, size.1 + 2.0));
    placed.centres = (0..graph.nodes.len()).map(|node| turned(centre(node))).collect();
    placed.ways.iter_mut().flatten().for_each(|point| *point = turned(*point));
    placed.labels.iter_mut().for_each(|point| *point = turned(*point));
    placed
}

/// Where the middle of each layer is.
fn along_layers(stops: &[Stop], rows: &[Vec<usize>]) -> Vec<f64> {
    let mut at = 1.0;
    let mut middles = Vec::with_capacity(rows.len());
    for row in rows {
        let extent = row.iter().map(|&stop| stops[stop].size.0).fold(0.0, f64::max);
        middles.push(at + extent / 2.0);
        at += extent + BETWEEN_LAYERS;
    }
    middles
}

/// Where each stop is within its layer: as near to the mean of its neighbours as the order allows.
fn within_layers(stops: &[Stop], rows: &[Vec<usize>]) -> Vec<f64> {
    let mut at = vec![0.0; stops.len()];
    for row in rows {
        let packed = offsets(stops, row);
        row.iter().zip(packed).for_each(|(&stop, offset)| at[stop] = offset);
    }
    for round in 0..ROUNDS {
        let forwards = round % 2 == 0;
        let numbers: Vec<usize> =
            if forwards { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for number in numbers {
            let row = &rows[number];
            let offsets = offsets(stops, row);
            let wished = |(&stop, offset): (&usize, &f64)| {
                let Stop { before, after, .. } = &stops[stop];
                let mut near = if forwards { before } else { after };
                if near.is_empty() {
                    near = if forwards { after } else { before };
                }
                let mean = near.iter().map(|&other| at[other]).sum::<f64>() / near.len() as f64;
                (if near.is_empty() { at[stop] } else { mean }) - offset
            };
            let wishes: Vec<f64> = row.iter().zip(&offsets).map(wished).collect();
            for ((&stop, offset), place) in row.iter().zip(&offsets).zip(rising(&wishes)) {
                at[stop] = offset + place;
            }
        }
    }
    let upper = |stop: usize| at[stop] - stops[stop].size.1 / 2.0;
    let least = (0..stops.len()).map(upper).fold(f64::INFINITY, f64::min);
    at.iter().map(|place| place - least + 1.0).collect()
}

/// Where stops of a row are if there is no space between them but what must be.
fn offsets(stops: &[Stop], row: &[usize]) -> Vec<f64> {
    let mut at = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    for (number, &stop) in row.iter().enumerate() {
        if let Some(&before) = number.checked_sub(1).and_then(|before| row.get(before)) {
            let bare = stops[stop].is_bare || stops[before].is_bare;
            let space = if bare { BESIDE_ARROW } else { BESIDE };
            at += (stops[before].size.1 + stops[stop].size.1) / 2.0 + space;
        }
        offsets.push(at);
    }
    offsets
}

/// The numbers nearest to `wishes` (least squares) of which none is less than the one before: neighbours that are not in order
/// have their mean.
fn rising(wishes: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &wish in wishes {
        pools.push((wish, 1));
        while let [.., (a, of_a), (b, of_b)] = pools[..]
            && a > b
        {
            let all = of_a + of_b;
            let mean = (a * of_a as f64 + b * of_b as f64) / all as f64;
            pools.truncate(pools.len() - 2);
            pools.push((mean, all));
        }
    }
    pools.into_iter().flat_map(|(mean, number)| std::iter::repeat_n(mean, number)).collect()
}

/// A curve through points, which is along the layers' direction at each of them.
fn curve(points: &[Point]) -> Vec<Point> {
    let mut way: Vec<Point> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if from == to {
            continue;
        }
        let middle = (from.0 + to.0) / 2.0;
        way.extend(bent([from, (middle, from.1), (middle, to.1), to]));
    }
    way
}

/// A loop below a point.
fn round((x, y): Point, width: f64, depth: f64) -> Vec<Point> {
    let (left, right, low) = (x - width / 2.0, x + width / 2.0, y + depth * 1.3);
    std::iter::once((left, y))
        .chain(bent([(left, y), (left, low), (right, low), (right, y)]))
        .collect()
}

/// A Bézier curve as points, without its first.
fn bent(control: [Point; 4]) -> impl Iterator<Item = Point> {
    (1..=STEPS).map(move |step| {
        let t = step as f64 / STEPS as f64;
        let s = 1.0 - t;
        let parts = [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t];
        let sum =
            |of: fn(Point) -> f64| parts.iter().zip(control).map(|(part, at)| part * of(at)).sum();
        (sum(|at| at.0), sum(|at| at.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_order_has_its_mean() {
        assert_eq!(rising(&[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(rising(&[3.0, 1.0, 5.0]), [2.0, 2.0, 5.0]);
        assert_eq!(rising(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
        assert!(rising(&[]).is_empty());
    }
}
