//! The parts of the hook that need no process: tables of names, patterns, the decoding of call sites, the statistics
//! of sampling, the arithmetic of countdowns, of the tree's table, of stubs' jumps and of time off the CPU, what files of `/proc` say,
//! the protocols of the lock and of the handshake with the companion.
//! `libchase.so` links it, and of it the companion what both do; on its own it is unit-tested, and interpreted by Miri.
//!
//! Like everything in the library, it never panics in a release build, and uses no heap and no floating point.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod arguments;
pub mod batches;
pub mod callsites;
pub mod config;
pub mod countdown;
pub mod definers;
pub mod events;
#[cfg(test)]
mod every_order;
pub mod follow;
pub mod handshake;
pub mod hash;
pub mod jump;
pub mod kept;
pub mod kinds;
pub mod lock;
pub mod moments;
pub mod names;
pub mod off_cpu;
pub mod proc;
pub mod session;
pub mod suspects;
pub mod symbol_hash;
pub mod symtab;
pub mod tail;
pub mod text;
pub mod waits;
