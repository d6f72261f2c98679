/* What the program keeps: maps, and how the running thread's state is found. */
#pragma once

#include "kernel.h"
#include "shared.h"

#define CACHED 16

struct cached {
	u32 context, syscall, row;
};

/* What woke a thread, until it is known whether that ended its wait. */
struct waking {
	u64 ns; /* 0: none */
	u64 first; /* of the waker's registers at its latest syscall: the first argument, the second, and the number */
	s64 syscall;
	u64 site; /* of the waker, where it is traced; otherwise its process is PROCESSES */
	u32 process, context;
	u32 operation;
	u32 flags; /* of its task */
	u32 tid, pid;
	struct futex futex; /* of shared memory, if it wakes one */
	char name[16];
};

/* What is known of a traced thread. */
struct state {
	u32 process;
	u32 tid;
	u32 syscall, context; /* of the syscall under way */
	u32 left_kind, left_context;
	s64 tls_offset;
	u64 word; /* address of the word at tls_offset */
	u64 base, mapped; /* mapped is 0 before the hello */
	u64 own, own_end; /* as in the hello, and in a fork before it; 0 where it is not known */
	u32 starting;     /* between STARTING and the hello; or LOADING */
#define IS_STARTING 1
#define LOADING 2 /* the dynamic linker loads the hook */
	u32 interrupted, interrupted_by; /* the latest syscall, if a signal interrupted it and it is not known yet what it returns; ERESTART* */
	u64 entered_ns;
	u64 off_cpu_ns; /* during it */
	u64 on_cpu_ns;  /* when it was last put on the CPU, or since when its time there is to be added */
	u32 cpu_row;    /* that it is added to, plus one; 0: not known yet */
	u64 left_ns;    /* when it was last taken off the CPU; 0: not since it is traced */
	s64 thread_offset; /* as in the hello; 0 before it */
	struct wait_key wait; /* what it waits for, and who has woken it */
	struct futex futex;   /* which one that is, if it is one */
	u64 woken_ns;         /* when */
	u32 is_noted;         /* what it waits for is known */
	struct waking waking;
	u64 waited_from, waited_to; /* the latest wait, until it is known whether time ended it; waited_to is 0 where none is */
	char waker_name[16];
	struct cached cache[CACHED];
	u32 narrates; /* 0: single calls are not recorded; or one of these */
#define WITH_ALL 1
#define WITHOUT_ARGUMENTS 2 /* of programs that are started */
	u32 handed; /* what it waits for was handed to a thread that had not yet run again */
	u64 call_object;    /* the futex and the library call of the latest wait for one */
	u64 call_number;
	u32 call_context;
	u32 is_first; /* the present wait is the first one of its call for that futex */
	u64 blocked_ns, preempted_ns; /* how long it has been off the CPU, in all */
	u64 turn_from;     /* when its latest wait in an event loop ended; 0 if it has none */
	u64 first_turn_ns; /* when the first one ended */
	u64 blocked_before_ns; /* blocked_ns when the turn below was over */
	struct turn turn; /* the latest one, if it was long and it is not known yet what is ready; otherwise end_ns is 0 */
	u32 descriptor;   /* of the latest wait for several descriptors, as in its row of turns */
	u32 in_turns;     /* the syscall under way is a wait for descriptors that turns end by */
	u32 ring;         /* of io_uring, that it waited with last */
	u32 put_at_first; /* results in that when its turn began */
	u32 put_before;   /* and before it began the operations that it is beginning */
	u32 ring_begins;  /* it is beginning some */
	u32 ring_ready;   /* results that came in its latest turn */
	u32 is_ready; /* the latest wait was for descriptors, one of which is ready: it is known when the thread uses it */
	u32 read_len;         /* of what a call that is narrated reads: the beginning of a structure; 0: none, or unreadable */
	char read[32];
};

#define IN_BLOCK 64

/* By thread number: the place in `states` plus one, or 0. */
struct block {
	u32 places[IN_BLOCK];
};

struct key {
	u32 process, tid, context, syscall;
};

/* As large as the kernel's pid_max; set by the companion. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct block);
} blocks SEC(".maps");

/* The thread that last made a syscall on a CPU. A switch clears it. */
struct running {
	u64 registers;
	u32 place;
};

