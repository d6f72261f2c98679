//! Unnecessarily expensive use of the system: files, names, memory, time.

use std::collections::BTreeMap;

use super::joint::Joint;
use super::{Blame, Evidence, Finding, FindingKind};
use crate::arguments::ArgumentUnit;
use crate::causes::{ALLOCATOR, Purpose};
use crate::clock::Ns;
use crate::rows::ThreadRow;
use crate::syscalls::{OfApi, OfThread, SyscallRow};
use crate::watched::{FileKind, FileUse};

/// Transfers with fewer bytes than this on average are small: those of a page take no longer.
const SMALL_BYTES: f64 = 512.0;
/// Fewer calls are not many.
const MANY_TRANSFERS: u64 = 1_000;
/// Fewer changes of the memory map are no churn.
const MANY_MAPPINGS: u64 = 100;
/// The part of the calls that are of the usual size.
const NEARLY_ALL: f64 = 0.9;

/// `read`, `write` and similar.
const TRANSFERS: &[u32] = &[0, 1, 17, 18, 19, 20, 295, 296, 327, 328];
/// `msync`, `fsync`, `fdatasync`, `sync`, `sync_file_range`, `syncfs`.
const SYNCS: &[u32] = &[26, 74, 75, 162, 277, 306];
/// `mmap`, `munmap`, `brk`, `mremap`, `madvise`.
const MAPPINGS: &[u32] = &[9, 11, 12, 25, 28];
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

/// Returns the number of calls and the time in these system calls, by thread of the analysis; longest first.
pub(super) fn by_thread(evidence: &Evidence<'_>, numbers: &[u32]) -> Vec<(f64, u32, u64)> {
    let mut sums = BTreeMap::<u32, (f64, u64)>::new();
    let number_of = |row: &SyscallRow<OfThread>| {
        let mut all = (0..).zip(&evidence.analysis.threads);
        let is_it = |thread: &ThreadRow| {
            thread.process == row.of.process as usize && Some(thread.thread) == row.of.thread
        };
        all.find(|(_, thread)| is_it(thread)).map(|(number, _)| number)
    };
    let rows = evidence.analysis.syscalls.by_thread.iter();
    for row in rows.filter(|row| numbers.contains(&row.number)) {
        let Some(thread) = number_of(row) else { continue };
        let (ns, calls) = sums.entry(thread).or_default();
        *ns += row.measures.total_ns.as_f64();
        *calls = calls.saturating_add(row.measures.calls);
    }
    let mut sums: Vec<_> =
        sums.into_iter().map(|(thread, (ns, calls))| (ns, thread, calls)).collect();
    sums.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sums
}

/// Returns the API that spends most time in the system calls for which `wanted` is true.
fn longest_api<'e>(
    evidence: &Evidence<'e>,
    wanted: impl Fn(&SyscallRow<OfApi>) -> bool,
) -> Option<&'e SyscallRow<OfApi>> {
    let rows = evidence.analysis.syscalls.by_api.iter();
    rows.filter(|row| wanted(row)).max_by_key(|row| row.measures.total_ns)
}

fn group_of(evidence: &Evidence<'_>, thread: u32) -> Option<u32> {
    evidence.groups.of_thread.get(thread as usize).copied()
}

/// Describes a finding about a file, with where it is used, if threads waited there.
fn of_file(
    evidence: &Evidence<'_>,
    group: u32,
    api: Option<u32>,
    file: Option<&FileUse>,
) -> Option<Blame> {
    let rows = evidence.causes_of(group).filter(|row| row.api == api);
    let waited: Joint<'_> =
        rows.filter(|row| matches!(row.purpose, Purpose::File | Purpose::Sync)).collect();
    let blame = waited.blame();
    if file.is_none() && blame.is_none() {
        return None;
    }
    let blame = blame.unwrap_or_default();
    // If threads waited for it, its path is known.
    let object = blame.object.filter(|_| file.is_none_or(|file| file.kind == FileKind::File));
    let named = matches!(&object, Some(crate::causes::WaitObject::File { name }) if file
        .is_none_or(|file| name.rsplit('/').next() == Some(&*file.name)));
    let object = object.filter(|_| named);
    Some(Blame {
        object,
        file: file.map(|file| file.name.clone()),
        api,
        holder: None,
        waker: None,
        ..blame
    })
}

/// Returns the file for which a group was sampled most in these system calls.
fn file_of<'e>(evidence: &Evidence<'e>, group: u32, numbers: &[u32]) -> Option<&'e FileUse> {
    let mut files = evidence.watched.files.iter();
    files.find(|file| file.group == group && numbers.contains(&file.syscall))
}

/// Finds reads or writes of few bytes at a time.
pub(super) fn small_transfers(evidence: &Evidence<'_>) -> Option<Finding> {
    let is_small = |row: &SyscallRow<OfApi>| {
        let bytes = row.measures.bytes.unwrap_or(u64::MAX) as f64;
        TRANSFERS.contains(&row.number)
            && row.measures.calls >= MANY_TRANSFERS
            && bytes / row.measures.calls as f64 <= SMALL_BYTES
    };
    let rows = evidence.analysis.syscalls.by_api.iter().filter(|row| is_small(row));
    let cpu = |row: &SyscallRow<OfApi>| row.measures.cpu_ns.as_f64();
    let row = rows.max_by(|a, b| cpu(a).total_cmp(&cpu(b)))?;
    let (most_ns, thread, _) = *by_thread(evidence, &[row.number]).first()?;
    let group = group_of(evidence, thread)?;
    let file = file_of(evidence, group, &[row.number])?;
    let saves_ns = cpu(row).min(most_ns);
    let is_file = matches!(file.kind, FileKind::File | FileKind::Pipe);
    if !is_file || !evidence.is_material_to(thread, saves_ns) {
        return None;
    }
    let kind = FindingKind::SmallTransfers {
        syscall: row.syscall.clone(),
        calls: row.measures.calls,
        mean_bytes: row.measures.bytes.unwrap_or(0) as f64 / row.measures.calls as f64,
        usual_bytes: row.of.api.and_then(|api| usual_size(evidence, api)),
        all_ns: row.measures.cpu_ns,
    };
    let finding = evidence.finding(group, vec![thread], row.of.api, saves_ns, kind);
    Some(Finding { blame: of_file(evidence, group, row.of.api, Some(file)), ..finding })
}

