//! The shadow stack of a thread, and the slow half of the call path.
//!
//! A frame holds what the call path took off the real stack. Frames live in segments of one page,
//! linked in the order in which they were entered; the first frame's place holds the link. The
//! call path claims and releases frames by single instructions on [`Thread::top`], so a signal
//! handler between any two instructions finds a consistent stack.
//!
//! Frames can be left behind: by `longjmp`, by exceptions, by coroutines that return in any order
//! and on any stack or thread. Two rules keep this safe:
//!
//! * A live frame is never overwritten: `top` moves down past dead frames only, and a frame is
//!   declared dead only on proof. Proof is that it lies deeper than a frame that is running on the
//!   same stack, and two addresses are on the same stack only if both are on the thread's own, or
//!   are equal. (A tail call has its caller's address too, but returns to our exit.)
//! * A frame that ends on another thread than it began on is recorded in that thread's tree, and
//!   its owner takes the call out of its own tree when it meets the dead frame.

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{INHERITED, Node};

use crate::arch::{current_thread, is_exit, stack_pointer};
use crate::recording::Lost;
use crate::signals::SignalsBlocked;
use crate::thread::{self, Thread};
use crate::{clock, loading, pages, recording};

/// Bytes of a frame.
pub(crate) const FRAME: usize = 64;
/// Bytes, and alignment, of a segment.
pub(crate) const SEGMENT: usize = 4096;
/// Segments of one thread before calls run untimed: a million frames.
const MANY_SEGMENTS: usize = 1 << 14;
/// Frames that are looked at for one that encloses a call on another stack.
const MANY_STACKS: usize = 64;

/// [`Frame::sp`] of a frame that is free, or claimed and not filled yet.
const FREE: usize = 0;
/// [`Frame::sp`] of a frame that has ended while it was not on top.
const DEAD: usize = 1;
/// The same, on another thread, which has recorded the call as its own.
const MOVED: usize = 2;

/// A call under way.
#[repr(C, align(64))]
pub(crate) struct Frame {
    pub(crate) return_address: usize,
    pub(crate) saved_rbx: usize,
    /// Where the return address was on the real stack; or a state.
    pub(crate) sp: AtomicUsize,
    pub(crate) start_ticks: u64,
    pub(crate) node: *mut Node,
    /// For the exit.
    pub(crate) saved_rcx: usize,
}

/// What is in the place of a segment's first frame. `sp` and `node` are those of the frame below,
/// since the call path looks there for the caller.
#[repr(C, align(64))]
pub(crate) struct Segment {
    owner: *mut Thread,
    previous: *mut Segment,
    sp: AtomicUsize,
    next: *mut Segment,
    node: *mut Node,
}

const _: () = {
    assert!(size_of::<Frame>() == FRAME && size_of::<Segment>() == FRAME);
    assert!(offset_of!(Frame, sp) == offset_of!(Segment, sp));
    assert!(offset_of!(Frame, node) == offset_of!(Segment, node));
    // The CFI in call.S knows these two.
    assert!(offset_of!(Frame, return_address) == 0 && offset_of!(Frame, saved_rbx) == 8);
};

/// Where `top` is when the segment is empty.
fn bottom(segment: *mut Segment) -> usize {
    segment as usize + FRAME
}

fn segment_of(frame: *const Frame) -> *mut Segment {
    (frame as usize & !(SEGMENT - 1)) as *mut Segment
}

/// Makes the first segment of a thread, in a zeroed page.
///
/// # Safety
/// `segment` is a page of ours that nobody uses.
pub(crate) unsafe fn first_segment(segment: *mut Segment, owner: *mut Thread, root: *mut Node) {
    // SAFETY: the caller vouches for the page.
    unsafe {
        (*segment).owner = owner;
        (*segment).previous = ptr::null_mut();
        (*segment).node = root;
        (*segment).sp.store(usize::MAX, Ordering::Relaxed);
        (*owner).top.store(bottom(segment), Ordering::Relaxed);
    }
}

/// The frames of a thread from the top down, over all its segments.
struct Below {
    at: usize,
}

impl Iterator for Below {
    type Item = *mut Frame;

