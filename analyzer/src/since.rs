//! Figures of the time between two analyses of a running program.
//!
//! All figures that only grow are subtracted, row by row. Those that are unknown for a part of the time are left out:
//! contexts, callers, quantiles, the longest call, and the precision of estimates.

use std::collections::HashMap;
use std::hash::Hash;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::on_cpu::OnCpu;
use crate::rows::{
    ApiRow, LibraryRow, MeasuredOffCpu, Measures, ObjectRow, ThreadApi, ThreadRow, Totals,
};
use crate::sampled::SampledTime;
use crate::syscalls::{SyscallMeasures, SyscallRow, Syscalls};

/// The figures of a run at an earlier time.
#[derive(Clone, Debug)]
pub struct Moment(Analysis);

impl Analysis {
    /// Copies the present figures, for a later comparison.
    #[must_use]
    pub fn moment(&self) -> Moment {
        let mut kept = self.clone();
        kept.contexts.clear();
        kept.callers.clear();
        kept.on_cpu.addresses.clear();
        kept.threads.iter_mut().for_each(|thread| thread.contexts.clear());
        Moment(kept)
    }

    /// Returns the figures since `earlier`, which are of the same selection. Rows and numbers are those of `self`, but
    /// threads that had ended by then are left out.
    #[must_use]
    pub fn since(&self, earlier: &Moment) -> Self {
        let earlier = &earlier.0;
        let mut now = self.moment().0;
        let rows = Rows { earlier, later: self };
        for (row, was) in now.libraries.iter_mut().zip(rows.libraries()) {
            let Some(was) = was else { continue };
            row.own_code_ns = less(row.own_code_ns, was.own_code_ns);
            row.off_cpu = off_cpu(row.off_cpu, was.off_cpu);
            row.on_cpu = sampled(row.on_cpu, was.on_cpu);
            row.measures = measures(&row.measures, &was.measures);
        }
        for (row, was) in now.apis.iter_mut().zip(rows.apis()) {
            row.argument = None;
            row.texts.clear();
            row.places.clear();
            let Some(was) = was else { continue };
            row.off_cpu = off_cpu(row.off_cpu, was.off_cpu);
            if let (Some(is), Some(was)) = (&mut row.on_cpu, was.on_cpu) {
                is.time = sampled(Some(is.time), Some(was.time)).unwrap_or_default();
                is.on_cpu_inside_ns = less(is.on_cpu_inside_ns, was.on_cpu_inside_ns);
                is.on_cpu_application_ns =
                    less(is.on_cpu_application_ns, was.on_cpu_application_ns);
                is.on_cpu_elsewhere_ns = less(is.on_cpu_elsewhere_ns, was.on_cpu_elsewhere_ns);
            }
            row.measures = measures(&row.measures, &was.measures);
        }
        let apis = rows.api_numbers();
        let threads = by(&earlier.threads, |row| thread_key(earlier, row));
        for row in &mut now.threads {
            if let Some(was) = threads.get(&thread_key(self, row)) {
                thread(row, was, &apis, earlier.span_ns);
            }
        }
        now.threads.retain(|row| row.end_ns > earlier.span_ns || row.lifetime_ns.0 > 0);
        let processes = by(&earlier.processes, |row| &row.path);
        for row in &mut now.processes {
            if let Some(was) = processes.get(&row.path.clone()) {
                row.wall_ns = less(row.wall_ns, was.wall_ns);
                row.totals = totals(&row.totals, &was.totals);
            }
        }
        now.wall_ns = less(self.wall_ns, earlier.wall_ns);
        now.span_ns = less(self.span_ns, earlier.span_ns);
        now.totals = totals(&self.totals, &earlier.totals);
        now.syscalls = syscalls(&self.syscalls, &earlier.syscalls);
        now.on_cpu = on_cpu(&self.on_cpu, &earlier.on_cpu);
        now
    }
}

/// The tables of two analyses, whose rows may be in different orders.
struct Rows<'a> {
    earlier: &'a Analysis,
    later: &'a Analysis,
}

type Object<'a> = (&'a str, &'a str);
type Api<'a> = (Object<'a>, &'a str, &'a str);

impl<'a> Rows<'a> {
    /// The earlier row of each library.
    fn libraries(&self) -> Vec<Option<&'a LibraryRow>> {
        let known = by(&self.earlier.libraries, |row| (row.kind, object(self.earlier, row.object)));
        let key = |row: &LibraryRow| (row.kind, object(self.later, row.object));
        self.later.libraries.iter().map(|row| known.get(&key(row)).copied()).collect()
    }

    /// The earlier row of each API.
    fn apis(&self) -> Vec<Option<&'a ApiRow>> {
        let known = by(&self.earlier.apis, |row| api(self.earlier, row));
        self.later.apis.iter().map(|row| known.get(&api(self.later, row)).copied()).collect()
    }

    /// The later number of each earlier API.
    fn api_numbers(&self) -> Vec<Option<u32>> {
        let numbered = (0..).zip(&self.later.apis);
        let known: HashMap<Api, u32> =
            numbered.map(|(number, row)| (api(self.later, row), number)).collect();
        self.earlier.apis.iter().map(|row| known.get(&api(self.earlier, row)).copied()).collect()
    }
}

