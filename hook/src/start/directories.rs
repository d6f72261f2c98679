//! Directories for recordings.

use crate::{maps, sys};
use chase_logic::text::Text;

/// Creates the directory and those above it; errors show when the file is created. Under `chroot` none is created:
/// the path is meant for the system outside.
pub(super) fn make_directories(directory: &Text<4096>) {
    if !is_root_mounted() {
        return;
    }
    let mut path = Text::<4096>::new();
    for component in directory.as_bytes().split(|&byte| byte == b'/').filter(|c| !c.is_empty()) {
        path.push(b"/").push(component);
        let _ = sys::mkdir(path.as_c_str());
    }
}

/// Whether something is mounted on the process's root directory, as always except under `chroot`. False if that can't
/// be found out.
fn is_root_mounted() -> bool {
    const MOUNT_POINT: usize = 4;
    maps::any_line(c"/proc/self/mountinfo", |line| {
        line.split(|&byte| byte == b' ').nth(MOUNT_POINT) == Some(b"/")
    })
}
