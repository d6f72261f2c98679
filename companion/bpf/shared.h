/* Interface between the BPF program, the companion and the traced process. The Rust side is in
 * src/shared.rs; a test compares the two by the BTF of the object. */
#pragma once

/* prctl(HELLO, &hello): no such option exists, so the kernel answers EINVAL. "CHAS" as a number.
 * With an empty path, nothing is written for this process. prctl(GOODBYE) ends the tracing of the calling thread. System calls of a thread
 * between prctl(STARTING, 1) and its hello or prctl(STARTING, 0) are chase's own, made while an image starts to record. */
#define HELLO 0x53414843
#define GOODBYE 0x53414844
#define STARTING 0x53414845
/* From then on, single system calls are recorded of the calling thread, and of all threads and processes that it starts; with 1, without what
 * programs are started with. */
#define NARRATE 0x53414846
/* For a process that had run before its hello: with 1, all its threads are traced, each from when it is next scheduled; with 0, tracing
 * stops. Called while they are stopped. */
#define ATTACHED 0x53414847
#define HELLO_VERSION 3

/* Values in place of a syscall's number. */
#define NO_SYSCALL 0xffffffff
/* The number of none, by which the calls end that `chase attach` has a thread make. */
#define NO_CALL 0xffffff
#define WAIT_VOLUNTARY 0xfffffffe
#define WAIT_PREEMPTED 0xfffffffd
#define ON_CPU 0xfffffffc /* time on the CPU, in pieces */
#define TURNS 0xfffffffb /* the row is a struct turns */
/* Added to the number of a syscall made through int 0x80, which has other numbers. */
#define COMPAT 0x20000000

#define ROWS 65536
#define WAITS 32768
#define PROCESSES 8192
#define THREADS 16384
#define BUCKETS 32
#define FIRST_BUCKET 6
#define ERRNOS 6
#define PATH 960

struct hello {
	u32 version;
	u32 len;
	u64 session; /* number of the companion's session */
	s64 tls_offset; /* the word at fs base + this holds the address of the thread's node */
	u64 base;    /* of the recording's mapping */
	u64 mapped;  /* its maximum size in bytes */
	u64 path;    /* of the recording: address of a C string */
	s64 thread_offset; /* the word at fs base + this holds the address of what is known of the thread, which begins with the
			    * place of its next frame */
	u64 own, own_end; /* where the hook is in memory: what is called from there is chase's own */
};

/* One row: what one thread did in one context by one syscall. One writer at a time. */
struct row {
	u32 process;  /* number in `processes` */
	u32 tid;      /* in the process's own pid namespace */
	u32 context;  /* node in the recording, 0: none */
	u32 syscall;  /* number, or WAIT_*, or ON_CPU */
	u64 count;
	u64 total_ns;
	u64 max_ns;
	u64 off_cpu_ns;
	u64 returned;    /* sum of the positive results: bytes, where results are bytes */
	u64 errors;
	u64 restarts;    /* interrupted by a signal, and restarted */
	u64 unfinished;  /* never returned */
	u64 errnos[ERRNOS]; /* errno << 48 | count: of the first different ones */
	u64 histogram[BUCKETS]; /* bucket i: below 2^(FIRST_BUCKET+i) ns, the last has no limit */
};

/* A row of turns of one thread: a turn is from the end of a wait for descriptors to the beginning of the next wait of the same loop. */
struct turns {
	u32 process, tid; /* as in a row */
	u32 descriptor;   /* of epoll or of io_uring, or NO_DESCRIPTOR */
	u32 syscall;      /* TURNS */
	u64 waits;        /* begun; one more than turns, unless waits were interrupted */
	u64 total_ns;     /* of all turns */
	u64 max_ns;
	u64 blocked_ns;   /* the part of total_ns in which it waited for something else */
	u64 preempted_ns; /* the part in which others had the CPU */
	u64 waited_ns;    /* in the waits */
	u64 turns;
	u64 long_turns;   /* of at least LONG_TURN_NS */
	u64 long_ns;
	u64 in_context;   /* of the latest wait */
	u64 since_ns, since_blocked_ns, since_preempted_ns; /* the thread's sums when the latest wait ended; since_ns is 0 while it waits */
	u64 begun_with;   /* descriptors that the latest wait found ready */
	u64 histogram[BUCKETS]; /* as in a row */
};

#define NO_DESCRIPTOR 0xffffffff
/* Minimum duration of turns that are recorded singly. */
#define LONG_TURN_NS 10000000

/* One turn. */
struct turn {
	u32 process, tid, descriptor; /* as above */
	u32 ready;        /* descriptors that were ready when it was over */
	u32 begun_with, reserved; /* those that were when it began */
	u64 begin_ns, end_ns; /* CLOCK_MONOTONIC */
	u64 blocked_ns, preempted_ns; /* parts of it, as above */
};

/* Frames of open calls in the hook (hook/src/abi.rs). */
#define FRAME 64
#define SEGMENT 4096 /* of frames; aligned, and the first is unused */

struct frame {
	u64 return_address, target, exit, sp, start, node;
};

enum waker {
	WAKER_UNKNOWN,
	WAKER_THREAD,    /* of a traced process */
	WAKER_PROCESS,   /* another one */
	WAKER_KERNEL,    /* a kernel thread */
	WAKER_INTERRUPT, /* a device, the network or a timer */
	WAKER_TIME,      /* nobody: the wait timed out */
};

/* Minimum duration of waits that are recorded singly. */
#define LONG_WAIT_NS 1000000

