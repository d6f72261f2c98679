//! Reads and writes of few bytes at a time.

use super::{Blame, Evidence, Finding, FindingKind, again, behind, files, uses};
use crate::arguments::ArgumentUnit;
use crate::clock::Ns;
use crate::packed::ThreadApi;
use crate::watched::FileKind;

/// Transfers with fewer bytes than this on average are small: those of a page take no longer.
const SMALL_BYTES: f64 = 512.0;
/// Fewer calls are not many.
const MANY: u64 = 1_000;
/// The part of the calls that ask for the usual size.
const NEARLY_ALL: f64 = 0.9;

/// Messages are as long as they are: only smaller ones are taken for parts of some.
const TINY_BYTES: f64 = 16.0;
/// There are this many times as many transfers on a connection as waits for something to arrive there: one message is received, or
/// sent, in many parts.
const PARTS: u64 = 10;

/// Where there are fewer transfers for each file that is opened, the files are small, not the pieces of them.
const PIECES: u64 = 2;

/// `read`, `write` and similar.
const TRANSFERS: &[u32] = &[0, 1, 17, 18, 19, 20, 295, 296, 327, 328];
/// `sendto`, `recvfrom`, `sendmsg`, `recvmsg`.
const ON_CONNECTIONS: &[u32] = &[44, 45, 46, 47];
/// Those that send.
const SENDS: &[u32] = &[1, 20, 44, 46];
/// Those that receive.
const RECEIVES: &[u32] = &[0, 19, 45, 47];

/// Finds reads or writes of few bytes at a time, by the functions of the group that makes most of them: a stream without a buffer
/// writes in each function that prints to it.
pub(super) fn small(evidence: &Evidence<'_>) -> Vec<Finding> {
    let numbers = [TRANSFERS, ON_CONNECTIONS].concat();
    let all = uses::of_system_calls(evidence, &numbers);
    let opens = uses::of_system_calls(evidence, again::OPENS);
    let sampled = files::Sampled::new(evidence);
    // A thread that copies from a file to a connection makes other calls on the one than on the other; and threads of one group, as
    // those of two processes with the same program, need not use the same files.
    let kinds = [FileKind::File, FileKind::Pipe, FileKind::Socket].into_iter().flat_map(|kind| {
        let is_of = |thread: u32, api: Option<u32>, number: u32| {
            if ON_CONNECTIONS.contains(&number) {
                return kind == FileKind::Socket;
            }
            sampled.is_of(thread, api, number, kind)
        };
        let of_kind = uses::of_threads(evidence, &numbers, &is_of);
        of_kind.into_iter().map(move |one| (one, kind))
    });
    let mut wanted: Vec<(uses::Use<'_>, FileKind)> = kinds
        .filter(|(one, kind)| {
            let is_small = one.mean_bytes().is_some_and(|bytes| bytes <= SMALL_BYTES);
            let is_piece = || match kind {
                FileKind::File => is_piece_of_file(one, &opens),
                FileKind::Socket => is_part_of_messages(evidence, one, &all),
                _ => true,
            };
            one.calls >= MANY && is_small && is_piece()
        })
        .collect();
    wanted.sort_by(|(a, _), (b, _)| b.cpu_ns.total_cmp(&a.cpu_ns));
    let most = wanted.first().map(|(one, _)| one.group);
    let of_most = wanted.iter().filter(|(one, _)| Some(one.group) == most);
    of_most.filter_map(|(one, kind)| of_function(evidence, one, *kind)).collect()
}

/// Those of a group in a function, if they take long enough.
fn of_function(evidence: &Evidence<'_>, one: &uses::Use<'_>, kind: FileKind) -> Option<Finding> {
    let by_thread = whole_calls(evidence, one);
    let (thread, saves_ns) = behind::gains_most(evidence, (one.group, one.api), &by_thread)?;
    if !evidence.is_material_to(thread, saves_ns) {
        return None;
    }
    let threads: Vec<u32> = one.threads.iter().map(|&(thread, ..)| thread).collect();
    let (file, several) = files::only_one(evidence, (&threads, one.api, one.number), kind);
    let waits = |row: &_| files::is_transfer(row, &[one.number]);
    let rows = evidence.causes_of(one.group).filter(|row| row.api == one.api && waits(row));
    let of_first = files::Files::from_waits(rows).of_first();
    let several = several || file.is_none() && of_first.is_some_and(|part| part < NEARLY_ALL);
    let found = FindingKind::SmallTransfers {
        syscall: one.syscall.to_owned(),
        calls: one.calls,
        mean_bytes: one.mean_bytes()?,
        usual_bytes: one.api.and_then(|api| usual_size(evidence, api)),
        all_ns: Ns::from_f64(by_thread.iter().map(|(_, ns)| ns).sum::<f64>().max(one.cpu_ns)),
        of: kind,
        several,
    };
    let finding = evidence.finding(one.group, vec![thread], one.api, saves_ns, found);
    let blame = files::of_file(evidence, (one.group, one.api), file, waits);
    // Of several files, none is the one.
    let blame = blame.map(|blame| match several {
        true => Blame { object: None, file: None, ..blame },
        false => blame,
    });
    Some(Finding { blame, ..finding })
}

/// The time of each thread on the CPU in calls of the function, if these do nothing but transfer, or else in the system calls alone: to get
/// into the kernel and back is in no system call, and goes with it.
fn whole_calls(evidence: &Evidence<'_>, one: &uses::Use<'_>) -> Vec<(u32, f64)> {
    let of_function = |thread: u32| {
        let apis = &evidence.analysis.threads[thread as usize].apis;
        apis.iter().find(|row| Some(row.api) == one.api)
    };
    let own = |&(thread, _, cpu_ns): &(u32, f64, f64)| (thread, cpu_ns, of_function(thread));
    let threads: Vec<_> = one.threads.iter().map(own).collect();
    let calls = threads.iter().filter_map(|(.., row)| row.as_ref());
    let calls = calls.fold(0, |sum: u64, row| sum.saturating_add(row.calls));
    let are_all = one.calls as f64 >= NEARLY_ALL * calls as f64;
    let whole = |(thread, cpu_ns, row): (u32, f64, Option<ThreadApi>)| {
        let row = row.filter(|_| are_all);
        let off_ns = |row: &ThreadApi| row.wait_ns.0.saturating_add(row.preempted_ns.0);
        let ns = row.map_or(0, |row| row.self_ns.0.saturating_sub(off_ns(&row)));
        (thread, Ns(ns).as_f64().max(cpu_ns))
    };
    threads.into_iter().map(whole).collect()
}

/// Whether the files that the group opens are transferred in pieces.
fn is_piece_of_file(one: &uses::Use<'_>, opens: &[uses::Use<'_>]) -> bool {
    let own = opens.iter().filter(|open| open.group == one.group);
    let opened = own.map(|open| open.calls.saturating_sub(open.errors));
    one.calls >= PIECES.saturating_mul(opened.fold(0, u64::saturating_add))
}

