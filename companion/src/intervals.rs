//! Single long waits, to be written into the files of their processes.

use std::io;

use chase_format::syscalls::BlockedRow;

use crate::file::SyscallsFile;
use crate::shared::{Interval, Wait};

/// The maximum number of long waits of a process: 2 MB of its file.
const MOST: u32 = 1 << 16;

/// Long waits of one process that are not written yet.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Each with the number of its cause in the eBPF program.
    waiting: Vec<(u32, BlockedRow)>,
    seen: u32,
    lost: u64,
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

    /// Writes the waits whose cause is written; `place` returns the cause's index in the file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(
        &mut self,
        file: &mut SyscallsFile,
        place: impl Fn(u32) -> Option<u32>,
    ) -> io::Result<()> {
        let mut later = Vec::new();
        for (wait, row) in self.waiting.drain(..) {
            match place(wait) {
                Some(cause) => file.add_blocked(&BlockedRow { cause, ..row })?,
                None => later.push((wait, row)),
            }
        }
        self.waiting = later;
        file.header.lost_blocked = file.header.lost_blocked.max(self.lost);
        Ok(())
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.lost == 0
    }
}
