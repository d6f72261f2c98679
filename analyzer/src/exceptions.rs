//! Exceptions that are thrown.
//!
//! A throw does not return, so it has no duration: that of unwinding is in the time of the function that throws. Samples tell what it
//! takes of the processor: what runs in the unwinder, and in the functions that make an exception, catch it, and free it.

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::overhead::OWN;
use crate::rows::{ApiRow, ThreadRow};

/// Fewer are exceptions in both meanings.
pub(crate) const MANY: u64 = 1_000;
/// The name of the object that unwinds stacks begins so: GCC's, and LLVM's.
const UNWINDERS: [&str; 2] = ["libgcc_s.so", "libunwind.so.1"];
/// Functions that throw. Each throw of C++ is one of the unwinder, too, which has those of other languages.
pub(crate) const THROWS: [&str; 3] =
    ["__cxa_throw", "__cxa_rethrow", "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE"];
pub(crate) const RAISES: [&str; 2] = ["_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow"];
/// Functions that are called for exceptions alone, and return.
const HANDLES: [&str; 6] = [
    "__cxa_allocate_exception",
    "__cxa_free_exception",
    "__cxa_init_primary_exception",
    "__cxa_begin_catch",
    "__cxa_end_catch",
    "_Unwind_DeleteException",
];
/// Functions that have a stack unwound to look at it, or to end a thread.
const UNWINDS: [&str; 4] =
    ["backtrace", "_Unwind_Backtrace", "_Unwind_ForcedUnwind", "__pthread_unwind_next"];
/// If these, or others of the unwinder's library, are called more often than this, for each exception, its time is not that of exceptions.
const SOME: f64 = 0.01;

/// What exceptions a run throws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceptions {
    /// How many.
    pub thrown: u64,
    /// How long the processor had to do with them, at least; `None` if there are no samples, or the stack is unwound for other purposes,
    /// too.
    pub on_cpu_ns: Option<Ns>,
    /// Those of single threads, by number in [`Analysis::threads`].
    pub(crate) by_thread: Vec<(u32, OfThread)>,
}

impl Exceptions {
    /// Whether they take a time worth a word.
    #[must_use]
    pub fn are_many(&self) -> bool {
        self.thrown >= MANY
    }
}

/// What one thread throws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfThread {
    pub(crate) thrown: u64,
    pub(crate) on_cpu_ns: Ns,
    pub(crate) samples: u64,
}

/// Returns what exceptions a run throws; `None` if it throws none.
#[must_use]
pub fn exceptions(analysis: &Analysis) -> Option<Exceptions> {
    let named = |names: &[&str]| -> Vec<bool> {
        analysis.apis.iter().map(|row| names.contains(&&*row.symbol)).collect()
    };
    let (throws, raises) = (named(&THROWS), named(&RAISES));
    let calls = |row: &ThreadRow, of: &[bool]| {
        let calls = row.apis.iter().filter(|one| of[one.api as usize]).map(|one| one.calls);
        calls.fold(0, u64::saturating_add)
    };
    let thrown = |row: &ThreadRow| calls(row, &throws).max(calls(row, &raises));
    let mut by_thread: BTreeMap<u32, OfThread> = (0..)
        .zip(&analysis.threads)
        .map(|(number, row)| (number, OfThread { thrown: thrown(row), ..OfThread::default() }))
        .filter(|(_, own)| own.thrown > 0)
        .collect();
    let all: u64 = by_thread.values().fold(0, |sum, own| sum.saturating_add(own.thrown));
    if all == 0 {
        return None;
    }
    // (A division of 128 bits is in the unwinder's library, too.)
    let is_other = |row: &ApiRow| {
        let object = analysis.objects.get(row.object as usize);
        let is_unwinder = object.is_some_and(|object| is_unwinder(&object.name));
        UNWINDS.contains(&&*row.symbol) || is_unwinder && !row.symbol.starts_with("_Unwind_")
    };
    let unwinds: Vec<bool> = analysis.apis.iter().map(is_other).collect();
    let other =
        analysis.threads.iter().map(|row| calls(row, &unwinds)).fold(0, u64::saturating_add);
    let is_known = analysis.on_cpu.samples > 0 && other as f64 <= SOME * all as f64;
    if is_known {
        add_samples(analysis, &mut by_thread);
    }
    let on_cpu_ns = by_thread.values().fold(0, |sum: u64, own| sum.saturating_add(own.on_cpu_ns.0));
    Some(Exceptions {
        thrown: all,
        on_cpu_ns: is_known.then_some(Ns(on_cpu_ns)),
        by_thread: by_thread.into_iter().collect(),
    })
}

/// Adds how long the processor had to do with the exceptions of each thread.
fn add_samples(analysis: &Analysis, by_thread: &mut BTreeMap<u32, OfThread>) {
    let name = |object: u32| analysis.objects.get(object as usize).map_or("", |row| &row.name);
    // (The loader's function finds the unwinder's tables.)
    let is_handled = |api: u32| {
        let symbol = analysis.apis.get(api as usize).map_or("", |row| &row.symbol);
        symbol == "_dl_find_object" || symbol.starts_with("_Unwind_") || HANDLES.contains(&symbol)
    };
    let numbers: BTreeMap<(usize, u32), u32> = (0..)
        .zip(&analysis.threads)
        .map(|(number, row)| ((row.process, row.thread), number))
        .collect();
    for row in &analysis.on_cpu.of_threads {
        let is_one = is_unwinder(name(row.object)) || row.api.is_some_and(is_handled);
        let number = numbers.get(&(row.process as usize, row.thread));
        let own = number.and_then(|number| by_thread.get_mut(number));
        if let Some(own) = own.filter(|_| is_one && name(row.object) != OWN) {
            own.on_cpu_ns = Ns(own.on_cpu_ns.0.saturating_add(row.ns.0));
            own.samples = own.samples.saturating_add(row.samples);
        }
    }
}

fn is_unwinder(object: &str) -> bool {
    UNWINDERS.iter().any(|name| object.starts_with(name))
}
