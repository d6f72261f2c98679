//! Files that are opened, asked about, or looked for again and again, although they are the same ones.
//!
//! No single path is recorded, so what is looked up is told in three ways. Samples in reads and writes name the file: where nearly
//! nothing else is read, what is opened so often is that file. Long calls keep the path that they were passed: which calls take
//! long is chance where all do the same, so they stand for all of them. And functions of the C library that convert times ask about
//! one file only.

use std::collections::BTreeMap;

use super::system::symbol;
use super::uses::{self, Use};
use super::{Blame, Evidence, Finding, FindingKind, anew};
use crate::clock::Ns;
use crate::rows::ApiRow;
use crate::syscalls::{OfApi, SyscallRow};
use crate::texts::TextRow;
use crate::watched::{FileKind, FileUse};

/// `open`, `openat`, `openat2`.
pub(super) const OPENS: &[u32] = &[2, 257, 437];
/// `stat`, `lstat`, `access`, `readlink`, `newfstatat`, `readlinkat`, `faccessat`, `statx`, `faccessat2`.
const ASKS: &[u32] = &[4, 6, 21, 89, 262, 267, 269, 332, 439];
/// `read`, `write`, `pread64`, `pwrite64`, `readv`, `writev`.
const TRANSFERS: &[u32] = &[0, 1, 17, 18, 19, 20];
/// Those that read. (What is written is to be written in any case.)
const READS: &[u32] = &[0, 17, 19];
const CLOSE: &[u32] = &[3];
/// `rename`, `unlink`, `unlinkat`, `renameat`, `renameat2`.
const REPLACE: &[u32] = &[82, 87, 263, 264, 316];

/// Fewer look-ups by a thread are not many.
const MANY: f64 = 100.0;
/// At least so many long calls say which file it is, and each file is in so many of them on average: of different files, each would
/// be in about one.
const SEEN: u64 = 3;
/// The part of the long calls of which the file is not told.
const FEW_OTHERS: f64 = 0.1;
/// Where long calls take this part of the time of all, they may be of a slow file, and say nothing of the other calls; unless nearly all
/// that is read, or written, is in that file.
const MOST_TIME: f64 = 0.5;
/// At least so many samples say which file is read, or written.
const SAMPLES: u64 = 10;
/// What none of a number of samples has shown is, with a confidence of 95 %, less than this, divided by their number.
const UNSEEN: f64 = 3.0;
/// Had other files been opened, each would be read at least once: there are fewer reads of others than this part of what is opened.
const OF_OTHERS: f64 = 0.2;
/// Reads take about the same time each, so that samples of them stand for their number.
const EVEN: f64 = 4.0;
/// Where for each file that is opened this part is renamed or removed, each is another one with the same name.
const REPLACED: f64 = 0.5;
/// The part of the look-ups that fail.
const NEARLY_ALL: f64 = 0.9;

/// The file that tells the local time, and the functions that ask each time whether it is still the same, unless `TZ` is set.
const LOCAL_TIME: &str = "/etc/localtime";
const CONVERT_TIMES: &[&str] = &[
    "tzset",
    "localtime",
    "localtime_r",
    "ctime",
    "ctime_r",
    "mktime",
    "timelocal",
    "strftime",
    "strftime_l",
    "wcsftime",
    "wcsftime_l",
];

/// Functions that look up names beside a directory that they are given, and those that change the one for all others.
const BESIDE: &[&str] = &[
    "openat",
    "openat64",
    "openat_2",
    "openat64_2",
    "fstatat",
    "fstatat64",
    "fxstatat",
    "fxstatat64",
    "statx",
    "faccessat",
    "readlinkat",
];
const CHANGE: &[&str] = &["chdir", "fchdir"];

/// What is looked up.
struct Target {
    /// With its directory, if that is known.
    name: String,
    /// The part of the look-ups that it has.
    share: f64,
    /// How many other files there are, in turns with it.
    others: usize,
}

/// The look-ups of one file by the threads of a group.
#[derive(Default)]
struct LookUps<'u, 'e> {
    name: String,
    others: usize,
    /// With the part that is of this file.
    uses: Vec<(&'u Use<'e>, f64)>,
}

