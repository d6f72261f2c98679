//! Other companions: those that only linger for a next run slow all system calls of the machine, also those of a run that has a companion of its own.

use std::fs;

/// Asks a companion to end as soon as it has nobody to watch.
pub const DISMISS: i32 = libc::SIGUSR1;
/// As the kernel has it, of at most 15 characters.
const NAME: &str = "chase-companion";

/// Asks all others that are this user's to end as soon as they have nobody to watch.
pub fn dismiss() {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids.filter(|&pid| pid != own && is_companion(pid)) {
        // SAFETY: it is sent to one that handles it; of another user, the kernel refuses.
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
