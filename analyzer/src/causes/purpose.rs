//! What a wait means: for a lock, for work, for a file.

use std::collections::{BTreeMap, BTreeSet};

use chase_recorder::syscalls::{NO_SYSCALL, STOPPED};
use serde::Serialize;

use super::{CauseRow, LockKey, PartyKind, Turns, WaitObject, add, lock_key};
use crate::analysis::Analysis;
use crate::blocking::{Cause, cause_of};
use crate::syscalls::is_for_memory_map;
use crate::wait_causes;

/// What threads wait for, as far as it can be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A lock that one thread has at a time; or one process, of a file.
    Lock,
    /// A read-write lock, to read.
    ReadLock,
    /// A read-write lock, to write.
    WriteLock,
    /// A lock inside the allocator.
    Allocator,
    /// The lock of an interpreter, or of a runtime in which one thread runs at a time: of Python, and of OCaml before 5.
    Interpreter,
    /// A condition that another thread makes true.
    Condition,
    /// Something that another thread hands over: by a semaphore, a pipe, or a runtime's own futex.
    Handover,
    /// All others, at a barrier.
    Barrier,
    /// The end of a thread.
    Join,
    /// The end of a process; in `vfork` and its like, that the child runs a program, or ends.
    Child,
    /// Time to pass.
    Sleep,
    /// Readiness of descriptors.
    Readiness,
    /// Operations of `io_uring` to be over.
    Completion,
    /// The other end of a connection.
    Network,
    /// A file to be written to the disk.
    Sync,
    /// A file.
    File,
    /// A page of memory.
    Page,
    /// To be let go on: stopped by a signal (`SIGSTOP`, `SIGTSTP`), or by a debugger.
    Stopped,
    /// The map of the process's memory, which one thread changes at a time.
    MemoryMap,
    /// Something else.
    Other,
}

/// What is known of a wait. Names are only looked up if they matter.
pub(super) struct Seen<'a> {
    /// The system call.
    pub(super) syscall: u32,
    /// What more there is to it.
    pub(super) detail: u32,
    /// The API, or empty.
    pub(super) symbol: &'a str,
    /// Whether a thread of the same process ended it.
    pub(super) by_own_process: bool,
    /// Whether it is for a mutex whose owner was seen.
    pub(super) is_owned: bool,
    /// The file.
    pub(super) file: Option<&'a str>,
    /// Looks up the variable that is waited on.
    pub(super) variable: &'a dyn Fn() -> Option<String>,
    /// Looks up the calling functions, what was inlined first.
    pub(super) functions: &'a dyn Fn() -> Vec<String>,
    /// The same for the thread that ended the wait.
    pub(super) waker_functions: &'a dyn Fn() -> Vec<String>,
}

/// Variables with the lock of an interpreter: all state of CPython, and the master lock of OCaml before 5.
const INTERPRETERS: &[&str] = &["_PyRuntime", "caml_master_lock"];

/// Functions that allocate and free memory.
pub(crate) const ALLOCATOR: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "strdup",
    "_Znwm",
    "_Znam",
    "_ZdlPv",
    "_ZdlPvm",
    "_ZdaPv",
];

/// The function of Rust's read-write lock in which who writes waits.
const WRITE: &str = "write_contended";

/// Functions of read-write locks in which who writes waits: Rust's, and those of `parking_lot`.
const PARKED_WRITERS: &[&str] =
    &[WRITE, "lock_exclusive_slow", "lock_upgradable_slow", "upgrade_slow", "wait_for_readers"];

/// Whether one of these functions, inlined first, waits for a lock at a word that is the thread's: those of `parking_lot`, whose
/// locks are a byte each. (Its conditions are not told apart by place: a program has several at one.)
pub(super) fn is_parked(functions: &[String]) -> bool {
    let any = |part: &str| functions.iter().any(|name| name.contains(part));
    any("parking_lot") && (any("raw_mutex") || any("raw_rwlock"))
}

/// Whether one of these functions, inlined first, waits to write at Rust's own read-write lock.
pub(super) fn is_written(functions: &[String]) -> bool {
    functions.iter().any(|name| name.contains(WRITE))
}

