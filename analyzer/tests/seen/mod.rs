//! A pool of threads and the system calls that a companion has seen of them.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use chase_analyzer::recorder::builder::{SlotId, SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::syscalls::{CauseRow, FILE_NAME, FileRow};

use crate::pool::{MS, Outcome, Pool};

/// Threads with their start routines, each of which makes calls of a function, and in them system calls.
pub struct Seen {
    pub pool: Pool,
    pub pid: u32,
    pub threads: Vec<ThreadId>,
    pub file: SyscallsBuilder,
}

impl Seen {
    pub fn new() -> Self {
        let pool = Pool::new();
        let pid = pool.process.builder.header.pid;
        Self { pool, pid, threads: Vec::new(), file: SyscallsBuilder::new(pid) }
    }

    pub fn function(&mut self, name: &str) -> SlotId {
        let (app, liba) = (self.pool.process.app, self.pool.process.liba);
        self.pool.process.builder.slot(app, Some(liba), name)
    }

    /// A thread that makes `calls` calls of `function` in a second, and as many system calls of `each_ns`.
    pub fn thread(
        &mut self,
        routine: u64,
        function: SlotId,
        (number, calls, each_ns): (u32, u64, u64),
    ) -> u32 {
        let thread = self.pool.thread("worker", routine);
        self.pool.call(thread, function, each_ns, calls);
        self.pool.call(thread, self.pool.work, (1000 * MS - calls * each_ns) / 10, 10);
        self.pool.process.builder.timeline(thread).end();
        self.threads.push(thread);
        let tid = self.pid + thread.0;
        self.file.on_cpu(tid, 1000 * MS);
        // The first context below the root is that of the function; its reference is known at the end.
        self.file.syscall(1, tid, number, calls, each_ns);
        tid
    }

    pub fn cause(
        &mut self,
        tid: u32,
        number: u32,
        name: &str,
        ns: u64,
        waits: u64,
    ) -> &mut CauseRow {
        let mut row = CauseRow {
            context_ref: 1,
            tid,
            number,
            object: 7,
            waits,
            total_ns: ns,
            max_ns: ns / waits,
            ..bytemuck::Zeroable::zeroed()
        };
        row.name[..name.len()].copy_from_slice(name.as_bytes());
        self.file.cause(row);
        self.file.causes.last_mut().expect("a row")
    }

    pub fn used(&mut self, tid: u32, number: u32, mode: u32, name: &str) {
        let mut file = [0; FILE_NAME];
        file[..name.len()].copy_from_slice(name.as_bytes());
        let row = FileRow { context_ref: 1, tid, number, mode, inode: 7, samples: 99, name: file };
        self.file.file(row);
    }

    pub fn finish(self) -> Outcome {
        let (pid, mut file) = (self.pid, self.file);
        self.pool.finish_seen(|refs| {
            let own = |tid: u32, context: u32| {
                if context == 1 { refs[(tid - pid) as usize][1] } else { context }
            };
            for row in &mut file.syscalls {
                row.context_ref = own(row.tid, row.context_ref);
            }
            for row in &mut file.causes {
                row.context_ref = own(row.tid, row.context_ref);
                row.holder_context_ref = own(row.holder, row.holder_context_ref);
            }
            for row in &mut file.files {
                row.context_ref = own(row.tid, row.context_ref);
            }
            file
        })
    }
}
