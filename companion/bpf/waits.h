/* What threads wait for, and who ends that. */
#pragma once

#include "wakers.h"

#define UNIT 128

/* The context of chase's own work; OWN_CONTEXT_REF in the file's format. */
#define OWN_CONTEXT 1

/* Called in the thread's own memory: it is current, or just being switched away from. */
INLINE u32 context_of(struct state *state)
{
	u64 node;

	if (state->starting)
		return OWN_CONTEXT;
	if (!state->mapped || bpf_probe_read_user(&node, 8, (void *)state->word))
		return 0;
	node -= state->base;
	return node < state->mapped ? node / UNIT : 0;
}

#define NR_READ 0
#define NR_IO_URING_ENTER 426
#define IORING_ENTER_GETEVENTS 1
#define IORING_ENTER_REGISTERED_RING 16
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define LISTENS 10 /* state of a socket: TCP_LISTEN, of all kinds of connections */
#define FUTEX_LOCK_PI 6
#define FUTEX_LOCK_PI2 13
#define FUTEX_OWNER 0x3fffffff

/* How many functions may have ended by a jump to the next one. */
#define JUMPS 3

/* Where a thread's innermost library call returns to; 0 if the call has no frame. In the memory of the thread's process. If a function
 * of a library ends by a jump to another one (std::condition_variable::wait does), the inner call returns to chase's own code, in the outer
 * one's place on the stack: where that returns to is meant then. */
static __attribute__((noinline)) u64 site_of(struct state *state)
{
	struct frame frame = {}, outer = {};
	u64 node = 0, thread = 0, top = 0;

	if (!state || !state->mapped || !state->thread_offset)
		return 0;
	if (bpf_probe_read_user(&node, 8, (void *)state->word) ||
	    bpf_probe_read_user(&thread, 8, (void *)(state->word - state->tls_offset + state->thread_offset)) ||
	    bpf_probe_read_user(&top, 8, (void *)thread))
		return 0;
	top -= FRAME;
	if (!(top % SEGMENT) || bpf_probe_read_user(&frame, sizeof(frame), (void *)top) || frame.node != node)
		return 0;
	for (u32 jump = 0; jump < JUMPS; jump++) {
		top -= FRAME;
		if (!(top % SEGMENT) || bpf_probe_read_user(&outer, sizeof(outer), (void *)top) || outer.sp != frame.sp)
			break;
		frame.return_address = outer.return_address;
	}
	return frame.return_address;
}

/* Those whose first argument is a descriptor, and that may wait. */
INLINE int waits_for_descriptor(u32 syscall)
{
	switch (syscall) {
	case 0: case 1: case 16: case 17: case 18: case 19: case 20: case 40: case 42: case 43: case 44: case 45:
	case 46: case 47: case 72: case 73: case 74: case 75: case 76: case 77: case 78: case 217: case 232:
	case 275: case 277: case 281: case 285: case 288: case 295: case 296: case 299: case 306: case 307:
	case 326: case 441:
		return 1;
	}
	return 0;
}

INLINE struct file *file_of(struct task_struct *task, u32 descriptor)
{
	struct fdtable *table = READ(READ(task, files), fdt);
	struct file **files = READ(table, fd), *file = 0;

	if (descriptor >= READ(table, max_fds))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), files + descriptor);
	return file;
}

/* The thread that owns the mutex whose futex this is, if it is one. Glibc has the number of its thread at 8. */
INLINE void note_holder(struct state *state, u64 object, u32 command)
{
	struct wait_key *wait = &state->wait;
	struct state *holder;
	u32 words[3] = {}, owner;

	if (bpf_probe_read_user(words, sizeof(words), (void *)object))
		return;
	owner = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 ? words[0] & FUTEX_OWNER : words[2];
	holder = owner ? state_of(owner) : 0;
	if (!holder || holder->process != state->process || holder->tid != owner || holder == state)
		return;
	wait->holder = owner;
	/* The kernel has given it to a thread that still is in the call by which it asked. */
	state->handed = holder->syscall == NR_FUTEX && holder->wait.object == object;
	if (state->handed)
		return;
	wait->holder_context = context_of(holder);
	wait->holder_site = site_of(holder);
}

/* Whether a wait for a futex is the first one of its library call: a call is a context, and how often that was called (at 8 in a node). */
INLINE u32 is_first(struct state *state, u64 object)
{
	u64 number = 0, node = state->base + (u64)state->left_context * UNIT;
	u32 same;

	if (!state->left_context || bpf_probe_read_user(&number, 8, (void *)(node + 8)))
		return 0;
	same = number == state->call_number && object == state->call_object && state->left_context == state->call_context;
	state->call_number = number;
	state->call_object = object;
	state->call_context = state->left_context;
	return !same;
}

static int add_wait(struct state *state, struct task_struct *task);

