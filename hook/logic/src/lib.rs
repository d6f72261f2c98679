//! The parts of the hook that need no process: settings, patterns, tables of names, loaded objects, the search for the
//! definitions that their imports are bound to and their descriptions in recordings, symbol tables and call sites; when a load is
//! over; which calls give up rights; the arithmetic of sampling, countdowns, jumps and time off the CPU; parsers for `/proc`; Python's objects; the protocols of the lock and of the handshake with
//! the companion. `libchase.so` links it; so does the companion, for the code that both need. Its unit tests also run in Miri.
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
pub mod dependencies;
pub mod description;
pub mod elf;
pub mod events;
#[cfg(test)]
mod every_order;
pub mod follow;
pub mod handshake;
pub mod hash;
pub mod index;
pub mod jump;
pub mod kept;
pub mod kinds;
pub mod lock;
pub mod memory;
pub mod moments;
pub mod names;
pub mod off_cpu;
pub mod pending;
pub mod plan;
pub mod proc;
pub mod python;
pub mod ran;
pub mod recordings;
pub mod resolve;
pub mod rights;
pub mod scopes;
pub mod session;
pub mod suspects;
pub mod symbol_hash;
pub mod symtab;
pub mod tail;
pub mod text;
pub mod traits;
pub mod waits;