impl Purpose {
    pub(super) fn from_wait(seen: &Seen<'_>) -> Self {
        match seen.syscall {
            202 => Self::of_futex(seen),
            35 | 230 => Self::Sleep,
            7 | 23 | 232 | 270 | 271 | 281 | 441 => Self::Readiness,
            208 | 333 => Self::File,
            // `flock`, and `fcntl`, which waits for nothing else.
            72 | 73 => Self::Lock,
            426 => Self::Completion,
            // A `vfork`, and a `clone` like it, lasts until the child has no more need of its parent's memory.
            56 | 58 | 61 | 247 | 435 => Self::Child,
            26 | 74 | 75 | 162 | 277 | 306 => Self::Sync,
            NO_SYSCALL if seen.detail == STOPPED => Self::Stopped,
            number if is_for_memory_map(number, seen.by_own_process) => Self::MemoryMap,
            NO_SYSCALL => Self::Page,
            _ => match seen.file {
                Some(name) if name.starts_with("socket ") => Self::Network,
                Some(name) if name.starts_with("pipe ") || name.contains("[eventfd]") => {
                    Self::Handover
                }
                Some(_) => Self::File,
                None => Self::Other,
            },
        }
    }

    fn of_futex(seen: &Seen<'_>) -> Self {
        let symbol = seen.symbol;
        let is_interpreter = |name: String| INTERPRETERS.iter().any(|own| name.starts_with(own));
        let in_interpreter = || (seen.variable)().is_some_and(is_interpreter);
        if ALLOCATOR.contains(&symbol) {
            return Self::Allocator;
        }
        if let Some(purpose) = of_team(symbol) {
            return purpose;
        }
        match cause_of(symbol) {
            Some(Cause::Condition | Cause::Lock) if in_interpreter() => Self::Interpreter,
            // A thread woken for a condition may have to wait for its mutex, until the signalling thread unlocks it.
            Some(Cause::Condition) => Self::Condition,
            _ if seen.is_owned => Self::Lock,
            Some(Cause::Lock) if symbol.contains("rwlock") => {
                if symbol.contains("rdlock") {
                    Self::ReadLock
                } else {
                    Self::WriteLock
                }
            }
            Some(Cause::Lock) if symbol.contains("mutex") || symbol.contains("mtx") => Self::Lock,
            Some(Cause::Barrier) => Self::Barrier,
            Some(Cause::Join) => Self::Join,
            // Runtimes with locks of their own call futex themselves; their functions have names.
            None if symbol == "syscall" || symbol.is_empty() => {
                Self::by_function(&(seen.functions)(), seen.waker_functions)
            }
            // Semaphores, and locks inside of a library, for example of a stream.
            _ => Self::Handover,
        }
    }

    fn by_function(functions: &[String], waker: &dyn Fn() -> Vec<String>) -> Self {
        let any = |part: &str| functions.iter().any(|name| name.contains(part));
        // A barrier may be made of a condition variable: the last thread wakes the others inside of the barrier.
        let is_barrier = || waker().iter().any(|name| name.contains("arrier"));
        match () {
            () if any("arrier") => Self::Barrier,
            () if any("read_contended") || any("lock_shared_slow") => Self::ReadLock,
            () if PARKED_WRITERS.iter().any(|part| any(part)) => Self::WriteLock,
            () if any("lock_contended") || any("lock_slow") => Self::Lock,
            () if any("ondvar") && is_barrier() => Self::Barrier,
            () if any("ondvar") || any("park") => Self::Condition,
            () => Self::Handover,
        }
    }

    /// What a wait at a word of memory is for, as tables without objects have it. What is handed over is a condition.
    pub(crate) fn of_word(self) -> Cause {
        match self {
            _ if self.is_lock() => Cause::Lock,
            _ if self.is_handover() => Cause::Condition,
            Self::Barrier => Cause::Barrier,
            Self::Join => Cause::Join,
            _ => Cause::Other,
        }
    }

    /// Whether another thread has to do something first.
    #[must_use]
    pub fn is_handover(self) -> bool {
        matches!(self, Self::Condition | Self::Handover)
    }