/* The thread, which is being switched away from, waits. */
static __attribute__((noinline)) int note_wait(struct state *state, struct task_struct *task)
{
	struct wait_key *wait;
	struct pt_regs *registers;
	struct file *file;
	u64 first;

	if (!state || !task)
		return 0;
	/* That of a syscall which goes on waiting. */
	if (state->waited_to)
		add_wait(state, task);
	wait = &state->wait;
	__builtin_memset(wait, 0, sizeof(*wait));
	__builtin_memset(&state->futex, 0, sizeof(state->futex));
	state->woken_ns = 0;
	state->handed = 0;
	state->is_first = 0;
	wait->process = state->process;
	wait->tid = state->tid;
	wait->context = state->left_context;
	wait->syscall = state->syscall;
	wait->site = site_of(state);
	if (state->syscall == NO_SYSCALL)
		return 0;
	registers = bpf_task_pt_regs(task);
	first = READ(registers, di);
	if (state->syscall == NR_FUTEX) {
		wait->object = first;
		wait->detail = READ(registers, si);
		if (!(wait->detail & FUTEX_PRIVATE))
			find_futex(first, &state->futex);
		note_holder(state, first, wait->detail & FUTEX_COMMAND);
		state->is_first = is_first(state, first);
	} else if (waits_for_descriptor(state->syscall) ||
		   /* (What the first argument is of a registered ring, only the thread knows.) */
		   (state->syscall == NR_IO_URING_ENTER && !(READ(registers, r10) & IORING_ENTER_REGISTERED_RING))) {
		wait->detail = first;
		file = file_of(task, first);
		if (file)
			wait->object = READ(READ(file, f_inode), i_ino);
	}
	return 0;
}