fn object(analysis: &Analysis, number: u32) -> Object<'_> {
    let row: Option<&ObjectRow> = analysis.objects.get(number as usize);
    row.map_or(("", ""), |row| (&row.path, &row.build_id))
}

fn api<'a>(analysis: &'a Analysis, row: &'a ApiRow) -> Api<'a> {
    (object(analysis, row.object), &row.symbol, &row.version)
}

fn thread_key<'a>(analysis: &'a Analysis, row: &ThreadRow) -> (&'a std::path::Path, u32) {
    (&analysis.processes[row.process].path, row.thread)
}

fn by<'a, T, K: Hash + Eq>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> HashMap<K, &'a T> {
    rows.iter().map(|row| (key(row), row)).collect()
}

fn thread(row: &mut ThreadRow, was: &ThreadRow, apis: &[Option<u32>], from: Ns) {
    row.start_ns = row.start_ns.max(from);
    row.lifetime_ns = less(row.lifetime_ns, was.lifetime_ns);
    row.application_ns = less(row.application_ns, was.application_ns);
    row.unattributed_ns = less(row.unattributed_ns, was.unattributed_ns);
    row.unattributed_wait_ns = less(row.unattributed_wait_ns, was.unattributed_wait_ns);
    row.unattributed_preempted_ns =
        less(row.unattributed_preempted_ns, was.unattributed_preempted_ns);
    row.application_wait_ns = less_of(row.application_wait_ns, was.application_wait_ns);
    row.application_preempted_ns =
        less_of(row.application_preempted_ns, was.application_preempted_ns);
    row.woken_ns = less(row.woken_ns, was.woken_ns);
    row.on_cpu_ns = less_of(row.on_cpu_ns, was.on_cpu_ns);
    row.off_cpu = off_cpu(row.off_cpu, was.off_cpu);
    row.own_cost_ns = less(row.own_cost_ns, was.own_cost_ns);
    row.own_wait_ns = less(row.own_wait_ns, was.own_wait_ns);
    row.overlap_ns = less(row.overlap_ns, was.overlap_ns);
    row.lost_calls = row.lost_calls.saturating_sub(was.lost_calls);
    row.measures = measures(&row.measures, &was.measures);
    let later = was.apis.iter().filter_map(|one| Some((apis[one.api as usize]?, one)));
    let known: HashMap<u32, ThreadApi> = later.collect();
    let mut apis: Vec<ThreadApi> = row.apis.iter().collect();
    for one in &mut apis {
        one.argument_mean = None;
        let Some(was) = known.get(&one.api) else { continue };
        one.calls = one.calls.saturating_sub(was.calls);
        one.total_ns = less(one.total_ns, was.total_ns);
        one.self_ns = less(one.self_ns, was.self_ns);
        one.wait_ns = less(one.wait_ns, was.wait_ns);
        one.preempted_ns = less(one.preempted_ns, was.preempted_ns);
    }
    apis.retain(|one| one.calls > 0 || one.self_ns.0 > 0 || one.total_ns.0 > 0);
    row.apis = apis.into_iter().collect();
}

fn less(is: Ns, was: Ns) -> Ns {
    Ns(is.0.saturating_sub(was.0))
}

fn less_of(is: Option<Ns>, was: Option<Ns>) -> Option<Ns> {
    is.map(|is| less(is, was.unwrap_or_default()))
}

fn off_cpu(is: MeasuredOffCpu, was: MeasuredOffCpu) -> MeasuredOffCpu {
    MeasuredOffCpu {
        blocked_ns: less_of(is.blocked_ns, was.blocked_ns),
        runnable_ns: less_of(is.runnable_ns, was.runnable_ns),
    }
}

fn sampled(is: Option<SampledTime>, was: Option<SampledTime>) -> Option<SampledTime> {
    let (is, was) = (is?, was.unwrap_or_default());
    Some(SampledTime {
        samples: is.samples.saturating_sub(was.samples),
        on_cpu_ns: less(is.on_cpu_ns, was.on_cpu_ns),
        on_cpu_kernel_ns: less_of(is.on_cpu_kernel_ns, was.on_cpu_kernel_ns),
        on_cpu_ci95_ns: Ns(0),
    })
}