    fn next(&mut self) -> Option<*mut Frame> {
        let mut frame = self.at.wrapping_sub(FRAME);
        while frame.is_multiple_of(SEGMENT) {
            // SAFETY: a frame's place at a segment's start is its link.
            let previous = unsafe { (*(frame as *const Segment)).previous };
            if previous.is_null() {
                return None;
            }
            frame = previous as usize + SEGMENT - FRAME;
        }
        self.at = frame;
        Some(frame as *mut Frame)
    }
}

impl Thread {
    fn frames(&self) -> Below {
        Below { at: self.top.load(Ordering::Relaxed) }
    }

    /// Moves `top` down past dead frames.
    fn drop_dead(&self) {
        loop {
            let top = self.top.load(Ordering::Relaxed);
            let frame = (top.wrapping_sub(FRAME)) as *mut Frame;
            // SAFETY: `top` is never below the first frame of a segment; frames and links live as
            // long as the thread.
            unsafe {
                if (frame as usize).is_multiple_of(SEGMENT) {
                    let previous = (*segment_of(frame)).previous;
                    if previous.is_null() {
                        return;
                    }
                    let end = previous as usize + SEGMENT;
                    let last = (end - FRAME) as *mut Frame;
                    if (*last).sp.load(Ordering::Relaxed) > MOVED {
                        return;
                    }
                    if !self.move_top(top, end) {
                        return;
                    }
                    continue;
                }
                let state = (*frame).sp.load(Ordering::Acquire);
                if state != DEAD && state != MOVED {
                    return;
                }
                if state == MOVED {
                    (*(*frame).node).calls -= 1;
                }
                (*frame).sp.store(FREE, Ordering::Relaxed);
                if !self.move_top(top, frame as usize) {
                    return;
                }
            }
        }
    }

    fn move_top(&self, from: usize, to: usize) -> bool {
        self.top.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Ends a frame that nothing will return through: when the latest jump was made, if that was
    /// after its start, otherwise now.
    fn abandon(&self, frame: *mut Frame) {
        // SAFETY: the frame is this thread's and live, so its node is one of this thread's.
        unsafe {
            let start = (*frame).start_ticks;
            let end = if self.last_jump_ticks.get() > start {
                self.last_jump_ticks.get()
            } else {
                clock::now()
            };
            (*(*frame).node).total_ticks += end.saturating_sub(start);
            (*(*frame).node).unwound += 1;
            mark_dead(frame);
        }
    }

    /// The node in whose context a call at `sp` is made. Drops the frames that such a call proves
    /// dead.
    pub(crate) fn enclosing(&self, sp: usize) -> *mut Node {
        self.drop_dead();
        let mut found = self.tree.root.get();
        let mut looked_at = 0;
        // SAFETY: the call's return address is there.
        let tail_call = is_exit(unsafe { *(sp as *const usize) });
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised.
            let at = unsafe { (*frame).sp.load(Ordering::Relaxed) };
            let encloses = at > sp && (self.stack.holds(at) || !self.stack.holds(sp));
            if encloses || at == sp && tail_call {
                // SAFETY: as above.
                found = unsafe { (*frame).node };
                break;
            }
            if at > MOVED && at <= sp {
                let (frame_is_own, call_is_own) = (self.stack.holds(at), self.stack.holds(sp));
                if at == sp || frame_is_own && call_is_own {
                    self.abandon(frame);
                } else if frame_is_own {
                    // A handler on its own stack, or a coroutine: what the thread does is part of
                    // the call that is open on its own stack.
                    // SAFETY: as above.
                    found = unsafe { (*frame).node };
                    break;
                }
            }
            looked_at += 1;
            if looked_at == MANY_STACKS {
                break;
            }
        }
        self.drop_dead();
        found
    }

    /// Drops a frame whose call is recorded, and those that its return proves dead.
    fn leave(&self, frame: *mut Frame) {
        // SAFETY: the frame is this thread's, and was live until now.
        let sp = unsafe { (*frame).sp.load(Ordering::Relaxed) };
        if sp > MOVED && self.stack.holds(sp) {
            // Deeper frames of this stack can't be running.
            for deeper in self.frames().take_while(|&above| above != frame) {
                // SAFETY: frames below `top` are initialised.
                let at = unsafe { (*deeper).sp.load(Ordering::Relaxed) };
                if at > MOVED && at < sp && self.stack.holds(at) {
                    self.abandon(deeper);
                }
            }
        }
        // SAFETY: as above.
        unsafe { mark_dead(frame) };
        self.drop_dead();
    }

