//! A pool of threads to be described by each test, and what is said of it.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use chase_analyzer::recorder::builder::{SlotId, SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::{
    Analysis, Finding, FindingKind, Groups, Image, Selection, Tails, Unnamed, Watched, findings,
};

use crate::process::Process;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// A process whose threads call `work` and wait.
pub struct Pool {
    pub process: Process,
    pub work: SlotId,
    pub other: SlotId,
    pub lock: SlotId,
    pub barrier: SlotId,
    pub condition: SlotId,
    pub signal: SlotId,
    pub join: SlotId,
}

/// What came out.
pub struct Outcome {
    pub analysis: Analysis,
    pub groups: Groups,
    pub tails: Tails,
    pub findings: Vec<Finding>,
    pub watched: Watched,
}

impl Pool {
    pub fn new() -> Self {
        let mut process = Process::new();
        let (app, liba) = (process.app, process.liba);
        let mut slot = |name| process.builder.slot(app, Some(liba), name);
        let (work, other) = (slot("work"), slot("other"));
        let (lock, barrier) = (slot("pthread_mutex_lock"), slot("pthread_barrier_wait"));
        let (condition, signal) = (slot("pthread_cond_wait"), slot("pthread_cond_signal"));
        let join = slot("pthread_join");
        Self { process, work, other, lock, barrier, condition, signal, join }
    }

    /// A thread with the start routine `routine`.
    pub fn thread(&mut self, name: &str, routine: u64) -> ThreadId {
        let avma = self.process.builder.object_mut(self.process.app).bias + 0x1000 + routine;
        let thread = self.process.builder.thread(name);
        self.process.builder.thread_mut(thread).start_routine_avma = avma;
        thread
    }

    pub fn workers(&mut self, count: usize, mut live: impl FnMut(&mut Self, usize, ThreadId)) {
        for number in 0..count {
            let thread = self.thread(&format!("worker-{number}"), 0x100);
            live(self, number, thread);
            self.process.builder.timeline(thread).end();
        }
    }

    /// These threads run something of a library.
    pub fn start_in(&mut self, library: &str, threads: &[ThreadId]) {
        let object = self.process.builder.object(library);
        let avma = self.process.builder.code_address(object, 0x40);
        for &thread in threads {
            self.process.builder.thread_mut(thread).start_routine_avma = avma;
        }
    }

    pub fn call(&mut self, thread: ThreadId, slot: SlotId, ticks: u64, times: u64) {
        self.process.builder.timeline(thread).calls(slot, ticks, times);
    }

    /// The main thread waits for all others.
    pub fn finish(mut self) -> Outcome {
        self.end();
        outcome(vec![self.process.image()])
    }

    /// The same, watched by a companion; `seen` gets the references of contexts.
    pub fn finish_seen(self, seen: impl FnOnce(&[Vec<u32>]) -> SyscallsBuilder) -> Outcome {
        self.finish_beside(Vec::new(), seen)
    }

    /// The same for the first one of several processes.
    pub fn finish_beside(
        mut self,
        others: Vec<Image>,
        seen: impl FnOnce(&[Vec<u32>]) -> SyscallsBuilder,
    ) -> Outcome {
        self.end();
        let file = seen(&self.process.builder.context_refs()).build();
        let file = SyscallsFile::parse(file).expect("a file");
        let mut images = vec![self.process.image().with_syscalls(Some(file))];
        images.extend(others);
        outcome(images)
    }

    fn end(&mut self) {
        let start = self.process.builder.header.clock_start.ticks;
        let now = self.process.builder.now_ticks();
        let (main, join) = (self.process.main, self.join);
        self.process.builder.timeline(main).call(join, now - start).end();
    }
}

pub fn outcome(images: Vec<Image>) -> Outcome {
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    let watched = Watched::new(&images, &analysis, &groups, &Unnamed);
    let findings = findings(&analysis, &groups, &tails, &watched);
    Outcome { analysis, groups, tails, findings, watched }
}

impl Outcome {
    /// The only finding: its kind, and API, threads and saving, which is right within 1 %.
    pub fn only(&self, api: Option<&str>, threads: &[u32], saves_ns: u64) -> &FindingKind {
        let [finding] = &*self.findings else { panic!("{:#?}", self.findings) };
        assert_eq!(self.api(finding.api), api);
        assert_eq!(finding.threads, threads);
        let error = finding.saves_ns.as_f64() / saves_ns as f64 - 1.0;
        assert!(error.abs() < 0.01, "{:?}, not {saves_ns}", finding.saves_ns);
        &finding.kind
    }

    pub fn api(&self, number: Option<u32>) -> Option<&str> {
        number.map(|number| self.analysis.apis[number as usize].symbol.as_str())
    }

    pub fn group(&self, threads: usize) -> &chase_analyzer::GroupRow {
        let mut rows = self.groups.rows.iter().filter(|row| row.threads == threads);
        let row = rows.next().expect("a group of that size");
        assert!(rows.next().is_none());
        row
    }
}