    /// Whether one thread keeps others from continuing.
    #[must_use]
    pub fn is_lock(self) -> bool {
        matches!(
            self,
            Self::Lock
                | Self::ReadLock
                | Self::WriteLock
                | Self::Allocator
                | Self::Interpreter
                | Self::MemoryMap
        )
    }
}

/// What a function of OpenMP's runtime waits for, if it is one of GCC's: that waits at words of its own. (LLVM's waits for conditions.)
fn of_team(symbol: &str) -> Option<Purpose> {
    if ["omp_set_lock", "omp_set_nest_lock"].contains(&symbol) {
        return Some(Purpose::Lock);
    }
    let name = symbol.strip_prefix("GOMP_")?;
    let begins = |part: &str| name.starts_with(part);
    Some(match () {
        () if begins("critical") || begins("atomic") => Purpose::Lock,
        // Tasks are handed over, and turns.
        () if begins("task") || begins("ordered") || begins("doacross") => Purpose::Handover,
        // At the end of a shared loop, there is a barrier; so there is where a value is made known to all.
        () if begins("barrier") || begins("single_copy") || name.contains("_end") => {
            Purpose::Barrier
        }
        // The thread that has begun a parallel region does its part, and waits for what the others do.
        () => Purpose::Handover,
    })
}

/// Whether these are waits of a team of OpenMP. The last of its threads at a barrier ends the waits of the others, and each of them may be the
/// last one: that makes no lock of it. Locks have functions of their own. What the team's threads run themselves is a part of a region,
/// and they wait for its end and for the next one.
fn is_of_team(row: &CauseRow, analysis: &Analysis) -> bool {
    if let Some(api) = row.api {
        return of_team(&analysis.apis[api as usize].symbol).is_some();
    }
    let is_member = |thread: u32| {
        let row = analysis.threads.get(thread as usize);
        row.is_some_and(|row| wait_causes::is_of_team(row, &analysis.objects))
    };
    row.by_thread.iter().all(|span| is_member(span.thread))
}

/// Who waits for a word of memory, and who ends these waits; threads by number.
#[derive(Default)]
pub(super) struct Taking {
    pub(super) waiting: BTreeSet<u32>,
    /// With the time of the waits that each ended, ns.
    pub(super) ending: BTreeMap<u32, u64>,
    /// Whether some wait inside of a library's function that is no semaphore's. What is passed on there is a lock of the library, as that of a
    /// stream, which others may have longest that never wait for it.
    pub(super) is_inside: bool,
}

/// The part of the time of waits for a lock that is ended by threads that wait for it, too. (Of an idle pool's, it is half of it at most: who is
/// given work may have the next one look for some, in vain.)
const OF_THEIR_OWN: f64 = 0.6;
/// The part of the time of long waits for a lock in which one of these threads has it. Who passes on that there is work does so at once.
const HELD: f64 = 0.3;

impl Taking {
    /// Adds waits of `ns` that `thread` ended.
    pub(super) fn end(&mut self, thread: u32, ns: u64) {
        add(self.ending.entry(thread).or_default(), ns);
    }

    /// Whether it is a lock: threads end each other's waits. Those that hand something over wait for something else. The last one to get
    /// the lock need not end anyone's wait; and one that holds it now and then may never find it held.
    pub(super) fn is_lock(&self, word: &LockKey, turns: &dyn Turns, analysis: &Analysis) -> bool {
        let (mut both, mut both_ns, mut all_ns) = (0, 0_u64, 0_u64);
        for (thread, &ns) in &self.ending {
            add(&mut all_ns, ns);
            if self.waiting.contains(thread) {
                both += 1;
                add(&mut both_ns, ns);
            }
        }
        if both < 2 || both + 1 < self.waiting.len() {
            return false;
        }
        let is_their_own = both_ns as f64 >= OF_THEIR_OWN * all_ns as f64;
        let is_held = || turns.part_of(word, &|thread| self.waiting.contains(&thread));
        is_their_own && (self.is_inside || is_held().is_none_or(|part| part >= HELD))
            || self.waiting.iter().all(|&thread| gives_back(thread, analysis))
    }
}

