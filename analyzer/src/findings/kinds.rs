//! What may be found.

use serde::Serialize;

use crate::clock::Ns;
#[cfg(doc)]
use crate::{Analysis, Groups};

/// What was found. Times are of the thread that gains most unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "evidence")]
pub enum FindingKind {
    /// Threads that took longer than others of their group.
    SlowThreads {
        /// Useful time in the API.
        useful_ns: Ns,
        /// Median of the group.
        median_ns: Ns,
        /// Robust standard deviations above it.
        score: f64,
        /// Threads that it was compared with.
        of_threads: usize,
        /// Excess of all the threads concerned.
        excess_ns: Ns,
        /// Whether rates were compared, scaled to this thread's lifetime.
        as_rates: bool,
    },
    /// The first call of an API took longer than later ones.
    SlowFirstCall {
        /// The first call.
        first_ns: Ns,
        /// Median of the calls of that thread.
        median_ns: Ns,
        /// Calls of that thread.
        calls: u64,
        /// Excess of all the threads concerned.
        excess_ns: Ns,
        /// The innermost library call inside that took most of it, if it was made too seldom to have a usual time.
        inside: Option<Inside>,
    },
    /// A few calls took most of the time.
    RareSlowCalls {
        /// Calls of the API by the threads of the group.
        calls: u64,
        /// The slow ones.
        slow_calls: u64,
        /// Their time.
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
        /// The library call that the lock was taken in, if it was one.
        inside: Option<u32>,
    },
    /// Others wait at a barrier for one thread.
    BarrierStraggler {
        /// Useful time in the API.
        useful_ns: Ns,
        /// Median of the group.
        median_ns: Ns,
        /// What the straggler waited at barriers.
        own_wait_ns: Ns,
        /// What the median thread waited there.
        median_wait_ns: Ns,
        /// Waits of all.
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
        /// How many times it signalled.
        signals: u64,
    },
    /// Most of the time goes to very many short calls.
    ManyTinyCalls {
        /// Calls of all threads of the group.
        calls: u64,
        /// Mean self time.
        mean_ns: f64,
        /// Self time of all.
        all_ns: Ns,
        /// The same as a share of the group's lifetimes.
        of_lifetime: f64,
    },
    /// A writer waits for readers, who come one after the other.
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
    },
    /// Other groups wait for this one, which waits for nobody: a slow producer, consumer, or stage of a pipeline.
    LimitingStage {
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all threads that wait for it.
        all_wait_ns: Ns,
        /// The groups that wait, the one that gains most first, by number in [`Groups::rows`](crate::Groups::rows).
        waiting: Vec<u32>,
    },
    /// One thread is the last at most barriers, whatever it does meanwhile.
    LateAtBarrier {
        /// The longest wait of another thread.
        wait_ns: Ns,
        /// Waits of all.
        all_wait_ns: Ns,
        /// Threads of the group.
        of_threads: usize,
    },
    /// One thread of a group ends long after the others, and is waited for.
    LastToEnd {
        /// How long it lives.
        lifetime_ns: Ns,
        /// Median of the others.
        median_ns: Ns,
        /// Threads of the group.
        of_threads: usize,
    },
    /// More threads could run than there are processors. Fewer of them would be done as soon.
    TooManyThreads {
        /// How many could run, on average.
        runnable: f64,
        /// Processors of the machine.
        processors: u64,
        /// How long they waited for one, together.
        waiting_ns: Ns,
        /// The same as a share of the time that they wanted one.
        of_wanted: f64,
    },
    /// A file is read or written in small pieces.
    SmallTransfers {
        /// The system call.
        syscall: String,
        /// How often it was made.
        calls: u64,
        /// Bytes of one, on average.
        mean_bytes: f64,
        /// Nine of ten ask for so many bytes, up to the next power of two; `None` where sizes differ, or are not known.
        usual_bytes: Option<u64>,
        /// Time on the CPU in them.
        all_ns: Ns,
    },
    /// Files are written for good again and again.
    Syncing {
        /// Calls by the thread that does so for longest.
        calls: u64,
        /// Time of all threads in them.
        all_ns: Ns,
    },
    /// Names of hosts are looked up.
    NameResolution {
        /// Calls by the thread that does so for longest.
        calls: u64,
        /// Their time.
        all_ns: Ns,
    },
    /// The other end of a connection is slow to answer.
    SlowPeer {
        /// Waits of all threads of the group.
        waits: u64,
        /// The longest wait of one thread.
        wait_ns: Ns,
        /// Waits of all as a share of their lifetimes.
        of_lifetime: f64,
    },
    /// Threads look again and again whether there is something to do.
    Polling {
        /// How often they waited for time to pass.
        waits: u64,
        /// How long they did on average.
        mean_ns: f64,
        /// Waits of a thread per second.
        per_second: f64,
    },
    /// Memory is asked of the system and given back again and again.
    MappingChurn {
        /// System calls that change the memory map, by the thread that does so for longest.
        calls: u64,
        /// Their time.
        all_ns: Ns,
    },
    /// Much of the run goes to processes that live for a moment.
    ShortProcesses {
        /// Programs that were started.
        processes: usize,
        /// The most frequent one.
        program: String,
        /// Median of their lives.
        median_ns: Ns,
        /// All of their lives.
        all_ns: Ns,
    },
    /// Libraries take long to be loaded.
    SlowLoading {
        /// Calls by the thread that does so for longest.
        calls: u64,
        /// Their time.
        all_ns: Ns,
        /// The library whose start takes longest, by number in [`Analysis::objects`](crate::Analysis::objects).
        library: Option<u32>,
    },
    /// Threads with one start routine that behave differently.
    SubGroups {
        /// The behaviours.
        parts: Vec<SubGroupSummary>,
        /// Mean silhouette of the clustering.
        silhouette: f64,
    },
}

/// What a slow call spent its time in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Inside {
    /// The API, by number in [`Analysis::apis`].
    pub api: u32,
    /// How often that thread called it there.
    pub calls: u64,
    /// How long those calls took together.
    pub total_ns: Ns,
}

/// One behaviour of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubGroupSummary {
    /// How many threads.
    pub threads: usize,
    /// Where they spend most of their useful time; `None` for their own code.
    pub api: Option<u32>,
    /// The share of it that they spend there.
    pub share: f64,
}
