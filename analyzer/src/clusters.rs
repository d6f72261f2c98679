//! Finds behaviours: clusters of threads that spend their time in similar ways.
//!
//! Each thread is a point, whose coordinates are shares of its useful time by API. The distance of two points is half
//! the sum of their differences: the share of time that they spend differently, from 0 to 1. Points are clustered by
//! average linkage, into up to [`MOST_CLUSTERS`] clusters; the number of clusters with the best mean silhouette is
//! chosen (Rousseeuw, *Silhouettes*, 1987).
//!
//! Clusters only count if this silhouette is at least [`STRONG`], which Kaufman and Rousseeuw (*Finding Groups in
//! Data*, 1990) call a strong structure, and if they spend at least [`DIFFERENT`] of their time differently: noise
//! has a structure, too, but a small one. A cluster of less than two points, or of less than 5 % of them, is no
//! behaviour, but consists of stray points. These are ignored when clusters are evaluated, and added to the nearest
//! cluster.

use kodama::{Method, linkage};

/// The number of points of which all distances are computed. Other points are added to the nearest cluster.
const SAMPLE: usize = 400;
/// The maximum number of clusters, including stray points.
const MOST_CLUSTERS: usize = 8;
/// The minimum mean silhouette of clusters that count.
const STRONG: f64 = 0.7;
/// The minimum distance of the centres of two clusters.
const DIFFERENT: f64 = 0.25;
/// The minimum share of the points in a cluster.
const LEAST_SHARE: f64 = 0.05;

/// A point: its coordinates other than 0, by dimension.
pub(crate) type Point = Vec<(u32, f64)>;

/// Points by cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clusters {
    /// The cluster of each point, numbered from 0 in order of first appearance.
    pub(crate) of_point: Vec<usize>,
    /// The mean silhouette of the sampled points, without stray ones.
    pub(crate) silhouette: f64,
}

/// Returns the clusters of `points`; `None` if they are all one. Takes time linear in their number.
pub(crate) fn find(points: &[Point]) -> Option<Clusters> {
    if points.len() < 4 {
        return None;
    }
    let step = points.len().div_ceil(SAMPLE);
    let sample: Vec<&Point> = points.iter().step_by(step).collect();
    let count = sample.len();
    let mut distances = Vec::with_capacity(count * (count - 1) / 2);
    for (at, a) in sample.iter().enumerate() {
        distances.extend(sample[at + 1..].iter().map(|b| distance(a, b)));
    }
    if distances.iter().all(|&distance| distance < DIFFERENT) {
        return None;
    }
    // The linkage works in place.
    let tree = linkage(&mut distances.clone(), count, Method::Average);
    let merges: Vec<(usize, usize)> =
        tree.steps().iter().map(|step| (step.cluster1, step.cluster2)).collect();
    let best = (2..=MOST_CLUSTERS.min(count - 1))
        .filter_map(|clusters| without_strays(cut(&merges, count, clusters), &distances))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (labels, silhouette) = best;
    let middles = middles(&sample, &labels);
    let apart = |a: &Point| middles.iter().all(|b| a == b || distance(a, b) >= DIFFERENT);
    if silhouette < STRONG || !middles.iter().all(apart) {
        return None;
    }
    let nearest = |point: &Point| {
        let to = |&at: &usize| distance(point, &middles[at]);
        (0..middles.len()).min_by(|a, b| to(a).total_cmp(&to(b))).unwrap_or(0)
    };
    Some(Clusters { of_point: by_appearance(points.iter().map(nearest).collect()), silhouette })
}

/// Returns half the sum of the differences.
fn distance(a: &Point, b: &Point) -> f64 {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut sum = 0.0;
    loop {
        sum += match (a.peek(), b.peek()) {
            (Some(&&(i, x)), Some(&&(j, y))) if i == j => {
                a.next();
                b.next();
                (x - y).abs()
            }
            (Some(&&(i, x)), other) if other.is_none_or(|&&(j, _)| i < j) => {
                a.next();
                x
            }
            (_, Some(&&(_, y))) => {
                b.next();
                y
            }
            _ => return sum / 2.0,
        };
    }
}

/// Returns the number of each point's cluster, after the merges that leave `clusters` of them.
fn cut(merges: &[(usize, usize)], count: usize, clusters: usize) -> Vec<usize> {
    let mut label: Vec<usize> = (0..2 * count).collect();
    let kept = count.saturating_sub(clusters);
    // A merge makes the cluster with the next number. From the last merge backwards, each cluster takes the label of
    // the one that it was merged into.
    for (at, &(a, b)) in merges.iter().take(kept).enumerate().rev() {
        let into = label[count + at];
        (label[a], label[b]) = (into, into);
    }
    label.truncate(count);
    label
}

