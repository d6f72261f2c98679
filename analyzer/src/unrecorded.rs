//! Processes without a recording, which only have a `.syscalls` file: static programs, and images that ended before
//! they were hooked.

use std::path::{Path, PathBuf};

use chase_recorder::layout::{
    CLOCK_MONOTONIC, ClockPair, EXTENSION, Header, MAGIC, ORIGIN_EXEC, ORIGIN_FORK, READER_MIN,
    VERSION,
};
use chase_recorder::syscalls::{self, SyscallsHeader};

/// Returns the path of the `.syscalls` file beside a recording.
pub(crate) fn file_of(recording: &Path) -> PathBuf {
    let mut path = recording.as_os_str().to_owned();
    path.push(".");
    path.push(syscalls::EXTENSION);
    path.into()
}

/// Whether `path` is that of a `.syscalls` file without a recording beside it.
pub(crate) fn is_alone(path: &Path) -> bool {
    let is_syscalls = path.extension().is_some_and(|extension| extension == syscalls::EXTENSION);
    let recording = path.with_extension("");
    is_syscalls
        && !(recording.extension().is_some_and(|extension| extension == EXTENSION)
            && recording.is_file())
}

/// Makes the header that the process's recording would have, as far as its file shows: with an end of unknown kind,
/// and a clock that needs no calibration.
pub(crate) fn header(file: &SyscallsHeader) -> Header {
    let moment = |ns: u64| ClockPair {
        ticks: ns,
        monotonic_ns: ns,
        realtime_ns: file.began_realtime_ns.saturating_add(ns.saturating_sub(file.began_ns)),
    };
    let end_ns = if file.ended_ns != 0 { file.ended_ns } else { file.written_ns };
    let end_ns = end_ns.max(file.began_ns);
    let is_exec = file.parent_pid == file.pid;
    Header {
        magic: MAGIC,
        version: VERSION,
        reader_min: READER_MIN,
        machine: 62,
        header_len: size_of::<Header>() as u32,
        boot_id: file.boot_id,
        pid: file.pid,
        parent_pid: file.parent_pid,
        origin: if is_exec { ORIGIN_EXEC } else { ORIGIN_FORK },
        clock_kind: CLOCK_MONOTONIC,
        clock_start: moment(file.began_ns),
        clock_latest: moment(end_ns),
        end_ticks: file.ended_ns,
        ..bytemuck::Zeroable::zeroed()
    }
}

/// Whether a header was made by [`header`].
pub(crate) fn is_header_of(header: &Header) -> bool {
    (header.process_start, header.session, header.process_group) == (0, 0, 0)
}

/// Whether it is a further image of a process.
pub(crate) fn is_exec(header: &Header) -> bool {
    is_header_of(header) && header.parent_pid == header.pid
}
