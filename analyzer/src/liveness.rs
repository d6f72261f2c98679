//! Whether a process is still running.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use chase_recorder::boot;
use chase_recorder::layout::Header;

/// Whether the process is running now, on this machine and in this namespace of process ids: same boot, and a process with the same id
/// and start time.
pub fn is_running(header: &Header) -> bool {
    // Read only once: there may be very many recordings.
    static BOOT_ID: LazyLock<[u8; 16]> = LazyLock::new(|| {
        boot::parse(&fs::read(OsStr::from_bytes(boot::FILE.to_bytes())).unwrap_or_default())
    });
    let is_of_this_boot = *BOOT_ID == header.boot_id && header.boot_id != [0; 16];
    if !is_of_this_boot || header.process_start == 0 {
        return false;
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", header.pid)).unwrap_or_default();
    // Fields are counted after the name, which may contain blanks and brackets. A zombie has ended.
    let mut fields = stat.rsplit_once(") ").unwrap_or_default().1.split(' ');
    let state = fields.next().unwrap_or("Z");
    let start = fields.nth(18).and_then(|field| field.parse().ok());
    state != "Z" && state != "X" && start == Some(header.process_start)
}

/// Reads the present first argument of a running process: its title, if it has set one.
pub(crate) fn title(header: &Header) -> Option<String> {
    let shown = fs::read(format!("/proc/{}/cmdline", header.pid)).ok()?;
    let title = String::from_utf8_lossy(shown.split(|&byte| byte == 0).next()?).into_owned();
    // The pid may have been reused in the meantime.
    is_running(header).then_some(title)
}
