//! From addresses and mangled names to functions, files and lines, at report time.
//!
//! * [`Symbolizer`] takes an object as a recording names it (path and build id) and an address in
//!   the object's file (svma), and gives the function, its file and line, and the functions that
//!   were inlined there.
//! * [`Symbolizer::function_start`] tells functions without a name apart, by what unwinders know.
//! * [`Symbolizer::thread_function`] says which function of the program a thread runs, also where a
//!   language runtime's start routine hides it.
//! * [`demangle()`] turns C++ and Rust symbols into what people wrote; [`shorten()`] makes that fit a
//!   table.
//!
//! Constraints:
//!
//! * A wrong name is worse than none. A file is used only if its build id is the recorded one;
//!   where neither has a build id, only if it is not younger than the recording. An address gets a
//!   symbol's name only if it lies within the symbol's size. What was refused, and why, is in
//!   [`Status`].
//! * Nothing is opened before it is asked for, and nothing twice. Debug information is mapped, not
//!   read.
//! * Where debug information is looked for is the caller's word ([`DebugDirs`]).
//!
//! What this crate does not do: fetch anything from the network, read recordings, or decide what
//! of a name is shown.
#![forbid(unsafe_code)]

mod candidates;
mod demangle;
mod dwarf;
mod elf;
mod go;
mod identity;
mod image;
mod location;
mod perf_map;
mod refusal;
mod search;
mod shorten;
mod symbolizer;
mod symtab;
mod threads;
mod unwind;

pub use candidates::DebugDirs;
pub use demangle::{demangle, variant};
pub use identity::ObjectKey;
pub use location::{CodeLocation, Frame, Source, Status, SymbolError};
pub use perf_map::PerfMap;
pub use refusal::{Reason, Refusal};
pub use shorten::{shorten, shorten_with_parameters, without_suffix};
pub use symbolizer::Symbolizer;
pub use threads::{Given, ThreadFunction, ThreadKind, ThreadStart, Word};
