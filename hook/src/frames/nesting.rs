//! Which open calls enclose what a thread does.
//!
//! Times are nested: a call is in the time of the one that is innermost when it begins, and no longer than that. A
//! thread may go on elsewhere, though, before an inner call has returned: after `longjmp` or an exception,
//! or because it switches stacks, as coroutines do. Whenever an outer call is seen to run or to return, the inner ones
//! are accounted for as calls that were left: what they have taken so far is theirs, and what comes
//! later is not. So the time of a thread is never given twice, whatever it does with its stacks.

use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use super::{is_timed, mark_dead};
use crate::abi::{Frame, MOVED};
use crate::arch::set_context;
use crate::clock;
use crate::node::{SLOT_MASK, add_calls, add_ticks, add_unwound, is_sampled, node_at, take_back};
use crate::segments::infers;
use crate::stubs::frame_of;
use crate::thread::Thread;
use crate::traits;

/// What the place of a frame tells of it, where the thread goes on.
enum Place {
    /// Its call goes on.
    Encloses,
    /// Nothing returns there any more, unless stacks are copied.
    Left,
    /// It is on another stack, or in a piece of this one that is away.
    Elsewhere,
}

impl Thread {
    /// The node in whose context a call at `sp` is made, which is made the context. Leaves the calls that are further
    /// in.
    pub(crate) fn enclosing(&self, sp: usize) -> *mut Node {
        // SAFETY: the call's return address is there.
        let named = frame_of(unsafe { *(sp as *const usize) });
        self.go_on_at(sp, named, clock::now)
    }

    /// Leaves the calls that a jump from here to `target_sp` leaves, at this time.
    pub(crate) fn leave_by_jump(&self, target_sp: usize, now_ticks: u64) {
        if self.holds(target_sp) {
            self.count_uncounted();
        }
        // (What goes on there is inside of a call whose return address is right there.)
        self.go_on_at(target_sp.wrapping_sub(1), None, || now_ticks);
    }

    /// Code goes on with `sp`, in or right below the frame `named`, if that is known.
    fn go_on_at(&self, sp: usize, named: Option<usize>, now: impl Fn() -> u64) -> *mut Node {
        self.drop_dead();
        let mut found = self.tree.root.get();
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised.
            let at = unsafe { (*frame).sp.load(Ordering::Relaxed) };
            if at <= MOVED {
                continue;
            }
            let place = if named == Some(frame as usize) {
                Place::Encloses
            } else {
                self.place(frame, at, sp)
            };
            match place {
                Place::Encloses => {
                    // SAFETY: as above.
                    found = unsafe { (*frame).node };
                    break;
                }
                Place::Left => self.leave_behind(frame, now(), !infers()),
                Place::Elsewhere => self.leave_behind(frame, now(), true),
            }
        }
        self.drop_dead();
        self.refresh_left();
        set_context(found as usize);
        found
    }

    /// What it means that code goes on with `sp` while there is this frame, whose return address was at `at`. Two
    /// places are on the same stack for sure only if they are on the thread's own, or are equal.
    fn place(&self, frame: *const Frame, at: usize, sp: usize) -> Place {
        match (self.holds(at), self.holds(sp)) {
            (true, true) if at > sp => {
                // SAFETY: what is above the stack pointer, on the thread's own stack, is there to be read.
                let is_there =
                    infers() || frame_of(unsafe { *(at as *const usize) }) == Some(frame.addr());
                if is_there { Place::Encloses } else { Place::Elsewhere }
            }
            (true, true) => Place::Left,
            // A handler on its own stack, or a coroutine: what it does is part of what is open on the thread's own.
            (true, false) => Place::Encloses,
            (false, true) => Place::Elsewhere,
            (false, false) if at > sp => Place::Encloses,
            (false, false) if at == sp => Place::Left,
            (false, false) => Place::Elsewhere,
        }
    }

    /// Drops a frame whose call has ended and is recorded, and leaves those further in.
    pub(crate) fn leave(&self, frame: *mut Frame, now_ticks: u64) {
        // SAFETY: the frame is this thread's.
        let sp = unsafe { (*frame).sp.load(Ordering::Relaxed) };
        // (Otherwise a signal handler has dropped it already.)
        let was_live = sp > MOVED;
        for inner in self.frames().take_while(|&inner| was_live && inner != frame) {
            // SAFETY: frames below `top` are initialised.
            let at = unsafe { (*inner).sp.load(Ordering::Relaxed) };
            if at > MOVED {
                // Deeper ones of this stack can't be running.
                let is_deeper = at < sp && self.holds(at) && self.holds(sp);
                self.leave_behind(inner, now_ticks, !(is_deeper && infers()));
            }
        }
        // SAFETY: as above.
        unsafe { mark_dead(frame) };
        self.drop_dead();
        self.refresh_left();
        self.show_context();
    }

    /// When the start routine has been left: nothing on the thread's own stack is running.
    pub(crate) fn abandon_own_stack(&self) {
        self.count_uncounted();
        for frame in self.frames() {
            // SAFETY: frames below `top` are initialised.
            let at = unsafe { (*frame).sp.load(Ordering::Relaxed) };
            if at > MOVED && self.holds(at) {
                self.leave_behind(frame, clock::now(), !infers());
            }
        }
        self.drop_dead();
        self.refresh_left();
    }

    /// Accounts for a call as one that was left, at this time, and sets its frame aside. `may_return`: as
    /// [`Thread::set_aside`].
    fn leave_behind(&self, frame: *mut Frame, now_ticks: u64, may_return: bool) {
        self.was_left.set(true);
        // SAFETY: the frame is this thread's and live, so its node is one of this thread's.
        unsafe {
            if is_timed(frame) {
                let node = self.node_of_left((*frame).node, (*frame).weight);
                add_ticks(node, now_ticks.saturating_sub((*frame).start_ticks));
                add_unwound(node);
            } else {
                let node = self.node_of_left((*frame).node, 0);
                if !is_sampled(node) {
                    add_unwound(node);
                }
            }
            self.set_aside(frame, may_return);
        }
    }

    /// The node in which a call is noted that is left: a sample that does not return stands for
    /// itself alone, and is a timed call like others.
    fn node_of_left(&self, node: *mut Node, weight: u32) -> *mut Node {
        traits::time_every_call(node);
        // SAFETY: the node is one of this thread's, and its parent is its caller's scope.
        unsafe {
            if !is_sampled(node) {
                return node;
            }
            let caller = node_at((*node).parent_ref);
            let timed = self.tree.find_or_add(caller, (*node).slot & SLOT_MASK);
            if timed.is_null() {
                return node;
            }
            take_back(node, weight);
            add_calls(timed, 1);
            timed
        }
    }
}