    /// Drops the frames that a jump from here to `target_sp` leaves behind.
    pub(crate) fn jump(&self, target_sp: usize) {
        self.last_jump_ticks.set(clock::now());
        let here = stack_pointer();
        if target_sp <= here || !self.stack.holds(here) || !self.stack.holds(target_sp) {
            return;
        }
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised.
            let at = unsafe { (*frame).sp.load(Ordering::Relaxed) };
            if at > MOVED && at < target_sp && self.stack.holds(at) {
                self.abandon(frame);
            } else if at > MOVED {
                break;
            }
        }
        self.drop_dead();
    }

    fn claim(&self) -> *mut Frame {
        loop {
            let top = self.top.load(Ordering::Relaxed);
            if top.is_multiple_of(SEGMENT) && !self.grow() {
                return ptr::null_mut();
            }
            let frame = self.top.fetch_add(FRAME, Ordering::Relaxed);
            if !frame.is_multiple_of(SEGMENT) {
                return frame as *mut Frame;
            }
            // A handler filled the segment and switched away in between; go back and grow.
            self.move_top(frame + FRAME, frame);
        }
    }

    /// Enters the next segment.
    fn grow(&self) -> bool {
        let _signals = SignalsBlocked::new();
        let top = self.top.load(Ordering::Relaxed);
        if !top.is_multiple_of(SEGMENT) {
            return true;
        }
        // SAFETY: `top` is at the end of the segment before it; segments live as long as the
        // thread, and a new one is ours.
        unsafe {
            let last = (top - FRAME) as *mut Frame;
            let segment = segment_of(last);
            let mut next = (*segment).next;
            if next.is_null() {
                next = self.unused_segment(segment);
                if next.is_null() {
                    if self.segments.get() >= MANY_SEGMENTS {
                        return false;
                    }
                    next = pages::take(SEGMENT).cast();
                    self.segments.set(self.segments.get() + 1);
                }
                if next.is_null() {
                    return false;
                }
                (*next).owner = ptr::from_ref(self).cast_mut();
                (*next).previous = segment;
                (*next).next = ptr::null_mut();
                (*segment).next = next;
            }
            let sp = (*last).sp.load(Ordering::Relaxed);
            (*next).sp.store(sp, Ordering::Relaxed);
            (*next).node = (*last).node;
            self.top.store(bottom(next), Ordering::Relaxed);
        }
        true
    }

    /// Takes a segment without a live frame out of the chain below `top`, if one of the last few
    /// is such: coroutines that call in turns would otherwise use ever more.
    fn unused_segment(&self, last: *mut Segment) -> *mut Segment {
        const LOOK_AT: usize = 64;
        let mut at = last;
        // SAFETY: links lead to the first segment; no frame of an unused one is live, so nothing
        // refers to it but its neighbours.
        unsafe {
            for _ in 0..LOOK_AT {
                let previous = (*at).previous;
                if previous.is_null() || (*previous).previous.is_null() {
                    break;
                }
                if is_unused(previous) {
                    (*at).previous = (*previous).previous;
                    (*(*previous).previous).next = at;
                    for frame in frames_in(previous) {
                        if (*frame).sp.load(Ordering::Acquire) == MOVED {
                            (*(*frame).node).calls -= 1;
                        }
                        (*frame).sp.store(FREE, Ordering::Relaxed);
                    }
                    return previous;
                }
                at = previous;
            }
        }
        ptr::null_mut()
    }

    /// Takes the calls that ended on other threads out of this one's tree.
    pub(crate) fn settle_moved(&self) {
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised; a moved one's node is this thread's.
            unsafe {
                if (*frame).sp.load(Ordering::Acquire) == MOVED {
                    (*(*frame).node).calls -= 1;
                    (*frame).sp.store(DEAD, Ordering::Relaxed);
                }
            }
        }
    }

    /// When the start routine has been left: nothing on the thread's own stack is running.
    pub(crate) fn abandon_own_stack(&self) {
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised.
            let at = unsafe { (*frame).sp.load(Ordering::Relaxed) };
            if at > MOVED && self.stack.holds(at) {
                self.abandon(frame);
            }
        }
        self.drop_dead();
    }

    /// At the thread's end: gives back the segments behind the first, and says whether no frame
    /// was live.
    pub(crate) fn release_segments(&self) -> bool {
        self.settle_moved();
        self.drop_dead();
        if self.frames().next().is_some() {
            return false;
        }
        // SAFETY: no frame is live, so nothing refers to the segments.
        unsafe {
            let first = segment_of((self.top.load(Ordering::Relaxed) - FRAME) as *const Frame);
            let mut segment = (*first).next;
            (*first).next = ptr::null_mut();
            while !segment.is_null() {
                let next = (*segment).next;
                pages::give_back(segment.cast(), SEGMENT);
                segment = next;
            }
        }
        true
    }

    /// Notes the open frames, outermost last, before a fork's child gets a recording of its own.
    pub(crate) fn open_calls(&self) -> OpenCalls {
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised.
            unsafe {
                // Its call is the parent's to settle.
                if (*frame).sp.load(Ordering::Relaxed) == MOVED {
                    (*frame).sp.store(DEAD, Ordering::Relaxed);
                }
            }
        }
        let live = |frame: &*mut Frame| {
            // SAFETY: frames below `top` are initialised.
            unsafe { (**frame).sp.load(Ordering::Relaxed) > MOVED }
        };
        let capacity = self.frames().filter(live).count();
        let list = pages::take(capacity.max(1) * size_of::<OpenCall>()).cast::<OpenCall>();
        let mut len = 0;
        if !list.is_null() {
            for frame in self.frames().filter(live).take(capacity) {
                // SAFETY: `len` stays below the capacity; the node is in the old recording.
                unsafe { *list.add(len) = OpenCall { frame, slot: (*(*frame).node).slot } };
                len += 1;
            }
        }
        OpenCalls { list, len, capacity }
    }

    /// Gives each of these frames a node in the new recording, and starts its time anew.
    pub(crate) fn inherit(&self, calls: &OpenCalls) {
        let now = clock::now();
        let mut parent = self.tree.root.get();
        for i in (0..calls.len).rev() {
            // SAFETY: `i` is inside the list, whose frames are this thread's and live.
            unsafe {
                let call = &*calls.list.add(i);
                let node = self.tree.find_or_add(parent, call.slot | INHERITED);
                let node = if node.is_null() { parent } else { node };
                (*call.frame).node = node;
                (*call.frame).start_ticks = now;
                (*node).last_start_ticks = now;
                parent = node;
            }
        }
        // SAFETY: links lead to the first segment.
        unsafe {
            let mut segment =
                segment_of((self.top.load(Ordering::Relaxed) - FRAME) as *const Frame);
            while !(*segment).previous.is_null() {
                let last = ((*segment).previous as usize + SEGMENT - FRAME) as *const Frame;
                let live = (*last).sp.load(Ordering::Relaxed) > MOVED;
                (*segment).node = if live { (*last).node } else { self.tree.root.get() };
                segment = (*segment).previous;
            }
            (*segment).node = self.tree.root.get();
        }
        pages::give_back(calls.list.cast(), calls.capacity.max(1) * size_of::<OpenCall>());
    }
}