/* One wait. */
struct interval {
	u32 wait;      /* number in `waits`; WAITS: it did not wait, others had the CPU */
	u32 tid;
	u64 begin_ns;  /* CLOCK_MONOTONIC */
	u64 woken_ns;  /* 0: no wake-up was seen; if others had the CPU, number in `processes` */
	u64 end_ns;    /* it ran again */
};

/* Waits with the same thread, place, object, and waker. */
struct wait_key {
	u32 process, tid; /* as in a row, and so are contexts */
	u32 context;
	u32 syscall;      /* that it waited in; NO_SYSCALL: none, as in a page fault */
	u64 site;         /* return address of the library call that it waited in, 0: not known */
	u64 object;       /* the futex's address; or the inode behind a descriptor */
	u32 detail;       /* the futex's operation; the descriptor; the child; outside of a syscall: STOPPED, or 0 */
#define STOPPED 1 /* by a signal, or by who traces it */
	u32 holder;       /* the thread that is the owner, if the futex is that of a mutex */
	u32 holder_context;
	u32 waker_kind;
	u64 holder_site;
	u64 waker_site;
	u32 waker_process; /* number in `processes`, or WAKER_PROCESS: process id */
	u32 waker;         /* thread */
	u32 waker_context;
	u32 reserved;
};

/* Addresses of a socket; zero if it has none. Within the machine, `remote` begins with the inode of the other end. */
struct ends {
	unsigned short family, local_port, remote_port /* in network order */, reserved;
	unsigned char local[16], remote[16]; /* for IPv4, the first four */
};

/* Where the futex is, if not in memory of one process: in a file, wherever processes have mapped that. (Memory without a name that processes
 * share is a file, too.) */
struct futex {
	u64 inode, offset;
	u32 device;
	u32 place;
#define PLACE_UNKNOWN 0
#define OF_PROCESS 1
#define IN_FILE 2
};

struct wait {
	struct wait_key key;
	u64 count;
	u64 total_ns; /* blocked, until it ran again */
	u64 max_ns;
	u64 ready_ns; /* the part after it was woken */
	u32 mode;            /* of the inode, with the type of the file */
	u32 calls;           /* library calls with at least one of these waits as their first, for a futex */
	union {
		char name[48]; /* of the file, without its directory */
		struct ends ends;    /* of a socket */
		struct futex futex;  /* if it is one */
	};
	char waker_name[16]; /* of the thread that woke it last */
};

/* What a thread did at a tick of its CPU's clock. */
struct sample {
	u32 process;
	u32 tid;
	u32 context;
	u32 in_kernel;
	u64 address; /* of the present instruction in user space, or of the next one */
	u64 file;        /* inode, if it was in a syscall for a descriptor */
	u32 syscall;     /* that syscall */
	u32 mode;        /* of the inode */
	char name[48];   /* of the file, without its directory */
	u64 at_ns;       /* when it was taken, CLOCK_MONOTONIC */
	u32 is_late;     /* the thread had not waited in an event loop for LONG_TURN_NS */
	u32 reserved;
};

/* Size in bytes of a text of a single system call. */
#define TEXT 96

/* A single system call. */
struct told {
	u32 process, tid; /* as in a row, and so is the context */
	u32 context;
	u32 syscall;
	u64 entered_ns;
	u64 left_ns; /* 0: it has not returned, and may never do so */
	s64 result;
	u64 arguments[6];
	u64 object;  /* inode behind the descriptor that the call takes or returns; of execve, how many arguments, and << 32 how many variables */
	u32 mode;    /* of the inode */
	u32 lens[2]; /* of the texts; 0: none, or unreadable */
	u32 reserved;
	char texts[2][TEXT];
	union {
		char name[48]; /* of the file, without its directory */
		struct ends ends;    /* of a socket */
	};
};

enum process_state {
	PROCESS_FREE,
	PROCESS_FORKED,  /* still runs its parent's image; no hello yet */
	PROCESS_EXECED,  /* runs a new image; no hello yet */
	PROCESS_GREETED,
};

/* One program image of one process. */
struct process {
	u32 state;
	u32 live;       /* threads; the slot is the companion's when it is 0 */
	u32 pid;        /* in the first pid namespace */
	u32 own_pid;    /* in its own pid namespace */
	u32 parent_pid; /* the same of the parent process, or of itself if it ran another image before; 0 for the first */
	u32 attached;   /* if it had run before its hello, or was detached from: IS_* */
	u64 began_ns;   /* CLOCK_MONOTONIC */
	u64 ended_ns;   /* 0 as long as it lives */
	char name[16];
	char path[PATH];
	u64 greetings;
};

/* No thread is traced yet; some are; none is any more. Until it is detached from, or its last thread ends, it counts as one more in
 * `live`, since the thread that says hello ends before the others continue. */
#define IS_ATTACHED 1
#define IS_MET 2
#define IS_LEFT 3

struct totals {
	u64 rows;         /* next free index */
	u64 processes;    /* as above */
	u64 threads;      /* as above */
	u64 lost_calls;   /* found no row */
	u64 lost_waits;
	u64 lost_processes; /* found no place, and are not traced */
	u64 lost_threads;   /* as above */
	u64 refused;      /* hellos from another user or of another version */
	u64 dropped;      /* set-id images */
	u64 lost_samples; /* found no room */
	u64 waits;        /* next free index */
	u64 lost_wakers;  /* waits whose cause found no place */
	u64 lost_intervals; /* long waits that are only in sums */
	u64 lost_told;    /* single system calls for which there was no room */
	u64 attached;     /* processes that have said ATTACHED */
	u64 lost_preempted; /* long times that others had the CPU, for which there was no room */
	u64 lost_turns;     /* waits for descriptors that found no row, and so do not end a turn */
	u64 lost_long_turns; /* long turns that are only in sums */
};
