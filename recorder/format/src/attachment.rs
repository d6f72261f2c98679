//! How `chase attach` and the library find each other in a running process.
//!
//! The library exports a variable [`SYMBOL`] of type [`Attachment`]. The launcher finds it in the file, to set the mode
//! in the copy that it loads; and in the process, to call the functions listed there, with an [`Order`] in memory that
//! it has mapped.

/// Name of the variable.
pub const SYMBOL: &str = "chase_attachment";
/// Value of [`Attachment::magic`].
pub const MAGIC: u64 = u64::from_le_bytes(*b"CHASEATT");
/// Version of both structures.
pub const VERSION: u32 = 5;

/// [`Attachment::mode`]: the library was preloaded, starts by itself, and is never detached.
pub const PRELOADED: u32 = 0;
/// [`Attachment::mode`]: the library waits for a call of [`Attachment::attach`]. The launcher sets this in its copy.
pub const WAITING: u32 = 1;
/// [`Attachment::mode`]: the library was preloaded, and may be detached.
pub const MAY_BE_LEFT: u32 = 2;

/// What the library exports. The library has its own types for functions and addresses; the launcher reads them as
/// numbers: [`Shown`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Attachment<Function, Address, Half, Word> {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`PRELOADED`], [`WAITING`] or [`MAY_BE_LEFT`].
    pub mode: Half,
    /// Starts to record the process.
    pub attach: Function,
    /// Ends recording.
    pub detach: Function,
    /// The thread-local word of countdowns in threads that aren't recorded.
    pub no_counts: Address,
    /// The thread-local word of the `Thread` in threads that aren't recorded.
    pub no_thread: Address,
    /// Offset of the thread-local words from the thread pointer.
    pub words: Word,
    /// Whether the process is recorded now.
    pub is_recording: Half,
    /// Where a thread goes on that was stopped in the middle of a system call with a buffer.
    pub rest_of_buffer: Address,
    /// The same of a system call with a number of bytes, from a file.
    pub rest_of_file: Address,
    /// The same of one with several buffers.
    pub rest_of_buffers: Address,
    /// End of that code, which begins with [`Attachment::rest_of_buffer`].
    pub rest_end: Address,
    /// The landing pads, to which calls return that are timed.
    pub pads: Address,
    /// How many there are.
    pub pad_count: u64,
    /// The frames, one for each pad, each beginning with where the caller goes on.
    pub frames: Address,
}

/// Length of a pad and of its frame, bytes.
pub const PAD_LEN: u64 = 64;

/// An attachment as the launcher reads it.
pub type Shown = Attachment<u64, u64, u32, u64>;

/// How many words of the auxiliary vector are passed: more than there are.
pub const AUXILIARY: usize = 128;

/// A request of the launcher, followed by data of the length [`Order::len`].
#[repr(C)]
pub struct Order {
    /// The result: 0 at first, then [`DONE`] or [`REFUSED`].
    pub result: u64,
    /// If refused: `errno`, or 0. In a `detach`, the launcher writes 1 if it lets the threads continue before it is
    /// done.
    pub errno: u64,
    /// If refused: why. After a `detach`: how many entries were restored, and how many threads are inside a call.
    pub reason: [u8; 112],
    /// How many items follow: for `attach`, bytes of settings, each `NAME=value` with a NUL; for `detach`,
    /// [`StoppedThread`]s.
    pub len: u64,
    /// For `attach`: the process's auxiliary vector, as `/proc` has it, which the process itself may not be allowed to read.
    pub auxiliary: [u64; AUXILIARY],
}

/// A thread of a process that is detached from.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StoppedThread<Address> {
    /// Its `Thread`, by its thread-local word; null if it has none.
    pub thread: Address,
    /// When it stopped, by `CLOCK_MONOTONIC`, in ns: its recording ends then.
    pub stopped_ns: u64,
}

/// [`Order::result`]: the request was carried out.
pub const DONE: u64 = 1;
/// [`Order::result`]: the request was refused.
pub const REFUSED: u64 = 2;

#[cfg(test)]
mod tests {
    use core::mem::{offset_of, size_of};

    use super::{Order, Shown, StoppedThread};

    /// The code that is injected into a process, and older libraries, rely on these offsets.
    #[test]
    fn places_stay() {
        assert_eq!((offset_of!(Shown, mode), offset_of!(Shown, attach)), (12, 16));
        assert_eq!((offset_of!(Shown, detach), offset_of!(Shown, words)), (24, 48));
        assert_eq!((size_of::<Shown>(), size_of::<Order>()), (120, 1160));
        assert_eq!(size_of::<StoppedThread<u64>>(), 16);
    }
}
