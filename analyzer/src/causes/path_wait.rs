//! A single wait, for the critical path.

use serde::Serialize;

use super::{Purpose, WaitObject};
use crate::address::CodeAddress;

/// A wait on the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PathWait {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: Option<u32>,
    /// Return address of the call.
    pub site: Option<CodeAddress>,
    /// A process in which the addresses are valid.
    #[serde(skip)]
    pub process: usize,
    /// What is waited for.
    pub object: WaitObject,
    /// What the wait means.
    pub purpose: Purpose,
}
