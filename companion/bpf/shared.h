/* What the program, the companion and the traced process agree on. The Rust side of it is
 * src/shared.rs; a test compares the two by the BTF of the object. */
#pragma once

/* prctl(HELLO, &hello): no such option exists, so the kernel answers EINVAL. "CHAS" as a number.
 * With an empty path, nothing of this process is to be written. prctl(GOODBYE) ends the tracing of the thread that calls it. What a thread
 * does from prctl(STARTING, 1) on, until it says hello or prctl(STARTING, 0), is chase's own: an image that starts to record. */
#define HELLO 0x53414843
#define GOODBYE 0x53414844
#define STARTING 0x53414845
/* From then on, the system calls of the thread that calls it, and of all that it starts, are told one by one. */
#define NARRATE 0x53414846
/* Of a process that ran before it said hello: with 1, all its threads are traced, each from when it is next put on a CPU; with 0, none is
 * any more. Said while they are stopped. */
#define ATTACHED 0x53414847
#define HELLO_VERSION 2

/* Numbers of a syscall that stand for something else. */
#define NO_SYSCALL 0xffffffff
#define WAIT_VOLUNTARY 0xfffffffe
#define WAIT_PREEMPTED 0xfffffffd
#define ON_CPU 0xfffffffc /* time on the CPU, in pieces */
/* Added to the number of a syscall made through int 0x80, which are others. */
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
	u64 session; /* that the companion was started with */
	s64 tls_offset; /* the word at fs base + this holds the address of the thread's node */
	u64 base;    /* of the recording's mapping */
	u64 mapped;  /* bytes that it may grow to */
	u64 path;    /* of the recording: address of a C string */
	s64 thread_offset; /* the word at fs base + this holds the address of what is known of the thread, which begins with the
			    * place of its next frame */
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
	u64 restarts;    /* ended by a signal, to be made again */
	u64 unfinished;  /* never returned */
	u64 errnos[ERRNOS]; /* errno << 48 | count: the first ones met */
	u64 histogram[BUCKETS]; /* bucket i: below 2^(FIRST_BUCKET+i) ns, the last has no limit */
};

/* Frames of the calls under way, on the hook's side (hook/src/abi.rs). */
#define FRAME 64
#define SEGMENT 4096 /* of frames; aligned, and the first of them is none */

struct frame {
	u64 return_address, target, exit, sp, start, node;
};

enum waker {
	WAKER_UNKNOWN,
	WAKER_THREAD,    /* of a traced process */
	WAKER_PROCESS,   /* another one */
	WAKER_KERNEL,    /* a thread of the kernel's */
	WAKER_INTERRUPT, /* a device, the network or a timer */
	WAKER_TIME,      /* nobody: as long as it would wait at most was over */
};

/* Waits from this long on are told one by one. */
#define LONG_WAIT_NS 1000000

/* One wait. */
struct interval {
	u32 wait;      /* number in `waits`, of what it has in common with others */
	u32 reserved;
	u64 begin_ns;  /* CLOCK_MONOTONIC */
	u64 woken_ns;  /* 0: nobody was seen to wake it */
	u64 end_ns;    /* it ran again */
};

/* Waits that are alike: of which thread, where, for what, and who ended them, doing what. */
struct wait_key {
	u32 process, tid; /* as in a row, and so are contexts */
	u32 context;
	u32 syscall;      /* that it waited in; NO_SYSCALL: none, as in a page fault */
	u64 site;         /* return address of the library call that it waited in, 0: not known */
	u64 object;       /* the futex's address; or the inode behind a descriptor */
	u32 detail;       /* the futex's operation; the descriptor; the child */
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

/* Of a socket: zero where it has no such addresses. */
struct ends {
	unsigned short family, local_port, remote_port /* in network order */, reserved;
	unsigned char local[16], remote[16]; /* of IPv4 the first four */
};

struct wait {
	struct wait_key key;
	u64 count;
	u64 total_ns; /* blocked, until it ran again */
	u64 max_ns;
	u64 ready_ns; /* the part after it was woken */
	u32 mode;            /* of the inode: what kind of file it is */
	u32 reserved;
	union {
		char name[48]; /* of the file, without its directory */
		struct ends ends;    /* of a socket */
	};
	char waker_name[16]; /* of the thread that woke it last */
};

/* What a thread did when the clock of its CPU struck. */
struct sample {
	u32 process;
	u32 tid;
	u32 context;
	u32 in_kernel;
	u64 address; /* of the instruction in user space that it was at, or is to go on at */
	u64 file;        /* inode, if it was in a syscall for a descriptor */
	u32 syscall;     /* that syscall */
	u32 mode;        /* of the inode */
	char name[48];   /* of the file, without its directory */
};

/* Bytes of a text in what is told of a system call. */
#define TEXT 96

/* One system call. */
struct told {
	u32 process, tid; /* as in a row, and so is the context */
	u32 context;
	u32 syscall;
	u64 entered_ns;
	u64 left_ns; /* 0: it has not returned, and perhaps never will */
	s64 result;
	u64 arguments[6];
	u64 object;  /* inode behind the descriptor that the call is for, or that it gave */
	u32 mode;    /* of the inode */
	u32 lens[2]; /* of the texts; 0: not there, or not to be read */
	u32 reserved;
	char texts[2][TEXT];
	union {
		char name[48]; /* of the file, without its directory */
		struct ends ends;    /* of a socket */
	};
};

enum process_state {
	PROCESS_FREE,
	PROCESS_FORKED,  /* goes on in its parent's image; no hello yet */
	PROCESS_EXECED,  /* runs a new image; no hello yet */
	PROCESS_GREETED,
};

/* One program image of one process. */
struct process {
	u32 state;
	u32 live;       /* threads; the slot is the companion's when it is 0 */
	u32 pid;        /* as the companion may see it */
	u32 own_pid;    /* in its own pid namespace */
	u32 parent;     /* the process, or image, before; its own number for the first */
	u32 attached;   /* of one that ran before its hello, or that is left: IS_* */
	u64 began_ns;   /* CLOCK_MONOTONIC */
	u64 ended_ns;   /* 0 as long as it lives */
	char name[16];
	char path[PATH];
	u64 greetings;
};

/* Its threads are yet to be met; some were; none is traced any more. Until it is left, or the last of them ends, it counts as one more in
 * `live`: who says hello for it ends before they go on. */
#define IS_ATTACHED 1
#define IS_MET 2
#define IS_LEFT 3

struct totals {
	u64 rows;         /* places handed out by counting */
	u64 processes;    /* the same */
	u64 threads;      /* the same */
	u64 lost_calls;   /* found no row */
	u64 lost_waits;
	u64 lost_processes; /* found no place, and are not traced */
	u64 lost_threads;   /* the same */
	u64 refused;      /* hellos from another user or of another version */
	u64 dropped;      /* set-id images */
	u64 lost_samples; /* found no room */
	u64 waits;        /* places handed out by counting */
	u64 lost_wakers;  /* waits whose cause found no place */
	u64 lost_intervals; /* long waits that are in sums alone */
	u64 lost_told;    /* system calls that were to be told and found no room */
	u64 attached;     /* processes that have said ATTACHED */
};
