//! The possible error of an estimated time.

use std::ops::{AddAssign, Mul, SubAssign};

use crate::evidence::NORMAL_95;

/// The uncertainty of one time, or of a sum or difference of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uncertainty {
    /// Variance of what differs from sample to sample.
    pub(crate) variance: f64,
    /// Standard error of what is subtracted from all samples alike: an excess in a call is missing in its caller, so
    /// it has a sign.
    pub(crate) common: f64,
    /// Standard error of what reading the clock adds to all durations, with its sign. It is the same in each run on this
    /// machine, and not only in estimates.
    pub(crate) clock: f64,
}

impl Uncertainty {
    /// Whether anything is estimated.
    pub(crate) fn is_some(self) -> bool {
        self.variance > 0.0 || self.common != 0.0
    }

    /// Returns half the width of the 95 % confidence interval, without what reading the clock adds.
    pub(crate) fn ci95(self) -> f64 {
        NORMAL_95 * (self.variance + self.common * self.common).sqrt()
    }

    /// Returns half the width of the 95 % confidence interval of what reading the clock adds.
    pub(crate) fn clock_ci95(self) -> f64 {
        NORMAL_95 * self.clock.abs()
    }
}

impl AddAssign for Uncertainty {
    fn add_assign(&mut self, other: Self) {
        self.variance += other.variance;
        self.common += other.common;
        self.clock += other.clock;
    }
}

impl SubAssign for Uncertainty {
    fn sub_assign(&mut self, other: Self) {
        self.variance += other.variance;
        self.common -= other.common;
        self.clock -= other.clock;
    }
}

/// The uncertainty of a multiple of the time.
impl Mul<f64> for Uncertainty {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            variance: self.variance * times * times,
            common: self.common * times,
            clock: self.clock * times,
        }
    }
}
