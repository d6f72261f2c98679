//! Which calls are kept with their arguments and durations, of the many that a context may have.

use chase_format::layout::ARGUMENT_PAIRS;

/// Returns the index at which call `number` (from 0) is kept, if it is, and the next value of `until_kept`, which is 0 at
/// first. The first calls are all kept, and of later ones each with about the same probability: after the nth call, n / 16 on
/// average are skipped. `seed` differs between contexts.
#[must_use]
pub fn place_of(number: u64, until_kept: u32, seed: u32) -> (Option<usize>, u32) {
    if number < ARGUMENT_PAIRS as u64 {
        return (Some(number as usize), until_kept);
    }
    if until_kept > 0 {
        return (None, until_kept - 1);
    }
    let random = (number ^ u64::from(seed) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let random = random ^ random >> 29;
    let range = (number / (ARGUMENT_PAIRS as u64 / 2)).clamp(1, u64::from(u32::MAX));
    (Some((random >> 40) as usize % ARGUMENT_PAIRS), ((random >> 8) % range) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls that are kept of so many.
    fn kept(calls: u64, seed: u32) -> [u64; ARGUMENT_PAIRS] {
        let (mut kept, mut until) = ([0; ARGUMENT_PAIRS], 0);
        for call in 0..calls {
            let (place, next) = place_of(call, until, seed);
            until = next;
            if let Some(place) = place {
                kept[place] = call;
            }
        }
        kept
    }

    #[test]
    fn the_first_calls_are_all_kept() {
        let all: std::vec::Vec<u64> = (0..ARGUMENT_PAIRS as u64).collect();
        assert_eq!(kept(ARGUMENT_PAIRS as u64, 7), *all);
    }

    #[test]
    fn each_call_is_kept_as_likely_as_others() {
        let (calls, seeds) = if cfg!(miri) { (200, 20) } else { (4000, 1000) };
        let mut quarters = [0_usize; 4];
        for seed in 1..=seeds {
            for call in kept(calls, seed) {
                quarters[(call * 4 / calls) as usize] += 1;
            }
        }
        let all = seeds as usize * ARGUMENT_PAIRS;
        let is_even = |&number: &usize| (20..=30).contains(&(100 * number / all));
        assert!(cfg!(miri) || quarters.iter().all(is_even), "{quarters:?} of {all}");
    }
}
