//! By what `chase attach` and the library find each other in a process that runs.
//!
//! The library exports a variable, [`Attachment`], under [`SYMBOL`]. The launcher looks for it in the file, where it changes
//! the mode of the copy that it has loaded, and in the process, where it calls the functions that it names with an
//! [`Order`] in memory of its own.

/// Name of the variable.
pub const SYMBOL: &str = "chase_attachment";
/// By which it is known.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CHASEATT");
/// Of both structures.
pub const VERSION: u32 = 2;

/// [`Attachment::mode`]: the library was preloaded, starts by itself, and stays.
pub const PRELOADED: u32 = 0;
/// It waits until it is told to begin: the launcher has put this into its copy.
pub const WAITING: u32 = 1;
/// It was preloaded, and may be left.
pub const MAY_BE_LEFT: u32 = 2;

/// What the library shows of itself. Its functions and addresses are of the types that the library has for them; to the
/// launcher they are numbers: [`Shown`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Attachment<Function, Address, Half, Word> {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`PRELOADED`], [`WAITING`] or [`MAY_BE_LEFT`].
    pub mode: Half,
    /// Begins to record the process.
    pub attach: Function,
    /// Ends that.
    pub detach: Function,
    /// What the words of a thread are that is not recorded: its countdowns, its `Thread`.
    pub no_counts: Address,
    /// The second of them.
    pub no_thread: Address,
    /// Where the words are, from the thread pointer.
    pub words: Word,
    /// Whether the process is recorded now.
    pub is_recording: Half,
}

/// An attachment as the launcher reads it.
pub type Shown = Attachment<u64, u64, u32, u64>;

/// What the launcher asks for; behind it is what [`Order::len`] says.
#[repr(C)]
pub struct Order {
    /// What came of it: 0, [`DONE`], [`REFUSED`].
    pub result: u64,
    /// Of a refusal: `errno`, or 0. Of `detach`, the launcher writes 1 when it lets the threads go before that is done.
    pub errno: u64,
    /// And why; of `detach` that was done: how many entries were restored, and how many threads are inside a call.
    pub reason: [u8; 112],
    /// How many follow: of `attach`, the bytes of settings, each `NAME=value` with its NUL; of `detach`, the
    /// addresses of what the library keeps of each thread.
    pub len: u64,
}

/// [`Order::result`]: it was done.
pub const DONE: u64 = 1;
/// It was refused.
pub const REFUSED: u64 = 2;

#[cfg(test)]
mod tests {
    use core::mem::{offset_of, size_of};

    use super::{Order, Shown};

    /// The code that is put into a process, and older libraries, have these places.
    #[test]
    fn places_stay() {
        assert_eq!((offset_of!(Shown, mode), offset_of!(Shown, attach)), (12, 16));
        assert_eq!((offset_of!(Shown, detach), offset_of!(Shown, words)), (24, 48));
        assert_eq!((size_of::<Shown>(), size_of::<Order>()), (64, 136));
    }
}
