//! The library calls that a call is made in.

use core::sync::atomic::Ordering;

use crate::abi::MOVED;
use crate::stubs::is_exit;
use crate::thread::Thread;

/// Frames that are looked at.
const LOOK_AT: usize = 64;

impl Thread {
    /// Where the calls that are open around one made at `sp` will return to, innermost first;
    /// returns how many. Only what is on the thread's own stack is known to enclose it.
    pub(crate) fn callers(&self, sp: usize, out: &mut [u64]) -> usize {
        let mut count = 0;
        for frame in self.frames().take(LOOK_AT) {
            // SAFETY: frames below `top` are initialised.
            let (at, address) =
                unsafe { ((*frame).sp.load(Ordering::Relaxed), (*frame).return_address) };
            let encloses = at > MOVED && at > sp && self.holds(at) && self.holds(sp);
            // A tail call returns to our exit: its caller's frame has the address.
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
