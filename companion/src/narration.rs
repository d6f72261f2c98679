//! Single system calls, to be written into the files of their processes.

use std::io;

use chase_format::syscalls::SingleSyscallRow;

use crate::file::SyscallsFile;
use crate::shared::SingleSyscall;

/// The maximum number of system calls of a process: 92 MB of its file.
const MOST: u32 = 1 << 18;

/// Single system calls of one process that are not written yet.
#[derive(Debug, Default)]
pub struct Narration {
    waiting: Vec<SingleSyscallRow>,
    seen: u32,
    lost: u64,
}

impl Narration {
    /// Adds a system call.
    pub fn add(&mut self, call: &SingleSyscall) {
        if self.seen == MOST {
            self.lost += 1;
            return;
        }
        self.seen += 1;
        self.waiting.push(SingleSyscallRow {
            context_ref: call.context,
            tid: call.tid,
            number: call.syscall,
            reserved: 0,
            entered_ns: call.entered_ns,
            left_ns: call.left_ns,
            result: call.result,
            arguments: call.arguments,
            object: call.object,
            mode: call.mode,
            lens: call.lens,
            reserved_too: 0,
            texts: call.texts,
            name: call.name,
        });
    }

    /// Writes them.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(&mut self, file: &mut SyscallsFile) -> io::Result<()> {
        for row in self.waiting.drain(..) {
            file.add_single_syscall(&row)?;
        }
        file.header.lost_single_syscalls = file.header.lost_single_syscalls.max(self.lost);
        Ok(())
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