/// Drops stray points (their label becomes `usize::MAX`) and numbers the clusters; returns them and their mean
/// silhouette, or `None` if less than two are left.
fn without_strays(labels: Vec<usize>, distances: &[f64]) -> Option<(Vec<usize>, f64)> {
    let count = labels.len();
    let mut sizes = vec![0; 2 * count];
    labels.iter().for_each(|&label| sizes[label] += 1);
    let least = (LEAST_SHARE * count as f64).ceil().max(2.0) as usize;
    let mut names: Vec<usize> = (0..sizes.len()).filter(|&label| sizes[label] >= least).collect();
    names.dedup();
    let clusters = names.len();
    if clusters < 2 {
        return None;
    }
    let name = |label| names.iter().position(|&known| known == label).unwrap_or(usize::MAX);
    let labels: Vec<usize> = labels.into_iter().map(name).collect();
    let silhouette = silhouette(&labels, clusters, distances);
    Some((labels, silhouette))
}

/// Returns the mean of (b − a) / max(a, b), where a is a point's mean distance to the others of its cluster, and b
/// that to the points of the nearest other cluster.
fn silhouette(labels: &[usize], clusters: usize, distances: &[f64]) -> f64 {
    let count = labels.len();
    let mut sums = vec![0.0; count * clusters];
    let mut pairs = distances.iter();
    for i in 0..count {
        for (j, &distance) in (i + 1..count).zip(pairs.by_ref()) {
            if labels[j] < clusters {
                sums[i * clusters + labels[j]] += distance;
            }
            if labels[i] < clusters {
                sums[j * clusters + labels[i]] += distance;
            }
        }
    }
    let mut sizes = vec![0.0; clusters];
    labels.iter().filter(|&&label| label < clusters).for_each(|&label| sizes[label] += 1.0);
    let of_point = |(at, &own): (usize, &usize)| {
        let sums = &sums[at * clusters..(at + 1) * clusters];
        let a = sums[own] / (sizes[own] - 1.0);
        let others = (0..clusters).filter(|&other| other != own);
        let b = others.map(|other| sums[other] / sizes[other]).fold(f64::INFINITY, f64::min);
        if a.max(b) > 0.0 { (b - a) / a.max(b) } else { 0.0 }
    };
    let judged = labels.iter().enumerate().filter(|&(_, &label)| label < clusters);
    judged.map(of_point).sum::<f64>() / sizes.iter().sum::<f64>()
}

/// Returns the mean of the points of each cluster.
fn middles(points: &[&Point], labels: &[usize]) -> Vec<Point> {
    let clusters = labels.iter().filter(|&&label| label != usize::MAX).max().map_or(0, |l| l + 1);
    (0..clusters)
        .map(|cluster| {
            let members = points.iter().zip(labels).filter(|&(_, &label)| label == cluster);
            let members: Vec<&&Point> = members.map(|(point, _)| point).collect();
            let mut all: Point = members.iter().flat_map(|point| point.iter().copied()).collect();
            all.sort_by_key(|&(dimension, _)| dimension);
            let sum = |part: &[(u32, f64)]| part.iter().map(|&(_, x)| x).sum::<f64>();
            all.chunk_by(|a, b| a.0 == b.0)
                .map(|part| (part[0].0, sum(part) / members.len() as f64))
                .collect()
        })
        .collect()
}

