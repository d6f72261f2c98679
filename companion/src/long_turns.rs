//! Single long turns, to be written into the files of their processes.

use std::io;

use chase_format::syscalls::LongTurnRow;

use crate::file::SyscallsFile;
use crate::shared::Turn;

/// The maximum number of long turns of a process: 0.8 MB of its file. Later ones are only in the sums.
const MOST: u32 = 1 << 14;

/// Long turns of one process that are not written yet.
#[derive(Debug, Default)]
pub struct LongTurns {
    waiting: Vec<LongTurnRow>,
    seen: u32,
}

impl LongTurns {
    /// Adds a turn.
    pub fn add(&mut self, turn: &Turn) {
        if self.seen == MOST {
            return;
        }
        self.seen += 1;
        self.waiting.push(LongTurnRow {
            tid: turn.tid,
            descriptor: turn.descriptor,
            ready: turn.ready,
            begun_with: turn.begun_with,
            begin_ns: turn.begin_ns,
            end_ns: turn.end_ns,
            blocked_ns: turn.blocked_ns,
            preempted_ns: turn.preempted_ns,
        });
    }

    /// Writes them.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(&mut self, file: &mut SyscallsFile) -> io::Result<()> {
        for row in self.waiting.drain(..) {
            file.add_long_turn(&row)?;
        }
        Ok(())
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