/// Returns the size that nearly all calls have as their argument, as the lower bound of a power-of-two range.
fn usual_size(evidence: &Evidence<'_>, api: u32) -> Option<u64> {
    let argument = evidence.analysis.apis[api as usize].argument.as_ref()?;
    let most = argument.sizes.iter().max_by_key(|sizes| sizes.calls)?;
    let is_usual = most.calls as f64 >= NEARLY_ALL * argument.calls as f64;
    (is_usual && argument.unit == ArgumentUnit::Bytes).then_some(most.from)
}

/// Finds files that are repeatedly written to the disk.
pub(super) fn syncing(evidence: &Evidence<'_>) -> Option<Finding> {
    let (saves_ns, thread, calls) = *by_thread(evidence, SYNCS).first()?;
    let row = longest_api(evidence, |row| SYNCS.contains(&row.number))?;
    let group = group_of(evidence, thread)?;
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::Syncing { calls, all_ns: row.measures.total_ns };
    let finding = evidence.finding(group, vec![thread], row.of.api, saves_ns, kind);
    let waited = evidence.causes_of(group).any(|row| row.purpose == Purpose::Sync);
    let file = file_of(evidence, group, SYNCS).filter(|_| !waited);
    Some(Finding { blame: of_file(evidence, group, row.of.api, file), ..finding })
}

/// Returns the thread that spends most time in calls of these functions: the time, the thread, the function and its
/// calls.
fn longest_in(evidence: &Evidence<'_>, names: &[&str]) -> Option<(f64, u32, u32, u64)> {
    let threads = (0..).zip(&evidence.analysis.threads);
    let calls = threads.flat_map(|(number, thread)| {
        let wanted =
            thread.apis.iter().filter(|row| names.contains(&symbol(evidence, Some(row.api))));
        wanted.map(move |row| (row.total_ns.as_f64(), number, row.api, row.calls))
    });
    calls.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Finds slow look-ups of host names.
pub(super) fn name_resolution(evidence: &Evidence<'_>) -> Option<Finding> {
    let (saves_ns, thread, api, calls) = longest_in(evidence, RESOLVERS)?;
    let group = group_of(evidence, thread)?;
    if !evidence.is_material(saves_ns) {
        return None;
    }
    let kind = FindingKind::NameResolution { calls, all_ns: Ns::from_f64(saves_ns) };
    let finding = evidence.finding(group, vec![thread], Some(api), saves_ns, kind);
    let waited: Joint<'_> = evidence.causes_of(group).filter(|row| row.api == Some(api)).collect();
    let blame = waited.blame().map(|blame| Blame { holder: None, waker: None, ..blame });
    Some(Finding { blame, ..finding })
}

/// Finds libraries that take long to load while the program runs.
pub(super) fn loading(evidence: &Evidence<'_>) -> Option<Finding> {
    let (saves_ns, thread, api, calls) = longest_in(evidence, LOADERS)?;
    let group = group_of(evidence, thread)?;
    if !evidence.is_material(saves_ns) {
        return None;
    }
    // What runs inside belongs to the library whose constructors call it.
    let contexts = &evidence.analysis.contexts;
    let mut callers = BTreeMap::<u32, u64>::new();
    let is_loader = |parent: Option<u32>| {
        parent.is_some_and(|parent| {
            LOADERS.contains(&symbol(evidence, Some(contexts[parent as usize].api)))
        })
    };
    for row in contexts.iter().filter(|row| is_loader(row.parent)) {
        let sum = callers.entry(row.caller).or_default();
        *sum = sum.saturating_add(row.measures.total_ns.0);
    }
    let library = callers.into_iter().max_by_key(|&(_, ns)| ns).map(|(object, _)| object);
    let kind = FindingKind::SlowLoading { calls, all_ns: Ns::from_f64(saves_ns), library };
    Some(evidence.finding(group, vec![thread], Some(api), saves_ns, kind))
}

/// Finds memory that is mapped and unmapped again and again.
pub(super) fn mapping_churn(evidence: &Evidence<'_>) -> Option<Finding> {
    let (saves_ns, thread, calls) = *by_thread(evidence, MAPPINGS).first()?;
    let group = group_of(evidence, thread)?;
    if calls < MANY_MAPPINGS || !evidence.is_material_to(thread, saves_ns) {
        return None;
    }
    let wanted = |row: &SyscallRow<OfApi>| {
        let name = symbol(evidence, row.of.api);
        let hands_out = ALLOCATOR.iter().any(|known| known.trim_start_matches('_') == name);
        MAPPINGS.contains(&row.number)
            && (hands_out || ["mmap", "mmap64", "munmap", "madvise"].contains(&name))
    };
    let api = longest_api(evidence, wanted)?.of.api;
    let kind = FindingKind::MappingChurn { calls, all_ns: Ns::from_f64(saves_ns) };
    Some(evidence.finding(group, vec![thread], api, saves_ns, kind))
}
