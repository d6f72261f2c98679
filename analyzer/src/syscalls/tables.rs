//! Makes tables of what was collected.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::mem::take;
use std::sync::Arc;

use super::collect::{Collected, Maker, Place, UNRECORDED};
use super::rows::{
    InOwnCode, OfApi, OfContext, OfLibrary, OfThread, SyscallRow, Syscalls, WaitsIn, by_category,
    by_syscall, total,
};
use super::sums::SyscallSums;
use crate::clock::Ns;
use crate::contexts::Contexts;
use crate::names::Names;
use crate::rows::{ProcessRow, ThreadRow};
use crate::sums::Sums;
use crate::walk::NOBODY;

/// The other tables that these refer to.
pub(crate) struct Surroundings<'a> {
    pub(crate) names: &'a Names,
    pub(crate) contexts: &'a Contexts,
    /// The row of each merged context.
    pub(crate) context_rows: &'a [u32],
    /// The row of each API.
    pub(crate) new_api: &'a [u32],
    /// The sums of each API, by its old number.
    pub(crate) by_api: &'a [Sums],
    /// The sums of each object.
    pub(crate) by_object: &'a [Sums],
    pub(crate) threads: &'a [ThreadRow],
    pub(crate) processes: &'a [ProcessRow],
}

/// Sums by what made the calls (an API, an object, or `NOBODY`) and their number.
type ByMaker = BTreeMap<(u32, u32), SyscallSums>;

pub(crate) fn tables_of(collected: Collected, around: &Surroundings<'_>) -> Syscalls {
    let mut by_place: BTreeMap<(Place, u32), SyscallSums> = BTreeMap::new();
    let mut by_thread = ByThread::new(around);
    let mut in_own_code = Vec::new();
    // (What was collected is freed on the way.)
    for (maker, sums) in collected.sums {
        by_place.entry((maker.place, maker.number)).or_default().add(&sums);
        if maker.place == NOBODY {
            let Maker { process, thread, number, .. } = maker;
            let off_cpu_ns = sums.off_cpu_ns();
            in_own_code.push(InOwnCode { process, thread, number, off_cpu_ns });
        }
        by_thread.add(maker, sums);
    }
    let names = around.names;
    let api_of = |place: Place| {
        let import = around.contexts.list[place as usize].import;
        names.imports[import as usize].api
    };
    let object_of = |place: Place| names.apis[api_of(place) as usize].object;
    let recorded = collected.waits.into_iter().filter(|((maker, _), _)| maker.place != UNRECORDED);
    let waits = recorded.map(|((maker, for_memory_map), ns)| {
        let in_call = maker.place != NOBODY;
        let api = in_call.then(|| around.new_api[api_of(maker.place) as usize]);
        let Maker { process, thread, number, .. } = maker;
        WaitsIn { process, thread, api, number, for_memory_map, ns }
    });
    let waits = waits.collect();
    let (own_apis, all_apis) = sum_up(&by_place, around.contexts, names.apis.len(), api_of);
    let (own_objects, all_objects) =
        sum_up(&by_place, around.contexts, names.objects.len(), object_of);

    let by_thread = sorted(by_thread.finish());
    Syscalls {
        totals: total(&by_thread),
        own: collected.own.measures(),
        tracing_cost_ns: Ns(collected.cost_ns),
        by_syscall: by_syscall(&by_thread),
        by_category: by_category(&by_thread),
        by_api: rows(&own_apis, &all_apis, |api| of_api(around, api)),
        by_library: rows(&own_objects, &all_objects, |object| of_library(around, object)),
        by_context: sorted(by_place.into_iter().map(|((place, number), sums)| {
            let context = around.context_rows.get(place as usize).copied();
            let calls = around.contexts.list.get(place as usize).map_or(0, |c| c.sums.calls);
            let is_recorded = place != UNRECORDED;
            SyscallRow::new(OfContext { context, is_recorded }, number, calls, sums)
        })),
        by_thread,
        in_own_code,
        waits,
    }
}

/// Returns sums over places by `key_of`: of calls made directly there, and of those made anywhere inside.
fn sum_up(
    by_place: &BTreeMap<(Place, u32), SyscallSums>,
    contexts: &Contexts,
    keys: usize,
    key_of: impl Fn(Place) -> u32,
) -> (ByMaker, ByMaker) {
    let (mut own, mut all) = (ByMaker::new(), ByMaker::new());
    // The round in which each key was last seen: on the way up the tree, each counts only once.
    let mut met = vec![0_usize; keys];
    for (round, (&(place, number), sums)) in (1..).zip(by_place) {
        let key = if place >= UNRECORDED { place } else { key_of(place) };
        own.entry((key, number)).or_default().add(sums);
        let mut at = place;
        while at < UNRECORDED {
            let key = key_of(at);
            if std::mem::replace(&mut met[key as usize], round) != round {
                all.entry((key, number)).or_default().add(sums);
            }
            at = contexts.list[at as usize].caller;
        }
    }
    (own, all)
}

