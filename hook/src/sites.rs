//! Places from which imports are called, if contexts are told apart by them (`CHASE_SITES`).
//!
//! Each (import, return address) gets a number like that of a slot, which takes the slot's place in nodes. The call path
//! looks nodes up by slots alone, so all calls take its slow half then.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use chase_format::layout::{ChunkKind, FIRST_SITE, NONE, PAGE, SITE_USED, SiteRecord};

use crate::lock::{Fork, Lock};
use crate::recording::Records;
use crate::signals::SignalsBlocked;
use crate::{clock, recording, stubs};

/// The size of the hash table of places, and how many of its entries are looked at for one. Calls from places that find
/// no free one are recorded without their place.
const PLACES: usize = 1 << 15;
const PROBES: usize = 32;

/// Whether contexts are told apart by places.
static ON: AtomicBool = AtomicBool::new(false);

/// A place. Its address, which is stored last, never changes again.
struct Site {
    address: AtomicUsize,
    slot: AtomicU32,
}

#[unsafe(link_section = ".bss.large")]
static SITES: [Site; PLACES] =
    [const { Site { address: AtomicUsize::new(0), slot: AtomicU32::new(0) } }; PLACES];

static RECORDS: Lock<Records<SiteRecord, PAGE>> = Lock::new(Records::NONE);

/// Sets whether contexts are told apart by places, before a recording begins.
pub(crate) fn tell_apart(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// Whether contexts are told apart by places.
pub(crate) fn are_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Returns the number of a call of `slot` that returns to `address`: that of its place, or the slot's.
pub(crate) fn number_of(slot: u32, address: usize) -> u32 {
    // The return address of a tail call is one of ours, and slot 0 is not the application's.
    if !are_on() || slot == 0 || stubs::is_exit(address) {
        return slot;
    }
    find(slot, address).unwrap_or_else(|| add(slot, address))
}

/// Returns the import's slot, of its own number or of that of a place.
#[inline]
pub(crate) fn import_of(number: u32) -> u32 {
    if number < FIRST_SITE {
        return number;
    }
    let site = SITES.get((number - FIRST_SITE) as usize);
    site.map_or(number, |site| site.slot.load(Ordering::Relaxed))
}

/// Returns the indices at which a place may be.
fn places(slot: u32, address: usize) -> impl Iterator<Item = usize> {
    let hash = (address as u64 ^ u64::from(slot) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (hash >> 48) as usize;
    (first..first + PROBES).map(|at| at % PLACES)
}

fn find(slot: u32, address: usize) -> Option<u32> {
    for at in places(slot, address) {
        let site = SITES.get(at)?;
        match site.address.load(Ordering::Acquire) {
            0 => return None,
            found if found == address && site.slot.load(Ordering::Relaxed) == slot => {
                return Some(FIRST_SITE + at as u32);
            }
            _ => {}
        }
    }
    None
}

#[cold]
#[inline(never)]
fn add(slot: u32, address: usize) -> u32 {
    let _signals = SignalsBlocked::new();
    let records = &mut *RECORDS.hold();
    if let Some(number) = find(slot, address) {
        return number;
    }
    for at in places(slot, address) {
        let Some(site) = SITES.get(at) else { break };
        if site.address.load(Ordering::Relaxed) == 0 {
            if !write(records, at, slot, address) {
                break;
            }
            site.slot.store(slot, Ordering::Relaxed);
            site.address.store(address, Ordering::Release);
            return FIRST_SITE + at as u32;
        }
    }
    slot
}

/// Writes the record of a place. Returns false if there is no room.
fn write(records: &mut Records<SiteRecord, PAGE>, at: usize, slot: u32, address: usize) -> bool {
    let more = || recording::chunk(ChunkKind::Sites, NONE, PAGE);
    let Some(record) = records.next(more) else { return false };
    // SAFETY: the chunk has room for it, and nobody else writes there.
    unsafe {
        ptr::write(
            record,
            SiteRecord {
                slot: FIRST_SITE + at as u32,
                import: slot,
                return_avma: address as u64,
                first_ticks: clock::now(),
                ..SiteRecord::default()
            },
        );
        AtomicU32::from_ptr(&raw mut (*record).state).store(SITE_USED, Ordering::Release);
    }
    true
}

/// Writes all places into a new recording, of a fork's child: calls that are open in it have their numbers.
pub(crate) fn renew() {
    let records = &mut *RECORDS.hold();
    *records = Records::NONE;
    if are_on() {
        for (at, site) in SITES.iter().enumerate() {
            let address = site.address.load(Ordering::Relaxed);
            if address != 0 {
                write(records, at, site.slot.load(Ordering::Relaxed), address);
            }
        }
    }
}

/// Handles the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    RECORDS.fork(moment);
}