fn measures(is: &Measures, was: &Measures) -> Measures {
    let calls = is.calls.saturating_sub(was.calls);
    let untimed = is.untimed.saturating_sub(was.untimed).min(calls);
    let total_ns = less(is.total_ns, was.total_ns);
    Measures {
        calls,
        calls_estimated: is.calls_estimated,
        calls_ci95: is.calls_ci95,
        untimed,
        timed: is.timed.saturating_sub(was.timed),
        estimated: is.estimated,
        ci95_ns: Ns(0),
        clock_ci95_ns: Ns(0),
        unwound: is.unwound.saturating_sub(was.unwound),
        // (Those that were open before are no calls of this time.)
        open: is.open.min(calls - untimed),
        total_ns,
        self_ns: less(is.self_ns, was.self_ns),
        wait_ns: less(is.wait_ns, was.wait_ns),
        preempted_ns: less_of(is.preempted_ns, was.preempted_ns),
        ..Measures::default()
    }
}

fn totals(is: &Totals, was: &Totals) -> Totals {
    Totals {
        threads: is.threads,
        calls: is.calls.saturating_sub(was.calls),
        calls_estimated: is.calls_estimated,
        lifetime_ns: less(is.lifetime_ns, was.lifetime_ns),
        application_ns: less(is.application_ns, was.application_ns),
        unattributed_ns: less(is.unattributed_ns, was.unattributed_ns),
        unattributed_wait_ns: less(is.unattributed_wait_ns, was.unattributed_wait_ns),
        unattributed_preempted_ns: less(
            is.unattributed_preempted_ns,
            was.unattributed_preempted_ns,
        ),
        library_ns: less(is.library_ns, was.library_ns),
        wait_ns: less(is.wait_ns, was.wait_ns),
        preempted_ns: less_of(is.preempted_ns, was.preempted_ns),
        application_wait_ns: less_of(is.application_wait_ns, was.application_wait_ns),
        application_preempted_ns: less_of(
            is.application_preempted_ns,
            was.application_preempted_ns,
        ),
        off_cpu: off_cpu(is.off_cpu, was.off_cpu),
        own_cost_ns: less(is.own_cost_ns, was.own_cost_ns),
        overlap_ns: less(is.overlap_ns, was.overlap_ns),
    }
}

/// Subtracts the tables by system call, and by API and system call; the other tables are left out.
fn syscalls(is: &Syscalls, was: &Syscalls) -> Syscalls {
    Syscalls {
        totals: syscall(&is.totals, &was.totals),
        own: syscall(&is.own, &was.own),
        tracing_cost_ns: less(is.tracing_cost_ns, was.tracing_cost_ns),
        by_syscall: syscall_rows(&is.by_syscall, &was.by_syscall, |row| row.number),
        by_api: syscall_rows(&is.by_api, &was.by_api, |row| {
            let of = &row.of;
            (of.library.clone(), of.symbol.clone(), of.is_recorded, row.number)
        }),
        ..Syscalls::default()
    }
}

fn syscall_rows<R: Clone, K: Hash + Eq>(
    is: &[SyscallRow<R>],
    was: &[SyscallRow<R>],
    key: impl Fn(&SyscallRow<R>) -> K,
) -> Vec<SyscallRow<R>> {
    let known: HashMap<K, &SyscallRow<R>> = was.iter().map(|row| (key(row), row)).collect();
    let nothing = SyscallMeasures::default();
    let row = |row: &SyscallRow<R>| {
        let was = known.get(&key(row)).map_or(&nothing, |was| &was.measures);
        let measures = syscall(&row.measures, was);
        SyscallRow { measures, per_call: None, nested: None, ..row.clone() }
    };
    is.iter().map(row).filter(|row| row.measures.calls > 0 || row.measures.total_ns.0 > 0).collect()
}

fn syscall(is: &SyscallMeasures, was: &SyscallMeasures) -> SyscallMeasures {
    SyscallMeasures {
        calls: is.calls.saturating_sub(was.calls),
        errors: is.errors.saturating_sub(was.errors),
        restarts: is.restarts.saturating_sub(was.restarts),
        unfinished: is.unfinished,
        total_ns: less(is.total_ns, was.total_ns),
        off_cpu_ns: less(is.off_cpu_ns, was.off_cpu_ns),
        cpu_ns: less(is.cpu_ns, was.cpu_ns),
        bytes: is.bytes.map(|bytes| bytes.saturating_sub(was.bytes.unwrap_or(0))),
        ..SyscallMeasures::default()
    }
}

fn on_cpu(is: &OnCpu, was: &OnCpu) -> OnCpu {
    OnCpu {
        sample_hz: is.sample_hz,
        samples: is.samples.saturating_sub(was.samples),
        user_only: is.user_only,
        lost_samples: is.lost_samples.saturating_sub(was.lost_samples),
        on_cpu_ns: less(is.on_cpu_ns, was.on_cpu_ns),
        not_sampled_ns: less(is.not_sampled_ns, was.not_sampled_ns),
        watching_ns: less(is.watching_ns, was.watching_ns),
        ..OnCpu::default()
    }
}
