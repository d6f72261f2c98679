//! Which open calls enclose what a thread does.
//!
//! Times are nested: a call's time is part of that of the call that is innermost when it begins. But a thread may
//! continue elsewhere before an inner call has returned: after `longjmp` or an exception, or because it switches
//! stacks, as coroutines do. Whenever an outer call is seen to run or to return, the inner ones are accounted for as
//! abandoned: their time ends there. So no time of a thread is attributed twice, whatever it does with its stacks.

use chase_format::layout::Node;

use super::{is_timed, mark_dead, sp_of};
use crate::abi::{Frame, MOVED};
use crate::arch::set_context;
use crate::clock;
use crate::node::{
    SLOT_MASK, add_calls, add_ticks, add_unwound, is_sampled, node_at, subtract_call,
};
use crate::segments::deeper_calls_are_over;
use crate::stubs::frame_of;
use crate::thread::Thread;
use crate::traits;

/// What becomes of an open call when the thread continues elsewhere.
enum Fate {
    /// It encloses what goes on.
    Encloses,
    /// It never returns, unless stacks are copied.
    Abandoned,
    /// Its frame is on another stack, or in a slice of this one that was copied away.
    Elsewhere,
}

impl Thread {
    /// Returns the node in whose context a call at `sp` is made, and makes it the thread's context. Abandons the
    /// calls further in.
    pub(crate) fn context_at(&self, sp: usize) -> *mut Node {
        // SAFETY: the call's return address is at `sp`.
        let named = frame_of(unsafe { *(sp as *const usize) });
        self.continue_at(sp, named, clock::now)
    }

    /// Abandons, at this time, the calls that a jump from here to `target_sp` leaves.
    pub(crate) fn leave_by_jump(&self, target_sp: usize, now_ticks: u64) {
        if self.holds(target_sp) {
            self.count_unrecorded_ends();
        }
        // (The jump continues inside of the call whose return address is right at `target_sp`.)
        self.continue_at(target_sp.wrapping_sub(1), None, || now_ticks);
    }

    /// Finds the innermost open call around code that continues with `sp`; abandons the calls further in. `named` is
    /// the frame that the code is in, or that it was called from, if known.
    fn continue_at(&self, sp: usize, named: Option<usize>, now: impl Fn() -> u64) -> *mut Node {
        self.drop_ended_frames();
        let mut found = self.tree.root.get();
        for (frame, at) in self.open_frames() {
            let fate = if named == Some(frame as usize) {
                Fate::Encloses
            } else {
                self.fate_of(frame, at, sp)
            };
            match fate {
                Fate::Encloses => {
                    // SAFETY: frames of open calls are live.
                    found = unsafe { (*frame).node };
                    break;
                }
                Fate::Abandoned => self.abandon(frame, now(), !deeper_calls_are_over()),
                Fate::Elsewhere => self.abandon(frame, now(), true),
            }
        }
        self.drop_ended_frames();
        self.refresh_set_aside();
        set_context(found as usize);
        found
    }

    /// Decides what becomes of the call of `frame`, whose return address was at `at`, when code continues with `sp`.
    /// Two addresses are known to be on the same stack only if both are on the thread's own, or if they are equal.
    fn fate_of(&self, frame: *const Frame, at: usize, sp: usize) -> Fate {
        match (self.holds(at), self.holds(sp)) {
            (true, true) if at > sp => {
                // SAFETY: on the thread's own stack, everything above the stack pointer can be read.
                let is_there = deeper_calls_are_over()
                    || frame_of(unsafe { *(at as *const usize) }) == Some(frame.addr());
                if is_there { Fate::Encloses } else { Fate::Elsewhere }
            }
            (true, true) => Fate::Abandoned,
            // A handler on its own stack, or a coroutine: its calls are part of what is open on the thread's own
            // stack.
            (true, false) => Fate::Encloses,
            (false, true) => Fate::Elsewhere,
            (false, false) if at > sp => Fate::Encloses,
            (false, false) if at == sp => Fate::Abandoned,
            (false, false) => Fate::Elsewhere,
        }
    }

    /// Releases a frame whose call has ended and is recorded, and abandons the calls further in.
    pub(crate) fn leave(&self, frame: *mut Frame, now_ticks: u64) {
        let sp = sp_of(frame);
        // (Otherwise a signal handler has released it already.)
        let was_live = sp > MOVED;
        for inner in self.frames().take_while(|&inner| was_live && inner != frame) {
            let at = sp_of(inner);
            if at > MOVED {
                // Calls deeper on this stack can't be running.
                let is_deeper = at < sp && self.holds(at) && self.holds(sp);
                self.abandon(inner, now_ticks, !(is_deeper && deeper_calls_are_over()));
            }
        }
        // SAFETY: the frame is this thread's.
        unsafe { mark_dead(frame) };
        self.drop_ended_frames();
        self.refresh_set_aside();
        self.show_context();
    }

    /// Abandons all calls on the thread's own stack, once the start routine has ended.
    pub(crate) fn abandon_own_stack(&self) {
        self.count_unrecorded_ends();
        for (frame, _) in self.open_frames().filter(|&(_, at)| self.holds(at)) {
            self.abandon(frame, clock::now(), !deeper_calls_are_over());
        }
        self.drop_ended_frames();
        self.refresh_set_aside();
    }

    /// Accounts for a call as abandoned at this time, and sets its frame aside. `may_return`: the `is_elsewhere` of
    /// [`Thread::set_aside`].
    fn abandon(&self, frame: *mut Frame, now_ticks: u64, may_return: bool) {
        self.has_abandoned_calls.set(true);
        // SAFETY: the frame is this thread's and live, so its node is one of this thread's.
        unsafe {
            if is_timed(frame) {
                let node = self.node_for_abandoned((*frame).node, (*frame).weight);
                add_ticks(node, now_ticks.saturating_sub((*frame).start_ticks));
                add_unwound(node);
            } else {
                let node = self.node_for_abandoned((*frame).node, 0);
                if !is_sampled(node) {
                    add_unwound(node);
                }
            }
            self.set_aside(frame, may_return);
        }
    }

    /// Returns the node in which to record an abandoned call: a sample that does not return stands for itself alone,
    /// as a timed call.
    fn node_for_abandoned(&self, node: *mut Node, weight: u32) -> *mut Node {
        traits::time_every_call(node);
        // SAFETY: the node is one of this thread's; its parent is its caller's scope.
        unsafe {
            if !is_sampled(node) {
                return node;
            }
            let caller = node_at((*node).parent_ref);
            let timed = self.tree.find_or_add(caller, (*node).slot & SLOT_MASK);
            if timed.is_null() {
                return node;
            }
            subtract_call(node, weight);
            add_calls(timed, 1);
            timed
        }
    }
}
