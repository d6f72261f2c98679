//! The recording's format, and the writer that lays it into memory.
//!
//! * [`layout`] is the format: its prose, its version history and every structure in it.
//! * [`syscalls`] is that of the file beside it, in which the companion writes what the kernel saw.
//! * [`session`] is how processes find the companion, and readers see that it has finished.
//! * [`attachment`] is how `chase attach` and the library find each other in a process that runs.
//! * [`histogram`] is the bucket arithmetic that writer, reader and the hook's assembly share.
//! * [`writer`] lays structures into memory that the caller has mapped.
//!
//! This crate runs inside other people's programs: it is `no_std`, makes no system call, never
//! allocates and never panics. It is a crate of its own so that nothing that reads recordings,
//! and needs std for it, can be linked into the traced process.
#![no_std]

pub mod attachment;
pub mod histogram;
pub mod layout;
pub mod session;
pub mod syscalls;
pub mod writer;
