//! Adds up contexts, and computes the figures of a sum.

use chase_recorder::histogram::bucket_middle;
use chase_recorder::reader::Histogram;

use crate::arguments::ArgumentSums;
use crate::callers::CallerSums;
use crate::clock::Ns;
use crate::costs::Cost;
use crate::evidence::Evidence;
use crate::off_cpu::OffCpu;
use crate::rows::Measures;
use crate::texts::TextSums;
use crate::uncertainty::Uncertainty;

/// Rates that differ by less than this belong to the same clock, calibrated twice.
const SAME_RATE: f64 = 0.01;

impl Measures {
    /// Whether no call was timed, as those that switch stacks: then nothing is known of the time.
    #[must_use]
    pub fn is_untimed(&self) -> bool {
        self.calls > 0 && self.untimed == self.calls && self.total_ns.max(self.self_ns) == Ns(0)
    }
}

/// If more calls than this part of those that returned were left otherwise, by an exception or `longjmp`, or were only counted,
/// quantiles of the rest say little.
const MOST_UNKNOWN: f64 = 0.1;

/// The sums behind a table's row. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    incomplete: bool,
    calls_bound: u64,
    timed: u64,
    samples: u64,
    squared_weights: f64,
    /// The uncertainty of the self time, in ns.
    pub(crate) uncertainty: Uncertainty,
    unwound: u64,
    open: u64,
    /// How long the longest of these lasted until the end, in ns.
    longest_open_ns: f64,
    pub(crate) self_ns: f64,
    pub(crate) total_ns: f64,
    /// Whether part of the total is missing because of folded recursion.
    pub(crate) total_is_cut: bool,
    /// Totals of all contexts in the sum, including those inside others.
    pub(crate) within_ns: f64,
    pub(crate) off_cpu: OffCpu,
    measured_ns: f64,
    nested_ns: f64,
    /// The inside cost of the calls in the histogram, in the histogram's ticks.
    inside_ticks: f64,
    /// In ticks of the run's first clock.
    pub(crate) histogram: Histogram,
    /// The arguments of the calls.
    pub(crate) arguments: Option<Box<ArgumentSums>>,
    /// The texts that long ones were passed.
    pub(crate) texts: Option<Box<TextSums>>,
    /// From where they were made, by samples.
    pub(crate) callers: Option<Box<CallerSums>>,
    /// From where long ones were made that are timed.
    pub(crate) long_callers: Option<Box<CallerSums>>,
}

/// Converts the ticks of an image to nanoseconds, and to ticks of the run's first clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) ns_per_tick: f64,
    pub(crate) ns_per_reference_tick: f64,
    /// The hook's inside cost in ticks.
    pub(crate) inside: f64,
}

impl Scale {
    /// Returns the ticks of the run's first clock per tick.
    pub(crate) fn ratio(&self) -> f64 {
        self.ns_per_tick / self.ns_per_reference_tick
    }

    /// Adds durations in ticks of the image to `histogram`, which is in ticks of the run's first clock.
    pub(crate) fn add(&self, durations: &Histogram, histogram: &mut Histogram) {
        let ratio = self.ratio();
        if (ratio - 1.0).abs() < SAME_RATE {
            histogram.merge(durations);
            return;
        }
        let max = durations.max() as f64 * ratio;
        for (bucket, count) in durations.buckets() {
            let middle = bucket_middle(bucket) as f64 * ratio;
            histogram.record(middle.min(max) as u64, count);
        }
        histogram.raise_max(max as u64);
    }
}

impl Sums {
    /// Adds durations as they were recorded.
    pub(crate) fn add_durations(&mut self, durations: &Histogram, scale: &Scale) {
        scale.add(durations, &mut self.histogram);
        self.inside_ticks += scale.inside * scale.ratio() * durations.count() as f64;
    }

    /// Adds the arguments of calls.
    pub(crate) fn add_arguments(&mut self, more: &ArgumentSums) {
        match &mut self.arguments {
            Some(own) => own.add(more),
            None => self.arguments = Some(Box::new(more.clone())),
        }
    }

    /// Adds a context, but not its total, which may be part of another's. For a call that the process inherited, only
    /// the time counts: the call is counted in its parent.
    pub(crate) fn add_cost(&mut self, cost: &Cost, off_cpu: OffCpu, scale: &Scale) {
        let ns = |ticks: f64| ticks * scale.ns_per_tick;
        self.self_ns += ns(cost.self_time);
        self.off_cpu.add(off_cpu);
        self.uncertainty += cost.uncertainty * scale.ns_per_tick;
        self.total_is_cut |= cost.total_is_cut;
        if cost.inherited {
            return;
        }
        self.calls = self.calls.saturating_add(cost.calls);
        self.incomplete |= cost.incomplete;
        self.calls_bound = self.calls_bound.saturating_add(cost.calls_bound);
        self.timed = self.timed.saturating_add(cost.timed);
        self.samples = self.samples.saturating_add(cost.samples);
        self.squared_weights += cost.squared_weights;
        self.unwound = self.unwound.saturating_add(cost.unwound);
        self.open = self.open.saturating_add(cost.open);
        self.longest_open_ns = self.longest_open_ns.max(ns(cost.open_time));
        self.measured_ns += ns(cost.measured);
        self.nested_ns += ns(cost.nested);
    }

