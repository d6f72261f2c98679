//! A wait by itself, as the critical path has it.

use serde::Serialize;

use super::{Purpose, WaitObject};
use crate::address::CodeAddress;

/// A wait on the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PathWait {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: Option<u32>,
    /// Return address of the call.
    pub site: Option<CodeAddress>,
    /// A process that the addresses are of.
    #[serde(skip)]
    pub process: usize,
    /// What for.
    pub object: WaitObject,
    /// What it means.
    pub purpose: Purpose,
}
