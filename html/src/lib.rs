//! A run as one self-contained HTML page.
//!
//! [`Report`] is what a page shows: plain data, with names as people read them. [`Report::new`]
//! takes what the analyzer found out of a run ([`Figures`]); flame graphs and a
//! [`Comparison`] with other runs are fields to be filled in. [`page()`] makes the page,
//! [`pictures()`] its pictures one by one.
//!
//! Constraints:
//!
//! * One file: style, script and pictures are inside, and the page forbids itself to fetch
//!   anything. It opens from a disk, and prints.
//! * A section without data is not there. Nothing is made up to fill it.
//! * Names are data: a [`Label`] can't be made of a name without taking out what would steer a
//!   terminal or reorder text, and the template escapes it.
//! * The same report gives the same bytes.
//! * What a picture shows is in a table too, and all that can be done with a mouse can be done
//!   with the keys. Without the script everything is still there to be read.
//! * Size follows what can be looked at: threads beyond some dozens are put together, but for
//!   outliers.
//!
//! What it does not do: read or write files, find names, print. Each section is a file in
//! `section`, and is handed the whole report.
#![forbid(unsafe_code)]

mod assets;
mod colours;
mod error;
mod figure;
mod label;
mod model;
mod page;
mod pictures;
mod section;
mod section_id;

pub use colours::{CHASE_ITSELF, library_groups};
pub use error::Error;
pub use label::Label;
pub use model::{
    ApiSyscalls, Balance, Blocked, BlockedIn, CauseOfWait, Change, Column, ColumnKind, Comparison,
    Diagram, DiagramArrow, DiagramNode, Does, Edge, Estimates, Facts, Figures, Finding, Flame,
    FlameKind, Function, FunctionChange, GroupWaits, Header, Lane, Library, Life, Mark, Member,
    Names, Outlier, PartUse, Parts, Process, Ran, RanAt, RanFunction, RanObject, RanPlace,
    RawTable, Report, SelfParts, Sentence, Span, SubGroup, Syscall, Tail, TailCurve, ThreadGroup,
    Timeline, Value, Verdict, WaitCause, WaitSource, Waiting, WaitsForWhom,
};
pub use page::page;
pub use pictures::{Picture, pictures, standalone};
pub use section_id::SectionId;
