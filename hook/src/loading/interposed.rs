//! The functions that this library exports in place of the C library's, and the real ones.
//!
//! They create tasks that share their creator's thread data and must not be recorded any more, or end a process in a
//! way that is not seen otherwise. Calls through GOT entries are hooked like others; only code that takes the
//! functions' addresses gets these. So everybody finds the same address.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::LOADING;
use crate::auxiliary::Auxiliary;
use crate::images::address_of;
use crate::lock::Lock;
use crate::objects::Objects;
use crate::signals::SignalsBlocked;
use crate::stubs::chase_no_function;
use chase_logic::resolve::{Wanted, find_in};
use chase_logic::text::c_bytes;

/// Their names, in the order of the assembly.
const NAMES: [&[u8]; 2] = [b"clone", b"__clone"];
static REAL: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// The loaded objects, where nothing is recorded.
static UNRECORDED: Lock<Objects> = Lock::new(Objects::new());

/// Finds the real functions: the next definitions after this library.
pub(super) fn find_real_in(objects: &Objects) {
    for (name, real) in NAMES.iter().zip(&REAL) {
        let wanted = Wanted::new(name, None);
        let address = objects
            .behind_chase()
            .find_map(|object| Some(address_of(&object.image, find_in(&object.image, &wanted)?)));
        if let Some(address) = address {
            real.store(address, Ordering::Relaxed);
        }
    }
}

/// Whether looking up `name` by `handle` finds a function of the C library of which the global scope has our
/// replacement: then `caller` must find the replacement, too.
pub(crate) fn is_interposed(handle: usize, name: usize, caller: usize) -> bool {
    if !NAMES.contains(&c_bytes(name)) {
        return false;
    }
    let _signals = SignalsBlocked::new();
    let objects = &LOADING.hold().objects;
    let wanted = Wanted::new(c_bytes(name), None);
    let is_first = objects.before_chase().all(|it| find_in(&it.image, &wanted).is_none());
    let is_in_scope = objects.object_at(caller).is_some_and(|it| it.namespace == 0);
    is_first && is_in_scope && objects.c_library().any(|object| object.is_handle(handle))
}

/// Finds the real functions if nothing is recorded, or before the start.
pub(crate) fn find_real(auxiliary: &Auxiliary) {
    let Some(executable) = auxiliary.executable_image() else { return };
    let _signals = SignalsBlocked::new();
    // (This lock is held at a fork, so that the other is free in the child.)
    let _loading = LOADING.hold();
    let mut objects = UNRECORDED.hold();
    if objects.open(executable, auxiliary.vdso, b"") {
        objects.refresh(0, true);
        find_real_in(&objects);
    }
}

/// Returns the real function of this number.
pub(crate) fn real(function: usize) -> usize {
    let known = || REAL.get(function).map_or(0, |real| real.load(Ordering::Relaxed));
    if known() == 0 {
        find_real(&Auxiliary::read());
    }
    match known() {
        0 => chase_no_function as *const () as usize,
        real => real,
    }
}
