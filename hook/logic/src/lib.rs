//! What of the hook needs no process: tables of names, patterns, the decoding of call sites, the statistics of
//! sampling, the arithmetic of countdowns and of the tree's table. `libchase.so` links it; by itself it is tested, and
//! interpreted by Miri.
//!
//! As all that is in the library, it never panics in a release build, uses no heap and no floating point.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod arguments;
pub mod callsites;
pub mod config;
pub mod countdown;
pub mod events;
pub mod hash;
pub mod kinds;
pub mod moments;
pub mod names;
pub mod session;
pub mod suspects;
pub mod text;
pub mod waits;
