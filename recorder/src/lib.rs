//! The recording: one file per process image, written in place by the traced process and read by
//! everything else.
//!
//! * [`layout`] is the format: its prose, its version history and every structure in it.
//! * [`histogram`] is the bucket arithmetic that writer, reader and the hook's assembly share.
//! * [`writer`] lays structures into memory that the caller has mapped. It is `no_std`, makes no
//!   system call, never allocates and never panics: it runs inside other people's programs.
//! * [`reader`] (feature `reader`) turns bytes, whole, cut or damaged, into data or an error. It
//!   does no I/O.
//!
//! What this crate does not do: open files, resolve symbols, compute anything from the numbers.
#![cfg_attr(not(any(test, feature = "reader")), no_std)]

pub mod histogram;
pub mod layout;
#[cfg(feature = "reader")]
pub mod reader;
pub mod writer;
