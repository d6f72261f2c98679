//! What the numbers of recordings mean.
//!
//! * [`scan`] finds recordings and groups them into runs: the processes that one command
//!   started. [`load()`] reads the newest run; [`load_run`] any, or several as one
//!   ([`Run::together`]).
//! * [`Analysis`] turns the images of a run, or a [`Selection`] of them, into tables: libraries,
//!   APIs, callers, threads, processes, the calling-context tree, system calls, and what was not
//!   seen.
//! * [`OnCpu`] is where the processor was, by samples, whoever called whom.
//! * [`timeline()`] is what happened when: single calls, waits and marks of each thread.
//! * [`narration()`] is what happened in order, system call by system call, and [`components()`] which programs a run is made of, and
//!   what they read and write; both where that was asked for.
//! * [`compare()`] tells two sides apart: runs before and after a change, or two APIs.
//!
//! * [`Groups`] are the threads that run the same code, and how they compare; [`Tails`] the slowest
//!   calls of each; [`waits()`] what they wait for, [`blocked()`] what those that matter are blocked by, and [`causes()`] who lets them
//!   wait, with [`locks()`], [`wait_graph()`] and [`critical_path()`]; [`group_tree()`] one tree for all threads of one.
//! * [`findings()`] are the few things worth a sentence. Names come from outside, by [`Naming`].
//!
//! # What is measured, and what is subtracted
//!
//! Let *i* be what the hook adds to the duration that it measures of a call, and *o* what only the
//! caller sees of it (both calibrated by the hook, both in the header). For a context *n* with
//! `c(n)` timed calls of measured total `M(n)`:
//!
//! * self time of *n* = `M(n) − i·c(n) − Σ (M(k) + o·c(k))` over its direct callees *k*
//! * total of *n* = the sum of the self times of its subtree
//!   = `M(n) − i·c(n) − Σ (i + o)·c(k)` over all of its callees, direct or not
//! * application time of a thread = lifetime − `Σ (M(k) + o·c(k))` over its outermost calls
//! * own cost of a thread = `Σ (i + o)·c(k)` over all contexts
//!
//! so that for each thread **application time + Σ self + own cost = lifetime** (a part of application time is set aside
//! where it is what others had of the processor: [`ThreadRow::unattributed_ns`]). A self time
//! below zero (the cost of a call varies, its calibration is one number) counts as zero, and own
//! cost is lowered by what was subtracted too much. What remains beyond that is no cost but a
//! contradiction in the data, such as coroutines that overlap, or an estimate that is too high: it is
//! shown as overlap.
//!
//! Where a companion watched the system calls, what that cost per call (calibrated, in its file) is
//! taken out of the self time of each context as well, of the totals around it, and of application
//! time; it is own cost.
//! Where calls were sampled, `c(n)` is the number of samples in the cost, *o* is what the thread's samples
//! were measured to cost in the mean, and calls that were only counted cost their caller what the header says; `M(n) − i·c(n)` is the mean of the samples, each
//! with its weight, less *i* but not below zero, times the calls. The variance of that, Σ w·(w − 1)·(x − mean)² over samples *x*
//! of weight *w*, and (Σ *e* · calls)², with the standard error *e* of what is taken off all samples alike, make the confidence interval of the self time, and of its
//! caller's, where *e* counts the other way round. Of one sample, and of framed calls without any, which are taken to
//! last as long as elsewhere if their caller lasted so long, the standard error is all of the estimate. A quantile
//! is shown if ten effective samples of (Σw)²/Σw² are beyond it, and if both ends of its 95 %
//! confidence interval (its rank is binomial) are in its bucket or the next.
//!
//! Recorded recursion is folded into an ancestor: self times stay exact, and the tree shows folded
//! calls in that ancestor. The total of an API or a library counts its outermost calls only, so
//! that nothing is counted twice. It is a lower bound where the API takes part in the recursion
//! of another one (*f* → *g* → *f*: what the inner *f* does is in the total of the outer one, and
//! not in that of *g*), but never less than the longest call.
//!
//! Quantiles and maxima are those of single calls, each less *i*, and scaled by the share
//! of measured time that was the hook's inside nested calls.
//!
//! This crate reads files and nothing else: it prints nothing, symbolizes nothing, and leaves
//! names as they are in symbol tables.

