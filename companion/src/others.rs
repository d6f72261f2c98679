//! Other companions on this machine. One that only waits for a next run still slows all system calls of the machine, and so
//! those of a run with a companion of its own.

use std::fs;

use chase_format::session::DISMISS;

const _: () = assert!(DISMISS == libc::SIGUSR1);
/// The companion's name as the kernel stores it, in at most 15 characters.
const NAME: &str = "chase-companion";

/// Asks this user's other companions to end as soon as they have nothing to watch.
pub fn dismiss() {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids.filter(|&pid| pid != own && is_companion(pid)) {
        // SAFETY: the process handles the signal. For another user's process, the kernel refuses.
        unsafe { libc::kill(pid, DISMISS) };
    }
}

/// Whether this is a companion that handles the signal.
fn is_companion(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let caught = value("SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    value("Name:") == Some(NAME) && caught.is_some_and(|mask| mask & (1 << (DISMISS - 1)) != 0)
}
