//! Programs that break tools of this kind, run with and without chase.
//!
//! Each file in `programs/` is a program (or a library for one) with one trap in it; its first
//! comment says which. Each test compiles what it needs, runs it bare and under the hook,
//! compares standard output, standard error and exit status, and then holds the recording against
//! the number of calls that the program is known to make.
//!
//! * [`compile`] turns a source file into a program, once per set of flags.
//! * [`control_group`] limits what a program may use.
//! * [`trial`] runs a program bare and hooked, and compares.
//! * [`run`] is one run of one command, with a time limit.
//! * [`recorded`] is what the tests see of a recording.
//! * [`check`] looks for figures that contradict each other, in every recording that is loaded.
//! * [`report`] is what `chase-report`, beside the hook, says of a recording.
//! * [`servers`] are those that `cargo xtask servers` attaches to.
//! * [`session`] is a shell in a terminal.
//! * [`steal`] repeats tests of times while the machine's host disturbs them.
//! * [`tagged`] is what they see of system calls.
//! * [`planted`](mod@planted) holds chase to what programs with a planted problem say in their heads.
//! * [`need`] finds what a machine may lack; a test that can't run says why and passes.
//!
//! The hook is taken from `$CHASE_LIB`, by default `target/release/libchase.so`. A missing one is
//! a failure, never a skipped test.

pub mod attached;
pub mod check;
pub mod compile;
pub mod control_group;
pub mod foreign;
pub mod launcher;
mod load;
pub mod need;
pub mod planted;
pub mod recorded;
pub mod release;
pub mod report;
pub mod run;
pub mod servers;
pub mod session;
pub mod steal;
pub mod tagged;
pub mod trial;
