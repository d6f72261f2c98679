//! Unnecessarily expensive use of the system: files, names, memory, time.

use std::collections::{BTreeMap, HashMap};

use super::joint::Joint;
use super::{Blame, Evidence, Finding, FindingKind, uses};
use crate::causes::ALLOCATOR;
use crate::clock::Ns;
use crate::evidence::NORMAL_95;
use crate::overhead::OWN;
use crate::syscalls::{OfApi, SyscallMeasures, SyscallRow};

/// Fewer changes of the memory map are no churn.
const MANY_MAPPINGS: u64 = 100;
/// Memory is given back so often per second on the processor that its pages are mostly given back, too. (An interpreter that has
/// done with its objects gives back less.)
const OFTEN_GIVEN_BACK: f64 = 300.0;
/// Nor are fewer pieces of memory that are given back, if each is large,
const MANY_LARGE: u64 = 20;
/// which takes the kernel so long: a thousand pages or more.
const LARGE_NS: f64 = 500e3;
/// To give a page to a program (and to clear it) takes the kernel at most so many times as long as to take it back. More is for
/// other pages.
const FAULT_PER_PAGE: f64 = 10.0;
/// `mmap`, `munmap`, `brk`, `mremap`, `madvise`.
const MAPPINGS: &[u32] = &[9, 11, 12, 25, 28];
/// `munmap` and `madvise`: by `brk`, memory is taken and given back.
const GIVE_BACK: &[u32] = &[11, 28];
/// Functions that do nothing else than one of these system calls.
const MAPPERS: &[&str] = &["mmap", "mmap64", "munmap", "madvise"];
const RESOLVERS: &[&str] = &[
    "getaddrinfo",
    "gethostbyname",
    "gethostbyname2",
    "gethostbyname_r",
    "gethostbyname2_r",
    "gethostbyaddr",
    "gethostbyaddr_r",
    "getnameinfo",
    "res_query",
    "res_search",
];
const LOADERS: &[&str] = &["dlopen", "dlmopen"];

pub(super) fn symbol<'e>(evidence: &Evidence<'e>, api: Option<u32>) -> &'e str {
    let symbol = api.map_or("", |api| &*evidence.analysis.apis[api as usize].symbol);
    symbol.trim_start_matches('_')
}

/// Threads by process and number there.
pub(super) fn numbers(evidence: &Evidence<'_>) -> HashMap<(usize, u32), u32> {
    let all = (0..).zip(&evidence.analysis.threads);
    all.map(|(number, row)| ((row.process, row.thread), number)).collect()
}

/// Returns the number of calls and the time in these system calls, by thread of the analysis; longest first.
pub(super) fn by_thread(evidence: &Evidence<'_>, numbers: &[u32]) -> Vec<(f64, u32, u64)> {
    by_thread_of(evidence, numbers, |measures| measures.total_ns)
}

/// The same, of another time than all of it.
fn by_thread_of(
    evidence: &Evidence<'_>,
    numbers: &[u32],
    time: fn(&SyscallMeasures) -> Ns,
) -> Vec<(f64, u32, u64)> {
    let of_threads = self::numbers(evidence);
    let mut sums = BTreeMap::<u32, (f64, u64)>::new();
    let rows = evidence.analysis.syscalls.by_thread.iter();
    for row in rows.filter(|row| numbers.contains(&row.number)) {
        let key = row.of.thread.map(|thread| (row.of.process as usize, thread));
        let Some(&thread) = key.and_then(|key| of_threads.get(&key)) else { continue };
        let (ns, calls) = sums.entry(thread).or_default();
        *ns += time(&row.measures).as_f64();
        *calls = calls.saturating_add(row.measures.calls);
    }
    let mut sums: Vec<_> =
        sums.into_iter().map(|(thread, (ns, calls))| (ns, thread, calls)).collect();
    sums.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sums
}

/// Returns what the kernel did for each thread beside its system calls, by samples, as far as it is beyond their error: page faults.
/// (Interrupts are there too, and hardly seen.) Those of chase's own memory are not the program's. With what is the least by samples.
fn faults_ns(evidence: &Evidence<'_>) -> HashMap<u32, (f64, f64)> {
    let numbers = numbers(evidence);
    // Time in the kernel, samples of that, and time in system calls.
    let mut sums: HashMap<u32, (f64, u64, f64)> = HashMap::new();
    let is_own = |object: u32| {
        evidence.analysis.objects.get(object as usize).is_some_and(|object| object.name == OWN)
    };
    let sampled = evidence.analysis.on_cpu.of_threads.iter();
    for sampled in sampled.filter(|row| !is_own(row.object)) {
        let Some(&thread) = numbers.get(&(sampled.process as usize, sampled.thread)) else {
            continue;
        };
        let (kernel_ns, samples, _) = sums.entry(thread).or_default();
        *kernel_ns += sampled.kernel_ns.as_f64();
        *samples = samples.saturating_add(sampled.kernel_samples);
    }
    for call in &evidence.analysis.syscalls.by_thread {
        let key = call.of.thread.map(|thread| (call.of.process as usize, thread));
        if let Some(&thread) = key.and_then(|key| numbers.get(&key)) {
            sums.entry(thread).or_default().2 += call.measures.cpu_ns.as_f64();
        }
    }
    let beyond = |(thread, (kernel_ns, samples, in_calls)): (u32, (f64, u64, f64))| {
        let found = kernel_ns - in_calls;
        let error = NORMAL_95 * kernel_ns / (samples.max(1) as f64).sqrt();
        (found > error).then_some((thread, (found, found - error)))
    };
    sums.into_iter().filter_map(beyond).collect()
}

