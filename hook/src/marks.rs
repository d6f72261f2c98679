//! Names of marks that the application sets, each stored once in the recording.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chase_format::layout::{ChunkKind, MARK_NAME, MarkName, NONE, PAGE};

use crate::lock::{Fork, Lock};
use crate::recording::{self, Records};

/// The maximum number of names, and the size of their hash table.
const MOST: usize = 512;
const PLACES: usize = 2 * MOST;
const CHUNK: usize = 2 * PAGE;

struct State {
    /// Name and number, by hash.
    known: [(*mut MarkName, u32); PLACES],
    count: u32,
    records: Records<MarkName, CHUNK>,
}

impl State {
    const EMPTY: Self =
        Self { known: [(ptr::null_mut(), 0); PLACES], count: 0, records: Records::NONE };
}

#[unsafe(link_section = ".bss.large")]
static MARKS: Lock<State> = Lock::new(State::EMPTY);

/// Whether there are any names.
static ARE_KNOWN: AtomicBool = AtomicBool::new(false);

/// Returns the number of a name plus 1; 0 if there is no room for it. Signals are blocked.
pub(crate) fn number_of(name: &[u8]) -> u32 {
    let name = name.get(..name.len().min(MARK_NAME)).unwrap_or(name);
    let state = &mut *MARKS.hold();
    let first = hash(name) as usize;
    for probe in 0..PLACES {
        let at = (first + probe) % PLACES;
        let Some(&(known, number)) = state.known.get(at) else { break };
        if known.is_null() {
            return state.add(at, name).map_or(0, |number| number + 1);
        }
        // SAFETY: names stay in the recording.
        let known = unsafe { &*known };
        if known.name.get(..known.len as usize) == Some(name) {
            return number + 1;
        }
    }
    0
}

impl State {
    fn add(&mut self, at: usize, name: &[u8]) -> Option<u32> {
        if self.count as usize >= MOST {
            return None;
        }
        let record = self.records.next(|| recording::chunk(ChunkKind::Marks, NONE, CHUNK))?;
        // SAFETY: the chunk has room for it, and nobody else writes there.
        unsafe {
            (*record).len = name.len() as u32;
            ptr::copy_nonoverlapping(name.as_ptr(), (&raw mut (*record).name).cast(), name.len());
            AtomicU32::from_ptr(&raw mut (*record).state).store(1, Ordering::Release);
        }
        ARE_KNOWN.store(true, Ordering::Relaxed);
        let number = self.count;
        self.count += 1;
        if let Some(place) = self.known.get_mut(at) {
            *place = (record, number);
        }
        Some(number)
    }
}

/// FNV-1a.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Resets the names for a new recording.
pub(crate) fn renew() {
    // Most processes have none, and need no memory for them.
    if !ARE_KNOWN.swap(false, Ordering::Relaxed) {
        return;
    }
    let state = &mut *MARKS.hold();
    state.known.fill((ptr::null_mut(), 0));
    (state.count, state.records) = (0, Records::NONE);
}

/// Handles the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    MARKS.fork(moment);
}
