//! System calls by function.

use chase_analyzer::{Analysis, Category, OfApi, SyscallRow};

use super::{ApiSyscalls, Names, Syscall};
use crate::Label;

/// Functions shown; all are in the tables.
const FUNCTIONS: usize = 40;

/// The functions whose system calls took longest, and how many more there are.
pub(super) fn slowest(analysis: &Analysis, names: &dyn Names) -> (Vec<ApiSyscalls>, usize) {
    let mut rows: Vec<_> = made(analysis).collect();
    // Stable: within a function, the longest stays first.
    rows.sort_by_key(|row| (row.of.api, row.of.is_recorded));
    let mut functions: Vec<&[&SyscallRow<OfApi>]> =
        rows.chunk_by(|a, b| who(a) == who(b)).collect();
    let total_ns = |rows: &[&SyscallRow<OfApi>]| -> f64 {
        rows.iter().map(|row| row.measures.total_ns.as_f64()).sum()
    };
    functions.sort_by(|a, b| total_ns(b).total_cmp(&total_ns(a)));
    let more = functions.len().saturating_sub(FUNCTIONS);
    let shown = functions.iter().take(FUNCTIONS).map(|rows| {
        let of = &rows[0].of;
        ApiSyscalls {
            function: function(names, of),
            library: Label::from(&of.library),
            calls: of.api.map(|_| of.api_calls),
            syscalls: rows.iter().map(|row| syscall(row)).collect(),
        }
    });
    (shown.collect(), more)
}

/// Those that functions made themselves.
pub(super) fn made(analysis: &Analysis) -> impl Iterator<Item = &SyscallRow<OfApi>> {
    let by_api = analysis.syscalls.by_api.iter();
    by_api.filter(|row| row.measures.calls > 0 || row.measures.unfinished > 0)
}

fn who(row: &SyscallRow<OfApi>) -> (Option<u32>, bool) {
    (row.of.api, row.of.is_recorded)
}

/// What made them.
pub(super) fn function(names: &dyn Names, of: &OfApi) -> Label {
    match of.api {
        Some(api) => names.function(api as usize).into(),
        None if of.is_recorded => "(outside library calls)".into(),
        None => "(not recorded)".into(),
    }
}

fn syscall(row: &SyscallRow<OfApi>) -> Syscall {
    let measures = &row.measures;
    Syscall {
        name: Label::from(&row.syscall),
        category: category(row.category).into(),
        count: measures.calls,
        errors: errors(row),
        total_ns: measures.total_ns.as_f64(),
        max_ns: measures.max_ns.as_f64(),
        bytes: measures.bytes,
    }
}

/// Errors by name.
pub(super) fn errors(row: &SyscallRow<OfApi>) -> Vec<(Label, u64)> {
    let name = |error: &chase_analyzer::ErrorCount| match error.name {
        Some(name) => Label::from(name),
        None => Label::from(format!("error {}", error.errno)),
    };
    row.measures.by_error.iter().map(|error| (name(error), error.count)).collect()
}

/// What a category is called.
pub(super) fn category(category: Category) -> &'static str {
    match category {
        Category::Io => "input and output",
        Category::File => "files",
        Category::Network => "network",
        Category::Poll => "poll",
        Category::Memory => "memory",
        Category::Process => "processes",
        Category::Sync => "synchronisation",
        Category::Signal => "signals",
        Category::Time => "time",
        Category::Schedule => "scheduling",
        Category::Other => "other",
    }
}