/// Returns the API that spends most time in the system calls for which `wanted` is true, all of them together.
fn longest_api(
    evidence: &Evidence<'_>,
    wanted: impl Fn(&SyscallRow<OfApi>) -> bool,
) -> Option<u32> {
    let mut sums = BTreeMap::<u32, u64>::new();
    for row in evidence.analysis.syscalls.by_api.iter().filter(|row| wanted(row)) {
        if let Some(api) = row.of.api {
            let sum = sums.entry(api).or_default();
            *sum = sum.saturating_add(row.measures.total_ns.0);
        }
    }
    sums.into_iter().max_by_key(|&(api, ns)| (ns, std::cmp::Reverse(api))).map(|(api, _)| api)
}

fn group_of(evidence: &Evidence<'_>, thread: u32) -> Option<u32> {
    evidence.groups.of_thread.get(thread as usize).copied()
}

/// Calls of a function by the threads of a group.
struct Calls {
    group: u32,
    api: u32,
    /// The thread that spends most time in them, and that time.
    thread: u32,
    saves_ns: f64,
    /// Calls and time of all threads of the group.
    calls: u64,
    all_ns: f64,
}

/// Returns the calls of the group with the thread that spends most time in one of these functions.
fn longest_in(evidence: &Evidence<'_>, names: &[&str]) -> Option<Calls> {
    let threads = (0..).zip(&evidence.analysis.threads);
    let times = threads.flat_map(|(number, thread)| {
        let wanted =
            thread.apis.iter().filter(|row| names.contains(&symbol(evidence, Some(row.api))));
        wanted.map(move |row| (row.total_ns.as_f64(), number, row.api))
    });
    let (saves_ns, thread, api) = times.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let group = group_of(evidence, thread)?;
    let (mut calls, mut all_ns) = (0_u64, 0.0);
    for row in evidence.groups.threads(evidence.analysis, &evidence.groups.rows[group as usize]) {
        for row in row.apis.iter().filter(|row| row.api == api) {
            calls = calls.saturating_add(row.calls);
            all_ns += row.total_ns.as_f64();
        }
    }
    Some(Calls { group, api, thread, saves_ns, calls, all_ns })
}

/// Finds slow look-ups of host names.
pub(super) fn name_resolution(evidence: &Evidence<'_>) -> Option<Finding> {
    let Calls { group, api, thread, saves_ns, calls, all_ns } = longest_in(evidence, RESOLVERS)?;
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::NameResolution { calls, all_ns: Ns::from_f64(all_ns) };
    let finding = evidence.finding(group, vec![thread], Some(api), saves_ns, kind);
    let waited: Joint<'_> = evidence.causes_of(group).filter(|row| row.api == Some(api)).collect();
    let blame = waited.blame().map(|blame| Blame { holder: None, waker: None, ..blame });
    Some(Finding { blame, ..finding })
}

/// Whether a function loads libraries.
pub(super) fn is_loader(evidence: &Evidence<'_>, api: u32) -> bool {
    LOADERS.contains(&symbol(evidence, Some(api)))
}

/// Finds libraries that take long to load while the program runs.
pub(super) fn loading(evidence: &Evidence<'_>) -> Option<Finding> {
    let Calls { group, api, thread, saves_ns, calls, all_ns } = longest_in(evidence, LOADERS)?;
    if !evidence.is_material(saves_ns) {
        return None;
    }
    // What runs inside belongs to the library whose constructors call it. (What they run themselves is not told apart from the
    // loader's work.)
    let contexts = &evidence.analysis.contexts;
    let mut callers = BTreeMap::<u32, u64>::new();
    let is_inside = |parent: Option<u32>| {
        parent.is_some_and(|parent| is_loader(evidence, contexts[parent as usize].api))
    };
    for row in contexts.iter().filter(|row| is_inside(row.parent)) {
        let sum = callers.entry(row.caller).or_default();
        *sum = sum.saturating_add(row.measures.total_ns.0);
    }
    let longest = callers.into_iter().max_by_key(|&(_, ns)| ns);
    let library = longest.filter(|&(_, ns)| ns as f64 >= all_ns / 2.0).map(|(object, _)| object);
    let kind = FindingKind::SlowLoading { calls, all_ns: Ns::from_f64(all_ns), library };
    Some(evidence.finding(group, vec![thread], Some(api), saves_ns, kind))
}

