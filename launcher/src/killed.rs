//! Which signal killed the program: it can't record that itself, and who started it is told.

use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use chase_format::layout::{END_NONE, Header, MAGIC};

/// Notes it in a recording, if that is one of the process, which has ended, and began after `since`.
///
/// # Errors
/// If it can't be read or written.
pub(crate) fn note(recording: &Path, pid: i32, since: SystemTime, signal: i32) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).write(true).custom_flags(flags).open(recording)?;
    let mut bytes = [0; size_of::<Header>()];
    file.read_exact_at(&mut bytes, 0)?;
    let header: Header = bytemuck::pod_read_unaligned(&bytes);
    let begun = SystemTime::UNIX_EPOCH + Duration::from_nanos(header.clock_start.realtime_ns);
    let is_its = header.magic == MAGIC && header.pid == pid as u32 && begun >= since;
    if is_its && (header.end_kind, header.end_status) == (END_NONE, 0) {
        file.write_all_at(&signal.to_ne_bytes(), offset_of!(Header, end_status) as u64)?;
    }
    Ok(())
}
