//! The recording: one file per process image, written in place by the traced process and read by
//! everything else.
//!
//! * [`layout`], [`syscalls`], [`session`], [`histogram`] and [`writer`] are the format (crate `chase-format`, which is all
//!   that the traced process links).
//! * [`reader`] turns bytes, whole, cut or damaged, into data or an error. It does no I/O.
//! * [`builder`] makes recordings in memory from a description, for tests, benches and fixtures.
//!
//! What this crate does not do: open files, resolve symbols, compute anything from the numbers.

pub use chase_format::{boot, histogram, layout, session, syscalls, writer};

pub mod builder;
pub mod reader;
