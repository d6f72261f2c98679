//! What threads wait for where, and whether idle ones count.

use chase_analyzer::{Analysis, ApiRow, Blocked, Category, SpanCause, WaitCause};

use super::Figures;

/// What single waits are for.
const CAUSES: [(SpanCause, WaitCause); 6] = [
    (SpanCause::Threads, WaitCause::Lock),
    (SpanCause::File, WaitCause::Io),
    (SpanCause::Connection, WaitCause::Io),
    (SpanCause::Time, WaitCause::Sleep),
    (SpanCause::Process, WaitCause::Join),
    (SpanCause::Other, WaitCause::Scheduler),
];

/// From this part of the wall time on, threads with work tell what the run is about.
const ENOUGH: f64 = 0.5;

/// Whether threads that are not idle have lived long enough together that what idle ones wait for means nothing. Otherwise the run is
/// what the others wait for.
pub(super) fn has_work(analysis: &Analysis, blocked: &Blocked) -> bool {
    let lives = analysis.threads.iter().map(|row| row.lifetime_ns.as_f64());
    let all: f64 = lives.sum();
    let idle = blocked.idle.iter().flat_map(|row| &row.members);
    let idle = idle.filter_map(|&thread| analysis.threads.get(thread as usize));
    let idle: f64 = idle.map(|row| row.lifetime_ns.as_f64()).sum();
    all - idle >= ENOUGH * analysis.wall_ns.as_f64()
}

/// What is waited for where: as it is known of the function, otherwise as the largest part of the waits in it tells that were seen
/// one by one, or as most of the time in its system calls. The same for sums and for single waits.
pub(super) struct WaitsFor {
    in_apis: Vec<WaitCause>,
    in_own_code: WaitCause,
}

impl WaitsFor {
    pub(super) fn new(figures: Figures<'_>) -> Self {
        let analysis = figures.analysis;
        let number_of_apis = analysis.apis.len();
        // In all, and for input and output.
        let mut in_syscalls = vec![[0.0; 2]; number_of_apis];
        for row in &analysis.syscalls.by_api {
            use Category::{File, Io, Network, Poll};
            let of_api = row.of.api.and_then(|api| in_syscalls.get_mut(api as usize));
            let Some([all, io]) = of_api else { continue };
            let ns = row.measures.total_ns.as_f64();
            *all += ns;
            if matches!(row.category, Io | File | Network | Poll) {
                *io += ns;
            }
        }
        // The last is of the threads' own code.
        let mut seen = vec![[0.0; CAUSES.len()]; number_of_apis + 1];
        for span in figures.timeline.lanes.iter().flat_map(|lane| &lane.blocked) {
            let at = span.api.map_or(number_of_apis, |api| api as usize);
            let cause = CAUSES.iter().position(|known| known.0 == span.cause);
            if let (Some(times), Some(cause)) = (seen.get_mut(at), cause) {
                times[cause] += span.ns.as_f64();
            }
        }
        let most = |at: usize| {
            let times = CAUSES.iter().zip(seen[at]).filter(|(_, ns)| *ns > 0.0);
            let most = times.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(cause, _)| cause.1);
            most.filter(|cause| *cause != WaitCause::Scheduler)
        };
        let told = |at: usize| {
            let [all, io] = in_syscalls[at];
            most(at).unwrap_or(if io > all / 2.0 { WaitCause::Io } else { WaitCause::Scheduler })
        };
        let of_api = |(at, api): (usize, &ApiRow)| api.waits_for.unwrap_or_else(|| told(at));
        Self {
            in_apis: analysis.apis.iter().enumerate().map(of_api).collect(),
            in_own_code: most(number_of_apis).unwrap_or(WaitCause::Scheduler),
        }
    }

    /// In a function, by number of the API.
    pub(super) fn in_api(&self, api: usize) -> WaitCause {
        self.in_apis.get(api).copied().unwrap_or(WaitCause::Scheduler)
    }

    /// In a function, or in the threads' own code.
    pub(super) fn in_call(&self, api: Option<u32>) -> WaitCause {
        api.map_or(self.in_own_code, |api| self.in_api(api as usize))
    }
}