fn rows<K>(own: &ByMaker, all: &ByMaker, of: impl Fn(u32) -> (K, u64)) -> Vec<SyscallRow<K>> {
    let outside = own.keys().filter(|(key, _)| *key >= UNRECORDED);
    let row = |&(key, number): &(u32, u32)| {
        let (of, callers) = of(key);
        let sums = own.get(&(key, number)).cloned().unwrap_or_default();
        let mut row = SyscallRow::new(of, number, callers, sums);
        if let Some(all) = all.get(&(key, number)) {
            row.add_nested(all, callers);
        }
        row
    };
    sorted(all.keys().chain(outside).map(row))
}

fn sorted<K>(rows: impl IntoIterator<Item = SyscallRow<K>>) -> Vec<SyscallRow<K>> {
    let mut rows: Vec<_> = rows.into_iter().collect();
    let nested = |row: &SyscallRow<K>| row.nested.as_ref().map(|nested| nested.total_ns);
    // (Rows are large: the keys are sorted.)
    rows.sort_by_cached_key(|row| {
        Reverse((row.measures.total_ns, row.measures.calls, nested(row)))
    });
    rows
}

fn of_api(around: &Surroundings<'_>, old: u32) -> (OfApi, u64) {
    let names = around.names;
    let Some(api) = names.apis.get(old as usize) else {
        let (library, symbol) = (String::new(), String::new());
        let is_recorded = old != UNRECORDED;
        return (OfApi { api: None, is_recorded, library, symbol, api_calls: 0 }, 0);
    };
    let api_calls = around.by_api[old as usize].calls;
    let of = OfApi {
        api: Some(around.new_api[old as usize]),
        is_recorded: true,
        library: names.objects[api.object as usize].name.clone(),
        symbol: api.symbol.clone(),
        api_calls,
    };
    (of, api_calls)
}

fn of_library(around: &Surroundings<'_>, number: u32) -> (OfLibrary, u64) {
    let Some(object) = around.names.objects.get(number as usize) else {
        let is_recorded = number != UNRECORDED;
        let library = String::new();
        return (OfLibrary { object: None, is_recorded, library, library_calls: 0 }, 0);
    };
    let library_calls = around.by_object[number as usize].calls;
    let library = object.name.clone();
    let of = OfLibrary { object: Some(number), is_recorded: true, library, library_calls };
    (of, library_calls)
}

/// Makes the rows of threads, of sums in the order of their makers: those of a thread come one after another.
struct ByThread<'a> {
    around: &'a Surroundings<'a>,
    names: ThreadNames<'a>,
    rows: Vec<SyscallRow<OfThread>>,
    /// The thread whose sums come, and those that came, by system call.
    thread: Option<(u32, u32, Option<u32>)>,
    sums: BTreeMap<u32, SyscallSums>,
}

impl<'a> ByThread<'a> {
    fn new(around: &'a Surroundings<'a>) -> Self {
        let names = thread_names(around.threads);
        Self { around, names, rows: Vec::new(), thread: None, sums: BTreeMap::new() }
    }

    fn add(&mut self, maker: Maker, sums: SyscallSums) {
        let thread = Some((maker.process, maker.tid, maker.thread));
        if self.thread != thread {
            self.end_thread();
            self.thread = thread;
        }
        match self.sums.entry(maker.number) {
            Entry::Vacant(place) => _ = place.insert(sums),
            Entry::Occupied(mut known) => known.get_mut().add(&sums),
        }
    }

    fn end_thread(&mut self) {
        let Some((process, tid, thread)) = self.thread.take() else { return };
        let name = thread_name(self.around, &self.names, process, thread);
        let of = OfThread { process, tid, thread, name };
        let row = |(number, sums)| SyscallRow::new(of.clone(), number, 0, sums);
        self.rows.extend(take(&mut self.sums).into_iter().map(row));
    }

    fn finish(mut self) -> Vec<SyscallRow<OfThread>> {
        self.end_thread();
        self.rows
    }
}

type ThreadNames<'a> = HashMap<(usize, u32), &'a str>;

fn thread_names(threads: &[ThreadRow]) -> ThreadNames<'_> {
    threads.iter().map(|row| ((row.process, row.thread), &*row.name)).collect()
}

/// Returns a thread's name. A process that is not recorded has no threads, so its name is used.
fn thread_name(
    around: &Surroundings<'_>,
    names: &ThreadNames<'_>,
    process: u32,
    thread: Option<u32>,
) -> Arc<str> {
    let process = process as usize;
    let own = thread.and_then(|thread| names.get(&(process, thread)).copied());
    let of_process = around.processes.get(process).filter(|process| !process.is_recorded);
    own.or(of_process.map(|process| &*process.executable)).unwrap_or_default().into()
}
