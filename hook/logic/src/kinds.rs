//! Special functions: which they are, and of which kind.

use chase_format::layout::SlotClass;

use crate::names::Names;

/// The kinds of functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Not special.
    Ordinary,
    /// Returns twice, or captures the context that it is called in, which a frame of ours would be part of. Counted,
    /// and entered with the stack unchanged.
    Capture,
    /// Never returns to its caller. Only counted.
    Leave,
    /// `longjmp` and similar, with a `jmp_buf` of the C library. Abandons the calls in between.
    Jump,
    /// `exec*`: ends the process image if it succeeds.
    Exec,
    /// Ends the process without exit handlers; the argument is the status.
    Exit,
    /// `abort`.
    Abort,
    /// `pthread_create(thread, attributes, routine, argument)`: the last two are wrapped.
    Thread,
    /// `thrd_create(thread, routine, argument)`: likewise.
    ThreadC11,
    /// `clone(routine, stack, flags, ...)`: the child has its own stack, and perhaps its own memory.
    Clone,
    /// `dlopen(name, mode)`: the search may depend on the object that the call returns to.
    Open,
    /// `dlmopen(namespace, name, mode)`: likewise.
    OpenIn,
    /// `dlclose`: may unload objects.
    Close,
    /// `dlsym`, `dlvsym`: the meaning of two handles depends on the caller.
    Find,
    /// Forks without calling the C library's handlers.
    Fork,
    /// `syscall(number, ...)`: may fork, or end the thread.
    System,
    /// `prctl(option, ...)`: may forbid system calls or the time stamp counter.
    Control,
    /// `setuid`, `chroot` and similar: the recording's file may be out of reach afterwards.
    Depart,
    /// Begins the recording (`CHASE_START_ON`): no function is of this kind by its name, nor any slot of a recording.
    Begin,
    /// Has a calling convention of its own, is part of a runtime that inspects its callers, or runs the application
    /// itself. Not hooked.
    Alone,
}

impl Kind {
    /// All kinds, in order.
    const ALL: [Self; 20] = [
        Self::Ordinary,
        Self::Capture,
        Self::Leave,
        Self::Jump,
        Self::Exec,
        Self::Exit,
        Self::Abort,
        Self::Thread,
        Self::ThreadC11,
        Self::Clone,
        Self::Open,
        Self::OpenIn,
        Self::Close,
        Self::Find,
        Self::Fork,
        Self::System,
        Self::Control,
        Self::Depart,
        Self::Begin,
        Self::Alone,
    ];

    /// Returns the kind whose number this is.
    pub fn from_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::Alone)
    }

    /// Whether chase must see its calls, though they are not to be recorded: it makes or ends threads and processes, or takes away
    /// system calls or files that a recording needs.
    pub fn concerns_recording(self) -> bool {
        matches!(
            self,
            Self::Exec
                | Self::Exit
                | Self::Abort
                | Self::Thread
                | Self::ThreadC11
                | Self::Clone
                | Self::Fork
                | Self::System
                | Self::Control
                | Self::Depart
        )
    }

    /// Returns how calls of such a slot appear in the recording.
    pub fn class(self) -> SlotClass {
        match self {
            Self::Ordinary
            | Self::Control
            | Self::Depart
            | Self::Thread
            | Self::ThreadC11
            | Self::Close
            | Self::System
            | Self::Begin
            | Self::Alone => SlotClass::Timed,
            Self::Open | Self::OpenIn | Self::Find => SlotClass::Sometimes,
            Self::Capture
            | Self::Leave
            | Self::Jump
            | Self::Exec
            | Self::Exit
            | Self::Abort
            | Self::Fork
            | Self::Clone => SlotClass::Counted,
        }
    }
}

const _: () = {
    let mut number = 0;
    while number < Kind::ALL.len() {
        assert!(Kind::ALL[number] as usize == number);
        number += 1;
    }
};

/// Whether code that loads the address of this function only calls it, and doesn't compare or store the address.
/// (Without a PLT, compilers load it once to call it several times, as in loops around a futex or a sleep.)
#[must_use]
pub fn is_only_called(name: &[u8]) -> bool {
    matches!(name, b"syscall" | b"nanosleep" | b"clock_nanosleep" | b"sched_yield")
}

