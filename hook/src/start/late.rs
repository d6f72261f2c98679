//! Coming into a process that runs already, and leaving it.
//!
//! The launcher's `attach` loads a copy of this library in which [`ATTACHMENT`] says so: its constructor then only
//! notes where the arguments are. [`attach`] and [`detach`] are called by a thread that the launcher has started,
//! while all others are stopped, none of them inside this library. So nobody is in the middle of anything: what
//! threads have can be taken from them.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::leaving::{self, dismiss, dismiss_lingering};
use super::{Arguments, begin_late};
use crate::abi::{IS_LATE, ThreadHead};
use crate::arch::words_offset;
use crate::elf::Auxiliary;
use crate::pages;
use crate::recording::{self, Refused};
use crate::thread::{self, Thread};
use chase_logic::config::Config;
use chase_logic::text::Text;

/// By which the launcher knows that what it found in a process is this.
const MAGIC: u64 = u64::from_le_bytes(*b"CHASEATT");
const VERSION: u32 = 1;
/// [`Attachment::mode`]: the library was preloaded, and starts by itself.
const PRELOADED: u32 = 0;

/// [`Order::result`].
const DONE: u64 = 1;
const REFUSED: u64 = 2;

/// Most settings.
const SETTINGS: usize = 32;

/// What the launcher finds of the library in a file and in a process. The launcher has the same structure
/// (`attach/library.rs`).
#[repr(C)]
struct Attachment {
    magic: u64,
    version: u32,
    /// [`PRELOADED`], or another number, which the launcher has put there.
    mode: AtomicU32,
    attach: unsafe extern "C" fn(*mut Order),
    detach: unsafe extern "C" fn(*mut Order),
    /// What the words of a thread are that is not recorded: its countdowns, its `Thread`.
    no_counts: *const c_void,
    no_thread: *const c_void,
    /// Where the words are, from the thread pointer.
    words: AtomicUsize,
    /// Whether the process is recorded now.
    is_recording: AtomicU32,
}

// SAFETY: what the pointers lead to is never written through them, and the rest is atomic.
unsafe impl Sync for Attachment {}

#[used]
#[unsafe(export_name = "chase_attachment")]
#[unsafe(link_section = ".data")]
static ATTACHMENT: Attachment = Attachment {
    magic: MAGIC,
    version: VERSION,
    mode: AtomicU32::new(PRELOADED),
    attach,
    detach,
    no_counts: (&raw const crate::counts::NO_COUNTS).cast(),
    no_thread: (&raw const thread::NO_THREAD).cast(),
    words: AtomicUsize::new(0),
    is_recording: AtomicU32::new(0),
};

/// What the launcher asks for, in memory of its own in this process.
#[repr(C)]
struct Order {
    /// What came of it: 0, [`DONE`], [`REFUSED`].
    result: u64,
    /// Of a refusal: `errno`, or 0. Of `detach`, the launcher writes 1 when it lets the threads go before that is done.
    errno: u64,
    /// And why.
    reason: [u8; 112],
    /// How many words follow: of `attach`, the bytes of settings, each `NAME=value` with its NUL; of `detach`, the
    /// addresses of the `Thread`s of all threads.
    len: u64,
}

impl Order {
    fn refuse(&mut self, doing: &str, errno: i32) {
        for (to, from) in self.reason.iter_mut().zip(doing.bytes()) {
            *to = from;
        }
        self.errno = errno as u64;
        self.result = REFUSED;
    }
}

/// What the constructor was told.
static ARGUMENTS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Whether the library is to wait until it is told to begin. Called by its constructor.
pub(super) fn is_to_wait(arguments: &Arguments) -> bool {
    if ATTACHMENT.mode.load(Ordering::Relaxed) == PRELOADED {
        ATTACHMENT.is_recording.store(1, Ordering::Relaxed);
        return false;
    }
    IS_LATE.store(true, Ordering::Relaxed);
    ATTACHMENT.words.store(words_offset() as usize, Ordering::Relaxed);
    let words =
        [arguments.count as usize, arguments.start as usize, arguments.environment as usize];
    for (place, word) in ARGUMENTS.iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
    true
}

/// Begins to record the process.
///
/// # Safety
/// Called by a thread of the C library's, while all others are stopped outside of this library. `order` is of this
/// call, with what it says behind it.
unsafe extern "C" fn attach(order: *mut Order) {
    // SAFETY: the caller vouches for it.
    let order = unsafe { &mut *order };
    let [count, start, environment] =
        [0, 1, 2].map(|i: usize| ARGUMENTS.get(i).map_or(0, |it| it.load(Ordering::Relaxed)));
    let settings = (&raw const *order).wrapping_add(1).cast::<u8>();
    // SAFETY: the caller vouches for as many bytes behind the order.
    let settings = unsafe { core::slice::from_raw_parts(settings, order.len as usize) };
    // They are referred to as long as the process runs.
    let settings = pages::keep(settings);
    let mut variables = [0usize; SETTINGS + 1];
    let texts = settings.split(|&byte| byte == 0).filter(|text| !text.is_empty());
    for (variable, text) in variables.iter_mut().zip(texts).take(SETTINGS) {
        *variable = text.as_ptr() as usize;
    }
    // SAFETY: the array ends with null, and each text with NUL.
    let config = unsafe { Config::read(variables.as_ptr()) };
    // SAFETY: the dynamic linker has passed what the kernel put on the stack.
    let auxiliary = unsafe { Auxiliary::behind(environment as *const usize) };
    let arguments = Arguments {
        count: count as i32,
        start: start as *const usize,
        environment: environment as *const usize,
    };
    match begin_late(config, auxiliary, &arguments, settings) {
        Ok(()) => {
            ATTACHMENT.is_recording.store(1, Ordering::Relaxed);
            order.result = DONE;
        }
        Err(Refused { doing, errno }) => order.refuse(doing, errno),
    }
}

/// Ends the recording, and leaves every entry as it was found.
///
/// # Safety
/// As for [`attach`].
unsafe extern "C" fn detach(order: *mut Order) {
    // SAFETY: the caller vouches for it.
    let order = unsafe { &mut *order };
    let threads = (&raw const *order).wrapping_add(1).cast::<*mut ThreadHead>();
    // SAFETY: the caller vouches for as many words behind the order.
    let threads = unsafe { core::slice::from_raw_parts(threads, order.len as usize) };
    let restored = leaving::leave();
    // (Unless these go on by now: then they keep what they have.)
    // SAFETY: it is a word of the order.
    let is_cancelled = unsafe { (&raw const order.errno).read_volatile() } != 0;
    let threads = if is_cancelled { &[] } else { threads };
    dismiss_lingering();
    let mut inside = 0;
    for &head in threads.iter().filter(|head| !head.is_null()) {
        // SAFETY: it is what the words of a thread name, which begins with its head and stays until that ends; the
        // thread is stopped.
        let thread = unsafe { &*head.cast::<Thread>() };
        if !thread.head.is_nobody {
            inside += u64::from(!dismiss(thread));
        }
    }
    recording::close();
    ATTACHMENT.is_recording.store(0, Ordering::Relaxed);
    // For whoever wants to know: how many entries were restored, and how many threads are inside a call that will
    // return through a pad.
    let mut text = Text::<112>::new();
    text.push_number(restored).push(b" ").push_number(inside);
    for (to, from) in order.reason.iter_mut().zip(text.as_bytes()) {
        *to = *from;
    }
    order.result = DONE;
}
