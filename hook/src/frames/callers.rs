//! The open library calls around a call.

use core::sync::atomic::Ordering;

use crate::abi::MOVED;
use crate::stubs::is_exit;
use crate::thread::Thread;

/// How many frames to look at.
const LOOK_AT: usize = 64;

impl Thread {
    /// Stores the return addresses of the open calls around a call made at `sp`, innermost first; returns their
    /// number. Only frames on the thread's own stack are known to enclose it.
    pub(crate) fn callers(&self, sp: usize, out: &mut [u64]) -> usize {
        let mut count = 0;
        for frame in self.frames().take(LOOK_AT) {
            // SAFETY: frames below `top` are initialised.
            let (at, address) =
                unsafe { ((*frame).sp.load(Ordering::Relaxed), (*frame).return_address) };
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