/* Notes what file it is. Its path is found by the companion, if it is still open then. */
static __attribute__((noinline)) int describe(struct wait *wait, struct file *file)
{
	struct socket *socket;
	struct sock *sock;

	if (!wait || !file)
		return 0;
	wait->mode = READ(READ(file, f_inode), i_mode);
	if ((wait->mode & S_IFMT) != S_IFSOCK) {
		bpf_probe_read_kernel_str(wait->name, sizeof(wait->name), READ(READ(file, f_path.dentry), d_name.name));
		return 0;
	}
	socket = READ(file, private_data);
	sock = READ(socket, sk);
	wait->ends.family = READ(sock, __sk_common.skc_family);
	if (wait->ends.family == AF_UNIX)
		note_peer(&wait->ends, sock);
	if (wait->ends.family != AF_INET && wait->ends.family != AF_INET6)
		return 0;
	wait->ends.local_port = READ(sock, __sk_common.skc_num);
	wait->ends.remote_port = READ(sock, __sk_common.skc_dport);
	if (wait->ends.family == AF_INET) {
		bpf_probe_read_kernel(wait->ends.local, 4, &sock->__sk_common.skc_rcv_saddr);
		bpf_probe_read_kernel(wait->ends.remote, 4, &sock->__sk_common.skc_daddr);
	} else {
		bpf_probe_read_kernel(wait->ends.local, 16, &sock->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(wait->ends.remote, 16, &sock->__sk_common.skc_v6_daddr);
	}
	return 0;
}

/* Its place in `waits`, or WAITS. */
static __attribute__((noinline)) u32 make_wait(struct state *state, struct task_struct *task)
{
	struct wait *wait;
	struct file *file;
	struct totals *t;
	u32 number;

	if (!state || !task)
		return WAITS;
	if (bpf_map_pop_elem(&free_waits, &number)) {
		t = sums();
		if (!t || t->waits >= WAITS)
			return WAITS;
		number = __sync_fetch_and_add(&t->waits, 1);
	}
	wait = bpf_map_lookup_elem(&waits, &number);
	if (!wait)
		return WAITS;
	__builtin_memcpy(&wait->key, &state->wait, sizeof(wait->key));
	if (wait->key.syscall == NR_FUTEX) {
		wait->futex = state->futex;
	} else if (wait->key.object) {
		file = file_of(task, wait->key.detail);
		if (file)
			describe(wait, file);
	}
	if (bpf_map_update_elem(&wait_of, &wait->key, &number, UPDATE_ANY)) {
		bpf_map_push_elem(&free_waits, &number, UPDATE_ANY);
		return WAITS;
	}
	return number;
}

/* What the thread waited for last, and who ended that, is known by now. */
static __attribute__((noinline)) int add_wait(struct state *state, struct task_struct *task)
{
	struct interval *interval;
	struct wait *wait;
	u32 *known, number;
	u64 ns;

	if (!state || !state->waited_to)
		return 0;
	ns = state->waited_to - state->waited_from;
	known = bpf_map_lookup_elem(&wait_of, &state->wait);
	number = known ? *known : make_wait(state, task);
	wait = bpf_map_lookup_elem(&waits, &number);
	if (!wait) {
		COUNT(lost_wakers);
		state->waited_to = 0;
		state->is_ready = 0;
		return 0;
	}
	wait->count++;
	wait->calls += state->is_first;
	wait->total_ns += ns;
	if (ns > wait->max_ns)
		wait->max_ns = ns;
	if (state->woken_ns && state->woken_ns < state->waited_to) {
		wait->ready_ns += state->waited_to - state->woken_ns;
		if (state->wait.waker_kind == WAKER_PROCESS || state->wait.waker_kind == WAKER_THREAD)
			__builtin_memcpy(wait->waker_name, state->waker_name, sizeof(wait->waker_name));
	}
	if (ns >= LONG_WAIT_NS) {
		interval = bpf_ringbuf_reserve(&intervals, sizeof(*interval), 0);
		if (interval) {
			interval->wait = number;
			interval->tid = state->tid;
			interval->begin_ns = state->waited_from;
			interval->woken_ns = state->woken_ns;
			interval->end_ns = state->waited_to;
			bpf_ringbuf_submit(interval, RING_NO_WAKEUP);
		} else {
			COUNT(lost_intervals);
		}
	}
	state->waited_to = 0;
	state->is_ready = 0;
	return 0;
}

/* The thread could have run since it was taken off the CPU, and runs again. */
static __attribute__((noinline)) int note_preempted(struct state *state, u64 now)
{
	struct interval *interval;

	if (!state || now - state->left_ns < LONG_WAIT_NS)
		return 0;
	interval = bpf_ringbuf_reserve(&intervals, sizeof(*interval), 0);
	if (!interval) {
		COUNT(lost_preempted);
		return 0;
	}
	interval->wait = WAITS;
	interval->tid = state->tid;
	interval->begin_ns = state->left_ns;
	interval->woken_ns = state->process;
	interval->end_ns = now;
	bpf_ringbuf_submit(interval, RING_NO_WAKEUP);
	return 0;
}

/* Whether a syscall with this result ended because it had waited as long as it was to wait at most. */
INLINE int is_over(u32 syscall, s64 result)
{
	switch (syscall) {
	case NR_NANOSLEEP: case NR_CLOCK_NANOSLEEP:
	case 7: case 23: case 270: case 271: /* poll, select */
	case 232: case 281: case 441: /* epoll_wait */
	case 208: case 333: /* io_getevents */
		return result == 0;
	case NR_IO_URING_ENTER:
		return result == -62;
	case NR_FUTEX:
	case 242: case 243: /* mq_timedsend, mq_timedreceive */
		return result == -110;
	case 128: case 220: /* rt_sigtimedwait, semtimedop */
	case NR_READ: case 43: case 45: case 47: case 288: case 299: /* accept, recv */
	case 1: case 20: case 44: case 46: case 307: /* write, send */
		return result == -11;
	}
	return 0;
}

/* Those that wait until one of several descriptors is ready. */
INLINE int waits_for_readiness(u32 syscall)
{
	switch (syscall) {
	case 7: case 23: case 270: case 271: /* poll, select */
	case 232: case 281: case 441: /* epoll_wait */
		return 1;
	}
	return 0;
}

/* Those that take what a descriptor is ready with: read, recv, accept, and the outcome of a connect. */
INLINE int takes_from_descriptor(u32 syscall)
{
	switch (syscall) {
	case 0: case 19: case 45: case 47: case 299: case 43: case 288: case 55:
		return 1;
	}
	return 0;
}

/* Which of the descriptors it was that the thread has waited for: the one that it takes something from next, unless that is a file, which
 * is always ready. Once a quarter of the room has been needed at a time, there may be none for one wait for each connection: later ones are for
 * the set of descriptors. */
static __attribute__((noinline)) int find_ready(struct state *state, u64 first, u32 syscall)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct totals *t = sums();
	struct file *file;
	u32 mode;

	if (!state || !t)
		return 0;
	if (waits_for_readiness(syscall))
		return add_wait(state, task);
	if (!takes_from_descriptor(syscall))
		return 0;
	file = file_of(task, first);
	if (!file)
		return 0;
	mode = READ(READ(file, f_inode), i_mode) & S_IFMT;
	if (mode == S_IFREG || mode == S_IFDIR)
		return 0;
	if (t->waits < WAITS / 4) {
		state->wait.object = READ(READ(file, f_inode), i_ino);
		state->wait.detail = first;
	}
	return add_wait(state, task);
}

/* The syscall that the thread waited in is over, or a later one, if it is not known yet what was ready. */
INLINE void settle_wait(struct state *state, s64 result)
{
	struct wait_key *wait = &state->wait;

	if (state->is_ready)
		return;
	if (result > 0 && waits_for_readiness(wait->syscall)) {
		state->is_ready = 1;
		return;
	}
	if (is_over(wait->syscall, result)) {
		wait->waker_kind = WAKER_TIME;
		wait->waker_process = wait->waker = wait->waker_context = 0;
		wait->waker_site = 0;
	}
	add_wait(state, bpf_get_current_task_btf());
}
