//! System calls: their names, and the tables of those that library calls made.
//!
//! The companion's rows ([`chase_recorder::syscalls`]) refer to a context of a recording by its node. Here they are
//! added up over the threads and processes of a run, like contexts. If a process's file is complete, its waits
//! replace the estimates by name.

mod collect;
mod errors;
mod names;
mod rows;
mod sums;
#[rustfmt::skip]
mod table;
mod tables;

pub(crate) use collect::{
    Collected, Place, Places, Scheduler, TracingCost, WHILE_STOPPED, each_ns, wait_source,
};
pub(crate) use names::error_name as errno_name;
pub use names::{Category, Syscall, syscall, syscall_name};
pub(crate) use names::{category_of, is_for_memory_map};
pub use rows::{
    All, CategoryRow, Nested, OfApi, OfContext, OfLibrary, OfThread, SyscallRow, Syscalls,
    by_category, by_syscall,
};
pub(crate) use rows::{InOwnCode, WaitsIn};
pub use sums::{ErrorCount, SyscallMeasures};
pub(crate) use tables::{Surroundings, tables_of};
