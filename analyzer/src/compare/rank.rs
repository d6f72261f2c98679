//! The Mann-Whitney rank test (also known as Wilcoxon's rank-sum test).

/// Up to this total number of values the distribution is computed exactly; beyond, it is approximated by a normal
/// one.
const EXACT: usize = 60;

/// Returns the probability that values of one distribution, split at random, have rank sums at least as far apart as
/// those of `a` and `b`, in either direction. `None` if either is empty.
pub(super) fn p_value(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let ranks = double_ranks(a, b);
    let (n, all) = (a.len(), ranks.len());
    let sum: usize = ranks[..n].iter().sum();
    // For doubled ranks, whose mean is all + 1.
    let mean = n * (all + 1);
    let distance = sum.abs_diff(mean);
    if distance == 0 {
        return Some(1.0);
    }
    Some(if all <= EXACT { exact(&ranks, n, mean, distance) } else { normal(&ranks, n, distance) })
}

/// Returns twice the rank of each value among all; equal values get the mean. Those of `a` come first.
fn double_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| other.total_cmp(value).is_lt()).count();
        let equal = values.iter().filter(|other| other.total_cmp(value).is_eq()).count();
        2 * below + equal + 1
    };
    values.iter().map(rank).collect()
}

/// Counts the choices of `n` ranks by their sum.
fn exact(ranks: &[usize], n: usize, mean: usize, distance: usize) -> f64 {
    let most: usize = ranks.iter().sum();
    let mut choices = vec![vec![0.0_f64; most + 1]; n + 1];
    choices[0][0] = 1.0;
    for &rank in ranks {
        for size in (1..=n).rev() {
            for sum in (rank..=most).rev() {
                let more = choices[size - 1][sum - rank];
                choices[size][sum] += more;
            }
        }
    }
    let all: f64 = choices[n].iter().sum();
    let far = |(sum, _): &(usize, &f64)| sum.abs_diff(mean) >= distance;
    let extreme: f64 = choices[n].iter().enumerate().filter(far).map(|(_, count)| count).sum();
    (extreme / all).min(1.0)
}

fn normal(ranks: &[usize], n: usize, distance: usize) -> f64 {
    let all = ranks.len() as f64;
    let (n, m) = (n as f64, all - n as f64);
    // The variance of a sum drawn without replacement is also valid with ties.
    let mean = all + 1.0;
    let spread: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
    let variance = n * m * spread / (all * (all - 1.0));
    if variance <= 0.0 {
        return 1.0;
    }
    // Sums of doubled ranks are two apart.
    let z = (distance as f64 - 1.0).max(0.0) / variance.sqrt();
    two_sided(z)
}

/// Computes 2 · (1 − Φ(z)) by formula 7.1.26 of Abramowitz and Stegun, with an error below 1.5e-7.
fn two_sided(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    (poly * (-x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("a value");
        assert!((found - expected).abs() < 5e-4, "{found}, not {expected}");
    }

    /// Values as in tables of the distribution.
    #[test]
    fn small_samples_are_exact() {
        near(p_value(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        near(p_value(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]), 2.0 / 70.0);
        near(p_value(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]), 2.0 / 70.0);
        near(p_value(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0]), 0.7);
        near(p_value(&[1.0, 1.0, 1.0], &[1.0, 1.0]), 1.0);
        near(p_value(&[2.0], &[1.0]), 1.0);
        // With ties: of 20 choices of three of {1.5, 1.5, 3.5, 3.5, 5, 6}, those as far from 10.5
        // as 6.5 are 1.5+1.5+3.5 (twice) and 3.5+5+6 (twice).
        near(p_value(&[1.0, 1.0, 2.0], &[2.0, 3.0, 4.0]), 0.2);
        assert_eq!(p_value(&[], &[1.0]), None);
    }

    #[test]
    fn large_samples_are_close_to_exact() {
        let a: Vec<f64> = (0..31).map(|i| f64::from(i) * 1.7).collect();
        let b: Vec<f64> = (0..31).map(|i| f64::from(i) * 1.7 + 9.3).collect();
        let approximate = p_value(&a, &b).expect("a value");
        let ranks = double_ranks(&a, &b);
        let mean = a.len() * (ranks.len() + 1);
        let distance = ranks[..a.len()].iter().sum::<usize>().abs_diff(mean);
        let exact = exact(&ranks, a.len(), mean, distance);
        assert!((approximate / exact - 1.0).abs() < 0.05, "{approximate} and {exact}");
    }
}
