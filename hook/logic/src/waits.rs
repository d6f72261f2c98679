//! Functions whose calls are all timed, since a few of them may take as long as all others: those that can wait, and
//! those that make system calls. Also functions that are known to do neither.
//!
//! Functions that take locks are among them once there are several threads, even if locks are mostly free: the one
//! wait that matters must not be a call that was not timed. Functions that unlock, or only try to lock, are not.
//! Other functions that wait are recognised by their durations, which are long or uneven.

use crate::names::Names;

/// What a function may wait for.
#[derive(Clone, Copy)]
pub enum Waits {
    /// For other threads of the process. (Locks shared between processes are treated like those of threads.)
    Threads,
    /// For the kernel, other processes, or time.
    Anything,
    /// For nothing; it makes no system calls either.
    Nothing,
}

/// Returns what the function `name`, of any library, may wait for; `None` if unknown. Ignores leading underscores,
/// and the suffixes of the C library's checked and non-cancellable variants.
pub fn waits_of(name: &[u8]) -> Option<Waits> {
    let mut name = name;
    while let [b'_', rest @ ..] = name {
        name = rest;
    }
    for ending in [&b"_chk"[..], b"_nocancel"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    WAITS.get(name)
}

static WAITS: Names<Waits, 512> = Names::new(&[
    (LOCKS, Waits::Threads),
    (STARTS, Waits::Anything),
    (NAMES, Waits::Anything),
    (PURE, Waits::Nothing),
]);

/// Whole names: functions for memory, strings, characters and numbers that access no other state.
const PURE: &[u8] = b"\
    memcpy memmove memset memcmp memchr memrchr mempcpy memmem memccpy rawmemchr bcmp bcopy bzero \
    strlen strnlen strcmp strncmp strcasecmp strncasecmp strcpy strncpy stpcpy stpncpy strcat \
    strncat strchr strrchr strchrnul strstr strcasestr strspn strcspn strpbrk strsep \
    strtok strtok_r strverscmp strcoll strcoll_l strtol strtoul strtoll strtoull strtod strtof \
    strtold isoc23_strtol isoc23_strtoul isoc23_strtoll isoc23_strtoull atoi atol atoll atof \
    wcslen wcsnlen wcscmp wcsncmp wcscpy wcsncpy wcschr wcsrchr wcsstr wmemcpy wmemmove wmemset \
    wmemcmp wmemchr errno_location pthread_self pthread_getspecific pthread_equal \
    ctype_b_loc ctype_tolower_loc ctype_toupper_loc ctype_get_mb_cur_max isalnum isalpha isblank \
    iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit tolower toupper \
    iswalnum iswalpha iswdigit iswspace iswlower iswupper towlower towupper btowc wctob \
    htonl htons ntohl ntohs abs labs llabs rand_r drand48_r \
    sin cos tan asin acos atan atan2 sinh cosh tanh sincos exp exp2 expm1 log log2 log10 log1p \
    pow sqrt cbrt hypot fmod remainder floor ceil round lround llround trunc rint nearbyint lrint \
    modf frexp ldexp scalbn fabs fmax fmin fma copysign sinf cosf tanf expf logf powf sqrtf fmodf \
    floorf ceilf roundf truncf";

/// Prefixes of names.
const LOCKS: &[u8] = b"\
    pthread_mutex_lock* pthread_mutex_timedlock* pthread_mutex_clocklock* \
    pthread_rwlock_rdlock* pthread_rwlock_wrlock* pthread_rwlock_timed* pthread_rwlock_clock* \
    pthread_spin_lock* pthread_once* mtx_lock* mtx_timedlock*";

/// Prefixes of names.
const STARTS: &[u8] = b"\
    pthread_cond_* pthread_barrier_wait* pthread_join* pthread_timedjoin* pthread_clockjoin* \
    cnd_* thrd_* sem_wait* sem_timedwait* sem_clockwait* sem_post* epoll_* inotify_* mq_* \
    sched_* getaddrinfo* getnameinfo* gethost* cuda* MPI_*";

/// Whole names.
const NAMES: &[u8] = b"\
    msgrcv msgsnd semop semtimedop io_getevents aio_suspend res_search res_query \
    read write pread pread64 pwrite pwrite64 readv writev preadv pwritev open open64 openat \
    openat64 creat close close_range stat lstat fstat fstatat stat64 lstat64 fstat64 \
    fstatat64 xstat fxstat lxstat statx access faccessat lseek lseek64 ftruncate truncate \
    fsync fdatasync sync syncfs sync_file_range fallocate posix_fallocate unlink unlinkat \
    rename renameat mkdir rmdir link symlink readlink opendir readdir readdir64 getdents64 \
    ioctl fcntl fcntl64 flock lockf dup dup2 dup3 pipe pipe2 sendfile splice copy_file_range \
    mmap mmap64 munmap mremap mprotect madvise msync brk sbrk poll ppoll select pselect \
    socket bind listen accept accept4 connect shutdown send sendto sendmsg sendmmsg recv \
    recvfrom recvmsg recvmmsg getsockopt setsockopt getsockname getpeername sleep usleep \
    nanosleep clock_nanosleep pause sigsuspend sigwait sigwaitinfo sigtimedwait sigprocmask \
    pthread_sigmask sigaction kill tgkill pthread_kill raise alarm setitimer timer_settime \
    wait wait3 wait4 waitid waitpid system popen pclose fork posix_spawn posix_spawnp getpid \
    getppid gettid getuid geteuid getrusage times futex getrandom getentropy eventfd_read \
    eventfd_write fflush fclose fopen fopen64 freopen";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_wait_are_known_by_their_names() {
        assert!(matches!(waits_of(b"pthread_mutex_lock"), Some(Waits::Threads)));
        assert!(matches!(waits_of(b"read"), Some(Waits::Anything)));
        assert!(matches!(waits_of(b"sem_wait"), Some(Waits::Anything)));
        assert!(matches!(waits_of(b"memcpy"), Some(Waits::Nothing)));
        assert!(waits_of(b"deflate").is_none());
    }

    #[test]
    fn the_variants_of_the_c_library_are_the_same_functions() {
        assert!(matches!(waits_of(b"__read_chk"), Some(Waits::Anything)));
        assert!(matches!(waits_of(b"__write_nocancel"), Some(Waits::Anything)));
        assert!(matches!(waits_of(b"__memcpy_chk"), Some(Waits::Nothing)));
        assert!(waits_of(b"____").is_none() && waits_of(b"").is_none());
    }
}
