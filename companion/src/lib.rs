//! Observes by an eBPF program which syscalls each library call of a recorded process makes, and how long its threads
//! are off the CPU, and takes samples of what they run; writes that beside the recordings.
//!
//! The data flows one way. The program in the kernel (`bpf/syscalls.bpf.c`) counts in rows of shared memory
//! ([`shared`], [`mapping`]) and queues samples; while the processes run, the companion copies both to files
//! ([`drain`], [`file`](mod@file)), whose format is [`chase_format::syscalls`].
//!
//! A process asks to be traced by a hello ([`shared::Hello`]); its children are traced with it. Processes of other
//! users are refused, and tracing ends at a set-id image.
//!
//! It never stops or changes the traced processes. It doesn't see what is not a syscall (what io_uring does, except how
//! many operations are over; calls that the vDSO answers).

pub mod calibrate;
pub mod causes;
pub mod clock;
pub mod drain;
pub mod empty;
pub mod error;
pub mod file;
pub mod generated;
pub mod greeter;
mod growing;
pub mod intervals;
pub mod jitdump;
pub mod long_turns;
pub mod mapping;
pub mod maps;
pub mod narration;
pub mod objects;
pub mod others;
pub mod perf;
pub mod privilege;
pub mod processors;
pub mod program;
pub mod rate;
mod recordings;
pub mod samples;
pub mod session;
pub mod shared;
pub mod timed_samples;
pub mod types;
pub mod unprivileged;
pub mod watcher;
