//! The rows of the tables of system calls.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use super::names::{Category, category_of, syscall_name};
use super::sums::{SyscallMeasures, SyscallSums};
use crate::clock::Ns;

/// The system calls that library calls made. A call belongs to the innermost library call that the thread was in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Syscalls {
    /// All calls.
    pub totals: SyscallMeasures,
    /// Calls that chase itself made in the processes; they are in no other figure here.
    pub own: SyscallMeasures,
    /// The calibrated overhead of tracing; it is in no other time except the own cost of threads.
    pub tracing_cost_ns: Ns,
    /// By system call, longest first, like all tables.
    pub by_syscall: Vec<SyscallRow<All>>,
    /// By category.
    pub by_category: Vec<CategoryRow>,
    /// By API and system call.
    pub by_api: Vec<SyscallRow<OfApi>>,
    /// By library and system call.
    pub by_library: Vec<SyscallRow<OfLibrary>>,
    /// By thread and system call.
    pub by_thread: Vec<SyscallRow<OfThread>>,
    /// By context and system call.
    pub by_context: Vec<SyscallRow<OfContext>>,
    /// Those outside of library calls; empty once it is known what threads wait for there.
    #[serde(skip)]
    pub(crate) in_own_code: Vec<InOwnCode>,
    /// Waits by where they are; empty like that.
    #[serde(skip)]
    pub(crate) waits: Vec<WaitsIn>,
}

/// A thread's waits in one system call, or in none, made in an API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitsIn {
    pub(crate) process: u32,
    /// The thread's number in its process.
    pub(crate) thread: Option<u32>,
    /// The API; `None` for the thread's own code.
    pub(crate) api: Option<u32>,
    /// The system call, or [`NO_SYSCALL`](chase_recorder::syscalls::NO_SYSCALL).
    pub(crate) number: u32,
    /// Whether they were for the map of the process's memory.
    pub(crate) for_memory_map: bool,
    /// Until the thread was woken.
    pub(crate) ns: u64,
}

/// One system call that a thread makes outside of library calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOwnCode {
    pub(crate) process: u32,
    /// The thread's number in its process.
    pub(crate) thread: Option<u32>,
    pub(crate) number: u32,
    pub(crate) off_cpu_ns: Ns,
}

/// A system call, made by `of`.
#[derive(Clone, Debug, Serialize)]
pub struct SyscallRow<K> {
    /// Who made it.
    #[serde(flatten)]
    pub of: K,
    /// Number of the system call.
    pub number: u32,
    /// Its name; `syscall 999` if it is unknown.
    pub syscall: Cow<'static, str>,
    /// Its category.
    pub category: Category,
    /// System calls per library call of `of`; `None` if there are none.
    pub per_call: Option<f64>,
    /// Figures of the calls made there, without those in library calls inside.
    #[serde(flatten)]
    pub measures: SyscallMeasures,
    /// The same including those made in the library calls inside.
    pub nested: Option<Box<Nested>>,
    #[serde(skip)]
    pub(crate) sums: SyscallSums,
}

/// System calls made in an API or a library, including those in the library calls made inside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nested {
    /// The number of calls.
    pub calls: u64,
    /// Calls per library call.
    pub per_call: Option<f64>,
    /// The number of calls that failed.
    pub errors: u64,
    /// Their total time.
    pub total_ns: Ns,
    /// The part of it off the CPU.
    pub off_cpu_ns: Ns,
    /// Bytes transferred, if the calls return bytes.
    pub bytes: Option<u64>,
}

/// The whole selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct All {}

/// An API, or everything outside of library calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis); `None` for calls made
    /// outside of any library call.
    pub api: Option<u32>,
    /// False for calls made where nothing was recorded: before chase had started in a process (mostly by the dynamic
    /// linker), and in threads and processes without a record.
    pub is_recorded: bool,
    /// Its library, or empty.
    pub library: String,
    /// Its name in the symbol table, or empty.
    pub symbol: String,
    /// Calls of the API.
    pub api_calls: u64,
}

/// A library, or everything outside of library calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfLibrary {
    /// The library, by number in [`Analysis::objects`](crate::Analysis::objects); `None` for calls
    /// made outside of any library call.
    pub object: Option<u32>,
    /// As in [`OfApi`].
    pub is_recorded: bool,
    /// Its name, or empty.
    pub library: String,
    /// Calls of the library's APIs.
    pub library_calls: u64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfThread {
    /// Its process, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Its number in the process, if only one thread had that id; `None` for a thread without a record, or with the
    /// same id as a later one.
    pub thread: Option<u32>,
    /// Its name, or that of its process.
    pub name: Arc<str>,
}

/// A context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfContext {
    /// The context, by number in [`Analysis::contexts`](crate::Analysis::contexts); `None` for
    /// calls made outside of any library call.
    pub context: Option<u32>,
    /// As in [`OfApi`].
    pub is_recorded: bool,
}

/// All system calls of a category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryRow {
    /// The category.
    pub category: Category,
    /// Figures.
    #[serde(flatten)]
    pub measures: SyscallMeasures,
}

impl<K> SyscallRow<K> {
    pub(super) fn new(of: K, number: u32, callers: u64, sums: SyscallSums) -> Self {
        Self {
            of,
            number,
            syscall: syscall_name(number),
            category: category_of(number),
            per_call: per_call(sums.calls, callers),
            measures: sums.measures(),
            nested: None,
            sums,
        }
    }

    pub(super) fn add_nested(&mut self, sums: &SyscallSums, callers: u64) {
        let SyscallMeasures { calls, errors, total_ns, off_cpu_ns, bytes, .. } = sums.measures();
        let per_call = per_call(calls, callers);
        let nested = Nested { calls, per_call, errors, total_ns, off_cpu_ns, bytes };
        self.nested = Some(Box::new(nested));
    }
}

fn per_call(calls: u64, callers: u64) -> Option<f64> {
    (callers > 0).then(|| calls as f64 / callers as f64)
}

/// Returns the sums of rows by system call, longest first.
pub fn by_syscall<'r, K: 'r>(
    rows: impl IntoIterator<Item = &'r SyscallRow<K>>,
) -> Vec<SyscallRow<All>> {
    let sums = sum_by(rows, |row| row.number);
    let row = |(number, sums)| SyscallRow::new(All {}, number, 0, sums);
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.measures.total_ns, row.measures.calls)));
    rows
}

/// Returns the sums of rows by category, longest first.
pub fn by_category<'r, K: 'r>(
    rows: impl IntoIterator<Item = &'r SyscallRow<K>>,
) -> Vec<CategoryRow> {
    let sums = sum_by(rows, |row| row.category);
    let row =
        |(category, sums): (_, SyscallSums)| CategoryRow { category, measures: sums.measures() };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.measures.total_ns, row.measures.calls)));
    rows
}

/// Returns the figures of all rows together.
pub(super) fn total<'r, K: 'r>(
    rows: impl IntoIterator<Item = &'r SyscallRow<K>>,
) -> SyscallMeasures {
    sum_by(rows, |_| ()).into_values().next().unwrap_or_default().measures()
}

fn sum_by<'r, K: 'r, C: Ord>(
    rows: impl IntoIterator<Item = &'r SyscallRow<K>>,
    key_of: impl Fn(&SyscallRow<K>) -> C,
) -> std::collections::BTreeMap<C, SyscallSums> {
    let mut sums = std::collections::BTreeMap::new();
    for row in rows.into_iter().filter(|row| row.sums.calls > 0) {
        sums.entry(key_of(row)).or_insert_with(SyscallSums::default).add(&row.sums);
    }
    sums
}
