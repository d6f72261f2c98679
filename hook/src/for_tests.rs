//! Everything that the library's test features change.

/// The number of calls after which sampling first looks at a slot.
pub(crate) const FIRST_LOOK: u32 = if cfg!(feature = "stress") { 2 } else { 256 };

/// If set, the length of the blocks of all slots that may be sampled, whose calls get frames then. (The test programs
/// that are hard to hook call too rarely, too long or too unevenly to be sampled otherwise.)
pub(crate) const FORCED_BLOCK: Option<u64> = if cfg!(feature = "stress") { Some(8) } else { None };

/// Whether to treat the words of threads as being elsewhere than stubs expect them, as with an executable that has
/// much thread-local storage of its own.
pub(crate) const WORDS_ARE_FAR: bool = cfg!(feature = "far");