struct OpenCall {
    frame: *mut Frame,
    slot: u32,
}

/// Calls that were open at a fork, innermost first.
pub(crate) struct OpenCalls {
    list: *mut OpenCall,
    len: usize,
    capacity: usize,
}

/// Marks a frame as ended. If it is the last of its segment, the next one's link shows it still.
///
/// # Safety
/// The frame belongs to the calling thread.
unsafe fn mark_dead(frame: *mut Frame) {
    // SAFETY: vouched for by the caller; links live as long as the thread.
    unsafe {
        (*frame).sp.store(DEAD, Ordering::Relaxed);
        let next = (*segment_of(frame)).next;
        if (frame as usize + FRAME).is_multiple_of(SEGMENT) && !next.is_null() {
            (*next).sp.store(FREE, Ordering::Relaxed);
        }
    }
}

fn frames_in(segment: *mut Segment) -> impl Iterator<Item = *mut Frame> {
    (1..SEGMENT / FRAME).map(move |i| (segment as usize + i * FRAME) as *mut Frame)
}

fn is_unused(segment: *mut Segment) -> bool {
    // SAFETY: the frames of a segment are initialised, zero at first.
    frames_in(segment).all(|frame| unsafe { (*frame).sp.load(Ordering::Acquire) } <= MOVED)
}

