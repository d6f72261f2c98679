//! What the library's features for tests change: all of it is here.

/// Calls of a slot before it is looked at for the first time.
pub(crate) const FIRST_LOOK: u32 = if cfg!(feature = "stress") { 2 } else { 256 };

/// If there is one, the length of blocks of all slots that may be sampled at all; their calls get frames. (The calls of
/// programs that are hard to hook are too few, too long or too uneven to be sampled otherwise.)
pub(crate) const FORCED_BLOCK: Option<u64> = if cfg!(feature = "stress") { Some(8) } else { None };

/// Whether the words of threads are taken to be where stubs don't expect them, as with an executable that has much
/// thread-local storage of its own.
pub(crate) const WORDS_ARE_FAR: bool = cfg!(feature = "far");