struct {
	NUMBER(type, MAP_PER_CPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct running);
} running SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, THREADS);
	TYPE(key, u32);
	TYPE(value, struct state);
} states SEC(".maps");

struct {
	NUMBER(type, MAP_QUEUE);
	NUMBER(max_entries, THREADS);
	TYPE(value, u32);
} free_states SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, ROWS);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct row);
} rows SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, ROWS);
	TYPE(key, struct key);
	TYPE(value, u32);
} row_of SEC(".maps");

struct {
	NUMBER(type, MAP_QUEUE);
	NUMBER(max_entries, ROWS);
	TYPE(value, u32);
} free_rows SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, WAITS);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct wait);
} waits SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, WAITS);
	TYPE(key, struct wait_key);
	TYPE(value, u32);
} wait_of SEC(".maps");

struct {
	NUMBER(type, MAP_QUEUE);
	NUMBER(max_entries, WAITS);
	TYPE(value, u32);
} free_waits SEC(".maps");

/* Of so many bytes; set by the companion. */
struct {
	NUMBER(type, MAP_RING);
	NUMBER(max_entries, 1 << 16);
} samples SEC(".maps");

/* Of so many bytes. */
struct {
	NUMBER(type, MAP_RING);
	NUMBER(max_entries, 1 << 23);
} narrated SEC(".maps");

struct {
	NUMBER(type, MAP_RING);
	NUMBER(max_entries, 1 << 17);
} long_turns SEC(".maps");

struct {
	NUMBER(type, MAP_RING);
	NUMBER(max_entries, 1 << 20);
} intervals SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, PROCESSES);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct process);
} processes SEC(".maps");

struct {
	NUMBER(type, MAP_QUEUE);
	NUMBER(max_entries, PROCESSES);
	TYPE(value, u32);
} free_processes SEC(".maps");

/* Of processes that ran before their hello: what their threads are to know. */
struct attached {
	u32 process;
	u32 narrates;
	s64 tls_offset, thread_offset;
	u64 base, mapped, own, own_end;
};

/* By the process's number, the kernel's own. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, PROCESSES);
	TYPE(key, u32);
	TYPE(value, struct attached);
} attached_of SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct totals);
} totals SEC(".maps");

INLINE struct totals *sums(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

INLINE u32 *place_of(u32 thread)
{
	u32 number = thread / IN_BLOCK;
	struct block *block = bpf_map_lookup_elem(&blocks, &number);

	return block ? &block->places[thread % IN_BLOCK] : 0;
}

INLINE struct state *state_at(u32 place)
{
	place--;
	return bpf_map_lookup_elem(&states, &place);
}

INLINE struct state *state_of(u32 thread)
{
	u32 *place = place_of(thread);

	return place && *place ? state_at(*place) : 0;
}

INLINE struct state *current_state(void)
{
	return state_of(bpf_get_current_task_btf()->pid);
}

INLINE void forget_running(void)
{
	u32 zero = 0;
	struct running *running_here = bpf_map_lookup_elem(&running, &zero);

	if (running_here)
		running_here->registers = 0;
}

/* The same as current_state, for a thread that makes a syscall with these registers. */
INLINE struct state *state_with(u64 registers)
{
	u32 zero = 0, place, *found;
	struct running *running_here = bpf_map_lookup_elem(&running, &zero);

	if (!running_here)
		return 0;
	if (running_here->registers == registers) {
		place = running_here->place;
	} else {
		found = place_of(bpf_get_current_task_btf()->pid);
		place = found ? *found : 0;
		running_here->registers = registers;
		running_here->place = place;
	}
	return place ? state_at(place) : 0;
}

#define COUNT(field)                                         \
	do {                                                 \
		struct totals *t = sums();                   \
		if (t)                                       \
			__sync_fetch_and_add(&t->field, 1);  \
	} while (0)

/* The other end of a connection within the machine, by its inode, if it is open. */
INLINE void note_peer(struct ends *ends, struct sock *sock)
{
	struct unix_sock *own = (void *)sock;
	struct sock *peer;
	u64 inode;

	if (!__builtin_preserve_field_info(own->peer, FIELD_EXISTS))
		return;
	peer = READ(own, peer);
	if (!peer)
		return;
	inode = READ(READ(READ(READ(peer, sk_socket), file), f_inode), i_ino);
	__builtin_memcpy(ends->remote, &inode, sizeof(inode));
}