    /// Adds all of `other` except its total.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.incomplete |= other.incomplete;
        self.calls_bound = self.calls_bound.saturating_add(other.calls_bound);
        self.timed = self.timed.saturating_add(other.timed);
        self.samples = self.samples.saturating_add(other.samples);
        self.squared_weights += other.squared_weights;
        self.uncertainty += other.uncertainty;
        self.unwound = self.unwound.saturating_add(other.unwound);
        self.open = self.open.saturating_add(other.open);
        self.longest_open_ns = self.longest_open_ns.max(other.longest_open_ns);
        self.self_ns += other.self_ns;
        self.off_cpu.add(other.off_cpu);
        self.measured_ns += other.measured_ns;
        self.within_ns += other.within_ns;
        self.nested_ns += other.nested_ns;
        self.inside_ticks += other.inside_ticks;
        self.histogram.merge(&other.histogram);
        if let Some(more) = &other.arguments {
            self.add_arguments(more);
        }
        if let Some(more) = &other.texts {
            self.texts.get_or_insert_default().add(more);
        }
        if let Some(more) = &other.callers {
            self.callers.get_or_insert_default().add(more);
        }
        if let Some(more) = &other.long_callers {
            self.long_callers.get_or_insert_default().add(more);
        }
    }

    /// Returns the quantile `q` of the calls' durations minus the hook's cost, within 6.25 %.
    pub(crate) fn quantile(&self, q: f64, ns_per_reference_tick: f64) -> Option<Ns> {
        self.histogram.quantile(q).map(|ticks| self.duration(ticks, ns_per_reference_tick))
    }

    /// Converts a duration of the histogram, and subtracts the hook's cost.
    fn duration(&self, ticks: u64, ns_per_reference_tick: f64) -> Ns {
        let completed = self.histogram.count() as f64;
        let inside = if completed > 0.0 { self.inside_ticks / completed } else { 0.0 };
        Ns::from_f64((ticks as f64 - inside) * self.pure() * ns_per_reference_tick)
    }

    /// Returns the share of the time within calls that was not the hook's.
    fn pure(&self) -> f64 {
        let within = self.within_ns + self.nested_ns;
        if within > 0.0 { self.within_ns / within } else { 1.0 }
    }

    /// Returns how well the histogram is known.
    fn evidence(&self) -> Evidence {
        let Self { timed, samples, squared_weights, .. } = *self;
        Evidence { calls: timed, timed: samples, squared_weights }
    }

    /// Returns the figures. Shares are of `whole_ns`.
    pub(crate) fn measures(&self, whole_ns: f64, ns_per_reference_tick: f64) -> Measures {
        let pure = self.pure();
        let duration = |ticks| self.duration(ticks, ns_per_reference_tick);
        let evidence = self.evidence();
        let estimated = evidence.is_partial();
        let mut total_ns = Ns::from_f64(self.total_ns);
        let mut max_ns = (self.timed > 0).then(|| duration(self.histogram.max()));
        if self.longest_open_ns > 0.0 {
            max_ns = max_ns.max(Some(Ns::from_f64(self.longest_open_ns)));
        }
        if self.total_is_cut {
            total_ns = total_ns.max(max_ns.unwrap_or_default());
        } else {
            max_ns = max_ns.map(|max| max.min(total_ns));
        }
        // Calls that were open at the end took longer than what is known of them: they stand behind all others. Of those that were
        // left otherwise than by a return, nothing is known.
        let completed = self.histogram.count() as f64;
        let rank = |q: f64| q * (completed + self.open as f64) / completed.max(1.0);
        let untimed = self.calls.saturating_sub(self.timed.saturating_add(self.open));
        let are_known = self.unwound.saturating_add(untimed) as f64 <= MOST_UNKNOWN * completed;
        // (A bucket's middle may be larger than the longest call in it.)
        let quantile = |q| {
            let rank = Some(rank(q)).filter(|&rank| rank <= 1.0 && are_known)?;
            let found = evidence.quantile(&self.histogram, rank).map(duration);
            found.map(|ns| max_ns.map_or(ns, |max| ns.min(max)))
        };
        // Neither the calls nor what is outside of them can take more than all there is.
        let most_off = (whole_ns - self.self_ns).max(self.self_ns);
        let ci95 = |ns: f64| Ns::from_f64(if whole_ns > 0.0 { ns.min(most_off) } else { ns });
        Measures {
            calls: self.calls,
            calls_estimated: self.incomplete,
            calls_ci95: self.calls_bound,
            untimed,
            timed: self.samples,
            estimated: estimated || self.uncertainty.is_some(),
            ci95_ns: ci95(self.uncertainty.ci95()),
            clock_ci95_ns: ci95(self.uncertainty.clock_ci95()),
            unwound: self.unwound,
            open: self.open,
            total_ns,
            self_ns: Ns::from_f64(self.self_ns),
            wait_ns: Ns::from_f64(self.off_cpu.wait_ns),
            preempted_ns: self.off_cpu.preempted_ns.map(Ns::from_f64),
            share: if whole_ns > 0.0 { self.self_ns / whole_ns } else { 0.0 },
            mean_ns: (self.timed > 0)
                .then(|| Ns::from_f64(self.measured_ns * pure / self.timed as f64)),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns,
        }
    }
}
