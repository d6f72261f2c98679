//! All system calls. None goes through the C library, so `errno` doesn't change and the application can't intercept
//! them.

mod memory;

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::arch;
use chase_format::layout::PAGE;
use chase_logic::text::Text;

pub(crate) use self::memory::{
    MADV_POPULATE_WRITE, advise, can_overwrite, can_read, copy, copy_word, extend_mapping,
    map_anonymous, map_anonymous_at, map_file, map_movable, map_nothing, map_populated,
    move_mapping, protect, unmap,
};

/// An error number of the kernel, positive.
pub(crate) type Errno = i32;

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Whether the process may have given up the right to system calls that recording needs.
pub(crate) fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}

/// Restricts the hook to harmless system calls from now on. Returns whether it was restricted before.
pub(crate) fn confine() -> bool {
    CONFINED.swap(true, Ordering::Relaxed)
}

/// The thread in whose memory a child of `vfork` with a filter runs, and that child's process id.
static LENT: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Notes that this process, a child of `vfork` that runs in the memory of a thread of its parent's, is about to
/// install a filter.
pub(crate) fn confine_child() {
    LENT[1].store(getpid() as usize, Ordering::Relaxed);
    LENT[0].store(arch::current_thread() as usize, Ordering::Relaxed);
}

/// Whether this is such a child.
fn is_confined_child() -> bool {
    let [thread, child] = LENT.each_ref().map(|word| word.load(Ordering::Relaxed));
    if thread == 0 || thread != arch::current_thread() as usize {
        return false;
    }
    // (The child may have ended, and the thread continued. All filters allow this system call.)
    let is_here = arch::system_call(libc::SYS_getpid as usize, [0; 6]) == child as isize;
    if !is_here {
        LENT[0].store(0, Ordering::Relaxed);
    }
    is_here
}

/// Whether recording's system calls are forbidden here: in the process, or in a child that uses its memory.
pub(crate) fn is_confined_here() -> bool {
    is_confined() || is_confined_child()
}

/// Whether the hook still makes this system call when the process has given up the right to some: to complete what
/// was begun, to separate a child's memory from its parent's, and calls that every program with several threads
/// needs. For anything else, a filter may kill the process, or raise a signal.
fn is_harmless(number: i64) -> bool {
    const HARMLESS: [i64; 5] = [
        libc::SYS_futex,
        libc::SYS_rt_sigprocmask,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_close,
    ];
    HARMLESS.contains(&number)
}

/// Makes a system call. Returns the kernel's result, or a negative error number.
fn system_call(number: usize, arguments: [usize; 6]) -> isize {
    if !is_harmless(number as i64) && is_confined_here() {
        return -libc::EPERM as isize;
    }
    arch::system_call(number, arguments)
}

fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) { Err(-result as Errno) } else { Ok(result as usize) }
}

fn call0(number: i64) -> isize {
    system_call(number as usize, [0; 6])
}

fn call3(number: i64, a: usize, b: usize, c: usize) -> isize {
    system_call(number as usize, [a, b, c, 0, 0, 0])
}

/// Returns the process id, from the kernel and not from memory.
pub(crate) fn getpid() -> u32 {
    call0(libc::SYS_getpid) as u32
}

/// Returns the thread id.
pub(crate) fn gettid() -> u32 {
    call0(libc::SYS_gettid) as u32
}

/// Returns the ids of the parent, the process group and the session.
pub(crate) fn family() -> (u32, u32, u32) {
    (
        call0(libc::SYS_getppid) as u32,
        call3(libc::SYS_getpgid, 0, 0, 0) as u32,
        call3(libc::SYS_getsid, 0, 0, 0) as u32,
    )
}

/// Opens a file, close-on-exec.
pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Result<i32, Errno> {
    let at = libc::AT_FDCWD as isize as usize;
    let flags = (flags | libc::O_CLOEXEC | libc::O_NOCTTY) as usize;
    let path = path.as_ptr() as usize;
    check(system_call(libc::SYS_openat as usize, [at, path, flags, mode as usize, 0, 0]))
        .map(|fd| fd as i32)
}

/// Closes a descriptor.
pub(crate) fn close(fd: i32) {
    call3(libc::SYS_close, fd as usize, 0, 0);
}

/// Reads what is available, up to the length of `buffer`; returns 0 at the end and on errors.
pub(crate) fn read_some(fd: i32, buffer: &mut [u8]) -> usize {
    loop {
        let (at, len) = (buffer.as_mut_ptr() as usize, buffer.len());
        match check(call3(libc::SYS_read, fd as usize, at, len)) {
            Err(libc::EINTR) => {}
            result => return result.unwrap_or(0),
        }
    }
}

