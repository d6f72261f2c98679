//! Formulas over the values of threads. Each names its source; the tests contain the sources' examples.

use crate::evidence::NORMAL_95;

/// Returns the median of `values`, which it sorts; 0 if there are none.
#[must_use]
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// How evenly a time is distributed over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imbalance {
    /// max − mean: how long the slowest thread makes the others wait, in the unit of the values.
    pub time: f64,
    /// `CrayPat`'s imbalance percentage as a fraction: (max − mean) / max · N / (N − 1). 0 if all are equal, 1 if one
    /// thread does everything.
    pub share: f64,
    /// mean / max: the load balance of POP (Performance Optimisation and Productivity). 1 if all are equal.
    pub load_balance: f64,
}

/// Returns the imbalance of the threads' `values`. If all are 0, they are balanced.
#[must_use]
pub fn imbalance(values: &[f64]) -> Imbalance {
    let count = values.len() as f64;
    let max = values.iter().copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return Imbalance { load_balance: 1.0, ..Imbalance::default() };
    }
    let mean = values.iter().sum::<f64>() / count;
    let time = max - mean;
    let share = if values.len() > 1 { time / max * count / (count - 1.0) } else { 0.0 };
    Imbalance { time, share, load_balance: mean / max }
}

/// A value this many robust standard deviations from the median is an outlier (Iglewicz and Hoaglin, *How to Detect
/// and Handle Outliers*, 1993).
pub(crate) const OUTLIER_SCORE: f64 = 3.5;
/// Standard deviations per MAD of normally distributed values.
const PER_MAD: f64 = 1.4826;
/// Standard deviations per mean absolute deviation of normally distributed values.
const PER_MEAN_DEVIATION: f64 = 1.253_314;
/// The minimum relative deviation that is assumed for times of threads that do the same, even if a few are equal.
const LEAST_DEVIATION: f64 = 0.01;

/// Median and robust standard deviation of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Robust {
    /// The median.
    pub median: f64,
    /// 1.4826 · MAD. If that is 0, because more than half of the values are equal: 1 % of the median, or, if that is
    /// 0 too (most threads never called the API), 1.253314 · the mean absolute deviation from the median, as Iglewicz
    /// and Hoaglin recommend. (The latter alone can't distinguish one of four threads from three equal ones.) 0 if
    /// all values are 0.
    pub deviation: f64,
}

impl Robust {
    /// Computes them for `values`, which it sorts.
    #[must_use]
    pub fn from_values(values: &mut [f64]) -> Self {
        let median = median(values);
        let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let mad = self::median(&mut distances);
        let mean = distances.iter().sum::<f64>() / distances.len().max(1) as f64;
        let deviation = if mad > 0.0 {
            PER_MAD * mad
        } else if median != 0.0 {
            LEAST_DEVIATION * median.abs()
        } else {
            PER_MEAN_DEVIATION * mean
        };
        Self { median, deviation }
    }

    /// Returns by how many robust standard deviations `value` differs from the median, with its sign; 0 if there is
    /// no deviation.
    #[must_use]
    pub fn score(&self, value: f64) -> f64 {
        if self.deviation > 0.0 { (value - self.median) / self.deviation } else { 0.0 }
    }

    /// Whether `value` is an outlier: |value − median| > 3.5 · deviation.
    #[must_use]
    pub fn is_outlier(&self, value: f64) -> bool {
        self.score(value).abs() > OUTLIER_SCORE
    }
}

/// Returns how many standard deviations 95 of 100 values are within, where the standard deviation was estimated with so many degrees
/// of freedom: the 0.975 quantile of Student's t distribution; beyond 20, that of the normal distribution.
///
/// ```
/// assert_eq!(chase_analyzer::student_95(2), 4.30);
/// ```
#[must_use]
pub fn student_95(degrees: usize) -> f64 {
    const BY_DEGREES: [f64; 20] = [
        12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
        2.12, 2.11, 2.10, 2.09, 2.09,
    ];
    BY_DEGREES.get(degrees.max(1) - 1).copied().unwrap_or(NORMAL_95)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
    }

    /// The manual's cases: a function done by one of N threads is 100 % imbalanced, an even one 0.
    #[test]
    fn imbalance_as_craypat_defines_it() {
        let one_does_all = imbalance(&[0.0, 0.0, 0.0, 8.0]);
        assert_eq!((one_does_all.time, one_does_all.share), (6.0, 1.0));
        assert_eq!(imbalance(&[5.0; 4]), Imbalance { time: 0.0, share: 0.0, load_balance: 1.0 });
        let uneven = imbalance(&[1.0, 1.0, 1.0, 2.0]);
        near(uneven.time, 0.75);
        near(uneven.share, 0.5);
        near(uneven.load_balance, 0.625);
        assert_eq!(imbalance(&[]).load_balance, 1.0);
        assert_eq!(imbalance(&[3.0]).share, 0.0);
    }

    /// The usual example of a MAD: of 1, 1, 2, 2, 4, 6, 9 the median is 2 and the MAD is 1.
    #[test]
    fn outliers_by_the_mad() {
        let series = [1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0];
        let robust = Robust::from_values(&mut series.clone());
        assert_eq!((robust.median, robust.deviation), (2.0, 1.4826));
        let found: Vec<f64> = series.into_iter().filter(|&x| robust.is_outlier(x)).collect();
        assert_eq!(found, [9.0], "(9 − 2) / 1.4826 = 4.72, (6 − 2) / 1.4826 = 2.70");
    }

    #[test]
    fn where_most_values_are_equal() {
        let robust = Robust::from_values(&mut [100.0, 100.0, 100.0, 300.0]);
        assert_eq!(robust, Robust { median: 100.0, deviation: 1.0 });
        assert!(robust.is_outlier(300.0) && !robust.is_outlier(103.0));
        let mut mostly_zero = vec![0.0; 63];
        mostly_zero.push(300.0);
        let robust = Robust::from_values(&mut mostly_zero);
        near(robust.deviation, 1.253_314 * 300.0 / 64.0);
        assert!(robust.is_outlier(300.0) && !robust.is_outlier(0.0));
        assert_eq!(Robust::from_values(&mut [0.0; 5]).score(9.0), 0.0);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
