//! libknown.so, and what the programs around it share.
#![allow(dead_code, reason = "each program uses a part of it")]

use std::io::Write;

pub const MS: i64 = 1_000_000;

#[repr(C)]
pub struct Log {
    pub count: i64,
    pub total: i64,
    pub each: [i64; 4096],
}

unsafe extern "C" {
    pub fn known_parse(ns: i64);
    pub fn known_pack(ns: i64);
    fn known_log(kind: i32) -> *const Log;
    fn gettid() -> i32;
}

/// What the calls of a kind took in this thread.
pub fn total(kind: i32) -> i64 {
    // SAFETY: the library returns a log of this thread.
    unsafe { (*known_log(kind)).total }
}

/// Each of them.
pub fn each(kind: i32) -> Vec<i64> {
    // SAFETY: as above.
    let log = unsafe { &*known_log(kind) };
    log.each[..log.count as usize].to_vec()
}

pub fn tid() -> i64 {
    // SAFETY: it has no preconditions.
    i64::from(unsafe { gettid() })
}

pub fn tell(what: &str, number: i64) {
    let truth = std::fs::File::options().create(true).append(true).open("truth");
    writeln!(truth.unwrap(), "{what} {number}").unwrap();
}

pub fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2 }
}

pub fn tell_slow(values: &[i64], slow: usize) {
    tell("saves_ns", values[slow] - median(values));
}