/// Whether code that was compiled without a PLT, as Rust's is, loads the address of this function to call it, once or several times, or
/// to see whether there is such a function. (Somebody who compares it would do so with what a system call's wrapper is called by: nobody is
/// known to. Elsewhere, tables of functions are made of these addresses.)
#[must_use]
pub fn is_called_without_plt(name: &[u8]) -> bool {
    WRAPPERS.binary_search(&name).is_ok()
}

/// Sorted.
static WRAPPERS: [&[u8]; 72] = [
    b"accept4",
    b"bind",
    b"clock_gettime",
    b"close",
    b"connect",
    b"copy_file_range",
    b"dup2",
    b"epoll_create1",
    b"epoll_ctl",
    b"epoll_wait",
    b"eventfd",
    b"fchmod",
    b"fchown",
    b"fcntl",
    b"fcntl64",
    b"fdatasync",
    b"flock",
    b"fstat",
    b"fstat64",
    b"fstatat64",
    b"fsync",
    b"ftruncate64",
    b"futimens",
    b"getcwd",
    b"getpeername",
    b"getrandom",
    b"getsockname",
    b"getsockopt",
    b"ioctl",
    b"linkat",
    b"listen",
    b"lseek",
    b"lseek64",
    b"lstat64",
    b"madvise",
    b"mkdir",
    b"mmap",
    b"mmap64",
    b"mprotect",
    b"munmap",
    b"nanosleep",
    b"open",
    b"open64",
    b"openat",
    b"openat64",
    b"pipe2",
    b"poll",
    b"ppoll",
    b"pread64",
    b"pwrite64",
    b"read",
    b"readlink",
    b"readv",
    b"recv",
    b"recvfrom",
    b"recvmsg",
    b"rename",
    b"rmdir",
    b"send",
    b"sendfile64",
    b"sendmsg",
    b"sendto",
    b"setsockopt",
    b"shutdown",
    b"socket",
    b"stat64",
    b"statx",
    b"unlink",
    b"unlinkat",
    b"waitpid",
    b"write",
    b"writev",
];

/// Whether code passes the address of this function as an argument only so that the linker sees a reference to it: nothing uses
/// the argument. (Where libpthread is a separate library, GCC's `std::thread` passes the address of `pthread_create` in this
/// way, which makes the linker link with libpthread; the call itself is made elsewhere.)
#[must_use]
pub fn is_passed_for_linkers(name: &[u8]) -> bool {
    name == b"pthread_create"
}

