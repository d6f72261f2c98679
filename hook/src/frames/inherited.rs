//! What a fork's child does with the calls that were open in its parent.

use core::sync::atomic::Ordering;

use chase_format::layout::{FRAMED, INHERITED, SAMPLED};

use super::{is_timed, sp_of};
use crate::abi::{DEAD, FRAME, Frame, MOVED, SEGMENT, segment_of};
use crate::node::add_unwound;
use crate::thread::Thread;
use crate::{clock, pages};

struct OpenCall {
    frame: *mut Frame,
    slot: u32,
    is_timed: bool,
}

/// Calls that were open at a fork, innermost first.
pub(crate) struct OpenCalls {
    list: *mut OpenCall,
    len: usize,
    capacity: usize,
}

impl Thread {
    /// Lists the open frames, innermost first, before a fork's child gets a recording of its own.
    pub(crate) fn open_calls(&self) -> OpenCalls {
        for frame in self.frames().filter(|&frame| sp_of(frame) == MOVED) {
            // The parent accounts for this call.
            // SAFETY: frames below `top` are initialised.
            unsafe { (*frame).sp.store(DEAD, Ordering::Relaxed) };
        }
        let capacity = self.open_frames().count();
        let list = pages::allocate(capacity.max(1) * size_of::<OpenCall>()).cast::<OpenCall>();
        let mut len = 0;
        if !list.is_null() {
            for (frame, _) in self.open_frames().take(capacity) {
                // SAFETY: `len` stays below the capacity; the node is in the old recording.
                unsafe {
                    let slot = (*(*frame).node).slot & !(SAMPLED | FRAMED);
                    *list.add(len) = OpenCall { frame, slot, is_timed: is_timed(frame) };
                }
                len += 1;
            }
        }
        OpenCalls { list, len, capacity }
    }

    /// Gives each of these frames a node in the new recording, and restarts its time.
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
                // Its return will not be timed either.
                if !call.is_timed {
                    add_unwound(node);
                }
                parent = node;
            }
        }
        // SAFETY: links lead to the first segment.
        unsafe {
            let mut segment =
                segment_of((self.head.top.load(Ordering::Relaxed) - FRAME) as *const Frame);
            while !(*segment).previous.is_null() {
                let last = ((*segment).previous as usize + SEGMENT - FRAME) as *const Frame;
                (*segment).node =
                    if sp_of(last) > MOVED { (*last).node } else { self.tree.root.get() };
                segment = (*segment).previous;
            }
            (*segment).node = self.tree.root.get();
        }
        self.show_context();
        pages::give_back(calls.list.cast(), calls.capacity.max(1) * size_of::<OpenCall>());
    }
}
