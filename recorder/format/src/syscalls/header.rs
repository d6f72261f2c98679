//! The header of a `.syscalls` file.

use bytemuck::{Pod, Zeroable};

#[cfg(doc)]
use super::{MAGIC, VERSION};

/// The first page of a `.syscalls` file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SyscallsHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The oldest reader version that can read this file.
    pub reader_min: u32,
    /// Size of this structure in bytes, as known to the writer.
    pub header_len: u32,
    /// `STATE_*`.
    pub state: u32,
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// The traced process that it was forked from (its own number after an exec); 0 if unknown.
    pub parent_pid: u32,
    /// Bytes of the file that hold this page and chunks with complete headers.
    pub committed: u64,
    /// When the tracing of this image began, in ns of `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// The same moment in ns since 1970.
    pub began_realtime_ns: u64,
    /// When its last thread ended; 0 while it lives.
    pub ended_ns: u64,
    /// When rows were last written.
    pub written_ns: u64,
    /// The overhead of tracing that is in each call's duration.
    pub cost_inside_ns: u64,
    /// The overhead of tracing per call that is not in its duration.
    pub cost_outside_ns: u64,
    /// Calls of all processes of the run for which there was no room for a row.
    pub lost_calls: u64,
    /// Waits of all processes of the run for which there was no room for a row.
    pub lost_waits: u64,
    /// Processes of the run that could not be traced for lack of room.
    pub lost_processes: u64,
    /// Threads of the run that could not be traced for lack of room.
    pub lost_threads: u64,
    /// Images of the run whose tracing was stopped because they are set-user-id or set-group-id.
    pub dropped_images: u64,
    /// `/proc/sys/kernel/random/boot_id`, zero when it could not be read.
    pub boot_id: [u8; 16],
    /// Name of the process when the image began, NUL-padded.
    pub name: [u8; 16],
    /// Samples per second and CPU; 0 if none are taken. (Missing in older files, like the fields that follow.)
    pub sample_hz: u64,
    /// Samples of all processes of the run for which there was no room.
    pub lost_samples: u64,
    /// Processor time of the companion up to now, for all processes that it watches, in ns.
    pub companion_cpu_ns: u64,
    /// 1 if samples were taken without privilege, and so only in user space, and nothing else was observed. Each
    /// stands for a fraction of a second, one over `sample_hz`; the rest of a thread's processor time was in the
    /// kernel.
    pub user_only: u64,
    /// Waits of all processes of the run for whose cause there was no room.
    pub lost_causes: u64,
    /// Single system calls for which there was no room: of this process, or of the whole run.
    pub lost_single_syscalls: u64,
    /// The number of processors of the machine; 0 if unknown.
    pub processors: u64,
    /// A lower bound of the long waits that have no row of their own: of this process, or of the whole run.
    pub lost_blocked: u64,
    /// The same of long times in which others had the CPU.
    pub lost_preempted: u64,
    /// Waits for descriptors of all processes of the run that end no turn, for lack of room.
    pub lost_turns: u64,
    /// How many processors the process may use at once by its control group, in thousandths: what the tightest limit of that group and
    /// those above it allows in each period. 0: as many as there are, or unknown. (The fields that follow are about this limit, since
    /// the companion first wrote of the process. What other processes of the group use counts, too.)
    pub quota: u64,
    /// Periods in which the group ran.
    pub quota_periods: u64,
    /// The periods of these in which it had used up what it may, and had to wait for the next.
    pub quota_spent_periods: u64,
    /// How long it had to wait, summed over processors.
    pub quota_waited_ns: u64,
    /// The group with this limit: the end of its path, NUL-padded.
    pub quota_group: [u8; QUOTA_GROUP],
}

/// Bytes of [`SyscallsHeader::quota_group`].
pub const QUOTA_GROUP: usize = 96;