/// System calls of all groups that tell what look-ups are for.
struct Beside<'u, 'e> {
    transfers: &'u [Use<'e>],
    closes: &'u [Use<'e>],
    /// Those that give a file another one's name.
    replaced: &'u [Use<'e>],
}

/// Finds files that threads look up again and again.
pub(super) fn looked_up(evidence: &Evidence<'_>) -> Vec<Finding> {
    let lookups = uses::of_system_calls(evidence, &[OPENS, ASKS].concat());
    let transfers = uses::of_system_calls(evidence, TRANSFERS);
    let closes = uses::of_system_calls(evidence, CLOSE);
    let mut by_file: BTreeMap<(u32, String), LookUps<'_, '_>> = BTreeMap::new();
    for one in &lookups {
        let Some(target) = target(evidence, one, &lookups, &transfers) else { continue };
        let short = target.name.rsplit('/').next().unwrap_or_default().to_owned();
        let all = by_file.entry((one.group, short)).or_default();
        if target.name.len() > all.name.len() {
            (all.name, all.others) = (target.name, target.others);
        }
        all.uses.push((one, target.share));
    }
    let files = by_file.into_values();
    let replaced = uses::of_system_calls(evidence, REPLACE);
    let beside = Beside { transfers: &transfers, closes: &closes, replaced: &replaced };
    files.filter_map(|file| finding(evidence, file, &beside)).collect()
}

