//! What some options can be.

use clap::ValueEnum;

/// How a run is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Folded stacks, for flame graphs: self time in nanoseconds
    Folded,
    /// For speedscope: all threads, and each thread group
    Speedscope,
    /// For pprof: calls and self time
    Pprof,
    /// For Perfetto's viewer: what happened when
    Perfetto,
    /// For the Firefox Profiler: what happened when
    Firefox,
    /// The table of calling contexts
    Csv,
    /// All tables in one document
    Json,
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A picture
    Svg,
    /// The language of Graphviz
    Dot,
}

/// The tables of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyscallsBy {
    /// By function that made them
    Api,
    /// By library that made them
    Library,
    /// By thread
    Thread,
    /// By chain of library calls
    Context,
    /// By what they are about
    Category,
    /// By system call
    Syscall,
    /// Errors, by system call
    Error,
}
