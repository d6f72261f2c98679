//! The recording's format, and the writer that lays it out in memory.
//!
//! * [`layout`] is the format: its description, its version history and all of its structures.
//! * [`syscalls`] is the format of the file beside it, in which the companion writes what the kernel observed.
//! * [`session`] is the file by which processes find the companion, and readers see that it has finished.
//! * [`boot`] tells one start of the machine from another.
//! * [`attachment`] is how `chase attach` and the library find each other in a running process.
//! * [`histogram`] is the arithmetic of buckets, shared by the writer, the reader and the hook's assembly.
//! * [`writer`] lays out structures in memory that the caller has mapped.
//!
//! This crate runs inside other people's programs: it is `no_std`, makes no system calls, never allocates and never
//! panics. It is a separate crate so that nothing that reads recordings, which needs std, can be linked into the
//! traced process.
#![no_std]

pub mod attachment;
pub mod boot;
pub mod histogram;
pub mod layout;
pub mod requests;
pub mod session;
pub mod syscalls;
pub mod writer;