mod address;
mod address_map;
mod analysis;
mod arguments;
mod blocked;
mod blocking;
mod causes;
mod clock;
mod clusters;
mod common_time;
mod compare;
mod components;
mod contexts;
mod costs;
mod critical;
mod error;
mod evidence;
mod findings;
mod fold;
mod group_tree;
mod groups;
mod image;
mod latest;
mod liveness;
mod load;
mod locks;
mod long_waits;
mod names;
mod narration;
mod off_cpu;
mod on_cpu;
mod overhead;
mod rows;
mod run;
mod sampled;
mod shelf;
mod since;
mod stats;
mod sums;
mod syscalls;
mod tail;
mod timeline;
mod uncertainty;
mod unrecorded;
mod unseen;
mod wait_graph;
mod waits;
mod walk;
mod watched;
mod workers;

pub use address::CodeAddress;
pub use analysis::{Analysis, Selection};
pub use arguments::{ArgumentRow, ArgumentSizes, ArgumentUnit};
pub use blocked::{Blocked, BlockedRow, IdleRow, Runnable, blocked};
pub use blocking::Cause as WaitCause;
pub use causes::{CauseRow, NamingPlaces, Party, PartyKind, PathWait, Purpose, WaitObject, causes};
pub use chase_recorder as recorder;
pub use clock::{Clock, Ns, Ticks};
pub use compare::{
    ApiChange, ApiName, Basis, Change, Comparison, Metrics, Pair, Parts, SyscallChange,
    TotalChanges, Verdict, compare, match_apis,
};
pub use components::{Components, Program, Thing, ThingKind, Use, components};
pub use critical::{CriticalPath, Doing, PathPart, PathStep, critical_path};
pub use error::{Cause as FailureCause, Error, Failure};
pub use findings::{Blame, Finding, FindingKind, Inside, SubGroupSummary, findings};
pub use fold::{Folded, fold};
pub use group_tree::{GroupContext, group_tree};
pub use groups::{
    CausedWait, GroupApi, GroupComparison, GroupKey, GroupKind, GroupPart, GroupRow, Groups,
    Naming, Outlier, OutlierApi, PartLevel, Spread, SubGroup, ThreadSpan, Unnamed, Why, group_of,
};
pub use image::{Ending, Image, SyscallsState};
pub use load::{Loaded, load, load_run, load_run_with, scan, scan_all};
pub use locks::{LockRow, locks};
pub use narration::{NarratedCall, Narration, narration};
pub use on_cpu::{OnCpu, OnCpuAddress, OnCpuObject};
pub use overhead::Overhead;
pub use rows::{
    ApiRow, CallerRow, ContextRow, LibraryKind, LibraryRow, MeasuredOffCpu, Measures, ObjectRow,
    ProcessRow, ThreadApi, ThreadContext, ThreadCreation, ThreadOrigin, ThreadRow, Totals,
    WaitSource,
};
pub use run::{Catalog, Link, Member, Run};
pub use sampled::{OnCpuOfApi, SampledTime};
pub use since::Moment;
pub use stats::{Imbalance, Robust, imbalance, median};
pub use syscalls::{
    All, Category, CategoryRow, ErrorCount, Nested, OfApi, OfContext, OfLibrary, OfThread, Syscall,
    SyscallMeasures, SyscallRow, Syscalls, by_category as syscalls_by_category,
    by_syscall as syscalls_by_number, syscall, syscall_name,
};
pub use tail::{TailContext, TailRow, TailSyscall, TailThread, Tails};
pub use timeline::{BlockedSpan, Lane, Mark, SpanCause, TimedCall, Timeline, timeline};
pub use unseen::{NotSeen, Skipped, Stopped, SyscallsNotSeen, SyscallsStopped, Unreadable};
pub use wait_graph::{WaitEdge, WaitGraph, wait_graph};
pub use waits::{WaitRow, waits};
pub use watched::{FileKind, FileUse, Watched};
pub use workers::Workers;
