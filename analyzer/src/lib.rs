//! Evaluates recordings.
//!
//! * [`scan`] finds recordings and groups them into runs: the processes that one command started. [`load()`] reads
//!   the newest run; [`load_run`] reads any, or several as one ([`Run::together`]).
//! * [`Analysis`] makes tables of the images of a run, or of a [`Selection`] of them: libraries, APIs, callers,
//!   threads, processes, the calling-context tree, system calls, and what was not seen.
//! * [`OnCpu`] is what ran on the processors, by samples.
//! * [`timeline()`] is what happened when: single calls, waits and marks of each thread.
//! * [`narration()`] lists single system calls in order; [`components()`] finds the programs of a run, and what they
//!   read and write; both only if single system calls were recorded.
//! * [`compare()`] compares two sides: runs before and after a change, or two APIs.
//!
//! * [`Groups`] are threads that run the same code, and how they compare; [`Tails`] are the slowest calls of each
//!   group; [`waits()`] is what they wait for, [`blocked()`] what blocks the threads that matter, and [`Watched::causes`]
//!   who makes them wait, with [`locks()`], [`wait_graph()`] and [`critical_path()`]; [`what_if()`] bounds what the run
//!   would save without some of that; [`group_tree()`] is one tree for all threads of a group.
//! * [`findings()`] are the few things worth reporting. Names come from the caller, through [`Naming`].
//!
//! # What is measured, and what is subtracted
//!
//! Let *i* be what the hook adds to a call's measured duration, and *o* what it adds to the caller's time (both are
//! calibrated by the hook, and in the header). For a context *n* with `c(n)` timed calls of measured total `M(n)`:
//!
//! * self time of *n* = `M(n) − i·c(n) − Σ (M(k) + o·c(k))` over its direct callees *k*
//! * total of *n* = the sum of the self times of its subtree
//!   = `M(n) − i·c(n) − Σ (i + o)·c(k)` over all of its callees, direct or not
//! * application time of a thread = lifetime − `Σ (M(k) + o·c(k))` over its outermost calls
//! * own cost of a thread = `Σ (i + o)·c(k)` over all contexts
//!
//! so that for each thread **application time + Σ self + own cost = lifetime** (the part of application time in which
//! other threads had the processor is separate: [`ThreadRow::unattributed_ns`]). A self time below zero (the cost of
//! a call varies, but its calibration is one number) counts as zero, and own cost is reduced by the excess of what
//! was subtracted. Any further excess is not cost but a contradiction in the data, such as overlapping coroutines, or
//! an overestimate: it is shown as overlap.
//!
//! If a companion observed the system calls, the overhead per call (calibrated, in its file) is also subtracted from
//! the self time of each context, from the totals around it, and from application time; it is part of own cost.
//!
//! Where calls were sampled, `c(n)` in the cost is the number of samples, *o* is the mean measured cost of the
//! thread's samples, and calls that were only counted cost their caller what the header says. `M(n) − i·c(n)` is the
//! weighted mean of the samples, minus *i* but not below zero, times the number of calls. Its confidence interval,
//! which is that of the self time, is made of two errors: the variance Σ w·(w − 1)·(x − mean)² over samples *x* of
//! weight *w*, and (Σ *e* · calls)² for the standard error *e* of what is subtracted from all samples alike. Both
//! also apply to the caller's self time, where *e* has the opposite sign. For a single sample, the standard error is
//! the whole estimate; so it is for framed calls without samples, which are assumed to last as long as elsewhere if
//! their caller lasted that long. A quantile is shown if ten effective samples, of (Σw)²/Σw², are beyond it, and if
//! both ends of its 95 % confidence interval (its rank is binomial) are in its bucket or the next.
//!
//! A third error is that of the clock, whose reads don't wait for unfinished instructions: *i* varies from place to
//! place, and what is waited for before a call may seem to be in it. Its standard error for each timed call, with the
//! opposite sign for the caller, is 1.5 *i*, and less for samples, before which everything is waited for. It is the same in
//! each run, so it is told apart: [`Measures::clock_ci95_ns`].
//!
//! What happens to a sample by chance is not scaled up: one that was preempted for long, or waited as rarely as it did
//! long, counts for itself only. Where a companion watched, and calls that are not timed get frames, it is known how
//! long all calls of a context were off the CPU, and for how long each time. The estimate has the part *p* = samples /
//! calls of those times *d*, so (1 − *p*) · Σ *d* are added to it, with the variance *p* · (1 − *p*) · Σ *d*² (thinning;
//! each of them fell into a sample with probability *p*). Otherwise, what was measured of preemption in a thread's own
//! code is also that in calls that were not timed; it is assumed to be in proportion to the time on the CPU, and the
//! calls' part is [`ThreadRow::unattributed_ns`].
//!
//! Recorded recursion is folded into an ancestor: self times stay exact, and the tree shows folded calls in that
//! ancestor. The total of an API or a library only counts its outermost calls, so that nothing is counted twice. It
//! is a lower bound where the API takes part in the recursion of another (*f* → *g* → *f*: the time of the inner *f*
//! is in the total of the outer one, but not in that of *g*), but never less than the longest call.
//!
//! Quantiles and maxima are those of single calls, each minus *i*, and scaled by the share of measured time that was
//! not the hook's in nested calls.
//!
//! This crate reads files and nothing else: it prints nothing, symbolizes nothing, and leaves names as they are in
//! symbol tables.

