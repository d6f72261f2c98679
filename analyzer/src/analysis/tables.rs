//! Makes sorted tables of what was collected.

use std::collections::BTreeMap;
use std::mem::take;

use super::collect::Collector;
use super::thread::CollectedThread;
use super::{Analysis, Pauses};
use crate::clock::Ns;
use crate::contexts::Contexts;
use crate::names::{Names, Site};
use crate::object_causes::ObjectCauses;
use crate::off_cpu::{Measured, OffCpu};
use crate::on_cpu::{self, OnCpu};
use crate::overhead::Overhead;
use crate::rows::{
    ApiRow, CallerRow, ContextRow, LibraryKind, LibraryRow, MeasuredOffCpu, Measures, ProcessRow,
    ThreadApi, ThreadRow, Totals,
};
use crate::sampled::{OnCpuOfApi, SampledTime};
use crate::sums::Sums;
use crate::syscalls::{self, Surroundings};
use crate::wait_causes;
use crate::walk::{Forest, NOBODY, Step};

/// The name for time that can't be attributed.
const NOT_ATTRIBUTED: &str = "[not attributed]";

/// Converts sums to figures.
#[derive(Clone, Copy)]
struct Ruler {
    whole_ns: f64,
    ns_per_reference_tick: f64,
}

impl Ruler {
    /// Returns a time as a share of the total.
    fn share(&self, ns: f64) -> f64 {
        if self.whole_ns > 0.0 { ns / self.whole_ns } else { 0.0 }
    }

    fn measure(&self, sums: &Sums) -> Measures {
        sums.measures(self.whole_ns, self.ns_per_reference_tick)
    }
}