/// Whether a connection's messages are transferred in many parts. A receiver asks for few bytes, which are mostly there already; what
/// arrives may be short, whatever it asks for. A sender hardly ever receives in between: what it sends are no answers.
fn is_part_of_messages(
    evidence: &Evidence<'_>,
    one: &uses::Use<'_>,
    all: &[uses::Use<'_>],
) -> bool {
    let sum = |sum: u64, more: u64| sum.saturating_add(more);
    let (is_part, messages) = if SENDS.contains(&one.number) {
        let is_received = |other: &&uses::Use<'_>| RECEIVES.contains(&other.number);
        let own = all.iter().filter(|other| other.group == one.group).filter(is_received);
        let is_tiny = one.mean_bytes().is_some_and(|bytes| bytes <= TINY_BYTES);
        (is_tiny, own.map(|other| other.calls).fold(0, sum))
    } else {
        let usual = one.api.and_then(|api| usual_size(evidence, api));
        let waits = evidence.causes_of(one.group).filter(|row| row.syscall == Some(one.number));
        let asks_for_few = usual.is_some_and(|bytes| (bytes as f64) < SMALL_BYTES);
        (asks_for_few, waits.map(|row| row.waits).fold(0, sum))
    };
    is_part && one.calls >= PARTS.saturating_mul(messages)
}

/// Returns the size that nearly all calls have as their argument, as the lower bound of a power-of-two range.
fn usual_size(evidence: &Evidence<'_>, api: u32) -> Option<u64> {
    let argument = evidence.analysis.apis[api as usize].argument.as_ref()?;
    let most = argument.sizes.iter().max_by_key(|sizes| sizes.calls)?;
    let is_usual = most.calls as f64 >= NEARLY_ALL * argument.calls as f64;
    (is_usual && argument.unit == ArgumentUnit::Bytes).then_some(most.from)
}
