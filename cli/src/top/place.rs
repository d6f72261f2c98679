//! Where one is: a table, or what is inside of a row of one.

use crate::args::TopTable;
use crate::report::file_name;

/// Something that has a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Table(TopTable),
    /// The functions of a library, by its path.
    Library(String),
    /// Who calls a function.
    Function {
        /// Path of its library.
        library: String,
        symbol: String,
        /// As it is shown.
        name: String,
    },
    /// The threads of a group, by its label.
    Group(String),
    /// What a thread calls: its process and its number there.
    Thread(usize, u32),
    /// Which functions make a system call.
    Syscall {
        number: u32,
        name: String,
    },
    /// All tables, of one process.
    Process(u32),
}

impl Place {
    /// What it is called.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Table(table) => title(*table).to_owned(),
            Self::Library(path) => file_name(path).to_owned(),
            Self::Function { name, .. } | Self::Syscall { name, .. } => name.clone(),
            Self::Group(label) => label.clone(),
            Self::Thread(_, number) => format!("thread {number}"),
            Self::Process(pid) => format!("process {pid}"),
        }
    }
}

/// The tables, in the order of their keys.
pub(super) const TABLES: [TopTable; 6] = [
    TopTable::Libraries,
    TopTable::Functions,
    TopTable::Threads,
    TopTable::Waits,
    TopTable::Syscalls,
    TopTable::Processes,
];

/// What a table is called.
pub(super) fn title(table: TopTable) -> &'static str {
    match table {
        TopTable::Libraries => "libraries",
        TopTable::Functions => "functions",
        TopTable::Threads => "threads",
        TopTable::Waits => "waits",
        TopTable::Syscalls => "syscalls",
        TopTable::Processes => "processes",
    }
}
