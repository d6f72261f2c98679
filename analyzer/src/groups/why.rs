//! Why a thread takes longer than others in one function: more calls, more work per call, or slower calls.

use serde::Serialize;

use crate::analysis::Analysis;
use crate::arguments::ArgumentUnit;
use crate::rows::{ThreadApi, ThreadRow};
use crate::stats::median;

/// A thread's calls of one API compared with those of other threads: ratios to their medians, and what these are ratios of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Why {
    /// What makes most of the difference, if the thread takes longer.
    pub mainly: Option<Reason>,
    /// Number of calls.
    pub calls_ratio: f64,
    /// Mean of the argument that says how much work a call does ([`ApiRow::argument`](crate::ApiRow::argument)), if
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_ratio: Option<f64>,
    /// Useful time per call.
    pub each_ratio: f64,
    /// The thread's calls.
    pub calls: u64,
    /// Median of calls; if threads are compared by rates, scaled to this thread's lifetime.
    pub median_calls: f64,
    /// The thread's useful time per call.
    pub each_ns: f64,
    /// Median of useful times per call.
    pub median_each_ns: f64,
    /// Mean of the thread's argument, and median of these means, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<(f64, f64)>,
}

/// Why a thread takes longer in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It calls it more often.
    MoreCalls,
    /// It has more to do in each call.
    LargerArguments,
    /// Each call takes longer, with as much to do as far as is known.
    SlowerCalls,
}

/// Typical calls of one API by the threads that are compared.
pub(super) struct Usual {
    api: u32,
    /// Whether calls are those of one nanosecond of a thread's life.
    as_rates: bool,
    calls: f64,
    argument: f64,
    /// Whether the argument is what there is to do, and not how long to wait at most.
    argument_is_work: bool,
    each_ns: f64,
}

impl Usual {
    /// Computes the medians over the threads that call it.
    pub(super) fn from_threads(
        analysis: &Analysis,
        threads: impl Iterator<Item = u32>,
        api: u32,
        as_rates: bool,
    ) -> Self {
        let threads = threads.map(|thread| &analysis.threads[thread as usize]);
        let rows: Vec<(f64, ThreadApi)> = threads
            .filter_map(|thread| Some((life(thread, as_rates), row(thread, api)?)))
            .collect();
        let usual = |of: &dyn Fn(&(f64, ThreadApi)) -> Option<f64>| {
            let mut values: Vec<f64> = rows.iter().filter_map(of).collect();
            if values.is_empty() { 0.0 } else { median(&mut values) }
        };
        let unit =
            analysis.apis.get(api as usize).and_then(|row| Some(row.argument.as_ref()?.unit));
        Self {
            api,
            as_rates,
            calls: usual(&|(life, row)| Some(row.calls as f64 / life)),
            argument: usual(&|(_, row)| row.argument_mean.map(f64::from)),
            argument_is_work: matches!(
                unit,
                Some(ArgumentUnit::Bytes | ArgumentUnit::Items | ArgumentUnit::Level)
            ),
            each_ns: usual(&|(_, row)| Some(each_ns(row))),
        }
    }

    /// Compares one thread with the medians; returns `None` if there is nothing to compare.
    pub(super) fn why(&self, thread: &ThreadRow) -> Option<Why> {
        let own = row(thread, self.api)?;
        let ratio = |value: f64, usual: f64| (usual > 0.0).then_some(value / usual);
        let median_calls = self.calls * life(thread, self.as_rates);
        let each_ns = each_ns(&own);
        let argument = own.argument_mean.map(f64::from).filter(|_| self.argument > 0.0);
        let mut why = Why {
            mainly: None,
            calls_ratio: ratio(own.calls as f64, median_calls)?,
            argument_ratio: argument.and_then(|mean| ratio(mean, self.argument)),
            each_ratio: ratio(each_ns, self.each_ns)?,
            calls: own.calls,
            median_calls,
            each_ns,
            median_each_ns: self.each_ns,
            arguments: argument.map(|mean| (mean, self.argument)),
        };
        why.mainly = why.reason(self.argument_is_work);
        Some(why)
    }
}

impl Why {
    /// The larger factor of the thread's time, which is calls times the time of each; of the latter, whether the argument
    /// explains half of it.
    fn reason(&self, argument_is_work: bool) -> Option<Reason> {
        let (calls, each) = (self.calls_ratio.ln(), self.each_ratio.ln());
        let argument = self.argument_ratio.filter(|_| argument_is_work).map_or(0.0, f64::ln);
        if calls + each <= 0.0 {
            None
        } else if calls >= each {
            Some(Reason::MoreCalls)
        } else if argument >= each / 2.0 {
            Some(Reason::LargerArguments)
        } else {
            Some(Reason::SlowerCalls)
        }
    }
}

/// What to divide a thread's calls by, to compare them.
fn life(thread: &ThreadRow, as_rates: bool) -> f64 {
    if as_rates { thread.lifetime_ns.as_f64().max(1.0) } else { 1.0 }
}

fn row(thread: &ThreadRow, api: u32) -> Option<ThreadApi> {
    thread.apis.iter().find(|row| row.api == api).filter(|row| row.calls > 0)
}

fn each_ns(row: &ThreadApi) -> f64 {
    let off = row.wait_ns.0.saturating_add(row.preempted_ns.0);
    row.self_ns.0.saturating_sub(off) as f64 / row.calls as f64
}