pub(super) fn from_collector(collector: Collector) -> Analysis {
    let Collector {
        mut names,
        mut contexts,
        mut processes,
        mut threads,
        not_seen,
        syscalls,
        on_cpu,
        span,
        scales,
        ..
    } = collector;
    contexts.sum_totals();
    // Where calls were only counted, what is outside of those that are timed all the same will be unattributed.
    let counted: Vec<bool> = processes.iter().map(|process| process.only_counts).collect();
    let only_counts = |thread: &CollectedThread| counted[thread.row.process];
    let some_unattributed = threads.iter().any(|it| it.unattributed_ns > 0.0 || only_counts(it));
    // From here on, the numbers of objects are fixed.
    let nobody = if some_unattributed { names.mapped(NOT_ATTRIBUTED) } else { 0 };
    let used = threads
        .iter()
        .map(|thread| thread.application_ns + thread.unattributed_ns + thread.self_ns);
    let ruler = Ruler { whole_ns: used.sum(), ns_per_reference_tick: scales.ns_per_reference_tick };

    let forest = contexts.forest();
    let import_of = |at: u32| contexts.list[at as usize].import;
    let api_of = |import: u32| names.imports[import as usize].api;
    let object_of = |import: u32| names.apis[api_of(import) as usize].object;
    let (callers, caller_of) = names.callers();
    let by_caller =
        sum_by(&contexts, &forest, callers.len(), |at| caller_of[import_of(at) as usize]);
    let by_api = sum_by(&contexts, &forest, names.apis.len(), |at| api_of(import_of(at)));
    let by_object = sum_by(&contexts, &forest, names.objects.len(), |at| object_of(import_of(at)));

    let of_threads = on_cpu.of_threads();
    for thread in &mut threads {
        let known = of_threads.get(&(thread.row.process as u32, thread.row.thread));
        thread.add_edges(known.copied().or(thread.row.on_cpu_ns));
        if only_counts(thread) {
            thread.give_up_own_code();
        }
    }
    let (mut on_cpu, by_number) = on_cpu::tables_of(&on_cpu, &names, &contexts);
    let of_apis = (by_number.apis.as_slice(), on_cpu.sample_hz > 0);
    let (apis, new_api) = api_rows(&names, &by_api, of_apis, &ruler);
    on_cpu.renumber_apis(&new_api);
    let callers = caller_rows(&names, (&callers, &by_caller), &new_api, &ruler);
    let own_code = own_code(&threads);
    let mut libraries = library_rows(&names, &by_object, &own_code, &ruler);
    libraries.extend(application_rows(&names, &own_code, &ruler));
    add_on_cpu(&mut libraries, &on_cpu, &names);
    if let Some(measures) = unattributed(&threads, only_counts, &ruler) {
        libraries.push(LibraryRow {
            on_cpu: (on_cpu.sample_hz > 0).then(SampledTime::default),
            ..library_row(&names, LibraryKind::Unattributed, nobody, measures)
        });
    }
    let on_cpu_ns = |row: &LibraryRow| row.on_cpu.map(|time| time.on_cpu_ns);
    libraries.sort_by(|a, b| {
        on_cpu_ns(b)
            .cmp(&on_cpu_ns(a))
            .then_with(|| order(&a.measures, &b.measures))
            .then_with(|| a.path.cmp(&b.path))
    });
    let (context_rows, row_of) =
        context_rows(&names, &contexts, &by_number.contexts, &new_api, &ruler);

    let totals = sum_threads(threads.iter());
    add_process_totals(&mut processes, &threads);
    let threads: Vec<_> = threads
        .into_iter()
        .map(|thread| {
            let key = (thread.row.process as u32, thread.row.thread);
            let row = thread_row(thread, &new_api, &row_of, &ruler);
            let ran_ns = of_threads.get(&key).copied().or(row.on_cpu_ns);
            let off_cpu_ns = [row.off_cpu.blocked_ns, row.off_cpu.runnable_ns];
            let off_cpu_ns: u64 =
                off_cpu_ns.iter().flatten().map(|ns| ns.0).fold(0, u64::saturating_add);
            // (A fork waits for a processor before it is recorded, too.)
            let most = match row.lifetime_ns.0.checked_sub(off_cpu_ns) {
                Some(rest) => Ns(rest),
                None => row.lifetime_ns,
            };
            ThreadRow { on_cpu_ns: ran_ns.map(|ns| ns.min(most)), ran_ns, ..row }
        })
        .collect();
    let around = Surroundings {
        names: &names,
        contexts: &contexts,
        context_rows: &row_of,
        new_api: &new_api,
        by_api: &by_api,
        by_object: &by_object,
        threads: &threads,
        processes: &processes,
    };
    let mut syscalls = syscalls::tables_of(syscalls, &around);
    let (waits, in_own_code) = (take(&mut syscalls.waits), take(&mut syscalls.in_own_code));
    let wait_causes = wait_causes::of_apis(&apis, &threads, &waits, &syscalls.by_api);
    let own_wait_causes =
        wait_causes::of_own_code(&threads, &waits, &in_own_code, (&processes, &names.objects));
    let span_ns = span.map_or(Ns(0), |(start, end)| Ns(end.0 - start.0));
    let pauses = Pauses::of(&processes);
    Analysis {
        wall_ns: Ns(span_ns.0.saturating_sub(pauses.between(Ns(0), span_ns).0)),
        span_ns,
        pauses,
        totals,
        processes,
        threads,
        libraries,
        apis,
        callers,
        contexts: context_rows,
        syscalls,
        on_cpu,
        overhead: Overhead::default(),
        beside_calls: Vec::new(),
        wait_causes,
        own_wait_causes,
        object_causes: ObjectCauses::default(),
        api_sums: in_new_order(&by_api, &new_api),
        ns_per_reference_tick: ruler.ns_per_reference_tick,
        objects: names.objects,
        not_seen,
    }
}

/// Longest self time first, then most calls.
fn order(a: &Measures, b: &Measures) -> std::cmp::Ordering {
    (b.self_ns, b.calls).cmp(&(a.self_ns, a.calls))
}

/// Sums over the contexts of each key; only the outermost contexts count for the total.
fn sum_by(
    contexts: &Contexts,
    forest: &Forest,
    keys: usize,
    key_of: impl Fn(u32) -> u32,
) -> Vec<Sums> {
    let outermost = forest.outermost(&key_of, &mut vec![0; keys]);
    let mut sums = vec![Sums::default(); keys];
    for ((at, context), outermost) in (0..).zip(&contexts.list).zip(outermost) {
        let sums = &mut sums[key_of(at) as usize];
        sums.add(&context.sums);
        if outermost {
            sums.total_ns += context.sums.total_ns;
            sums.total_is_cut |= context.sums.total_is_cut;
        }
    }
    sums
}

