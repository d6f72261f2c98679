//! The clock that samples are taken by, without anybody who takes them.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

use anyhow::{Context, Result};

/// Samples a second, as the companion takes them.
const HZ: u64 = 997;

/// `struct perf_event_attr` as far as its first version goes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const CLOSE_ON_EXEC: u64 = 8;

/// Every CPU is interrupted so many times a second while this lives. What the interrupt has found is written nowhere.
pub(super) struct Clock(#[expect(dead_code, reason = "an open file is an interrupt")] Vec<File>);

impl Clock {
    pub(super) fn start() -> Result<Self> {
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
        let mut open = Vec::new();
        for range in cpus.trim().split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            for cpu in first.parse()?..=last.parse::<i32>()? {
                open.push(on(cpu).context("perf_event_open")?);
            }
        }
        Ok(Self(open))
    }
}

fn on(cpu: i32) -> io::Result<File> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        period: 1_000_000_000 / HZ,
        ..Attributes::default()
    };
    let at: *const Attributes = &raw const attributes;
    let [everybody, no_group] = [-1, -1];
    // SAFETY: the kernel reads as many bytes of the structure as its size says, and writes nothing.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, at, everybody, cpu, no_group, CLOSE_ON_EXEC)
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(descriptor as i32) })
}
