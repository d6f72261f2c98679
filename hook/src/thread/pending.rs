//! What a thread has to do at its next call.

/// Work to be done at a thread's next call. While there is any, the tree is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The stack address of a call of `dlopen` or `dlclose` that may not have returned yet; 0 if there is none.
    pub(crate) load_sp: usize,
    /// The stack address of the outermost such call under way.
    pub(crate) outer_sp: usize,
    /// Whether what it loads is in the global scope.
    pub(crate) global: bool,
    /// The word on the stack at `load_sp` as long as the call runs; 0: the address of a frame's pad.
    pub(crate) return_address: usize,
    /// Whether the call has not been entered yet.
    pub(crate) entering: bool,
    /// How often new objects were looked for before the call has returned.
    pub(crate) tries: u32,
    /// Whether the thread may have forked without the C library's knowledge.
    pub(crate) fork: bool,
}

impl Pending {
    pub(crate) const NONE: Self = Self {
        load_sp: 0,
        outer_sp: 0,
        return_address: 0,
        global: false,
        entering: false,
        tries: 0,
        fork: false,
    };
}
