//! Watches, by an eBPF program, which syscalls each library call of a recorded process makes and
//! how long it waits.

pub mod greeter;
pub mod mapping;
pub mod program;
pub mod shared;
