//! Time that a virtual machine's host takes away. Nobody inside sees which call it was in.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// The share of processor time from which on times prove nothing.
const MUCH: f64 = 0.02;
/// Attempts that may be disturbed.
const DISTURBED: usize = 12;
/// After the first attempt that failed; the next ones wait longer.
const PAUSE: Duration = Duration::from_millis(300);

/// Attempts at something that others on the machine can spoil: until one succeeds, at most `attempts`
/// that the host leaves alone, and a few more that it disturbs. Gives why each one failed, or nothing
/// if one did not.
pub fn attempts<E>(attempts: usize, attempt: impl FnMut() -> Result<(), E>) -> Vec<E> {
    attempts_within(MUCH, attempts, attempt)
}

/// The same until so many have succeeded: then the failures are forgotten.
///
/// Where an attempt succeeds with probability q, fewer than k of n do with the probability of a false alarm; where what is
/// tested is wrong and an attempt passes by chance all the same with probability p, k of n do with that of a false pass.
/// Both are tails of the binomial distribution. One of 10: with p = 5 %, a false pass in 40 of 100; with q = 50 %, a false
/// alarm in 0.1. Three of 14: 3.0 and 0.6; with q = 60 %, 0.06. Two of eight: 5.7 and 3.5; with q = 60 %, 0.9, with 80 %, 0.008.
/// (One of five: 23, 3.1, 1.0 and 0.03.)
pub fn good_of<E>(good: usize, attempts: usize, attempt: impl FnMut() -> Result<(), E>) -> Vec<E> {
    good_within(MUCH, good, attempts, attempt)
}

/// As [`attempts`] where more than this share of processor time, taken by the host, is a disturbance.
pub fn attempts_within<E>(
    share_taken: f64,
    attempts: usize,
    attempt: impl FnMut() -> Result<(), E>,
) -> Vec<E> {
    good_within(share_taken, 1, attempts, attempt)
}

fn good_within<E>(
    share_taken: f64,
    good: usize,
    attempts: usize,
    mut attempt: impl FnMut() -> Result<(), E>,
) -> Vec<E> {
    let (mut failures, mut counted, mut succeeded) = (Vec::new(), 0, 0);
    while counted + good <= attempts {
        let before = taken_of_all();
        match attempt() {
            Ok(()) => {
                succeeded += 1;
                if succeeded == good {
                    return Vec::new();
                }
                continue;
            }
            Err(why) => failures.push(why),
        }
        let is_disturbed = share(before, taken_of_all()) > share_taken;
        if !is_disturbed || failures.len() - counted > DISTURBED {
            counted += 1;
        }
        // A disturbance lasts, and need not show as taken time: others may be at work on the
        // processor's other half.
        sleep(PAUSE * counted as u32);
    }
    failures
}

/// The share of the processors' time that was taken in between; 0 where the system does not tell.
fn share(before: Option<[f64; 2]>, after: Option<[f64; 2]>) -> f64 {
    match (before, after) {
        (Some([taken, all]), Some([taken_now, all_now])) if all_now > all => {
            (taken_now - taken) / (all_now - all)
        }
        _ => 0.0,
    }
}

/// Time taken by the host, and all of it.
fn taken_of_all() -> Option<[f64; 2]> {
    const STEAL: usize = 7;
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // What guests of ours take is in the first two already.
    Some([*fields.get(STEAL)?, fields.iter().take(STEAL + 1).sum()])
}

#[cfg(test)]
mod tests {
    use super::good_of;

    #[test]
    fn so_many_of_so_many_must_be_good() {
        let run = |outcomes: &[bool], good, of| {
            let mut outcomes = outcomes.iter();
            good_of(good, of, || {
                if *outcomes.next().expect("asked too often") { Ok(()) } else { Err(()) }
            })
        };
        assert!(run(&[true, false, true], 2, 3).is_empty());
        assert_eq!(run(&[false, true, false], 2, 3).len(), 2);
        assert!(run(&[true], 1, 4).is_empty());
    }
}
