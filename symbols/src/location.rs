//! What is at an address, and what was found of an object.

use std::path::PathBuf;

use crate::refusal::{Refusal, hex};

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLocation {
    /// The functions there, innermost inlined one first; never empty.
    pub frames: Vec<Frame>,
    /// What told that there is this function.
    pub source: Source,
}

impl CodeLocation {
    /// The function that the machine code belongs to, into which the others were inlined.
    #[must_use]
    pub fn outermost(&self) -> Option<&Frame> {
        self.frames.last()
    }
}

/// One function at an address. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Full demangled name; see [`shorten`](crate::shorten()).
    pub function: Option<String>,
    /// Source file, as the compiler was given it.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<u32>,
}

/// Where a name comes from, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// DWARF: the only one that knows files, lines and inlined functions.
    DebugInfo,
    /// `.symtab`, of the object, its debug file or its `.gnu_debugdata`.
    SymbolTable,
    /// `.dynsym`: exported functions only.
    DynamicSymbols,
    /// `.gopclntab`: what Go's compiler has made, stripped or not.
    GoTable,
}

/// What was found for an object, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The object's own file, if it still is the recorded one.
    pub object: Option<PathBuf>,
    /// The file that the debug information is from.
    pub debug_info: Option<PathBuf>,
    /// The file that dwz moved parts of it to, if that is missing: names may be too.
    pub missing_alternate: Option<PathBuf>,
    /// Files that are there and were not used.
    pub refused: Vec<Refusal>,
    /// Paths at which there is no file.
    pub absent: Vec<PathBuf>,
}

/// Why nothing can be said about an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolError {
    /// No file with symbols was found: neither the object itself nor its debug information.
    #[error("no symbols for {} (build id {}): {}", path.display(), hex(build_id), tried(status))]
    NoSymbols {
        /// Path of the object.
        path: PathBuf,
        /// Its build id, empty when it has none.
        build_id: Vec<u8>,
        /// What was tried.
        status: Box<Status>,
    },
}

/// What an error says of a search.
fn tried(status: &Status) -> String {
    let own = status.object.iter().map(|path| format!("{} is stripped", path.display()));
    let refused = status.refused.iter().map(ToString::to_string);
    let absent = status.absent.iter().map(|path| format!("{}: not there", path.display()));
    let all: Vec<String> = own.chain(refused).chain(absent).collect();
    if all.is_empty() { "it has no path to look at".to_owned() } else { all.join("; ") }
}
