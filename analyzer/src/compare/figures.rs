//! The figures of one API in one run, and of a run as a whole.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::matching::ApiName;
use crate::analysis::Analysis;
use crate::rows::WaitSource;
use crate::sums::Sums;
use crate::syscalls::{OfApi, SyscallRow};

/// The relative error of a quantile of the histogram.
const QUANTILE_ERROR: f64 = 0.0625;
/// With fewer calls, the spread is unknown.
const ENOUGH_CALLS: u64 = 20;

/// What the time of a call was spent on, as means over the calls in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Parts {
    /// The API's own code, on the CPU.
    pub code_ns: f64,
    /// System calls that it made itself, on the CPU.
    pub syscalls_ns: f64,
    /// Waiting.
    pub wait_ns: f64,
    /// Ready to run while another thread ran.
    pub preempted_ns: f64,
    /// Library calls made inside.
    pub nested_ns: f64,
}

/// A run, with its rows by API.
pub(super) struct Run<'a> {
    pub(super) analysis: &'a Analysis,
    apis: HashMap<(&'a str, &'a str), Vec<usize>>,
    syscalls: HashMap<usize, Vec<&'a SyscallRow<OfApi>>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let mut run = Self { analysis, apis: HashMap::new(), syscalls: HashMap::new() };
        for (at, api) in analysis.apis.iter().enumerate() {
            run.apis.entry((&api.library, &api.symbol)).or_default().push(at);
        }
        for row in &analysis.syscalls.by_api {
            if let Some(api) = row.of.api {
                run.syscalls.entry(api as usize).or_default().push(row);
            }
        }
        run
    }

    fn syscalls_of(&self, apis: &[usize]) -> impl Iterator<Item = &'a SyscallRow<OfApi>> {
        apis.iter().filter_map(|api| self.syscalls.get(api)).flatten().copied()
    }
}

/// One API in one run. Times are in ns.
pub(super) struct Figures {
    pub(super) calls: f64,
    pub(super) timed: f64,
    pub(super) time_per_call_ns: Option<f64>,
    pub(super) self_per_call_ns: Option<f64>,
    pub(super) self_ns: f64,
    pub(super) share: f64,
    pub(super) p50_ns: Option<f64>,
    pub(super) p999_ns: Option<f64>,
    pub(super) wait_share: Option<f64>,
    /// The range of the durations of the middle 90 % of the calls; `None` if there are too few.
    pub(super) middle_ns: Option<(f64, f64)>,
    /// `None` if they were not observed.
    pub(super) syscalls: Option<RunSyscalls>,
    /// Sums over the run, to be divided by the calls of all runs.
    pub(super) parts_ns: Parts,
}

/// The system calls of an API in one run, including those made in library calls inside.
pub(super) struct RunSyscalls {
    /// Calls by number.
    pub(super) by_number: BTreeMap<u32, f64>,
    pub(super) calls: f64,
    pub(super) errors: f64,
}

impl Figures {
    /// Returns `None` if the run does not call it.
    pub(super) fn of_api(of: &Run<'_>, name: &ApiName) -> Option<Self> {
        let run = of.analysis;
        let apis = of.apis.get(&(&*name.library, &*name.symbol))?;
        let mut sums = Sums::default();
        for &at in apis {
            // An API may be several versions of one symbol.
            sums.add(&run.api_sums[at]);
            sums.total_ns += run.api_sums[at].total_ns;
            sums.total_is_cut |= run.api_sums[at].total_is_cut;
        }
        if sums.calls == 0 {
            return None;
        }
        let whole_ns = run.totals.whole_ns().as_f64();
        let measures = sums.measures(whole_ns, run.ns_per_reference_tick);
        let timed = measures.calls.saturating_sub(measures.untimed);
        let per_call = |ns: f64| (timed > 0).then(|| ns / timed as f64);
        let quantile = |q| sums.quantile(q, run.ns_per_reference_tick).map(|ns| ns.as_f64());
        let middle = |lower: Option<f64>, upper: Option<f64>| {
            Some((lower? * (1.0 - QUANTILE_ERROR), upper? * (1.0 + QUANTILE_ERROR)))
        };
        let syscalls = syscalls_of(of, apis);
        Some(Self {
            calls: measures.calls as f64,
            timed: timed as f64,
            time_per_call_ns: measures.mean_ns.map(|ns| ns.as_f64()),
            self_per_call_ns: per_call(sums.self_ns),
            self_ns: sums.self_ns,
            share: measures.share,
            p50_ns: measures.p50_ns.map(|ns| ns.as_f64()),
            p999_ns: measures.p999_ns.map(|ns| ns.as_f64()),
            wait_share: (sums.self_ns > 0.0).then(|| sums.off_cpu.wait_ns / sums.self_ns),
            middle_ns: middle(quantile(0.05), quantile(0.95))
                .filter(|_| sums.histogram.count() >= ENOUGH_CALLS),
            parts_ns: parts(of, apis, &sums),
            syscalls,
        })
    }
}

/// Returns what the time was spent on.
fn parts(run: &Run<'_>, apis: &[usize], sums: &Sums) -> Parts {
    let syscall_cpu: f64 = run.syscalls_of(apis).map(|row| row.measures.cpu_ns.as_f64()).sum();
    let wait = sums.off_cpu.wait_ns;
    let preempted = sums.off_cpu.preempted_ns.unwrap_or(0.0);
    let running = (sums.self_ns - wait - preempted).max(0.0);
    let syscalls = syscall_cpu.min(running);
    Parts {
        code_ns: running - syscalls,
        syscalls_ns: syscalls,
        wait_ns: wait,
        preempted_ns: preempted,
        nested_ns: (sums.total_ns - sums.self_ns).max(0.0),
    }
}

fn syscalls_of(run: &Run<'_>, apis: &[usize]) -> Option<RunSyscalls> {
    if run.analysis.syscalls.totals.calls == 0 {
        return None;
    }
    let mut found = RunSyscalls { by_number: BTreeMap::new(), calls: 0.0, errors: 0.0 };
    for row in run.syscalls_of(apis) {
        let Some(nested) = &row.nested else { continue };
        *found.by_number.entry(row.number).or_default() += nested.calls as f64;
        found.calls += nested.calls as f64;
        found.errors += nested.errors as f64;
    }
    Some(found)
}

/// Returns how waits were measured in all runs of a side, if in one way.
pub(super) fn wait_source(side: &[Analysis]) -> WaitSource {
    let mut sources = side.iter().map(Analysis::wait_source);
    let first = sources.next().unwrap_or_default();
    if sources.all(|source| source == first) { first } else { WaitSource::Mixed }
}