/// Returns the table of APIs, and the index in it of each API.
fn api_rows(
    names: &Names,
    by_api: &[Sums],
    (on_cpu, is_sampled): (&[OnCpuOfApi], bool),
    ruler: &Ruler,
) -> (Vec<ApiRow>, Vec<u32>) {
    let mut rows: Vec<(usize, ApiRow)> = names
        .apis
        .iter()
        .zip(by_api)
        .zip(on_cpu)
        .map(|((api, sums), &on_cpu)| ApiRow {
            on_cpu: is_sampled.then_some(on_cpu),
            off_cpu: sums.off_cpu.measured.off_cpu(),
            object: api.object,
            library: names.objects[api.object as usize].name.clone(),
            symbol: api.symbol.clone(),
            version: api.version.clone(),
            waits_for: crate::blocking::cause_of(&api.symbol),
            argument: sums.arguments.as_ref().and_then(|sums| sums.row()),
            texts: sums.texts.as_ref().map_or_else(Vec::new, |texts| texts.rows()),
            places: sums.callers.as_ref().map_or_else(Vec::new, |callers| callers.rows(names)),
            measures: ruler.measure(sums),
        })
        .enumerate()
        .collect();
    rows.sort_by(|(_, a), (_, b)| {
        order(&a.measures, &b.measures).then_with(|| a.symbol.cmp(&b.symbol))
    });
    let mut new_api = vec![0; rows.len()];
    for (new, (old, _)) in (0..).zip(&rows) {
        new_api[*old] = new;
    }
    (rows.into_iter().map(|(_, row)| row).collect(), new_api)
}

/// Returns the sums of APIs in the order of their table.
fn in_new_order(by_api: &[Sums], new_api: &[u32]) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); by_api.len()];
    for (old, &new) in by_api.iter().zip(new_api) {
        sums[new as usize].clone_from(old);
    }
    sums
}

fn caller_rows(
    names: &Names,
    (callers, by_caller): (&[(u32, u32)], &[Sums]),
    new_api: &[u32],
    ruler: &Ruler,
) -> Vec<CallerRow> {
    let mut rows: Vec<_> = callers
        .iter()
        .zip(by_caller)
        .map(|(&(caller, number), sums)| {
            let api = &names.apis[number as usize];
            CallerRow {
                caller,
                caller_name: names.objects[caller as usize].name.clone(),
                api: new_api[number as usize],
                library: names.objects[api.object as usize].name.clone(),
                symbol: api.symbol.clone(),
                measures: ruler.measure(sums),
            }
        })
        .collect();
    rows.sort_by(|a, b| order(&a.measures, &b.measures).then(a.api.cmp(&b.api)));
    rows
}

/// Adds the time on the CPU of each object to its row, or to a new row if it was never called.
fn add_on_cpu(libraries: &mut Vec<LibraryRow>, on_cpu: &OnCpu, names: &Names) {
    if on_cpu.sample_hz > 0 {
        libraries.iter_mut().for_each(|row| row.on_cpu = Some(SampledTime::default()));
    }
    for of_object in &on_cpu.objects {
        let rows =
            || libraries.iter().enumerate().filter(|(_, row)| row.object == of_object.object);
        let is_application = |(_, row): &(usize, &LibraryRow)| row.kind == LibraryKind::Application;
        let at = rows().find(is_application).or_else(|| rows().next()).map(|(at, _)| at);
        match at {
            Some(at) => libraries[at].on_cpu = Some(of_object.time),
            None => {
                let kind = LibraryKind::Library;
                let row = library_row(names, kind, of_object.object, Measures::default());
                // There are no waits in an object that is never called.
                let off_cpu = Measured::default().off_cpu();
                libraries.push(LibraryRow { on_cpu: Some(of_object.time), off_cpu, ..row });
            }
        }
    }
}

/// Time that threads spent in their own code, by object, and whether that is an application.
type OwnCode = BTreeMap<(bool, u32), Sums>;

fn own_code(threads: &[CollectedThread]) -> OwnCode {
    let mut all = OwnCode::new();
    for thread in threads {
        let key = (thread.is_own_code_application, thread.row.own_object);
        let sums = all.entry(key).or_default();
        sums.self_ns += thread.application_ns;
        sums.uncertainty += thread.application_uncertainty;
        sums.total_ns += thread.lifetime_ns;
        sums.off_cpu.add(thread.application_off_cpu);
    }
    all
}