/// Reads as much of a small file as fits; empty if it can't be read.
pub(crate) fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let Ok(fd) = open(path, libc::O_RDONLY, 0) else { return &[] };
    let len = read_at(fd, buffer, 0);
    close(fd);
    buffer.get(..len).unwrap_or(&[])
}

/// Returns the target of a symbolic link; empty if it can't be read.
pub(crate) fn read_link<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let (at, len) = (buffer.as_mut_ptr() as usize, buffer.len());
    let result = call3(libc::SYS_readlink, path.as_ptr() as usize, at, len);
    buffer.get(..result.max(0) as usize).unwrap_or(&[])
}

/// Returns the working directory without its NUL; empty if it has no path, since it was removed or is outside of the root
/// directory (the kernel then says `(unreachable)/...`).
pub(crate) fn working_directory(buffer: &mut [u8]) -> &[u8] {
    let result = call3(libc::SYS_getcwd, buffer.as_mut_ptr() as usize, buffer.len(), 0);
    let path = buffer.get(..(result - 1).max(0) as usize).unwrap_or(&[]);
    if path.starts_with(b"/") { path } else { &[] }
}

/// Makes a directory.
pub(crate) fn mkdir(path: &CStr) -> Result<(), Errno> {
    check(call3(libc::SYS_mkdir, path.as_ptr() as usize, 0o777, 0)).map(drop)
}

/// Removes a file.
pub(crate) fn unlink(path: &CStr) {
    call3(libc::SYS_unlink, path.as_ptr() as usize, 0, 0);
}

/// Sets the length of an open file.
pub(crate) fn ftruncate(fd: i32, len: usize) -> Result<(), Errno> {
    check(call3(libc::SYS_ftruncate, fd as usize, len, 0)).map(drop)
}

/// Allocates the first `len` bytes of an open file.
pub(crate) fn fallocate(fd: i32, len: usize) -> Result<(), Errno> {
    check(system_call(libc::SYS_fallocate as usize, [fd as usize, 0, 0, len, 0, 0])).map(drop)
}

/// Asks that what is written to an empty file later stays where it was written first (`FS_NOCOW_FL`). Most file systems do that anyway, and
/// refuse.
pub(crate) fn keep_in_place(fd: i32) {
    let flags = 0x80_0000_i32;
    call3(libc::SYS_ioctl, fd as usize, libc::FS_IOC_SETFLAGS as usize, &raw const flags as usize);
}

/// Writes `len` zero bytes, a multiple of 4096, to the start of an open file.
pub(crate) fn write_zeros(fd: i32, len: usize) -> Result<(), Errno> {
    const PIECES: usize = 32;
    static ZEROS: [u8; PAGE] = [0; PAGE];
    let pieces = [(ZEROS.as_ptr() as usize, PAGE); PIECES];
    let mut at = 0;
    while at < len {
        let count = ((len - at) / PAGE).min(PIECES);
        let arguments = [fd as usize, pieces.as_ptr() as usize, count, at, 0, 0];
        match check(system_call(libc::SYS_pwritev as usize, arguments))? {
            written if written == count * PAGE => at += written,
            _ => return Err(libc::ENOSPC),
        }
    }
    Ok(())
}

fn status_of(fd: i32) -> Option<libc::stat> {
    // SAFETY: all-zero is a valid `stat`.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    check(call3(libc::SYS_fstat, fd as usize, &raw mut stat as usize, 0)).ok().map(|_| stat)
}

/// Returns device and inode of an open file.
pub(crate) fn file_identity(fd: i32) -> Option<(u64, u64)> {
    status_of(fd).map(|stat| (stat.st_dev, stat.st_ino))
}

/// Calls `flock`.
pub(crate) fn lock_file(fd: i32, operation: i32) -> Result<(), Errno> {
    check(call3(libc::SYS_flock, fd as usize, operation as usize, 0)).map(drop)
}

/// Reads from an offset of an open file until `buffer` is full or the file ends; returns the number of bytes.
pub(crate) fn read_at(fd: i32, buffer: &mut [u8], offset: u64) -> usize {
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..).filter(|free| !free.is_empty()) {
        let (at, free) = (free.as_mut_ptr() as usize, free.len());
        let from = (offset as usize).wrapping_add(len);
        match check(system_call(libc::SYS_pread64 as usize, [fd as usize, at, free, from, 0, 0])) {
            Err(libc::EINTR) => {}
            Ok(n @ 1..) => len += n,
            _ => break,
        }
    }
    len
}

/// Writes to an offset of an open file; the kernel may write less.
pub(crate) fn write_at(fd: i32, bytes: &[u8], offset: usize) -> Result<(), Errno> {
    let arguments = [fd as usize, bytes.as_ptr() as usize, bytes.len(), offset, 0, 0];
    check(system_call(libc::SYS_pwrite64 as usize, arguments)).map(drop)
}

