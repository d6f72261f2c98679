//! What threads are blocked by.

use chase_analyzer::WaitCause;
use serde::{Deserialize, Serialize};

use crate::Label;

/// Where threads are off the CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Blocked {
    /// Of threads that have work, longest first.
    pub rows: Vec<BlockedIn>,
    /// The others in words; empty if there are none.
    pub idle: Label,
    /// How long they waited, nanoseconds.
    #[serde(default)]
    pub idle_ns: f64,
    /// How long threads waited for a processor, in words, where it matters and all were measured.
    pub runnable: Option<Label>,
}

/// Waits in a function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockedIn {
    /// What for.
    pub cause: WaitCause,
    /// The function.
    pub function: Label,
    /// Its library; empty for the threads' own code.
    pub library: Label,
    /// How long, nanoseconds.
    pub ns: f64,
    /// How many threads.
    pub threads: usize,
}

/// Waits that are alike: who waits where for what, and who ends that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CauseOfWait {
    /// The function that threads wait in.
    pub function: Label,
    /// Where they call it.
    pub site: Label,
    /// Their group.
    pub group: Label,
    /// Whether all threads of that are idle.
    #[serde(default)]
    pub is_idle: bool,
    /// What for: a lock, a file.
    pub object: Label,
    /// Their time until the threads were woken, nanoseconds.
    pub ns: f64,
    /// How many waits.
    pub waits: u64,
    /// Who holds it meanwhile; empty if that is not known.
    pub holder: Label,
    /// Who ends the waits.
    pub waker: Label,
}
