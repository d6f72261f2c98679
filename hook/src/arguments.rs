//! Which slots have an argument that says how much work a call does, or on what; and the value of that argument in a
//! call.

use core::sync::atomic::{AtomicBool, Ordering};

use chase_logic::arguments::argument_of;

use crate::abi::{ARGUMENT_IS_INT, ARGUMENT_IS_TEXT, ARGUMENTS};
use crate::sites;

/// The bit at which the meaning begins in a slot's word of [`ARGUMENTS`].
const MEANING: u32 = 18;

/// Whether arguments are noted.
static ON: AtomicBool = AtomicBool::new(false);

/// Sets whether arguments are recorded, of slots that are described from now on.
pub(crate) fn note(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// Sets which argument of an import's calls is recorded, by its name, before the slot is used.
pub(crate) fn describe(slot: usize, name: &[u8]) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    if let Some(argument) = argument_of(name)
        && let Some(word) = ARGUMENTS.get(slot)
    {
        let places =
            u32::from(argument.place() as u8) | u32::from(argument.second_place() as u8) << 8;
        let bits = if argument.is_int { ARGUMENT_IS_INT } else { 0 }
            | if argument.is_text() { ARGUMENT_IS_TEXT } else { 0 };
        word.store(places | bits | u32::from(argument.meaning) << MEANING, Ordering::Relaxed);
    }
}

/// Removes all arguments, when chase attaches again and is not to record them. (Imports that were described before have
/// no argument from then on.)
pub(crate) fn forget() {
    ARGUMENTS.iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

fn word_of(number: u32) -> u32 {
    ARGUMENTS.get(sites::import_of(number) as usize).map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Whether calls of a slot have their argument recorded.
#[inline]
pub(crate) fn has(slot: u32) -> bool {
    word_of(slot) != 0
}

/// Whether that argument is the address of a text.
#[inline]
pub(crate) fn is_text(slot: u32) -> bool {
    word_of(slot) & ARGUMENT_IS_TEXT != 0
}

/// Returns the meaning of that argument: `ARGUMENT_*`.
pub(crate) fn meaning(slot: u32) -> u16 {
    (word_of(slot) >> MEANING) as u16
}

/// Returns the address of the text in a call.
///
/// # Safety
/// As for [`value`].
pub(crate) unsafe fn text(slot: u32, sp: usize) -> usize {
    // SAFETY: the caller vouches for the place.
    unsafe { register(word_of(slot) as u8, sp) as usize }
}

/// Returns a register at an offset of [`ARGUMENTS`].
///
/// # Safety
/// As for [`value`].
unsafe fn register(place: u8, sp: usize) -> u64 {
    let place = sp.wrapping_add_signed(isize::from(place as i8));
    // SAFETY: the caller vouches for the place.
    unsafe { *(place as *const u64) }
}

/// Returns the argument's value in a call; `None` if it is negative.
///
/// # Safety
/// The slot has such an argument, and the call path has saved the registers below `sp`, where the return address is.
pub(crate) unsafe fn value(slot: u32, sp: usize) -> Option<u64> {
    let word = word_of(slot);
    // SAFETY: the caller vouches for the places.
    let register = |place| unsafe { register(place, sp) };
    let mut value = register(word as u8);
    let second = (word >> 8) as u8;
    if second != 0 {
        value = value.saturating_mul(register(second));
    }
    if word & ARGUMENT_IS_INT != 0 {
        value = i64::from(value as i32) as u64;
    }
    (value as i64 >= 0).then_some(value)
}