/// Whether an open file is a regular file of this user.
pub(crate) fn is_own_file(fd: i32) -> bool {
    status_of(fd).is_some_and(|stat| {
        stat.st_mode & libc::S_IFMT == libc::S_IFREG
            && stat.st_uid == call0(libc::SYS_geteuid) as u32
    })
}

/// Whether a seccomp filter is installed in this process.
pub(crate) fn has_seccomp_filter() -> bool {
    const FILTER: usize = 2;
    check(call3(libc::SYS_prctl, libc::PR_GET_SECCOMP as usize, 0, 0)) == Ok(FILTER)
}

/// Kills another process.
pub(crate) fn kill(pid: i32) {
    call3(libc::SYS_kill, pid as usize, libc::SIGKILL as usize, 0);
}

/// Sleeps.
pub(crate) fn pause_ms(ms: i32) {
    call3(libc::SYS_poll, 0, 0, ms as usize);
}

/// Writes to a descriptor; the kernel may write less.
pub(crate) fn write(fd: i32, bytes: &[u8]) {
    call3(libc::SYS_write, fd as usize, bytes.as_ptr() as usize, bytes.len());
}

/// Whether this process may execute the file.
pub(crate) fn is_executable(path: &CStr) -> bool {
    let at = libc::AT_FDCWD as isize as usize;
    let path = path.as_ptr() as usize;
    check(call3(libc::SYS_faccessat, at, path, libc::X_OK as usize)).is_ok()
}

/// Whether orphaned processes become this one's children.
pub(crate) fn adopts_orphans() -> bool {
    let mut adopts = 0i32;
    let option = libc::PR_GET_CHILD_SUBREAPER as usize;
    call3(libc::SYS_prctl, option, &raw mut adopts as usize, 0);
    adopts != 0 || getpid() == 1
}

/// Makes a pipe; returns its ends for reading and writing, close-on-exec.
pub(crate) fn pipe() -> Result<(i32, i32), Errno> {
    let mut ends = [0i32; 2];
    let flags = libc::O_CLOEXEC as usize;
    check(call3(libc::SYS_pipe2, ends.as_mut_ptr() as usize, flags, 0))?;
    Ok((ends[0], ends[1]))
}

/// Forks. The parent gets no signal when the child ends, and doesn't see it when it waits for its children. The child
/// may only make system calls.
pub(crate) fn fork_unnoticed() -> Result<i32, Errno> {
    // The child ends without a signal, so a debugger would take it for a thread; `CLONE_UNTRACED` keeps it from
    // noticing.
    let flags = libc::CLONE_UNTRACED as usize;
    check(system_call(libc::SYS_clone as usize, [flags, 0, 0, 0, 0, 0])).map(|pid| pid as i32)
}

/// Waits for the end of such a child.
pub(crate) fn wait_unnoticed(child: i32) {
    let arguments = [child as usize, 0, libc::__WALL as usize, 0, 0, 0];
    while check(system_call(libc::SYS_wait4 as usize, arguments)) == Err(libc::EINTR) {}
}

/// Waits until `fd` can be read or has ended; returns false after `limit_ms`, or when a signal comes before.
pub(crate) fn is_readable(fd: i32, limit_ms: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let at = &raw mut poll as usize;
    check(call3(libc::SYS_poll, at, 1, limit_ms as usize)).is_ok_and(|ready| ready > 0)
}

/// Ends this process immediately.
pub(crate) fn exit(status: i32) -> ! {
    loop {
        call3(libc::SYS_exit_group, status as usize, 0, 0);
    }
}

/// Returns a copy of a descriptor with a number of at least `least`, close-on-exec.
pub(crate) fn duplicate_above(fd: i32, least: i32) -> Result<i32, Errno> {
    let command = libc::F_DUPFD_CLOEXEC as usize;
    check(call3(libc::SYS_fcntl, fd as usize, command, least as usize)).map(|fd| fd as i32)
}

/// Makes `to` a copy of `fd` that stays open across exec.
pub(crate) fn duplicate_to(fd: i32, to: i32) {
    call3(libc::SYS_dup2, fd as usize, to as usize, 0);
}

/// Closes all descriptors above `last` except `other`.
pub(crate) fn close_others(last: i32, other: i32) {
    let close = |from: u32, to: u32| {
        if from <= to {
            call3(libc::SYS_close_range, from as usize, to as usize, 0);
        }
    };
    close(last as u32 + 1, other as u32 - 1);
    close(other as u32 + 1, u32::MAX);
}

/// Starts a new session, without the terminal.
pub(crate) fn start_session() {
    call0(libc::SYS_setsid);
}

/// Changes the working directory.
pub(crate) fn chdir(path: &CStr) {
    call3(libc::SYS_chdir, path.as_ptr() as usize, 0, 0);
}