/// Whether at least half of the calls of a function map or unmap memory.
pub(super) fn maps_mostly(evidence: &Evidence<'_>, api: u32) -> bool {
    let rows = evidence.analysis.syscalls.by_api.iter();
    let rows = rows.filter(|row| row.of.api == Some(api) && MAPPINGS.contains(&row.number));
    let (mut made, mut calls) = (0_u64, 0_u64);
    for row in rows {
        made = made.saturating_add(row.measures.calls);
        calls = row.of.api_calls;
    }
    made > 0 && made >= calls / 2
}

/// Returns how long a thread waits in functions that do nothing else than map memory, or give it back: for other threads that do
/// that. (In an allocator it waits for its locks, too.)
fn waits_of_mappers(evidence: &Evidence<'_>, thread: u32) -> f64 {
    let rows = evidence.analysis.threads[thread as usize].apis.iter();
    let rows = rows.filter(|row| MAPPERS.contains(&symbol(evidence, Some(row.api))));
    rows.map(|row| row.wait_ns.as_f64()).sum()
}

/// Finds memory that is mapped and unmapped again and again.
pub(super) fn mapping_churn(evidence: &Evidence<'_>) -> Option<Finding> {
    // (On a crowded machine, others have the processor within these calls as elsewhere.)
    let mut of_threads = by_thread_of(evidence, MAPPINGS, |measures| measures.cpu_ns);
    for (ns, thread, _) in &mut of_threads {
        *ns += waits_of_mappers(evidence, *thread);
    }
    let given_back: HashMap<u32, (f64, u64)> =
        by_thread_of(evidence, GIVE_BACK, |measures| measures.cpu_ns)
            .into_iter()
            .map(|(ns, thread, calls)| (thread, (ns, calls)))
            .collect();
    let gives_large = |thread: u32| {
        let (ns, calls) = given_back.get(&thread).copied().unwrap_or_default();
        calls >= MANY_LARGE && ns >= LARGE_NS * calls as f64
    };
    let faults = faults_ns(evidence);
    // Who gives much back, and takes it again, has the kernel give it new pages each time.
    let faults = |thread: u32, calls: u64| {
        let (ns, gives_back) = given_back.get(&thread).copied().unwrap_or_default();
        let ran = evidence.analysis.threads[thread as usize].on_cpu_ns.unwrap_or_default();
        let is_often = gives_back >= MANY_MAPPINGS / 2
            && gives_back as f64 * 1e9 >= OFTEN_GIVEN_BACK * ran.as_f64();
        let is_churn = gives_back >= calls.div_ceil(4) && (is_often || gives_large(thread));
        let found = faults.get(&thread).copied().filter(|_| is_churn);
        let (about, least) = found.unwrap_or_default();
        let most = if is_often { f64::INFINITY } else { FAULT_PER_PAGE * ns };
        (about.min(most), least.min(most))
    };
    let all = |row: &(f64, u32, u64)| row.0 + faults(row.1, row.2).0;
    let longest = of_threads.iter().max_by(|a, b| all(a).total_cmp(&all(b)))?;
    let (saves_ns, &(ns, thread, own_calls)) = (all(longest), longest);
    let group = group_of(evidence, thread)?;
    let is_much = own_calls >= MANY_MAPPINGS || gives_large(thread);
    let at_least = ns + faults(thread, own_calls).1;
    if !is_much || !evidence.is_material_to(thread, at_least) {
        return None;
    }
    let wanted = |row: &SyscallRow<OfApi>| {
        let name = symbol(evidence, row.of.api);
        let hands_out = ALLOCATOR.iter().any(|known| known.trim_start_matches('_') == name);
        MAPPINGS.contains(&row.number)
            && uses::calls(evidence, thread, row.of.api)
            && (hands_out || MAPPERS.contains(&name))
    };
    let api = longest_api(evidence, wanted)?;
    let of_group = of_threads.iter().filter(|row| group_of(evidence, row.1) == Some(group));
    let (mut calls, mut all_ns, mut faults_ns) = (0_u64, 0.0, 0.0);
    for &(ns, thread, of_thread) in of_group {
        calls = calls.saturating_add(of_thread);
        all_ns += ns;
        faults_ns += faults(thread, of_thread).0;
    }
    let kind = FindingKind::MappingChurn {
        // What a program maps itself may be files, which is not recorded.
        by_allocator: !MAPPERS.contains(&symbol(evidence, Some(api))),
        calls,
        all_ns: Ns::from_f64(all_ns),
        faults_ns: Ns::from_f64(faults_ns),
    };
    Some(evidence.finding(group, vec![thread], Some(api), saves_ns, kind))
}