/// Whether a thread gives semaphores back as often as it takes them. (Where others give some, by which they hand over work, not all that
/// wait for it can. Who has a lock may take it again and again before any other gets it, and so never wait.)
fn gives_back(thread: u32, analysis: &Analysis) -> bool {
    let Some(row) = analysis.threads.get(thread as usize) else { return false };
    let (mut taken, mut given) = (0_u64, 0_u64);
    for one in &row.apis {
        let calls = one.calls;
        match &*analysis.apis[one.api as usize].symbol {
            "sem_wait" | "sem_timedwait" | "sem_clockwait" => add(&mut taken, calls),
            "sem_post" => add(&mut given, calls),
            // How often that succeeds is not known.
            "sem_trywait" => return false,
            _ => {}
        }
    }
    // (The thread may have ended in between.)
    taken > 0 && taken.abs_diff(given) <= 1
}

/// Recognises locks among what is handed over.
pub(super) fn find_locks(rows: &mut [CauseRow], analysis: &Analysis, turns: &dyn Turns) {
    let mut of_objects: BTreeMap<_, Taking> = BTreeMap::new();
    let key = |row: &CauseRow| {
        let is_word = matches!(row.object, WaitObject::Memory(_));
        let is_handover = row.purpose == Purpose::Handover && is_word;
        // (In a call that was only counted, it may as well be a barrier.)
        let may_be_known = row.api.is_some() || !analysis.processes[row.process].only_counts;
        let is_handover = is_handover && may_be_known && !is_of_team(row, analysis);
        is_handover.then(|| lock_key(&row.object, row.process)).flatten()
    };
    for row in rows.iter() {
        let Some(key) = key(row) else { continue };
        let taking = of_objects.entry(key).or_default();
        taking.waiting.extend(row.by_thread.iter().map(|span| span.thread));
        let symbol = row.api.map_or("", |api| &*analysis.apis[api as usize].symbol);
        taking.is_inside |=
            !(symbol.is_empty() || symbol == "syscall" || symbol.starts_with("sem_"));
        let wakers = row.wakers.iter().filter(|waker| waker.kind == PartyKind::Thread);
        for span in wakers.flat_map(|waker| &waker.by_thread) {
            taking.end(span.thread, span.ns.0);
        }
    }
    let is_lock = |(key, taking): &(LockKey, Taking)| taking.is_lock(key, turns, analysis);
    let locks: BTreeSet<LockKey> =
        of_objects.into_iter().filter(is_lock).map(|(key, _)| key).collect();
    for row in rows {
        if key(row).is_some_and(|key| locks.contains(&key)) {
            row.purpose = Purpose::Lock;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_an_interpreter_is_told_by_its_variable() {
        let purpose = |symbol, variable: &str| {
            Purpose::from_wait(&Seen {
                syscall: 202,
                detail: 0,
                symbol,
                by_own_process: true,
                is_owned: false,
                file: None,
                variable: &|| Some(variable.to_owned()),
                functions: &Vec::new,
                waker_functions: &Vec::new,
            })
        };
        assert_eq!(purpose("pthread_cond_timedwait", "_PyRuntime+0x1d8"), Purpose::Interpreter);
        assert_eq!(purpose("pthread_cond_wait", "caml_master_lock+0x30"), Purpose::Interpreter);
        assert_eq!(purpose("pthread_mutex_lock", "caml_master_lock"), Purpose::Interpreter);
        assert_eq!(purpose("pthread_cond_wait", "ready"), Purpose::Condition);
    }

    #[test]
    fn a_stopped_thread_waits_for_no_page() {
        let purpose = |detail, by_own_process| {
            Purpose::from_wait(&Seen {
                syscall: NO_SYSCALL,
                detail,
                symbol: "clock_gettime",
                by_own_process,
                is_owned: false,
                file: None,
                variable: &|| None,
                functions: &Vec::new,
                waker_functions: &Vec::new,
            })
        };
        assert_eq!(purpose(STOPPED, false), Purpose::Stopped);
        // Whoever continues it, also a thread of its own process.
        assert_eq!(purpose(STOPPED, true), Purpose::Stopped);
        assert_eq!(purpose(0, false), Purpose::Page);
    }
}