/// The table of special functions. A comment on each group says why they are special.
static TABLE: Names<Kind, 256> = Names::new(&[
    // Return twice: the second time, their frame would be gone.
    (b"setjmp", Kind::Capture),
    (b"_setjmp", Kind::Capture),
    (b"sigsetjmp", Kind::Capture),
    (b"__sigsetjmp", Kind::Capture),
    (b"vfork", Kind::Capture),
    (b"__vfork", Kind::Capture),
    (b"_Fork", Kind::Fork),
    // The child returns elsewhere.
    (b"clone", Kind::Clone),
    (b"__clone", Kind::Clone),
    // Capture or switch the context that they are called in.
    (b"getcontext", Kind::Capture),
    (b"setcontext", Kind::Capture),
    (b"swapcontext", Kind::Capture),
    (b"jump_fcontext", Kind::Capture),
    (b"ontop_fcontext", Kind::Capture),
    (b"co_switch", Kind::Capture),
    (b"coro_transfer", Kind::Capture),
    (b"unw_getcontext", Kind::Capture),
    (b"_Ux86_64_getcontext", Kind::Capture),
    (b"_ULx86_64_*", Kind::Alone),
    (b"backtrace", Kind::Capture),
    (b"_Unwind_Backtrace", Kind::Capture),
    // Lists the objects in the namespace of its caller, which it finds by its return address.
    (b"dl_iterate_phdr", Kind::Capture),
    // Unwind the stack from where they are called; they return only if nothing catches the exception.
    (b"_Unwind_RaiseException", Kind::Capture),
    (b"_Unwind_Resume", Kind::Leave),
    (b"_Unwind_Resume_or_Rethrow", Kind::Capture),
    (b"_Unwind_ForcedUnwind", Kind::Capture),
    (b"__cxa_throw", Kind::Leave),
    (b"__cxa_rethrow", Kind::Leave),
    (b"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", Kind::Leave),
    (b"__pthread_unwind_next", Kind::Leave),
    (b"pthread_exit", Kind::Leave),
    (b"thrd_exit", Kind::Leave),
    // Jump.
    (b"longjmp", Kind::Jump),
    (b"_longjmp", Kind::Jump),
    (b"siglongjmp", Kind::Jump),
    (b"__longjmp_chk", Kind::Jump),
    // End the process or the image.
    (b"exit", Kind::Leave),
    (b"_exit", Kind::Exit),
    (b"_Exit", Kind::Exit),
    (b"quick_exit", Kind::Exit),
    (b"abort", Kind::Abort),
    (b"__stack_chk_fail", Kind::Leave),
    (b"__assert_fail", Kind::Leave),
    (b"__fortify_fail", Kind::Leave),
    (b"_ZSt9terminatev", Kind::Leave),
    (b"execve", Kind::Exec),
    (b"execv", Kind::Exec),
    (b"execvp", Kind::Exec),
    (b"execvpe", Kind::Exec),
    (b"execl", Kind::Exec),
    (b"execlp", Kind::Exec),
    (b"execle", Kind::Exec),
    (b"fexecve", Kind::Exec),
    (b"execveat", Kind::Exec),
    // Start threads.
    (b"pthread_create", Kind::Thread),
    (b"thrd_create", Kind::ThreadC11),
    // Look at their return address, or change what is loaded.
    (b"dlopen", Kind::Open),
    (b"dlmopen", Kind::OpenIn),
    (b"dlclose", Kind::Close),
    (b"dlsym", Kind::Find),
    (b"dlvsym", Kind::Find),
    (b"syscall", Kind::System),
    (b"prctl", Kind::Control),
    // May leave the recording's file behind: another user's, or under another root.
    (b"setuid", Kind::Depart),
    (b"seteuid", Kind::Depart),
    (b"setreuid", Kind::Depart),
    (b"setresuid", Kind::Depart),
    (b"setfsuid", Kind::Depart),
    (b"chroot", Kind::Depart),
    (b"pivot_root", Kind::Depart),
    (b"setns", Kind::Depart),
    (b"unshare", Kind::Depart),
    // Calling conventions of their own.
    (b"__svml_*", Kind::Alone),
    (b"__tls_get_addr", Kind::Alone),
    (b"___tls_get_addr", Kind::Alone),
    (b"__fentry__", Kind::Alone),
    (b"mcount", Kind::Alone),
    (b"_mcount", Kind::Alone),
    (b"__morestack*", Kind::Alone),
    (b"_ZGV*", Kind::Alone),
    // Run the application itself: all of its code would be inside a library call.
    (b"__libc_start_main", Kind::Alone),
    // Inspect their callers by design.
    (b"__asan_*", Kind::Alone),
    (b"__tsan_*", Kind::Alone),
    (b"__msan_*", Kind::Alone),
    (b"__ubsan_*", Kind::Alone),
    (b"__sanitizer_*", Kind::Alone),
    (b"__gcov_*", Kind::Alone),
    (b"__cyg_profile_*", Kind::Alone),
    // Hooks of the start files, called once, mostly absent.
    (b"__gmon_start__", Kind::Alone),
    (b"_ITM_*", Kind::Alone),
    (b"__cxa_finalize", Kind::Alone),
]);

/// Returns the kind of the function `name`.
pub fn kind_of(name: &[u8]) -> Kind {
    TABLE.get(name).unwrap_or(Kind::Ordinary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_found_by_their_names() {
        assert!(WRAPPERS.is_sorted());
        assert!(is_called_without_plt(b"read") && !is_called_without_plt(b"qsort"));
    }

    #[test]
    fn functions_that_are_not_ordinary_are_known_by_their_names() {
        let known: [(&[u8], Kind); 6] = [
            (b"setjmp", Kind::Capture),
            (b"pthread_create", Kind::Thread),
            (b"dlopen", Kind::Open),
            (b"__asan_init", Kind::Alone),
            (b"execve", Kind::Exec),
            (b"memcpy", Kind::Ordinary),
        ];
        for (name, kind) in known {
            assert!(kind_of(name) == kind, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn kinds_are_known_by_their_numbers() {
        assert!(Kind::ALL.iter().all(|&kind| Kind::from_number(kind as u32) == kind));
        assert!(Kind::from_number(u32::MAX) == Kind::Alone);
    }
}
