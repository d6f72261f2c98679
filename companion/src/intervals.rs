//! Single long waits, to be written into the files of their processes.

use std::io;

use chase_format::syscalls::{BlockedRow, NO_CAUSE};

use crate::file::SyscallsFile;
use crate::shared::{Interval, Wait};

/// The maximum number of long waits of a process: 2 MB of its file.
const MOST: u32 = 1 << 16;
/// The maximum number of times that others had the CPU: another 1 MB.
const MOST_PREEMPTED: u32 = MOST / 2;

/// Long waits of one process that are not written yet.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Each with the number of its cause in the eBPF program.
    waiting: Vec<(u32, BlockedRow)>,
    /// Times that others had the CPU.
    preempted: Vec<BlockedRow>,
    seen: u32,
    seen_preempted: u32,
    lost: u64,
    lost_preempted: u64,
}

impl Intervals {
    /// Adds a wait, whose cause may not be written yet.
    pub fn add(&mut self, interval: &Interval, wait: &Wait) {
        if self.seen == MOST {
            self.lost += 1;
            return;
        }
        self.seen += 1;
        let row = BlockedRow {
            cause: 0,
            tid: wait.key.tid,
            begin_ns: interval.begin_ns,
            woken_ns: interval.woken_ns,
            end_ns: interval.end_ns,
        };
        self.waiting.push((interval.wait, row));
    }

    /// Adds a time that others had the CPU. Those beyond the maximum are counted: the thread seems to be busy then.
    pub fn add_preempted(&mut self, interval: &Interval) {
        if self.seen_preempted == MOST_PREEMPTED {
            self.lost_preempted += 1;
            return;
        }
        self.seen_preempted += 1;
        self.preempted.push(BlockedRow {
            cause: NO_CAUSE,
            tid: interval.tid,
            begin_ns: interval.begin_ns,
            woken_ns: interval.begin_ns,
            end_ns: interval.end_ns,
        });
    }

    /// Writes the waits whose cause is written; `place` returns the cause's index in the file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(
        &mut self,
        file: &mut SyscallsFile,
        place: impl Fn(u32) -> Option<u32>,
    ) -> io::Result<()> {
        for row in self.preempted.drain(..) {
            file.add_blocked(&row)?;
        }
        let mut later = Vec::new();
        for (wait, row) in self.waiting.drain(..) {
            match place(wait) {
                Some(cause) => file.add_blocked(&BlockedRow { cause, ..row })?,
                None => later.push((wait, row)),
            }
        }
        self.waiting = later;
        file.header.lost_blocked = file.header.lost_blocked.max(self.lost);
        file.header.lost_preempted = file.header.lost_preempted.max(self.lost_preempted);
        Ok(())
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_written = self.waiting.is_empty() && self.preempted.is_empty();
        is_written && self.lost == 0 && self.lost_preempted == 0
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use chase_format::syscalls::SyscallsHeader;

    use super::*;

    #[test]
    fn times_beyond_the_maximum_are_counted() {
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let mut file = SyscallsFile::create(&path, SyscallsHeader::zeroed()).expect("a file");
        let interval = Interval { wait: 0, tid: 7, begin_ns: 1, woken_ns: 0, end_ns: 2_000_001 };
        let mut intervals =
            Intervals { seen_preempted: MOST_PREEMPTED - 1, ..Intervals::default() };
        for _ in 0..3 {
            intervals.add_preempted(&interval);
        }
        assert_eq!(intervals.preempted.len(), 1);
        intervals.write(&mut file, |_| None).expect("written");
        assert_eq!((file.header.lost_preempted, file.header.lost_blocked), (2, 0));
        assert!(!intervals.is_empty(), "so that the count is written");
    }
}
