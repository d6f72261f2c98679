//! What the numbers of recordings mean.
//!
//! * [`scan`] finds recordings and groups them into runs: the processes that one command
//!   started. [`load`] reads the newest run; [`load_run`] any.
//! * [`Analysis`] turns the images of a run, or a [`Selection`] of them, into tables: libraries,
//!   APIs, callers, threads, processes, the calling-context tree, and what was not seen.
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
//! so that for each thread **application time + Σ self + own cost = lifetime**. A self time
//! below zero (the cost of a call varies, its calibration is one number) counts as zero, and own
//! cost is lowered by what was subtracted too much. What remains beyond that is no cost but a
//! contradiction in the data, such as coroutines that overlap: it is shown as overlap.
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
mod analysis;
mod blocking;
mod clock;
mod contexts;
mod costs;
mod error;
mod image;
mod load;
mod names;
mod rows;
mod run;
mod sums;
mod unseen;
mod walk;

pub use address::CodeAddress;
pub use analysis::{Analysis, Selection};
pub use blocking::{Cause as WaitCause, cause_of as wait_cause_of};
pub use chase_recorder as recorder;
pub use clock::{Clock, Ns, Ticks};
pub use error::{Cause as FailureCause, Error, Failure};
pub use image::{Ending, Image};
pub use load::{Loaded, load, load_run, scan};
pub use rows::{
    ApiRow, CallerRow, ContextRow, LibraryKind, LibraryRow, Measures, ObjectRow, ProcessRow,
    ThreadApi, ThreadRow, Totals,
};
pub use run::{Catalog, Link, Member, Run};
pub use unseen::{NotSeen, Skipped, Stopped, Unreadable};
