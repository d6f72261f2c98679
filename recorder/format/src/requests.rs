//! What a process asks a companion for, by calls of `prctl` that the kernel does not know: it answers `EINVAL`, and the
//! companion's program sees them on the way. `companion/bpf/shared.h` has the same numbers.

/// First argument of the call by which a process asks to be traced; the second is the address of a `Hello`.
pub const HELLO: u32 = u32::from_le_bytes(*b"CHAS");
/// Of the call by which a thread ends its tracing.
pub const GOODBYE: u32 = HELLO + 1;
/// Of the call that marks what a thread does as chase's own: from one with 1 as the second argument to one with 0, or to
/// a hello.
pub const STARTING: u32 = HELLO + 2;
/// Of the call by which a thread asks that each of its system calls is recorded, and those of all threads and processes
/// that it starts.
pub const NARRATE: u32 = HELLO + 3;
/// Of the call by which a process that had run before its hello has all its threads traced (second argument 1), or stops
/// that (0).
pub const ATTACHED: u32 = HELLO + 4;
/// The version of what a hello points to.
pub const HELLO_VERSION: u32 = 3;

/// The number of no system call, by which the calls end that `chase attach` has a thread make.
pub const NO_CALL: u32 = 0xff_ffff;
