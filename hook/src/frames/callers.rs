//! The open library calls around a call, and the place that a call is made from.

use chase_format::layout::{LONG_CALLS, Node};

use super::sp_of;
use crate::abi::MOVED;
use crate::node::reference;
use crate::sites;
use crate::stubs::is_exit;
use crate::thread::Thread;

/// How many frames to look at.
const LOOK_AT: usize = 64;

impl Thread {
    /// Records the place from which a sampled call of `node` was made; the sample stands for `weight` calls. Does nothing if contexts
    /// are distinguished by that place anyway.
    ///
    /// # Safety
    /// The node is this thread's.
    #[inline]
    pub(crate) unsafe fn note_caller(&self, node: *mut Node, return_address: usize, weight: u32) {
        if weight > 0 {
            // SAFETY: the caller vouches for the node.
            unsafe { self.note_place(reference(node), return_address, u64::from(weight)) };
        }
    }

    /// The same for a long call, which stands for itself alone.
    ///
    /// # Safety
    /// The node is this thread's.
    pub(crate) unsafe fn note_long_caller(
        &self,
        node: *mut Node,
        return_address: usize,
        ticks: u64,
    ) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.note_place(reference(node) | LONG_CALLS, return_address, ticks) };
    }

    /// Adds a call to those that return to the same address, as [`note_caller`](crate::tree::Tree::note_caller) says.
    ///
    /// # Safety
    /// The node is this thread's.
    #[inline]
    unsafe fn note_place(&self, node_ref: u32, return_address: usize, more: u64) {
        if self.is_busy() || sites::are_on() {
            return;
        }
        let address = if is_exit(return_address) { 0 } else { return_address as u64 };
        // SAFETY: the caller vouches for the node.
        if unsafe { self.tree.note_caller(node_ref, address, more) } {
            // That may take long itself, which must not be attributed to the next long call.
            self.ask_between();
        }
    }

    /// Returns where the program called what is called at `sp` and returns to `address`: of a tail call, where the hooked function was
    /// called that makes it; 0 if unknown.
    pub(crate) fn site_of(&self, sp: usize, address: usize) -> usize {
        if !is_exit(address) {
            return address;
        }
        // That function has been called with the same stack pointer.
        let mut site = [0];
        self.callers(sp - 1, &mut site);
        site[0] as usize
    }

    /// Stores the return addresses of the open calls around a call made at `sp`, innermost first; returns their
    /// number. Only frames on the thread's own stack are known to enclose it.
    pub(crate) fn callers(&self, sp: usize, out: &mut [u64]) -> usize {
        let mut count = 0;
        for frame in self.frames().take(LOOK_AT) {
            // SAFETY: frames below `top` are initialised.
            let (at, address) = (sp_of(frame), unsafe { (*frame).return_address });
            let encloses = at > MOVED && at > sp && self.holds(at) && self.holds(sp);
            // The return address of a tail call is our exit; that of the application is in its caller's frame.
            if !encloses || is_exit(address) {
                continue;
            }
            let Some(place) = out.get_mut(count) else { break };
            *place = address as u64;
            count += 1;
        }
        count
    }
}
