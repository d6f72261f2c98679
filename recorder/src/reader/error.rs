//! Why bytes can't be read, and what is wrong with those that can.

use crate::layout::{MAGIC, VERSION};
use crate::syscalls;

/// Nothing can be said about the bytes. The texts complete "cannot read FILE: ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Other bytes than [`MAGIC`] at the start.
    #[error(
        "not a recording: it begins with {found}, a recording with \"{}\"; \
         recordings are the .chase files that LD_PRELOAD=libchase.so writes",
        MAGIC.escape_ascii()
    )]
    NotARecording {
        /// The first bytes, escaped.
        found: String,
    },
    /// The process ended, or was looked at, before the header was complete.
    #[error(
        "the recording was never begun: its first {} bytes are zero; the disk was full, or who \
         writes it ended just then: free space there if it is full, and record again", MAGIC.len()
    )]
    NeverBegun,
    /// Nothing was ever written.
    #[error(
        "it is empty: not a recording, or one that was never begun, since the disk was full, or who \
         writes it ended just then: free space there if it is full, and record again"
    )]
    NoBytes,
    /// Fewer bytes than a header has.
    #[error(
        "cut off in the header: {len} bytes found, at least {expected} expected; \
         free space there if the disk is full, and record again"
    )]
    TooShort {
        /// Bytes found.
        len: usize,
        /// Bytes of the shortest header.
        expected: usize,
    },
    /// Written in a way that this reader does not know.
    #[error(
        "written in format version {version}, which needs a reader of version {reader_min} or \
         later; this one reads up to version {VERSION}: update chase"
    )]
    LaterVersion {
        /// The writer's version.
        version: u32,
        /// The oldest reader that understands it.
        reader_min: u32,
    },
    /// Other bytes than [`syscalls::MAGIC`] at the start of a `.syscalls` file.
    #[error(
        "no system calls: it begins with {found}, a .syscalls file with \"{}\"; \
         they are written by chase-companion beside a recording",
        syscalls::MAGIC.escape_ascii()
    )]
    NotSyscalls {
        /// The first bytes, escaped.
        found: String,
    },
    /// A `.syscalls` file written in a way that this reader does not know.
    #[error(
        "system calls written in version {version}, which needs a reader of version {reader_min} \
         or later; this one reads up to version {}: update chase",
        syscalls::VERSION
    )]
    LaterSyscalls {
        /// The writer's version.
        version: u32,
        /// The oldest reader that understands it.
        reader_min: u32,
    },
    /// Recorded on another architecture.
    #[error(
        "recorded on a machine of ELF type {machine}, this reader knows type 62 (x86-64): \
         read it with a chase built for that machine"
    )]
    OtherMachine {
        /// ELF machine number found.
        machine: u32,
    },
}

/// Something that is not as it should be. The rest of the recording could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file ends early.
    #[error("the file is cut off at byte {len} of {committed}")]
    Truncated {
        /// Bytes found.
        len: u64,
        /// Bytes written.
        committed: u64,
    },
    /// [`Header::committed`](crate::layout::Header::committed) makes no sense.
    #[error("the header says that {found} bytes are in use, fewer than it has itself")]
    Committed {
        /// The number found.
        found: u64,
    },
    /// No chunk where one should begin.
    #[error("{len} bytes at byte {offset} are no chunk and were left out")]
    NotAChunk {
        /// Where.
        offset: u64,
        /// Up to the next chunk.
        len: u64,
    },
    /// A chunk that is longer than the file, or has no proper length.
    #[error("the chunk at byte {offset} claims {found} bytes, {available} are there")]
    ChunkLength {
        /// Where.
        offset: u64,
        /// Its length by its header.
        found: u64,
        /// Bytes up to the next chunk.
        available: u64,
    },
    /// A part of a chunk does not fit into it.
    #[error("the chunk at byte {offset} claims {found} {what}, it has room for {room}")]
    Count {
        /// Where the chunk is.
        offset: u64,
        /// What was counted.
        what: &'static str,
        /// The number claimed.
        found: u64,
        /// The number that fits; they were read.
        room: u64,
    },
    /// A thread record that contradicts itself or another one.
    #[error("the thread record at byte {offset} has {what} {found} and was left out")]
    ThreadRecord {
        /// Where.
        offset: u64,
        /// What is wrong.
        what: &'static str,
        /// The value found.
        found: u32,
    },
    /// Contexts of a thread that has no record.
    #[error("thread {thread} has contexts but no record; its name, start and end are not known")]
    ThreadMissing {
        /// Number of the thread.
        thread: u32,
    },
    /// Contexts whose caller is missing, or is among their own callees.
    #[error("{count} contexts of thread {thread} have no caller; they stand at the top")]
    Orphans {
        /// Number of the thread.
        thread: u32,
        /// How many.
        count: u32,
    },
    /// Contexts of sampled calls without what is known of the samples.
    #[error("{count} contexts of thread {thread} lack their samples; their calls look untimed")]
    Samples {
        /// Number of the thread.
        thread: u32,
        /// How many.
        count: u32,
    },
    /// Histogram pages that are not where they are said to be.
    #[error("{count} histogram pages of thread {thread} are missing; their calls look unfinished")]
    Pages {
        /// Number of the thread.
        thread: u32,
        /// How many.
        count: u32,
    },
}