/// The slow half of the entry: whatever the call path found, does the entry from start to end but
/// for the clock. Null: the call can't be recorded.
///
/// # Safety
/// Called by the call path: `sp` is where the return address is; `vain` is null or a frame that was
/// claimed and is not wanted.
pub(crate) unsafe extern "C" fn enter_slow(
    slot: u32,
    sp: usize,
    rbx: usize,
    vain: *mut Frame,
) -> *mut Frame {
    if !vain.is_null() {
        give_up(vain);
    }
    let Some(thread) = thread::current_or_adopt() else {
        recording::unseen(Lost::CallWithoutThread);
        return ptr::null_mut();
    };
    if thread.is_busy() {
        // A handler of a synchronous signal, in the middle of a change.
        thread.count_untimed();
        return ptr::null_mut();
    }
    loading::catch_up(thread, sp);
    let context = thread.enclosing(sp);
    let node = thread.tree.find_or_add(context, slot);
    if node.is_null() {
        recording::unseen(Lost::CallWithoutSpace);
        return ptr::null_mut();
    }
    let frame = thread.claim();
    if frame.is_null() {
        recording::unseen(Lost::CallTooDeep);
        return ptr::null_mut();
    }
    // SAFETY: the frame was claimed for this call; the caller's stack holds its return address.
    unsafe {
        (*frame).node = node;
        (*frame).sp.store(sp, Ordering::Relaxed);
        (*frame).saved_rbx = rbx;
        (*frame).return_address = *(sp as *const usize);
        (*node).calls += 1;
    }
    frame
}

/// The call path claimed this frame after a signal handler had switched stacks in the middle of its
/// look-up: it is not the one that it looked at.
fn give_up(vain: *mut Frame) {
    if !(vain as usize).is_multiple_of(SEGMENT) {
        // SAFETY: the call path claimed it for this thread.
        unsafe { (*vain).sp.store(DEAD, Ordering::Relaxed) };
    } else if let Some(thread) = thread::current() {
        thread.move_top(vain as usize + FRAME, vain as usize);
    }
}

/// The slow half of the exit: records the call and drops the frame.
///
/// # Safety
/// Called by the call path, with a frame that was live and has just returned.
pub(crate) unsafe extern "C" fn leave_slow(frame: *mut Frame, now_ticks: u64) {
    let current = current_thread();
    // SAFETY: the frame is live, so it and its node are initialised.
    unsafe {
        // A clock that stepped back makes no time.
        let (node, ticks) = ((*frame).node, now_ticks.saturating_sub((*frame).start_ticks));
        let owner = (*segment_of(frame)).owner;
        if owner != current {
            leave_elsewhere(node, ticks);
            if (*owner).has_ended() {
                (*node).calls -= 1;
                (*frame).sp.store(DEAD, Ordering::Release);
            } else {
                (*frame).sp.store(MOVED, Ordering::Release);
            }
            return;
        }
        let thread = &*current;
        thread.record(node, ticks);
        thread.leave(frame);
    }
}

fn leave_elsewhere(node: *const Node, ticks: u64) {
    let Some(thread) = thread::current() else {
        return recording::unseen(Lost::CallWithoutThread);
    };
    let node = thread.tree.translate(node);
    if node.is_null() {
        return recording::unseen(Lost::CallWithoutSpace);
    }
    // SAFETY: the node is this thread's.
    unsafe { (*node).calls += 1 };
    thread.record(node, ticks);
}

/// The call path has recorded a call and moved `top` down, only to see that the frame was not on
/// top any more: takes that back.
///
/// # Safety
/// As for [`leave_slow`]; the frame belongs to the calling thread.
pub(crate) unsafe extern "C" fn leave_moved(frame: *mut Frame) {
    // SAFETY: the frame's owner is the calling thread.
    let thread = unsafe { &*(*segment_of(frame)).owner };
    thread.top.fetch_add(FRAME, Ordering::Relaxed);
    thread.leave(frame);
}
