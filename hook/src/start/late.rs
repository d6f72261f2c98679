//! Attaching to a running process, and detaching from it.
//!
//! To attach, the launcher loads a copy of this library whose [`ATTACHMENT`] has the mode
//! [`WAITING`](chase_format::attachment::WAITING): its constructor then doesn't start recording. [`attach`] and
//! [`detach`] are called by a thread that the launcher has created, while all other threads are stopped outside of this
//! library. So no operation is half done, and the threads' data can be freed.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use chase_format::attachment::{
    Attachment, DONE, MAGIC, MAY_BE_LEFT, Order, PRELOADED, REFUSED, StoppedThread, VERSION,
};

use super::begin_late;
use super::leaving::{self, dismiss, dismiss_lingering};
use crate::abi::{FRAMES, IS_LATE, ThreadHead};
use crate::arch::{
    chase_rest_end, chase_rest_of_buffer, chase_rest_of_buffers, chase_rest_of_file, words_offset,
};
use crate::auxiliary::Auxiliary;
use crate::clock;
use crate::pages;
use crate::recording::{self, Refused};
use crate::stubs::{chase_frames, chase_pads};
use crate::thread::{self, Thread};
use chase_logic::config::Config;
use chase_logic::text::Text;

type Function = unsafe extern "C" fn(*mut Order);

/// The variable by which the launcher finds the library in a file and in a process.
#[repr(transparent)]
struct Own(Attachment<Function, *const c_void, AtomicU32, AtomicUsize>);

// SAFETY: the pointers are never written through, and the other fields that change are atomic.
unsafe impl Sync for Own {}

#[used]
#[unsafe(export_name = "chase_attachment")]
#[unsafe(link_section = ".data")]
static ATTACHMENT: Own = Own(Attachment {
    magic: MAGIC,
    version: VERSION,
    mode: AtomicU32::new(PRELOADED),
    attach,
    detach,
    no_counts: (&raw const crate::counts::NO_COUNTS).cast(),
    no_thread: (&raw const thread::NO_THREAD).cast(),
    words: AtomicUsize::new(0),
    is_recording: AtomicU32::new(0),
    rest_of_buffer: (&raw const chase_rest_of_buffer).cast(),
    rest_of_file: (&raw const chase_rest_of_file).cast(),
    rest_of_buffers: (&raw const chase_rest_of_buffers).cast(),
    rest_end: (&raw const chase_rest_end).cast(),
    pads: (&raw const chase_pads).cast(),
    pad_count: FRAMES as u64,
    frames: (&raw const chase_frames).cast(),
});

fn say(order: &mut Order, text: &[u8]) {
    order.reason.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
}

fn refuse(order: &mut Order, doing: &str, errno: i32) {
    say(order, doing.as_bytes());
    order.errno = errno as u64;
    order.result = REFUSED;
}

/// Returns whether recording starts only with [`attach`]. Called by the constructor.
pub(super) fn is_to_wait() -> bool {
    if ATTACHMENT.0.mode.load(Ordering::Relaxed) == PRELOADED {
        ATTACHMENT.0.words.store(words_offset() as usize, Ordering::Relaxed);
        ATTACHMENT.0.is_recording.store(1, Ordering::Relaxed);
        return false;
    }
    IS_LATE.store(true, Ordering::Relaxed);
    ATTACHMENT.0.words.store(words_offset() as usize, Ordering::Relaxed);
    true
}

/// Allows the launcher to detach from this process, although the library was preloaded.
pub(super) fn may_be_left() {
    ATTACHMENT.0.mode.store(MAY_BE_LEFT, Ordering::Relaxed);
}

/// Starts to record the process.
///
/// # Safety
/// Called by a thread that the C library has created, while all others are stopped outside of this library. `order` is
/// exclusive to this call, and followed by the data whose length it states.
unsafe extern "C" fn attach(order: *mut Order) {
    // SAFETY: the caller vouches for it.
    let order = unsafe { &mut *order };
    if words_offset() == 0 {
        return refuse(
            order,
            "the dynamic linker has no room for it in the threads' own storage",
            0,
        );
    }
    let settings = (&raw const *order).wrapping_add(1).cast::<u8>();
    // SAFETY: the caller vouches for as many bytes behind the order.
    let settings = unsafe { core::slice::from_raw_parts(settings, order.len as usize) };
    // The variables are referred to until the process ends.
    let given = settings.len();
    let settings = pages::keep(settings);
    if settings.len() != given {
        return refuse(order, "no memory", libc::ENOMEM);
    }
    match begin_late(Config::read_late(settings), Auxiliary::of(&order.auxiliary)) {
        Ok(()) => {
            ATTACHMENT.0.is_recording.store(1, Ordering::Relaxed);
            order.result = DONE;
        }
        Err(Refused { doing, errno }) => refuse(order, doing, errno),
    }
}

/// Ends the recording, and restores all GOT entries.
///
/// # Safety
/// As for [`attach`].
unsafe extern "C" fn detach(order: *mut Order) {
    // SAFETY: the caller vouches for it.
    let order = unsafe { &mut *order };
    let threads = (&raw const *order).wrapping_add(1).cast::<StoppedThread<*mut ThreadHead>>();
    // SAFETY: the caller vouches for as many of them behind the order.
    let threads = unsafe { core::slice::from_raw_parts(threads, order.len as usize) };
    let restored = leaving::leave();
    // (If the launcher has let the threads continue in the meantime, they keep their data.) SAFETY: the word is part of
    // the order.
    let is_cancelled = unsafe { (&raw const order.errno).read_volatile() } != 0;
    let threads = if is_cancelled { &[] } else { threads };
    dismiss_lingering();
    let mut inside = 0;
    let mut latest = 0;
    for &StoppedThread { thread: head, stopped_ns } in
        threads.iter().filter(|stopped| !stopped.thread.is_null())
    {
        let ticks = clock::ticks_at(stopped_ns);
        latest = latest.max(ticks);
        // SAFETY: the address is from the thread-local words of a stopped thread. A `Thread` begins with its head, and
        // stays allocated until the thread ends.
        let thread = unsafe { &*head.cast::<Thread>() };
        if !thread.head.is_nobody {
            inside += u64::from(!dismiss(thread, ticks));
        }
    }
    if latest > 0 {
        // (The process stood still since then.)
        recording::set_end(latest);
    }
    recording::close();
    ATTACHMENT.0.is_recording.store(0, Ordering::Relaxed);
    // For information: how many entries were restored, and how many threads are inside a call that will return through
    // a pad.
    let mut text = Text::<112>::new();
    text.push_number(restored).push(b" ").push_number(inside);
    say(order, text.as_bytes());
    order.result = DONE;
}