/// Makes the rows of calls of each library, and of threads whose own code is in it.
fn library_rows(
    names: &Names,
    by_object: &[Sums],
    own_code: &OwnCode,
    ruler: &Ruler,
) -> Vec<LibraryRow> {
    let mut rows = Vec::new();
    for (object, sums) in (0..).zip(by_object) {
        let own = own_code.get(&(false, object));
        if sums.calls == 0 && sums.self_ns <= 0.0 && own.is_none() {
            continue;
        }
        let own_ns = own.map_or(0.0, |own| own.self_ns);
        let mut sums = sums.clone();
        if let Some(own) = own {
            sums.self_ns += own.self_ns;
            sums.total_ns += own.self_ns;
            sums.uncertainty += own.uncertainty;
            sums.off_cpu.add(own.off_cpu);
        }
        let row = library_row(names, LibraryKind::Library, object, ruler.measure(&sums));
        let off_cpu = sums.off_cpu.measured.off_cpu();
        rows.push(LibraryRow { own_code_ns: Ns::from_f64(own_ns), off_cpu, ..row });
    }
    rows
}

/// Makes one row for each executable: the time of the threads that run it.
fn application_rows(
    names: &Names,
    own_code: &OwnCode,
    ruler: &Ruler,
) -> impl Iterator<Item = LibraryRow> {
    let applications = own_code.iter().filter(|((is_application, _), _)| *is_application);
    applications.map(|(&(_, object), sums)| {
        let row = library_row(names, LibraryKind::Application, object, ruler.measure(sums));
        let off_cpu = sums.off_cpu.measured.off_cpu();
        LibraryRow { own_code_ns: row.measures.self_ns, off_cpu, ..row }
    })
}

/// Adds up the time that can't be attributed, if there is any. What is outside of timed calls is no estimate.
fn unattributed(
    threads: &[CollectedThread],
    only_counts: impl Fn(&CollectedThread) -> bool,
    ruler: &Ruler,
) -> Option<Measures> {
    let (mut sums, mut estimated) = (Sums::default(), false);
    for thread in threads.iter().filter(|thread| thread.unattributed_ns > 0.0) {
        sums.self_ns += thread.unattributed_ns;
        match only_counts(thread) {
            true => sums.off_cpu.add(thread.unattributed_off_cpu),
            false => estimated = true,
        }
    }
    sums.total_ns = sums.self_ns;
    (sums.self_ns > 0.0).then(|| Measures { estimated, ..ruler.measure(&sums) })
}

fn library_row(names: &Names, kind: LibraryKind, object: u32, measures: Measures) -> LibraryRow {
    let row = &names.objects[object as usize];
    LibraryRow {
        kind,
        object,
        name: row.name.clone(),
        path: row.path.clone(),
        own_code_ns: Ns(0),
        on_cpu: None,
        off_cpu: MeasuredOffCpu::default(),
        measures,
    }
}

/// Returns the rows, and the row of each merged context.
fn context_rows(
    names: &Names,
    contexts: &Contexts,
    on_cpu_ns: &[f64],
    new_api: &[u32],
    ruler: &Ruler,
) -> (Vec<ContextRow>, Vec<u32>) {
    let mut row_of = vec![0; contexts.list.len()];
    let mut rows: Vec<ContextRow> = Vec::with_capacity(contexts.list.len());
    let mut open: Vec<u32> = Vec::new();
    contexts.forest_by_cost().walk(|step| match step {
        Step::Enter(at) => {
            let context = &contexts.list[at as usize];
            let import = names.imports[context.import as usize];
            let row = rows.len() as u32;
            rows.push(ContextRow {
                depth: open.len() as u32,
                parent: (context.caller != NOBODY).then(|| open.last().copied()).flatten(),
                caller: import.caller,
                api: new_api[import.api as usize],
                site: import.site.map(Site::address),
                process: names.process_of[context.import as usize],
                argument: context.sums.arguments.as_ref().and_then(|sums| sums.row()),
                texts: context.sums.texts.as_ref().map_or_else(Vec::new, |texts| texts.rows()),
                places: context.sums.callers.as_ref().map_or_else(Vec::new, |it| it.rows(names)),
                long_places: context.sums.long_callers.as_ref().map_or_else(Vec::new, |callers| {
                    callers.rows_of_long(names, context.sums.total_ns)
                }),
                on_cpu_ns: Ns::from_f64(on_cpu_ns[at as usize]),
                measures: ruler.measure(&context.sums),
            });
            row_of[at as usize] = row;
            open.push(row);
        }
        Step::Leave(_) => {
            open.pop();
        }
    });
    (rows, row_of)
}

