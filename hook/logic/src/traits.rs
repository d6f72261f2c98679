//! What is known of a function by its name, and by what a recording is to have of it: bits.

use crate::waits::{Waits, waits_of};

/// All of its calls are timed.
pub const EVERY_CALL: u8 = 1 << 0;
/// It is a special function: its calls are timed even where others are only counted.
pub const SPECIAL: u8 = 1 << 1;
/// It waits for other threads: all of its calls are timed once there are several threads.
pub const LOCK: u8 = 1 << 2;
/// A call of it has called another function.
pub const HAS_CHILDREN: u8 = 1 << 3;
/// It makes no system calls and waits for nothing.
pub const PURE: u8 = 1 << 4;
/// All of its calls are timed, and recorded as events.
pub const CHOSEN: u8 = 1 << 5;
/// None of its calls is recorded; but chase does what a special function asks of it.
pub const LEFT_OUT: u8 = 1 << 6;

/// What a recording is to have of a function's calls (`CHASE_LIBS`, `CHASE_EXCLUDE`, `CHASE_EVENTS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Nothing.
    Nothing,
    /// Number and times.
    Calls,
    /// An event for each.
    Events,
}

/// Returns the traits of a function of this name, before any call of it.
#[must_use]
pub fn traits_of(name: &[u8], is_special: bool, extent: Extent) -> u8 {
    let by_extent = match extent {
        Extent::Nothing => LEFT_OUT,
        Extent::Calls => 0,
        Extent::Events => CHOSEN | EVERY_CALL,
    };
    let by_kind = if is_special { SPECIAL | EVERY_CALL } else { 0 };
    let by_name = match waits_of(name) {
        Some(Waits::Threads) => LOCK,
        Some(Waits::Anything) => EVERY_CALL,
        Some(Waits::Nothing) => PURE,
        None => 0,
    };
    by_extent | by_kind | by_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_may_wait_for_says_whether_its_calls_are_timed() {
        let ordinary = |name: &[u8]| traits_of(name, false, Extent::Calls);
        assert_eq!(ordinary(b"deflate"), 0);
        assert_eq!(ordinary(b"pthread_mutex_lock"), LOCK);
        assert_eq!(ordinary(b"poll"), EVERY_CALL);
        assert_eq!(ordinary(b"strlen"), PURE);
    }

    #[test]
    fn what_is_special_or_an_event_is_timed_besides() {
        assert_eq!(traits_of(b"pthread_create", true, Extent::Nothing) & LEFT_OUT, LEFT_OUT);
        assert_eq!(traits_of(b"dlclose", true, Extent::Calls), SPECIAL | EVERY_CALL);
        assert_eq!(traits_of(b"strlen", false, Extent::Events), CHOSEN | EVERY_CALL | PURE);
        assert_eq!(traits_of(b"strlen", false, Extent::Nothing), LEFT_OUT | PURE);
    }
}
