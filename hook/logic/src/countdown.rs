//! The arithmetic of countdowns.
//!
//! A stub decrements a countdown at each call. While the result is above zero, the call is only counted. Otherwise it
//! takes the long way: at zero it is a sample; below zero it is timed, or gets a frame; and at the highest number, to
//! which the lowest wraps around, its slot is reviewed, or a sample is taken among calls with frames.

use chase_format::layout::LONGEST_COUNTDOWN;

/// The maximum number of calls between two reviews or samples.
pub const LONGEST: u32 = LONGEST_COUNTDOWN as u32;

/// Returns the countdown that wraps around at the last of so many calls, 1 to [`LONGEST`].
#[must_use]
#[inline]
pub const fn wrapping_after(calls: u32) -> i16 {
    let calls = if calls == 0 {
        1
    } else if calls > LONGEST {
        LONGEST
    } else {
        calls
    };
    i16::MIN + calls as i16 - 1
}

/// Returns the countdown with which the last of so many calls is the next sample. If calls get frames it is negative,
/// so that stubs lead to the call path.
#[must_use]
#[inline]
pub const fn until_sample(calls: u32, framed: bool) -> i16 {
    if framed {
        wrapping_after(calls)
    } else if calls > LONGEST {
        LONGEST as i16
    } else {
        calls as i16
    }
}

/// Returns the number of calls made and not credited at the countdown `remaining`, if the next sample is call number
/// `place` of its block; negative if more were credited than made. (Calls with frames are credited as they are made.)
#[must_use]
#[inline]
pub const fn uncredited(place: u32, remaining: i16, framed: bool) -> i32 {
    if framed { 0 } else { place as i32 - if remaining > 0 { remaining as i32 } else { 0 } }
}

/// Returns the number of calls that were only counted since a countdown wrapped around.
#[must_use]
#[inline]
pub const fn counted_since_wrap(remaining: i16) -> u32 {
    if remaining > 0 { (i16::MAX - remaining) as u32 } else { 0 }
}

/// Returns the next state of a xorshift generator (Marsaglia), which is not 0, and a uniformly distributed number
/// from 1 to `most` (scaled as by Lemire).
#[must_use]
#[inline]
pub const fn random_up_to(state: u64, most: u32) -> (u64, u32) {
    let mut x = state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    (x, (((x >> 32) * most as u64) >> 32) as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stub does at a call: returns the new countdown, and whether the call is only counted.
    fn call(remaining: i16) -> (i16, bool) {
        let remaining = remaining.wrapping_sub(1);
        // `jle` after `decw`: zero, negative, or an overflow, which only the lowest number causes.
        (remaining, remaining > 0 && remaining != i16::MAX)
    }

    #[test]
    fn the_last_call_of_a_block_is_the_sample() {
        for calls in [1, 2, 3, 100, LONGEST] {
            let mut remaining = until_sample(calls, false);
            for made in 1..calls {
                let (next, is_counted) = call(remaining);
                remaining = next;
                assert!(is_counted, "call {made} of {calls}");
                assert_eq!(uncredited(calls, remaining, false), made as i32);
            }
            assert_eq!(call(remaining), (0, false), "of {calls}");
        }
    }

    #[test]
    fn a_countdown_below_zero_wraps_round_at_the_last_call() {
        for calls in [1, 2, 3, 100, LONGEST] {
            let mut remaining = wrapping_after(calls);
            assert_eq!(remaining, until_sample(calls, true));
            for _ in 1..calls {
                remaining = call(remaining).0;
                assert!(remaining < 0);
            }
            assert_eq!(call(remaining), (i16::MAX, false), "of {calls}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_the_nearest_in_it() {
        assert_eq!(wrapping_after(0), wrapping_after(1));
        assert_eq!(wrapping_after(u32::MAX), wrapping_after(LONGEST));
        assert_eq!(until_sample(u32::MAX, false), LONGEST as i16);
        assert!(until_sample(LONGEST, true) < 0);
    }

    #[test]
    fn what_was_counted_since_a_wrap_is_known() {
        assert_eq!(counted_since_wrap(-1), 0);
        assert_eq!(counted_since_wrap(i16::MAX), 0);
        assert_eq!(counted_since_wrap(i16::MAX - 7), 7);
    }

    #[test]
    fn random_places_are_all_as_likely() {
        const MOST: u32 = 10;
        const TURNS: u32 = if cfg!(miri) { 2_000 } else { 100_000 };
        let mut state = 0x1234_5678_9abc_def1;
        let mut counts = [0; MOST as usize];
        for _ in 0..TURNS {
            let (next, place) = random_up_to(state, MOST);
            state = next;
            counts[place as usize - 1] += 1;
        }
        // Five standard deviations of a count.
        let (mean, apart) = (TURNS / MOST, 5 * ((TURNS / MOST) as f64).sqrt() as u32);
        assert!(counts.iter().all(|count| mean.abs_diff(*count) < apart), "{counts:?}");
    }
}