fn thread_row(
    thread: CollectedThread,
    new_api: &[u32],
    context_row_of: &[u32],
    ruler: &Ruler,
) -> ThreadRow {
    let mut row = thread.row;
    row.measures.share = ruler.share(thread.self_ns);
    row.application_ns = Ns::from_f64(thread.application_ns);
    row.unattributed_ns = Ns::from_f64(thread.unattributed_ns);
    let unattributed = thread.unattributed_off_cpu;
    row.unattributed_wait_ns = Ns::from_f64(unattributed.wait_ns);
    row.unattributed_preempted_ns = Ns::from_f64(unattributed.preempted_ns.unwrap_or(0.0));
    (row.application_wait_ns, row.application_preempted_ns) =
        blocked_and_runnable(thread.application_off_cpu);
    let outside_woken_ns = thread.application_off_cpu.woken_ns + unattributed.woken_ns;
    row.woken_ns = Ns::from_f64(thread.off_cpu.woken_ns + outside_woken_ns);
    row.off_cpu = thread.measured.off_cpu();
    row.own_cost_ns = Ns::from_f64(thread.own_cost_ns);
    row.own_wait_ns = Ns::from_f64(thread.own_wait_ns);
    row.overlap_ns = Ns::from_f64(thread.overlap_ns);
    let renumbered = row.apis.iter().map(|api| ThreadApi { api: new_api[api.api as usize], ..api });
    let mut apis: Vec<_> = renumbered.collect();
    apis.sort_by_key(|api| api.api);
    row.apis = apis.into_iter().collect();
    row.contexts.change(|context| context.context = context_row_of[context.context as usize]);
    row
}

/// Returns waits and preemptions, if the scheduler was observed.
fn blocked_and_runnable(off_cpu: OffCpu) -> (Option<Ns>, Option<Ns>) {
    let preempted = off_cpu.preempted_ns.map(Ns::from_f64);
    (preempted.map(|_| Ns::from_f64(off_cpu.wait_ns)), preempted)
}

fn add_process_totals(processes: &mut [ProcessRow], threads: &[CollectedThread]) {
    for of_one in threads.chunk_by(|a, b| a.row.process == b.row.process) {
        processes[of_one[0].row.process].totals = sum_threads(of_one.iter());
    }
}

fn sum_threads<'t>(threads: impl Iterator<Item = &'t CollectedThread> + Clone) -> Totals {
    let sum =
        |part: fn(&CollectedThread) -> f64| Ns::from_f64(threads.clone().map(part).sum::<f64>());
    let (mut library, mut application) = (OffCpu::default(), OffCpu::default());
    for thread in threads.clone() {
        library.add(thread.off_cpu);
        application.add(thread.application_off_cpu);
    }
    let (application_wait_ns, application_preempted_ns) = blocked_and_runnable(application);
    let none = threads.clone().next().is_none();
    let mut measured = if none { Measured::NOTHING } else { Measured::default() };
    threads.clone().for_each(|thread| measured.add(thread.measured));
    Totals {
        threads: threads.clone().count(),
        calls: threads
            .clone()
            .fold(0, |sum: u64, thread| sum.saturating_add(thread.row.measures.calls)),
        calls_estimated: threads.clone().any(|thread| thread.row.measures.calls_estimated),
        lifetime_ns: sum(|thread| thread.lifetime_ns),
        application_ns: sum(|thread| thread.application_ns),
        unattributed_ns: sum(|thread| thread.unattributed_ns),
        unattributed_wait_ns: sum(|thread| thread.unattributed_off_cpu.wait_ns),
        unattributed_preempted_ns: sum(|it| it.unattributed_off_cpu.preempted_ns.unwrap_or(0.0)),
        library_ns: sum(|thread| thread.self_ns),
        wait_ns: Ns::from_f64(library.wait_ns),
        preempted_ns: library.preempted_ns.map(Ns::from_f64),
        application_wait_ns,
        application_preempted_ns,
        off_cpu: measured.off_cpu(),
        own_cost_ns: sum(|thread| thread.own_cost_ns),
        overlap_ns: sum(|thread| thread.overlap_ns),
    }
}
