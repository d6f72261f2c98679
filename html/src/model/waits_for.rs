//! What threads wait for, and where.

use chase_analyzer::{Analysis, ApiRow, BlockedSpan, Category, SpanCause, WaitCause};

use super::Figures;

/// What threads wait for a processor after being woken, if it is at least so long, ns. Less is not seen in the picture, and counted as
/// waiting for what woke them.
pub(super) const SEEN: u64 = 100_000;

/// When the thread was woken, and when it ran again.
pub(super) fn ends(wait: &BlockedSpan) -> (u64, u64) {
    let runs = wait.start_ns.0 + wait.ns.0;
    let ready = if wait.ready_ns.0 < SEEN { 0 } else { wait.ready_ns.0 };
    (runs - ready.min(wait.ns.0), runs)
}

/// What single waits, and system calls, can tell.
const CAUSES: [WaitCause; 5] =
    [WaitCause::Lock, WaitCause::Io, WaitCause::Sleep, WaitCause::Join, WaitCause::Scheduler];

/// What is waited for in a function: as it is known of that. Otherwise each wait that was seen singly is for what the kernel knows,
/// and sums are divided as those are; without such waits, they are for input and output if most time in the function's system
/// calls is.
pub(super) struct WaitsFor {
    known: Vec<Option<WaitCause>>,
    /// How much was seen of each of [`CAUSES`]; the last is of the threads' own code.
    seen: Vec<[f64; CAUSES.len()]>,
}

impl WaitsFor {
    pub(super) fn new(figures: Figures<'_>) -> Self {
        let analysis = figures.analysis;
        let own_code = analysis.apis.len();
        let mut seen = vec![[0.0; CAUSES.len()]; own_code + 1];
        for span in figures.timeline.lanes.iter().flat_map(|lane| &lane.blocked) {
            let of_api = seen.get_mut(span.api.map_or(own_code, |api| api as usize));
            let Some(times) = of_api else { continue };
            let waited = ends(span).0 - span.start_ns.0;
            add(times, seen_for(span.cause), waited as f64);
        }
        let in_syscalls = in_syscalls(analysis);
        for (times, of_syscalls) in seen.iter_mut().zip(in_syscalls) {
            if times.iter().sum::<f64>() <= 0.0 {
                add(times, of_syscalls, 1.0);
            }
        }
        if let Some(times) = seen.last_mut().filter(|times| times.iter().sum::<f64>() <= 0.0) {
            add(times, WaitCause::Scheduler, 1.0);
        }
        let known = |api: &ApiRow| api.waits_for;
        Self { known: analysis.apis.iter().map(known).collect(), seen }
    }

    /// Divides so much waiting in a function, or in the threads' own code.
    pub(super) fn parts(&self, api: Option<u32>, ns: f64) -> Vec<(WaitCause, f64)> {
        if let Some(cause) = self.of_api(api) {
            return vec![(cause, ns)];
        }
        let place = api.map_or(self.seen.len() - 1, |api| api as usize);
        let Some(seen) = self.seen.get(place) else { return vec![(WaitCause::Scheduler, ns)] };
        let all: f64 = seen.iter().sum();
        let parts = CAUSES.into_iter().zip(seen).filter(|(_, time)| **time > 0.0);
        parts.map(|(cause, time)| (cause, ns * time / all)).collect()
    }

    /// What a single wait is for.
    pub(super) fn of_wait(&self, span: &BlockedSpan) -> WaitCause {
        self.of_api(span.api).unwrap_or_else(|| seen_for(span.cause))
    }

    fn of_api(&self, api: Option<u32>) -> Option<WaitCause> {
        self.known.get(api? as usize).copied().flatten()
    }
}

fn add(times: &mut [f64; CAUSES.len()], to: WaitCause, ns: f64) {
    if let Some(place) = CAUSES.iter().position(|&cause| cause == to) {
        times[place] += ns;
    }
}

fn seen_for(cause: SpanCause) -> WaitCause {
    match cause {
        SpanCause::Threads => WaitCause::Lock,
        SpanCause::File | SpanCause::Connection => WaitCause::Io,
        SpanCause::Time => WaitCause::Sleep,
        SpanCause::Process => WaitCause::Join,
        SpanCause::Recording | SpanCause::Other => WaitCause::Scheduler,
    }
}

/// By API: input and output, if most time in its system calls is for that.
fn in_syscalls(analysis: &Analysis) -> Vec<WaitCause> {
    // In all, and for input and output.
    let mut times = vec![[0.0; 2]; analysis.apis.len()];
    for row in &analysis.syscalls.by_api {
        use Category::{File, Io, Network, Poll};
        let of_api = row.of.api.and_then(|api| times.get_mut(api as usize));
        let Some([all, io]) = of_api else { continue };
        let ns = row.measures.total_ns.as_f64();
        *all += ns;
        if matches!(row.category, Io | File | Network | Poll) {
            *io += ns;
        }
    }
    let cause =
        |[all, io]: [f64; 2]| if io > all / 2.0 { WaitCause::Io } else { WaitCause::Scheduler };
    times.into_iter().map(cause).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_divided_as_single_waits_are() {
        // Of three functions, one is known to wait for a condition; of one, nothing was seen but what its system calls are for.
        let seen = vec![
            [0.0; CAUSES.len()],
            [30.0, 10.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 5.0, 0.0, 5.0],
        ];
        let waits_for = WaitsFor { known: vec![Some(WaitCause::Condition), None, None], seen };
        let parts = |api| waits_for.parts(api, 8.0);
        assert_eq!(parts(Some(0)), [(WaitCause::Condition, 8.0)]);
        assert_eq!(parts(Some(1)), [(WaitCause::Lock, 6.0), (WaitCause::Io, 2.0)]);
        assert_eq!(parts(Some(2)), [(WaitCause::Io, 8.0)]);
        assert_eq!(parts(None), [(WaitCause::Sleep, 4.0), (WaitCause::Scheduler, 4.0)]);
    }
}