/// Replaces this process by the program that `fd` refers to; returns if that fails. Both arrays hold addresses of C
/// strings and end with 0.
pub(crate) fn execute(fd: i32, arguments: &[usize], environment: &[usize]) {
    let (arguments, environment) = (arguments.as_ptr() as usize, environment.as_ptr() as usize);
    let path = c"".as_ptr() as usize;
    let flags = libc::AT_EMPTY_PATH as usize;
    let all = [fd as usize, path, arguments, environment, flags, 0];
    system_call(libc::SYS_execveat as usize, all);
}

/// Calls `prctl`.
pub(crate) fn prctl(option: u32, argument: usize) {
    call3(libc::SYS_prctl, option as usize, argument, 0);
}

/// Reads a clock of the kernel, in ns.
pub(crate) fn clock_ns(clock: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    call3(libc::SYS_clock_gettime, clock as usize, &raw mut time as usize, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the process may read the time stamp counter.
pub(crate) fn may_read_time_stamp() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_ENABLE: u32 = 1;
    let mut mode = PR_TSC_ENABLE;
    call3(libc::SYS_prctl, PR_GET_TSC, &raw mut mode as usize, 0);
    mode == PR_TSC_ENABLE
}

/// Returns the name of the calling thread, NUL-padded; `None` if it can't be read.
pub(crate) fn thread_name() -> Option<[u8; 16]> {
    let mut name = [0u8; 16];
    let place = name.as_mut_ptr() as usize;
    check(call3(libc::SYS_prctl, libc::PR_GET_NAME as usize, place, 0)).ok().map(|_| name)
}

/// Returns the name of a thread of this process, NUL-padded; `None` if there is no such thread.
pub(crate) fn name_of_thread(tid: u32) -> Option<[u8; 16]> {
    let mut path = Text::<48>::new();
    path.push(b"/proc/self/task/").push_number(tid.into()).push(b"/comm");
    let mut name = [0u8; 16];
    let len = read_file(path.as_c_str(), &mut name).len();
    // The file ends with a line feed.
    *name.get_mut(len.checked_sub(1)?)? = 0;
    Some(name)
}

/// Returns the soft limit of a resource; `u64::MAX` if there is none.
pub(crate) fn limit(resource: u32) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    let arguments = [0, resource as usize, 0, &raw mut limit as usize, 0, 0];
    system_call(libc::SYS_prlimit64 as usize, arguments);
    limit.rlim_cur
}

/// Returns host name and kernel release.
pub(crate) fn system_names() -> libc::utsname {
    // SAFETY: all-zero is a valid `utsname`.
    let mut names: libc::utsname = unsafe { core::mem::zeroed() };
    call3(libc::SYS_uname, &raw mut names as usize, 0, 0);
    names
}

/// Writes a message for the user to standard error.
pub(crate) fn write_stderr(bytes: &[u8]) {
    write(libc::STDERR_FILENO, bytes);
}

/// Waits until `word` is no longer `value`, or the thread is woken, or for a tenth of a second: the thread that
/// should wake this one may have been killed.
pub(crate) fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    let longest = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let limit = &raw const longest as usize;
    let arguments = [word.as_ptr() as usize, wait, value as usize, limit, 0, 0];
    system_call(libc::SYS_futex as usize, arguments);
}

/// Wakes one waiter of `word`.
pub(crate) fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    call3(libc::SYS_futex, word.as_ptr() as usize, wake, 1);
}

/// Returns the kernel's statistics of the calling thread, or of the process; zeros if the system call is not allowed.
fn usage(whose: i32) -> libc::rusage {
    // SAFETY: all-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    call3(libc::SYS_getrusage, whose as usize, &raw mut usage as usize, 0);
    usage
}

/// Returns how often the calling thread has given up the CPU voluntarily, and how often it was preempted.
pub(crate) fn switches() -> (u64, u64) {
    let usage = usage(libc::RUSAGE_THREAD);
    (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64)
}

/// Returns how often the kernel has preempted the calling thread.
pub(crate) fn preemptions() -> u64 {
    switches().1
}

/// Returns the number of page faults of the calling thread that didn't need the disk.
pub(crate) fn page_faults() -> u64 {
    usage(libc::RUSAGE_THREAD).ru_minflt as u64
}

/// The same of the process.
pub(crate) fn page_faults_of_process() -> u64 {
    usage(libc::RUSAGE_SELF).ru_minflt as u64
}

/// Sets which signals are blocked in this thread; returns those that were.
pub(crate) fn set_signal_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    let (new, old) = (&raw const mask as usize, &raw mut before as usize);
    let arguments = [libc::SIG_SETMASK as usize, new, old, size_of::<u64>(), 0, 0];
    system_call(libc::SYS_rt_sigprocmask as usize, arguments);
    before
}
