//! Single system calls, to be written into the files of their processes.

use std::io;

use chase_format::syscalls::ToldRow;

use crate::file::SyscallsFile;
use crate::shared::Told;

/// The maximum number of system calls of a process: 92 MB of its file.
const MOST: u32 = 1 << 18;

/// Single system calls of one process that are not written yet.
#[derive(Debug, Default)]
pub struct Narration {
    waiting: Vec<ToldRow>,
    seen: u32,
    lost: u64,
}

impl Narration {
    /// Adds a system call.
    pub fn add(&mut self, told: &Told) {
        if self.seen == MOST {
            self.lost += 1;
            return;
        }
        self.seen += 1;
        self.waiting.push(ToldRow {
            context_ref: told.context,
            tid: told.tid,
            number: told.syscall,
            reserved: 0,
            entered_ns: told.entered_ns,
            left_ns: told.left_ns,
            result: told.result,
            arguments: told.arguments,
            object: told.object,
            mode: told.mode,
            lens: told.lens,
            reserved_too: 0,
            texts: told.texts,
            name: told.name,
        });
    }

    /// Writes them.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(&mut self, file: &mut SyscallsFile) -> io::Result<()> {
        for row in self.waiting.drain(..) {
            file.add_told(&row)?;
        }
        file.header.lost_told = file.header.lost_told.max(self.lost);
        Ok(())
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