fn by_appearance(labels: Vec<usize>) -> Vec<usize> {
    let mut seen = Vec::new();
    let number = |label| {
        seen.iter().position(|&known| known == label).unwrap_or_else(|| {
            seen.push(label);
            seen.len() - 1
        })
    };
    labels.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number from 0 to 1 that is the same in each run.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 40) as f64 / (1_u64 << 24) as f64
        }
    }

    /// Shares that sum up to 1, each blurred by up to `noise` of itself.
    fn blurred(shares: &[f64], noise: f64, random: &mut Random) -> Point {
        let mut point: Point = (0..)
            .zip(shares)
            .map(|(dimension, share)| (dimension, share * (1.0 + noise * (random.next() - 0.5))))
            .filter(|&(_, share)| share > 0.0)
            .collect();
        let sum: f64 = point.iter().map(|&(_, share)| share).sum();
        point.iter_mut().for_each(|(_, share)| *share /= sum);
        point
    }

    /// Hubert and Arabie's adjusted Rand index.
    fn adjusted_rand(a: &[usize], b: &[usize]) -> f64 {
        let pairs = |count: usize| (count * count.saturating_sub(1)) as f64 / 2.0;
        let most = |labels: &[usize]| labels.iter().max().map_or(0, |max| max + 1);
        let (rows, columns) = (most(a), most(b));
        let mut table = vec![0; rows * columns];
        a.iter().zip(b).for_each(|(&i, &j)| table[i * columns + j] += 1);
        let index: f64 = table.iter().map(|&count| pairs(count)).sum();
        let of = |labels: &[usize], most| -> f64 {
            (0..most).map(|l| pairs(labels.iter().filter(|&&own| own == l).count())).sum()
        };
        let (left, right) = (of(a, rows), of(b, columns));
        let expected = left * right / pairs(a.len());
        (index - expected) / ((left + right) / 2.0 - expected)
    }

    #[test]
    fn behaviours_are_found_again() {
        let kinds: [&[f64]; 4] = [
            &[0.9, 0.1, 0.0, 0.0, 0.0],
            &[0.1, 0.8, 0.1, 0.0, 0.0],
            &[0.0, 0.1, 0.2, 0.7, 0.0],
            &[0.3, 0.0, 0.0, 0.0, 0.7],
        ];
        let mut random = Random(7);
        for (kinds_used, threads) in [(2, 4), (2, 9), (2, 64), (3, 60), (4, 200), (3, 5_000)] {
            let truth: Vec<usize> = (0..threads).map(|at| at % kinds_used).collect();
            let points: Vec<Point> =
                truth.iter().map(|&kind| blurred(kinds[kind], 0.4, &mut random)).collect();
            let found = find(&points).unwrap_or_else(|| panic!("{kinds_used} of {threads}"));
            let index = adjusted_rand(&found.of_point, &truth);
            assert!(index >= 0.9, "{index} for {kinds_used} of {threads}");
            assert!(found.silhouette > 0.7);
        }
    }

    #[test]
    fn unlike_numbers_of_each_and_stray_points() {
        let mut random = Random(3);
        let mut points: Vec<Point> = Vec::new();
        points.extend((0..90).map(|_| blurred(&[0.9, 0.1], 0.3, &mut random)));
        points.extend((0..10).map(|_| blurred(&[0.1, 0.1, 0.8], 0.3, &mut random)));
        points.push(vec![(9, 1.0)]);
        let found = find(&points).expect("two behaviours and a stray thread");
        let truth: Vec<usize> = (0..101).map(|at| usize::from(at >= 90)).collect();
        assert!(adjusted_rand(&found.of_point[..100], &truth[..100]) >= 0.9);
    }

    #[test]
    fn one_blob_is_one() {
        let mut random = Random(11);
        for threads in [4, 5, 8, 64, 1_000, 10_000] {
            for noise in [0.0, 0.05, 0.4, 1.0] {
                let shares = [0.4, 0.3, 0.2, 0.05, 0.05];
                let points: Vec<Point> =
                    (0..threads).map(|_| blurred(&shares, noise, &mut random)).collect();
                assert_eq!(find(&points), None, "{threads} threads, noise {noise}");
            }
        }
        // A continuum has no two ends that are groups.
        let line: Vec<Point> = (0..200)
            .map(|at| f64::from(at) / 199.0)
            .map(|share| vec![(0, share), (1, 1.0 - share)])
            .collect();
        assert_eq!(find(&line), None);
    }

    #[test]
    fn one_thread_that_differs_makes_no_group() {
        let mut points = vec![vec![(0, 1.0)]; 7];
        points.push(vec![(1, 1.0)]);
        assert_eq!(find(&points), None);
    }

    /// Two pairs at 0 and 1, 0.1 apart: a = 0.1, b = 0.95 or 1.05 and so on, by hand.
    #[test]
    fn silhouettes_by_hand() {
        // Distances of points at 0, 0.1, 1, 1.1 in the order of pairs.
        let distances = [0.1, 1.0, 1.1, 0.9, 1.0, 0.1];
        let outer = (1.05 - 0.1) / 1.05;
        let inner = (0.95 - 0.1) / 0.95;
        let found = silhouette(&[0, 0, 1, 1], 2, &distances);
        assert!((found - (outer + inner) / 2.0).abs() < 1e-12, "{found}");
    }
}
