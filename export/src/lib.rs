//! Calling-context trees and timelines in the formats of other profilers.
//!
//! [`Stacks`] is what all of them are made from: library calls, what each was made in, and what it
//! took. [`folded()`] writes lines for flame graphs, [`speedscope()`] a document for
//! <https://www.speedscope.app>, [`pprof()`] one for Go's pprof and what understands its format.
//!
//! [`Trace`] is what happened when: single calls, waits and marks of each thread. [`perfetto()`] writes it for
//! <https://ui.perfetto.dev>, [`firefox()`] for <https://profiler.firefox.com>.
//!
//! Constraints:
//!
//! * The same input gives the same bytes.
//! * No time is made up: the values of a stack are self times, and they add up to the times that
//!   the recording has.
//! * Names are data. Where a format gives a character a meaning, names have another one instead.
//!
//! What it does not do: read recordings, find names, or pick what to export.
#![forbid(unsafe_code)]

mod error;
mod firefox;
mod folded;
mod perfetto;
mod pprof;
mod speedscope;
mod stacks;
mod trace;

pub use error::Error;
pub use firefox::firefox;
pub use folded::{folded, folded_frame};
pub use perfetto::perfetto;
pub use pprof::{Moment, pprof};
pub use speedscope::{Profile, speedscope};
pub use stacks::{Frame, Node, Stacks};
pub use trace::{
    Trace, TraceCall, TraceFunction, TraceProcess, TraceSample, TraceSyscall, TraceThread,
    TraceWait,
};
