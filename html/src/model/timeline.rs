//! What threads did when.

use chase_analyzer::WaitCause;
use serde::{Deserialize, Serialize};

use crate::Label;

/// Threads by time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// End of the run, nanoseconds since its start.
    pub end_ns: f64,
    /// Threads, in the order in which they are shown; those of a group need not stand together.
    pub lanes: Vec<Lane>,
    /// What samples have found, by number.
    #[serde(default)]
    pub ran_places: Vec<RanPlace>,
    /// The processor time that a sample stands for, nanoseconds.
    #[serde(default)]
    pub sample_ns: f64,
    /// Moments that the application has marked: nanoseconds since the start, and the name.
    pub marks: Vec<(f64, Label)>,
    /// Calls and waits of less than this are left out, nanoseconds; 0: none are.
    #[serde(default)]
    pub left_out_ns: f64,
    /// For how much longer threads seem to be busy than they were, in all: waits of which nothing was kept. Nanoseconds.
    #[serde(default)]
    pub seems_busy_ns: f64,
    /// How many more threads there are than it has lanes.
    #[serde(default)]
    pub more_lanes: usize,
    /// What is to be known of what is missing, in sentences.
    pub notes: Vec<Label>,
}

/// A thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lane {
    /// Its name and number.
    pub name: Label,
    /// Its group.
    pub group: Label,
    /// Whether it, and all others of its group, had hardly anything to do.
    #[serde(default)]
    pub is_idle: bool,
    /// What it did, by time, none over another.
    pub spans: Vec<Span>,
    /// What it ran, by time.
    #[serde(default)]
    pub ran: Vec<RanAt>,
}

/// A sample.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RanAt {
    /// When, nanoseconds since the start of the run.
    pub at_ns: f64,
    /// What it has found, by position in [`Timeline::ran_places`].
    pub place: usize,
}

/// What a sample has found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RanPlace {
    /// The library, or the program.
    pub library: Label,
    /// Whether it is a program.
    pub is_application: bool,
    /// The function.
    pub function: Label,
    /// How many samples such a one stands for.
    pub stands_for: usize,
}

/// Something that a thread did for a while.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Span {
    /// Start, nanoseconds since the start of the run.
    pub from_ns: f64,
    /// End.
    pub to_ns: f64,
    /// What.
    pub does: Does,
    /// In which function, or for what; may be empty.
    pub text: Label,
    /// The library of that function, by position in [`Report::libraries`](super::Report::libraries).
    #[serde(default)]
    pub library: Option<usize>,
    /// Who ended it, by position in [`Timeline::lanes`].
    pub waker: Option<usize>,
    /// What that one did; may be empty.
    pub waker_in: Label,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Does {
    /// It is not known to wait: it runs, or could and others do.
    Run,
    /// It could run, and others do.
    Queue,
    /// It waits.
    Wait(WaitCause),
}