/// Which file these system calls look up, if nearly all of them look up the same.
fn target(
    evidence: &Evidence<'_>,
    one: &Use<'_>,
    lookups: &[Use<'_>],
    transfers: &[Use<'_>],
) -> Option<Target> {
    let api = one.api?;
    let name = symbol(evidence, Some(api));
    // What prepares something is told as such.
    if anew::prepared(name).is_some() {
        return None;
    }
    if CONVERT_TIMES.contains(&name) && ASKS.contains(&one.number) {
        return Some(Target { name: LOCAL_TIME.to_owned(), share: 1.0, others: 0 });
    }
    let row = &evidence.analysis.apis[api as usize];
    let told = || {
        let told = by_long_calls(&row.texts);
        told.filter(|told| is_whole(evidence, one, &told.name))
    };
    let is_by_chance = || are_long_by_chance(row);
    let is_in_vain = one.errors as f64 >= NEARLY_ALL * one.calls as f64;
    if !OPENS.contains(&one.number) || is_in_vain {
        return told().filter(|_| is_by_chance());
    }
    match by_samples(evidence, one.group, lookups, transfers) {
        Some((name, share)) => {
            // With the path that a long call was passed, if there is only one that ends like this.
            let paths = row.texts.iter().filter_map(|row| row.text.as_deref());
            let mut paths = paths.filter(|path| path.rsplit('/').next() == Some(name));
            let path = paths.next().filter(|_| paths.next().is_none());
            Some(Target { name: path.unwrap_or(name).to_owned(), share, others: 0 })
        }
        None => told().filter(|told| match part_of_samples(evidence, one.group, &told.name) {
            Some(0.0) => false,
            Some(part) if part >= NEARLY_ALL => true,
            _ => is_by_chance(),
        }),
    }
}

/// Whether a path means the same file each time: it does not depend on the directory that the function is given, or that the threads
/// change to.
fn is_whole(evidence: &Evidence<'_>, one: &Use<'_>, path: &str) -> bool {
    let changes = |thread: u32| {
        let apis = evidence.analysis.threads[thread as usize].apis.iter();
        let changes = apis.filter(|row| CHANGE.contains(&symbol(evidence, Some(row.api))));
        changes.map(|row| row.calls).fold(0, u64::saturating_add)
    };
    path.starts_with(['/', '…'])
        || !BESIDE.contains(&symbol(evidence, one.api))
            && one.threads.iter().all(|&(thread, ..)| changes(thread) <= SEEN)
}

/// The file that the long calls of a function were passed.
fn by_long_calls(texts: &[TextRow]) -> Option<Target> {
    let sum = |rows: &mut dyn Iterator<Item = &TextRow>| {
        rows.fold(0_u64, |sum, row| sum.saturating_add(row.calls))
    };
    let long = sum(&mut texts.iter());
    let untold = sum(&mut texts.iter().filter(|row| row.text.is_none()));
    let named = || texts.iter().filter_map(|row| Some((row.text.as_deref()?, row.calls)));
    let files = named().count();
    let (name, of_first) = named().max_by_key(|&(_, calls)| calls)?;
    let is_same =
        long >= SEEN.saturating_mul(files as u64) && untold as f64 <= FEW_OTHERS * long as f64;
    let share = (long - untold) as f64 / long.max(1) as f64;
    (is_same && of_first > 0).then(|| Target { name: name.to_owned(), share, others: files - 1 })
}

/// Whether calls of a function are long by chance, or most of them are: then, the long ones stand for all.
fn are_long_by_chance(row: &ApiRow) -> bool {
    let long_ns: f64 = row.texts.iter().map(|text| text.total_ns.as_f64()).sum();
    // On a busy machine, many are long because others have the processor, which says nothing of the file.
    let others_ns = row.measures.preempted_ns.map_or(0.0, Ns::as_f64);
    let long = row.texts.iter().fold(0, |sum: u64, text| sum.saturating_add(text.calls));
    long_ns - others_ns < MOST_TIME * (row.measures.total_ns.as_f64() - others_ns)
        || long.saturating_mul(2) >= row.measures.calls
}

/// The part of the samples in reads and writes of files that is in one of this name, if there are enough to tell.
fn part_of_samples(evidence: &Evidence<'_>, group: u32, name: &str) -> Option<f64> {
    let short = name.rsplit('/').next();
    let (mut own, mut all) = (0_u64, 0_u64);
    let is_file = |file: &&FileUse| matches!(file.kind, FileKind::File | FileKind::Device);
    let files = evidence.watched.files.iter().filter(is_file);
    let of_group = files.filter(|file| file.group == group && TRANSFERS.contains(&file.syscall));
    for file in of_group {
        all = all.saturating_add(file.samples);
        if Some(&*file.name) == short {
            own = own.saturating_add(file.of_one);
        }
    }
    (all >= SAMPLES).then(|| own as f64 / all as f64)
}

/// The file that a group opens, if that is the one that it reads or writes all the time; and its part of what is opened.
fn by_samples<'e>(
    evidence: &Evidence<'e>,
    group: u32,
    lookups: &[Use<'_>],
    transfers: &[Use<'_>],
) -> Option<(&'e str, f64)> {
    let is_transfer = |file: &&FileUse| file.group == group && TRANSFERS.contains(&file.syscall);
    let files = || evidence.watched.files.iter().filter(is_transfer);
    let first = files().find(|file| matches!(file.kind, FileKind::File | FileKind::Device))?;
    let alike = |file: &&FileUse| (file.api, file.syscall) == (first.api, first.syscall);
    let samples = files().filter(alike).fold(0_u64, |sum, file| sum.saturating_add(file.samples));
    let same = first.of_one;
    let calls = transfers
        .iter()
        .find(|one| (one.group, one.api, one.number) == (group, first.api, first.syscall))?;
    let opens = lookups.iter().filter(|one| one.group == group && OPENS.contains(&one.number));
    let opened = opens
        .fold(0_u64, |sum, one| sum.saturating_add(one.calls.saturating_sub(one.errors)))
        as f64;
    let transferred = calls.calls as f64;
    let of_others = (samples.saturating_sub(same) as f64 + UNSEEN) / samples.max(1) as f64;
    let others = of_others * transferred;
    let is_same = same >= SAMPLES
        && is_even(evidence, first)
        && others <= OF_OTHERS * opened
        && transferred - others >= opened / 2.0;
    let share = same as f64 / samples.max(1) as f64;
    (is_same && !first.name.is_empty()).then_some((&*first.name, share))
}

/// Whether these calls take about the same time each.
fn is_even(evidence: &Evidence<'_>, of: &FileUse) -> bool {
    let is_it = |row: &&SyscallRow<OfApi>| row.of.api == of.api && row.number == of.syscall;
    let row = evidence.analysis.syscalls.by_api.iter().find(is_it);
    let measures = row.map(|row| &row.measures);
    measures.is_some_and(|all| match (all.p50_below_ns, all.p99_below_ns) {
        (Some(half), Some(most)) => most.as_f64() <= EVEN * half.as_f64(),
        _ => false,
    })
}

fn finding(
    evidence: &Evidence<'_>,
    file: LookUps<'_, '_>,
    &Beside { transfers, closes, replaced }: &Beside<'_, '_>,
) -> Option<Finding> {
    let most =
        |(a, _): &&(&Use<'_>, f64), (b, _): &&(&Use<'_>, f64)| a.total_ns.total_cmp(&b.total_ns);
    let &(main, _) = file.uses.iter().max_by(most)?;
    let group = main.group;
    let is_open = |one: &Use<'_>| OPENS.contains(&one.number);
    let of_file = |wanted: fn(&Use<'_>) -> u64| -> f64 {
        file.uses.iter().map(|&(one, share)| share * wanted(one) as f64).sum()
    };
    let all = of_file(|one| one.calls);
    let failed = of_file(|one| one.errors);
    let opened = file.uses.iter().filter(|(one, _)| is_open(one));
    let opened: f64 =
        opened.map(|&(one, share)| share * one.calls.saturating_sub(one.errors) as f64).sum();
    let of_group = |one: &&Use<'_>| one.group == group;
    let replaced: u64 =
        replaced.iter().filter(of_group).map(|one| one.calls).fold(0, u64::saturating_add);
    if opened > 0.0 && replaced as f64 >= REPLACED * opened {
        return None;
    }
    let mut uses = file.uses.clone();
    if opened > 0.0 {
        // What is opened is closed again, and read meanwhile.
        let closed: u64 =
            closes.iter().filter(of_group).map(|one| one.calls).fold(0, u64::saturating_add);
        let share = (opened / closed.max(1) as f64).min(1.0);
        uses.extend(closes.iter().filter(of_group).map(|one| (one, share)));
        let reads = transfers.iter().filter(of_group).filter(|one| READS.contains(&one.number));
        uses.extend(reads.map(|one| (one, share_of(evidence, one, &file.name))));
    }
    let mut threads: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for &(one, share) in &uses {
        for &(thread, ns, cpu_ns) in &one.threads {
            let sum = threads.entry(thread).or_default();
            *sum = (sum.0 + share * ns, sum.1 + share * cpu_ns);
        }
    }
    let all_ns: f64 = uses.iter().map(|&(one, share)| share * one.total_ns).sum();
    let cpu_ns: f64 = uses.iter().map(|&(one, share)| share * one.cpu_ns).sum();
    let (&thread, &(saves_ns, _)) =
        threads.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(a.0)))?;
    let each = all / (file.others + 1) as f64;
    if each * saves_ns < MANY * all_ns || !evidence.is_material_to(thread, saves_ns) {
        return None;
    }
    let kind = FindingKind::LookedUpAgain {
        lookups: all.round() as u64,
        calls: main.calls,
        opened: opened.round() as u64,
        in_vain: failed >= NEARLY_ALL * all,
        others: file.others,
        is_local_time: file.name == LOCAL_TIME && opened == 0.0,
        all_ns: Ns::from_f64(all_ns),
        waiting_ns: Ns::from_f64(all_ns - cpu_ns),
    };
    let finding = evidence.finding(group, vec![thread], main.api, saves_ns, kind);
    let process = evidence.analysis.threads[thread as usize].process;
    let blame = Blame { process, file: Some(file.name), api: main.api, ..Blame::default() };
    Some(Finding { blame: Some(blame), ..finding })
}

/// The part of the time of these system calls that is spent in a file, by samples.
fn share_of(evidence: &Evidence<'_>, one: &Use<'_>, name: &str) -> f64 {
    let short = name.rsplit('/').next();
    let is_alike =
        |file: &&FileUse| (file.group, file.api, file.syscall) == (one.group, one.api, one.number);
    let (mut own, mut all) = (0_u64, 0_u64);
    for file in evidence.watched.files.iter().filter(is_alike) {
        all = all.saturating_add(file.samples);
        if Some(&*file.name) == short {
            own = own.saturating_add(file.samples);
        }
    }
    own as f64 / all.max(1) as f64
}
