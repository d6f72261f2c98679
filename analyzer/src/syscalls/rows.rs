//! The rows of the tables of system calls.

use serde::Serialize;

use super::names::{Category, category_of, syscall_name};
use super::sums::{SyscallMeasures, SyscallSums};
use crate::clock::Ns;

/// What library calls made of system calls. A call belongs to the innermost library call that the
/// thread was in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Syscalls {
    /// All calls.
    pub totals: SyscallMeasures,
    /// Calls that chase itself made inside the processes; they are in no other figure here.
    pub own: SyscallMeasures,
    /// What their tracing cost the program, as calibrated: in no other time, but in the own cost
    /// of threads.
    pub tracing_cost_ns: Ns,
    /// By system call, longest first, as all tables.
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
}

/// One system call, made by what `of` says.
#[derive(Clone, Debug, Serialize)]
pub struct SyscallRow<K> {
    /// Who made it.
    #[serde(flatten)]
    pub of: K,
    /// Number of the system call.
    pub number: u32,
    /// Its name; `syscall 999` where it is not known.
    pub syscall: String,
    /// What it is about.
    pub category: Category,
    /// System calls per library call of what `of` says; `None` where there are none.
    pub per_call: Option<f64>,
    /// Figures of the calls made there, outside of any library call inside.
    #[serde(flatten)]
    pub measures: SyscallMeasures,
    /// The same with those made in the library calls inside.
    pub nested: Option<Nested>,
    #[serde(skip)]
    pub(crate) sums: SyscallSums,
}

/// System calls made in an API or a library and in the library calls made inside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nested {
    /// Calls.
    pub calls: u64,
    /// Per library call.
    pub per_call: Option<f64>,
    /// Those that failed.
    pub errors: u64,
    /// Their time.
    pub total_ns: Ns,
    /// The part of it off the CPU.
    pub off_cpu_ns: Ns,
    /// Bytes moved, where the calls return bytes.
    pub bytes: Option<u64>,
}

/// All that was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct All {}

/// An API, or what was outside of any library call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis); `None` for calls made
    /// outside of any library call.
    pub api: Option<u32>,
    /// False for calls made where nothing was recorded: before chase had started in a process
    /// (by the dynamic linker, mostly), in threads and processes without a record.
    pub is_recorded: bool,
    /// Its library, or empty.
    pub library: String,
    /// Its name in the symbol table, or empty.
    pub symbol: String,
    /// Calls of the API.
    pub api_calls: u64,
}

/// A library, or what was outside of any library call.
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
    /// Its number in the process, where one thread had that id; `None` for a thread that has no
    /// record or that shares its id with a later one.
    pub thread: Option<u32>,
    /// Its name, or that of its process.
    pub name: String,
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
            syscall: syscall_name(number).into_owned(),
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
        self.nested = Some(Nested { calls, per_call, errors, total_ns, off_cpu_ns, bytes });
    }
}

fn per_call(calls: u64, callers: u64) -> Option<f64> {
    (callers > 0).then(|| calls as f64 / callers as f64)
}

/// Sums over the rows by system call, longest first.
pub fn by_syscall<'r, K: 'r>(
    rows: impl IntoIterator<Item = &'r SyscallRow<K>>,
) -> Vec<SyscallRow<All>> {
    let sums = sum_by(rows, |row| row.number);
    let row = |(number, sums)| SyscallRow::new(All {}, number, 0, sums);
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.measures.total_ns, row.measures.calls)));
    rows
}

/// Sums over the rows by category, longest first.
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

/// Figures of all rows together.
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