mod address;
mod address_map;
mod analysis;
mod arguments;
mod blocked;
mod blocking;
mod bounds;
mod called_back;
mod callers;
mod causes;
mod clock;
mod clusters;
mod common_time;
mod compare;
mod components;
mod contexts;
mod costs;
mod critical;
mod ends;
mod error;
mod event_loops;
mod evidence;
mod exceptions;
mod findings;
mod fold;
mod group_tree;
mod groups;
mod held;
mod image;
mod latest;
mod liveness;
mod load;
mod locks;
mod long_waits;
mod names;
mod narration;
mod object_causes;
mod off_cpu;
mod on_cpu;
mod one_by_one;
mod overhead;
mod packed;
mod processors;
mod read_ahead;
mod roles;
mod rows;
mod run;
mod run_start;
mod sampled;
mod scripts;
mod shelf;
mod since;
mod slow_start;
mod spans;
mod stats;
mod sums;
mod syscalls;
mod tail;
mod texts;
mod timed_samples;
mod timeline;
mod turns;
mod uncertainty;
mod uneven;
mod unrecorded;
mod unseen;
mod wait_causes;
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
pub use called_back::CalledBack;
pub use causes::{
    CauseRow, Connection, Connections, LockKey, NamingPlaces, Party, PartyKind, PathWait, Purpose,
    WaitObject, lock_key,
};
pub use chase_recorder as recorder;
pub use clock::{Clock, Ns, Ticks};
pub use compare::{
    ApiChange, ApiName, Basis, Change, Comparison, Metrics, Pair, Parts, SyscallChange,
    TotalChanges, Verdict, compare, match_apis,
};
pub use components::{
    Components, DrawnPrograms, Exchange, Picture, Program, Thing, ThingKind, Use, components,
};
pub use critical::{
    CriticalPath, Doing, PathPart, PathStep, Pieces, Runs, WhatIf, Without, critical_path, what_if,
};
pub use ends::LateThread;
pub use error::{Cause as FailureCause, Error, Failure};
pub use event_loops::{Client, EventLoop, HeldUp, RanLate, WaitInTurns};
pub use exceptions::{Exceptions, exceptions};
pub use findings::{Blame, Finding, FindingKind, Inside, SubGroupSummary, findings};
pub use fold::{Folded, fold};
pub use group_tree::{GroupContext, group_tree};
pub use groups::{
    CausedWait, Closure, GroupApi, GroupComparison, GroupKey, GroupKind, GroupPart, GroupRow,
    Groups, Naming, Outlier, OutlierApi, PartLevel, Reason, Spread, SubGroup, ThreadSpan, Unnamed,
    Why, group_of,
};
pub use held::{Held, HeldLocks};
pub use image::{Ending, Image, SyscallsState};
pub use liveness::is_running;
pub use load::{Loaded, load, load_run, load_run_with, scan, scan_all, scan_since};
pub use locks::{LockRow, locks};
pub use narration::{NarratedCall, Narration, narration};
pub use object_causes::ObjectCauses;
pub use on_cpu::{OnCpu, OnCpuAddress, OnCpuObject, OnCpuOfThread};
pub use one_by_one::{OneByOne, one_by_one};
pub use overhead::Overhead;
pub use packed::{Items, Pack, Packed};
pub use processors::Processors;
pub use rows::{
    ApiRow, CallPlace, CallerRow, ContextRow, LibraryKind, LibraryRow, MeasuredOffCpu, Measures,
    ObjectRow, ProcessRow, ThreadApi, ThreadContext, ThreadCreation, ThreadOrigin, ThreadRow,
    Totals, WaitSource,
};
pub use run::{Catalog, Link, Member, Run};
pub use sampled::{OnCpuOfApi, SampledTime};
pub use since::Moment;
pub use slow_start::SlowStart;
pub use stats::{Imbalance, Robust, imbalance, median, student_95};
pub use syscalls::{
    All, Category, CategoryRow, ErrorCount, Nested, OfApi, OfContext, OfLibrary, OfThread, Syscall,
    SyscallMeasures, SyscallRow, Syscalls, by_category as syscalls_by_category,
    by_syscall as syscalls_by_number, syscall, syscall_name,
};
pub use tail::{TailContext, TailRow, TailSyscall, TailThread, Tails};
pub use texts::TextRow;
pub use timed_samples::TimedSample;
pub use timeline::{
    BlockedSpan, Lane, LaneSample, Mark, PreemptedSpan, SpanCause, TimedCall, Timeline, timeline,
};
pub use turns::object_causes;
pub use uneven::UnevenWork;
pub use unseen::{NotSeen, Skipped, Stopped, SyscallsNotSeen, SyscallsStopped, Unreadable};
pub use wait_graph::{WaitEdge, WaitGraph, wait_graph};
pub use waits::{WaitRow, waits};
pub use watched::{FileKind, FileUse, Watched};
pub use workers::Workers;
