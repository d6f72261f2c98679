//! Why a thread takes longer than others in one function: more calls, more work per call, or slower calls.

use serde::Serialize;

use crate::analysis::Analysis;
use crate::rows::{ThreadApi, ThreadRow};
use crate::stats::median;

/// A thread's calls of one API compared with other threads, as ratios to their medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Why {
    /// Number of calls.
    pub calls_ratio: f64,
    /// Mean of the argument that says how much work a call does ([`ApiRow::argument`](crate::ApiRow::argument)), if
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_ratio: Option<f64>,
    /// Useful time per call.
    pub each_ratio: f64,
}

/// Typical calls of one API by the threads that are compared.
pub(super) struct Usual {
    api: u32,
    calls: f64,
    argument: f64,
    each_ns: f64,
}

impl Usual {
    /// Computes the medians over the threads that call it.
    pub(super) fn from_threads(
        analysis: &Analysis,
        threads: impl Iterator<Item = u32>,
        api: u32,
    ) -> Self {
        let rows: Vec<ThreadApi> =
            threads.filter_map(|thread| row(&analysis.threads[thread as usize], api)).collect();
        let usual = |of: &dyn Fn(&ThreadApi) -> Option<f64>| {
            let mut values: Vec<f64> = rows.iter().filter_map(of).collect();
            if values.is_empty() { 0.0 } else { median(&mut values) }
        };
        Self {
            api,
            calls: usual(&|row| Some(row.calls as f64)),
            argument: usual(&|row| row.argument_mean.map(f64::from)),
            each_ns: usual(&|row| Some(each_ns(row))),
        }
    }

    /// Compares one thread with the medians; returns `None` if there is nothing to compare.
    pub(super) fn why(&self, thread: &ThreadRow) -> Option<Why> {
        let own = row(thread, self.api)?;
        let ratio = |value: f64, usual: f64| (usual > 0.0).then_some(value / usual);
        Some(Why {
            calls_ratio: ratio(own.calls as f64, self.calls)?,
            argument_ratio: own.argument_mean.and_then(|mean| ratio(mean.into(), self.argument)),
            each_ratio: ratio(each_ns(&own), self.each_ns)?,
        })
    }
}

fn row(thread: &ThreadRow, api: u32) -> Option<ThreadApi> {
    thread.apis.iter().find(|row| row.api == api).filter(|row| row.calls > 0)
}

fn each_ns(row: &ThreadApi) -> f64 {
    let off = row.wait_ns.0.saturating_add(row.preempted_ns.0);
    row.self_ns.0.saturating_sub(off) as f64 / row.calls as f64
}
