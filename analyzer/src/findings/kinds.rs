//! The kinds of findings.

use serde::Serialize;

use super::parts::{Inside, SubGroupSummary};
use crate::clock::Ns;
use crate::groups::Why;
use crate::watched::FileKind;
#[cfg(doc)]
use crate::{Analysis, Groups};

/// What was found. Times are of the thread that gains most unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "evidence")]
pub enum FindingKind {
    /// Threads that took longer than others of their group.
    SlowThreads {
        /// Useful time in the API.
        useful_ns: Ns,
        /// Median of the group.
        median_ns: Ns,
        /// Number of robust standard deviations above it.
        score: f64,
        /// The number of threads that it was compared with.
        of_threads: usize,
        /// Excess of all threads concerned.
        excess_ns: Ns,
        /// Whether rates were compared, scaled to this thread's lifetime.
        as_rates: bool,
        /// Whether it calls the API more often, with more to do, or each call takes longer; `None` for own code.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
    },
    /// The first call of an API took longer than later ones.
    SlowFirstCall {
        /// The first call.
        first_ns: Ns,
        /// Median of the thread's calls.
        median_ns: Ns,
        /// The number of the thread's calls.
        calls: u64,
        /// Excess of all threads concerned.
        excess_ns: Ns,
        /// The innermost library call inside that took most of it, if it was made too rarely to have a usual
        /// duration.
        inside: Option<Inside>,
    },
    /// A few calls took most of the time.
    RareSlowCalls {
        /// Calls of the API by the threads of the group.
        calls: u64,
        /// The number of slow calls.
        slow_calls: u64,
        /// Their total time.
        slow_ns: Ns,
        /// Their excess over the median, in all threads.
        excess_ns: Ns,
        /// Median of all calls.
        median_ns: Ns,
        /// The longest.
        max_ns: Ns,
    },
    /// Threads wait for a lock that others of them hold.
    SerialisingLock {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// The library call in which the lock was taken, if it was one.
        inside: Option<u32>,
        /// Other groups that wait for the same lock, by number in [`Groups::rows`](crate::Groups::rows).
        others: Vec<u32>,
    },
    /// Other threads wait for one at a barrier.
    BarrierStraggler {
        /// Useful time in the API.
        useful_ns: Ns,
        /// Median of the group.
        median_ns: Ns,
        /// How long the straggler waited at barriers.
        own_wait_ns: Ns,
        /// Like that of [`SlowThreads`](FindingKind::SlowThreads).
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<Why>,
        /// How long the median thread waited there.
        median_wait_ns: Ns,
        /// Waits of all others.
        all_wait_ns: Ns,
    },
    /// Consumers wait for a producer that is busy.
    StarvedConsumers {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all consumers.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// The producer, by number in [`Analysis::threads`].
        producer: u32,
        /// Useful time of the producer as a share of its lifetime.
        producer_busy: f64,
        /// How often it signalled.
        signals: u64,
    },
    /// Most of the time is spent in very many short calls.
    ManyTinyCalls {
        /// Calls of all threads of the group.
        calls: u64,
        /// Mean self time.
        mean_ns: f64,
        /// Self time of all threads in them.
        all_ns: Ns,
        /// The same as a share of the group's lifetimes, without waits for a processor.
        of_lifetime: f64,
        /// How long the threads waited for a processor, in total.
        runnable_ns: Ns,
    },
    /// A writer waits for readers that take the lock one after the other.
    StarvedWriter {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
    },
    /// Threads wait for each other inside the allocator.
    AllocatorContention {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
    },
    /// Threads wait for the lock of the Python interpreter.
    InterpreterLock {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// Other groups that wait for it, by number in [`Groups::rows`](crate::Groups::rows).
        others: Vec<u32>,
    },
    /// Threads wait for the right to change, or to read, the map of their process's memory (in the kernel, `mmap_lock`).
    MemoryMapLock {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// Other groups that wait for it, by number in [`Groups::rows`](crate::Groups::rows).
        others: Vec<u32>,
    },
    /// Other groups wait for this one, which waits for no other: a slow producer, consumer, or stage of a pipeline.
    LimitingStage {
        /// Whether the others wait for the end of a parallel region of OpenMP, which these threads have a larger part of.
        is_region: bool,
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads that wait for it.
        all_wait_ns: Ns,
        /// The groups that wait, the one that gains most first, by number in [`Groups::rows`](crate::Groups::rows).
        waiting: Vec<u32>,
        /// What it waits itself, for others and for anything else, as a share of its life: mostly for the disk, if it is much.
        own_wait: f64,
        /// The API in which it waits longest, if that is a fifth of its life.
        own_wait_in: Option<u32>,
    },
    /// Threads sleep for each thing that they are handed, while others wait for them, or what is left of these things grows.
    SleepingStage {
        /// How often they sleep.
        sleeps: u64,
        /// How long each time, on average.
        mean_ns: f64,
        /// How long together.
        slept_ns: Ns,
        /// The group that hands over what they sleep for, by number in [`Groups::rows`](crate::Groups::rows).
        waiting: u32,
        /// How long that waits for them, together; 0 if it does not.
        all_wait_ns: Ns,
        /// How long they sleep on when all is handed over.
        sleeps_on_ns: Ns,
    },
    /// Threads of a group wait for each other most of the time, at conditions or descriptors: by a lock that a runtime or a
    /// database makes of these, or because each needs what another one has.
    MutualWaits {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads for others of the group.
        all_wait_ns: Ns,
        /// The same as a share of their lifetimes.
        of_lifetime: f64,
        /// The number of threads.
        of_threads: usize,
    },
    /// One thread is the last at most barriers, whatever it does meanwhile.
    LateAtBarrier {
        /// The longest wait of another thread.
        wait_ns: Ns,
        /// Waits of all others.
        all_wait_ns: Ns,
        /// Threads of the group.
        of_threads: usize,
    },
    /// One thread of a group, or of those of several groups that were started together, ends long after the others, while the
    /// one that started them waits for that. What it does meanwhile is in [`Watched::late`](crate::Watched::late).
    LastToEnd {
        /// Its lifetime.
        lifetime_ns: Ns,
        /// Median lifetime of the others.
        median_ns: Ns,
        /// How many were started together.
        of_threads: usize,
    },
    /// While one thread of a group still works, the others wait for more to do.
    UnevenWork {
        /// The number of times in which the group had something to do and one was alone with it.
        batches: u64,
        /// How long it had something to do that somebody waited for, in total.
        all_ns: Ns,
        /// The part in which one thread worked alone.
        alone_ns: Ns,
        /// The part of that which the thread that was alone for longest was.
        longest_ns: Ns,
        /// The number of others that wait for more to do, in the longest of these times.
        parked: usize,
        /// Threads of the group.
        of_threads: usize,
        /// The group that waits for them, by number in [`Groups::rows`](crate::Groups::rows).
        waiting: u32,
        /// More of it, by number in [`Watched::uneven`](crate::Watched::uneven).
        #[serde(skip)]
        uneven: u32,
    },
    /// More threads are ready to run than there are processors, or than those that they may run on. Fewer threads would be done as soon.
    TooManyThreads {
        /// How many were running or ready to run, on average.
        runnable: f64,
        /// Processors that they may run on.
        processors: u64,
        /// Processors of the machine.
        of_machine: u64,
        /// How long they waited for a processor, in total.
        waiting_ns: Ns,
        /// The same as a share of the time that they wanted one.
        of_wanted: f64,
    },
    /// Threads wait for a processor because their control group has used up the time that it may use in each period.
    UsedUpQuota {
        /// How many processors the group may use at once.
        processors: f64,
        /// The end of its path.
        control_group: String,
        /// Periods in which it ran.
        periods: u64,
        /// Those of them in which it had to wait for the next.
        used_up_in: u64,
        /// How long threads waited for a processor, in total, for whatever reason; `None` if that was not observed.
        waiting_ns: Option<Ns>,
        /// The same as a share of the time that they wanted one.
        of_wanted: Option<f64>,
    },
    /// A file, a pipe or a connection is read or written in small pieces.
    SmallTransfers {
        /// The system call.
        syscall: String,
        /// How often the threads of the group made it, in the function.
        calls: u64,
        /// Bytes per call, on average.
        mean_bytes: f64,
        /// Nine of ten calls ask for this many bytes, up to the next power of two; `None` if sizes differ or are
        /// unknown.
        usual_bytes: Option<u64>,
        /// Time on the CPU in them.
        all_ns: Ns,
        /// What is read or written.
        of: FileKind,
        /// Whether it is more than one.
        several: bool,
    },
    /// Files are repeatedly written to the disk (`fsync` and similar, or writes that wait for it).
    Syncing {
        /// The system call in which most of the time is spent.
        syscall: String,
        /// Calls by the threads of the group, in the function.
        calls: u64,
        /// Their total time.
        all_ns: Ns,
        /// The number of files that they waited for, as far as these are known.
        files: usize,
        /// The share that the named one has of these waits.
        of_file: Option<f64>,
        /// Whether it is the writes themselves that wait for the disk (`O_SYNC`, `O_DIRECT`); `all_ns` is how long, then.
        by_writes: bool,
    },
    /// A file is opened, asked about, or looked for in vain, again and again.
    LookedUpAgain {
        /// How often the threads of the group look it up, in all functions.
        lookups: u64,
        /// The same in the function that takes longest.
        calls: u64,
        /// How often it is opened.
        opened: u64,
        /// Whether it is not there.
        in_vain: bool,
        /// The number of other files that are looked up in turns with it.
        others: usize,
        /// Whether the C library asks which time is the local one, because `TZ` does not say so.
        is_local_time: bool,
        /// Time in these system calls, and in those that read and close what was opened.
        all_ns: Ns,
        /// The part of it off the processor.
        waiting_ns: Ns,
    },
    /// What can be kept is made again and again.
    MadeAgain {
        /// Calls of the function by the threads of the group.
        calls: u64,
        /// Their total time.
        all_ns: Ns,
        /// The part of it in which they wait.
        waiting_ns: Ns,
        /// What a thread that calls it does.
        does: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// Names of hosts are looked up.
    NameResolution {
        /// Calls by the threads of the group.
        calls: u64,
        /// Their total time.
        all_ns: Ns,
    },
    /// The peer of a connection is slow to answer.
    SlowPeer {
        /// Waits of all threads of the group.
        waits: u64,
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads as a share of their lifetimes.
        of_lifetime: f64,
    },
    /// What is sent on a connection in pieces waits for delayed acknowledgements.
    DelayedAcknowledgements {
        /// How often.
        waits: u64,
        /// Median of these waits.
        median_ns: Ns,
        /// Their total time.
        all_ns: Ns,
        /// What the thread sends in all, on whatever connection: the number of calls.
        sends: u64,
    },
    /// Threads check again and again whether there is something to do.
    Polling {
        /// How often they waited for time to pass.
        waits: u64,
        /// How long these waits were on average.
        mean_ns: f64,
        /// Waits of a thread per second.
        per_second: f64,
    },
    /// A timer (`timerfd`) wakes threads often, which do next to nothing then.
    IdleTimer {
        /// How often they waited for it.
        waits: u64,
        /// Waits of a thread per second.
        per_second: f64,
        /// How long these waits were on average.
        mean_ns: f64,
        /// How long a thread runs after each, on average: without what the kernel does for it, and chase.
        runs_ns: Ns,
    },
    /// A thread that serves whoever is ready takes much longer than usual at times, while others wait for it.
    EventLoopHeldUp {
        /// How often it took its turn.
        turns: u64,
        /// How often it took much longer than usual, while something was ready.
        held_up: u64,
        /// Half of its turns take less than this.
        usual_ns: Ns,
        /// The longest turn, without time in which others had the processor.
        longest_ns: Ns,
        /// When that began, since the start of the run.
        longest_at_ns: Ns,
        /// All turns that took much longer than usual, without time in which others had the processor.
        all_ns: Ns,
        /// The part of it in which the thread waited for something.
        blocked_ns: Ns,
        /// The largest number of descriptors that were ready for others meanwhile.
        ready: u32,
        /// The loop, by number in [`Watched::event_loops`](crate::Watched::event_loops).
        #[serde(skip)]
        event_loop: u32,
    },
    /// Threads give the processor up in a loop until something is the case (`sched_yield`).
    Spinning {
        /// Calls of all threads of the group.
        calls: u64,
        /// The same per second of the threads that make them.
        per_second: f64,
        /// Their time on the CPU.
        cpu_ns: Ns,
        /// The same as a share of all time on the CPU of these threads.
        of_cpu: f64,
    },
    /// So many exceptions are thrown that it takes much of the processor time.
    Exceptions {
        /// How many, by the threads of the group.
        thrown: u64,
        /// How long the processor had to do with them, at least.
        cpu_ns: Ns,
        /// The same as a share of the run's time on the CPU, without chase's own.
        of_cpu: f64,
    },
    /// Memory is mapped and unmapped again and again.
    MappingChurn {
        /// Whether it is the allocator that asks for memory and gives it back, in functions that do so in some of their calls: else, the
        /// program maps and unmaps itself, memory or files.
        by_allocator: bool,
        /// System calls that change the memory map, by the threads of the group.
        calls: u64,
        /// Their total time.
        all_ns: Ns,
        /// What the kernel does for these threads beside their system calls, by samples: it gives them the pages as they are
        /// touched (page faults). 0 if that is not known, or hardly anything is given back.
        faults_ns: Ns,
    },
    /// Processes with very short lives take much of the run.
    ShortProcesses {
        /// The number of programs that were started.
        processes: usize,
        /// The most frequent one.
        program: String,
        /// How often that was started.
        of_program: usize,
        /// Forks that ran no program: subshells.
        forks: usize,
        /// Median of the programs' lifetimes.
        median_ns: Ns,
        /// How long at least one of these processes lived.
        all_ns: Ns,
        /// The part of their time on the processor that is chase's own cost: what they save is without it.
        own: f64,
    },
    /// Threads are started for pieces of work that take less time than to start and to end them.
    ShortThreads {
        /// How many.
        threads: usize,
        /// Median of their lifetimes.
        lifetime_ns: Ns,
        /// Median of their useful times, without what the hook does in them when they make their first calls.
        useful_ns: Ns,
        /// What it takes to start one.
        made_ns: Ns,
        /// How much longer than it lives whoever starts one waits for it.
        awaited_ns: Ns,
    },
    /// Loading libraries takes long.
    SlowLoading {
        /// Calls by the threads of the group.
        calls: u64,
        /// Their total time.
        all_ns: Ns,
        /// The library whose initialisation takes longest, by number in
        /// [`Analysis::objects`](crate::Analysis::objects).
        library: Option<u32>,
    },
    /// A linked library takes long before the program runs: its constructors do.
    SlowStart {
        /// The library, by number in [`Analysis::objects`](crate::Analysis::objects).
        library: u32,
        /// How long its own code had the processor.
        own_ns: Ns,
        /// How long the library calls took that it made.
        calls_ns: Ns,
        /// More of it, by number in [`Watched::slow_starts`](crate::Watched::slow_starts).
        #[serde(skip)]
        slow_start: u32,
    },
    /// Threads with the same start routine that behave differently.
    SubGroups {
        /// The behaviours.
        parts: Vec<SubGroupSummary>,
        /// Mean silhouette of the clustering.
        silhouette: f64,
    },
}
