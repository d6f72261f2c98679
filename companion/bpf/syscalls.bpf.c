/* Which syscalls each library call makes, and how long it is off the CPU.
 *
 * A thread is traced if the table by its number (the kernel's own, unique over all pid namespaces)
 * says so. A thread's entry is made before it runs and removed when it exits, so that a number used
 * again finds none. What the table says of the thread that runs on a CPU is kept there, under the
 * address of its registers (the top of its kernel stack): asking for the current task calls a helper,
 * and calls are what costs here. Task storage would take two.
 *
 * Nothing a traced process says is trusted: its memory is only read, by a helper that can't fault,
 * and the context is checked against the mapping.
 *
 * Nothing here waits or takes a lock of ours: a row has one writer at a time, which is its thread, or
 * the switch to its thread. */
#include "kernel.h"
#include "shared.h"

#define NR_PRCTL 157
#define NR_EXIT 60
#define NR_EXIT_GROUP 231
#define NR_EXECVE 59
#define CLONE_VM 0x100
#define TS_COMPAT 2
#define UNIT 128
#define CACHED 16

/* A frame's stack pointer up to this is a state: free, dead or moved. */
#define NO_STACK_POINTER 2
/* Frames that are looked at for a live one. */
#define DEPTH 4
#define FRAME 64

/* Set by the companion before loading. */
const volatile u64 session = 0;
const volatile u32 owner_uid = 0;

struct cached {
	u32 context, syscall, row;
};

/* What is known of a traced thread. */
struct state {
	u32 process;
	u32 tid;
	u32 context_kind;
	s32 top_offset, frame_offset;
	u32 syscall, context; /* of the syscall under way */
	u32 left_kind, left_context;
	s64 tls_offset;
	u64 word; /* address of the word at tls_offset */
	u64 base, mapped;
	u64 entered_ns;
	u64 off_cpu_ns; /* during it */
	u64 left_ns;    /* when it was last taken off the CPU; 0: not since it is traced */
	struct cached cache[CACHED];
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

/* Of the thread that last made a syscall on a CPU. A switch forgets it. */
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

/* ---- the context ------------------------------------------------------------------------------ */

INLINE u32 reference(struct state *state, u64 node)
{
	u64 offset = node - state->base;

	return offset < state->mapped ? offset / UNIT : 0;
}

/* Called in the thread's own memory: it is current, or just being switched away from. */
INLINE u32 context_of(struct state *state)
{
	struct {
		u64 sp, start, node;
	} frame;
	u64 thread, top;

	if (state->context_kind == CONTEXT_NONE)
		return 0;
	if (bpf_probe_read_user(&thread, 8, (void *)state->word))
		return 0;
	if (state->context_kind == CONTEXT_WORD)
		return reference(state, thread);
	if (bpf_probe_read_user(&top, 8, (void *)(thread + state->top_offset)) || !top)
		return 0;
	top += state->frame_offset;
#pragma clang loop unroll(full)
	for (int i = 0; i < DEPTH; i++) {
		if (bpf_probe_read_user(&frame, sizeof(frame), (void *)top))
			return 0;
		if (frame.sp > NO_STACK_POINTER)
			return reference(state, frame.node);
		top -= FRAME;
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static __attribute__((noinline)) u32 make_row(struct state *state, u32 context, u32 syscall)
{
	struct key key;
	struct totals *t;
	struct row *row;
	u32 *known, number;

	if (!state)
		return ROWS;
	key.process = state->process;
	key.tid = state->tid;
	key.context = context;
	key.syscall = syscall;
	known = bpf_map_lookup_elem(&row_of, &key);
	if (known)
		return *known;
	if (bpf_map_pop_elem(&free_rows, &number)) {
		t = sums();
		if (!t || t->rows >= ROWS)
			return ROWS;
		number = __sync_fetch_and_add(&t->rows, 1);
	}
	row = bpf_map_lookup_elem(&rows, &number);
	if (!row)
		return ROWS;
	row->process = state->process;
	row->tid = state->tid;
	row->context = context;
	row->syscall = syscall;
	if (bpf_map_update_elem(&row_of, &key, &number, UPDATE_ANY))
		return ROWS;
	return number;
}

INLINE struct row *row_for(struct state *state, u32 context, u32 syscall)
{
	struct cached *cached = &state->cache[(context * 5 + syscall) % CACHED];
	u32 number = cached->row;

	if (cached->syscall != syscall || cached->context != context || !cached->row) {
		number = make_row(state, context, syscall) + 1;
		if (number <= ROWS) {
			cached->row = number;
			cached->syscall = syscall;
			cached->context = context;
		}
	}
	number--;
	return bpf_map_lookup_elem(&rows, &number);
}

INLINE u32 bucket_of(u64 ns)
{
	u32 bits = 0;

	ns >>= FIRST_BUCKET;
	if (ns >> 31)
		return BUCKETS - 1;
	if (ns >> 16) { bits += 16; ns >>= 16; }
	if (ns >> 8) { bits += 8; ns >>= 8; }
	if (ns >> 4) { bits += 4; ns >>= 4; }
	if (ns >> 2) { bits += 2; ns >>= 2; }
	if (ns >> 1) { bits += 1; ns >>= 1; }
	return bits + (u32)ns;
}

INLINE void add(struct row *row, u64 ns)
{
	row->count++;
	row->total_ns += ns;
	if (ns > row->max_ns)
		row->max_ns = ns;
	row->histogram[bucket_of(ns) % BUCKETS]++;
}

INLINE void add_error(struct row *row, u64 number)
{
	row->errors++;
#pragma clang loop unroll(full)
	for (int i = 0; i < ERRNOS; i++) {
		if (!row->errnos[i])
			row->errnos[i] = number << 48;
		if (row->errnos[i] >> 48 == number) {
			row->errnos[i]++;
			return;
		}
	}
}

/* The thread runs again. */
INLINE void end_wait(struct state *state)
{
	u64 ns = bpf_ktime_get_ns() - state->left_ns;
	struct row *row = row_for(state, state->left_context, state->left_kind);

	state->left_ns = 0;
	state->off_cpu_ns += ns;
	if (row)
		add(row, ns);
	else
		COUNT(lost_waits);
}

/* The syscall under way never returns to where it was made. */
INLINE void close_syscall(struct state *state, u64 finished)
{
	struct row *row;

	if (state->syscall == NO_SYSCALL)
		return;
	row = row_for(state, state->context, state->syscall);
	if (!row) {
		COUNT(lost_calls);
	} else {
		add(row, bpf_ktime_get_ns() - state->entered_ns);
		row->off_cpu_ns += state->off_cpu_ns;
		row->unfinished += !finished;
	}
	state->syscall = NO_SYSCALL;
}

/* ---- processes -------------------------------------------------------------------------------- */

INLINE u32 own_number(struct pid *pid)
{
	struct upid of = {};

	bpf_probe_read_kernel(&of.nr, sizeof(of.nr), (char *)&pid->numbers[0].nr + pid->level * 16);
	return of.nr;
}

/* A slot with one thread; PROCESSES if there is none. */
INLINE u32 make_process(struct task_struct *task, u32 kind, u32 parent)
{
	struct process *process;
	struct totals *t;
	u32 number;

	if (bpf_map_pop_elem(&free_processes, &number)) {
		t = sums();
		if (!t || t->processes >= PROCESSES) {
			COUNT(lost_processes);
			return PROCESSES;
		}
		number = __sync_fetch_and_add(&t->processes, 1);
	}
	process = bpf_map_lookup_elem(&processes, &number);
	if (!process) {
		COUNT(lost_processes);
		return PROCESSES;
	}
	process->live = 1;
	process->pid = task->tgid;
	process->own_pid = own_number(task->group_leader->thread_pid);
	process->parent = parent == PROCESSES ? number : parent;
	process->began_ns = bpf_ktime_get_ns();
	process->ended_ns = 0;
	process->path[0] = 0;
	process->greetings = 0;
	bpf_get_current_comm(process->name, sizeof(process->name));
	process->state = kind;
	return number;
}

INLINE void leave_process(u32 number)
{
	struct process *process = bpf_map_lookup_elem(&processes, &number);

	if (!process)
		return;
	/* Before `live` becomes 0, since the slot is the companion's from then on. */
	process->ended_ns = bpf_ktime_get_ns();
	__sync_fetch_and_sub(&process->live, 1);
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* Gives a thread a place; 0 if there is none. */
INLINE struct state *make_state(struct task_struct *task, u32 process)
{
	u32 *place = place_of(task->pid), number;
	struct state *state;
	struct totals *t;

	if (!place)
		goto lost;
	if (bpf_map_pop_elem(&free_states, &number)) {
		t = sums();
		if (!t || t->threads >= THREADS)
			goto lost;
		number = __sync_fetch_and_add(&t->threads, 1);
	}
	state = bpf_map_lookup_elem(&states, &number);
	if (!state)
		goto lost;
	__builtin_memset(state, 0, sizeof(*state));
	state->process = process;
	state->tid = own_number(task->thread_pid);
	state->syscall = NO_SYSCALL;
	*place = number + 1;
	return state;
lost:
	COUNT(lost_threads);
	return 0;
}

/* Ends the tracing of the running thread, whose number was this. */
INLINE void drop(u32 thread, struct state *state)
{
	u32 *place = place_of(thread), number;

	leave_process(state->process);
	forget_running();
	if (!place)
		return;
	number = *place - 1;
	*place = 0;
	bpf_map_push_elem(&free_states, &number, UPDATE_ANY);
}

INLINE int is_owner(struct task_struct *task)
{
	const struct cred *cred = task->cred;

	return cred->uid.val == owner_uid && cred->euid.val == owner_uid &&
	       cred->suid.val == owner_uid && cred->gid.val == cred->egid.val;
}

/* Set-id, or by capabilities of the file. */
INLINE int gains_privilege(struct linux_binprm *image)
{
	u64 bits = 0;

	bpf_probe_read_kernel(&bits, __builtin_preserve_field_info(image->secureexec, FIELD_SIZE),
			      (char *)image + __builtin_preserve_field_info(image->secureexec, FIELD_OFFSET));
	bits <<= __builtin_preserve_field_info(image->secureexec, FIELD_SHIFT_LEFT);
	return bits >> __builtin_preserve_field_info(image->secureexec, FIELD_SHIFT_RIGHT);
}

/* ---- the hello -------------------------------------------------------------------------------- */

static __attribute__((noinline)) int greet(u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = current_state();
	struct process *process;
	struct hello hello;
	u32 number;

	if (bpf_probe_read_user(&hello, sizeof(hello), (void *)address))
		return 0;
	/* Another companion may be meant. */
	if (!state && hello.session != session)
		return 0;
	if (!is_owner(task) || hello.version != HELLO_VERSION || hello.len < sizeof(hello)) {
		COUNT(refused);
		return 0;
	}
	if (!state) {
		number = make_process(task, PROCESS_EXECED, PROCESSES);
		if (number == PROCESSES)
			return 0;
		state = make_state(task, number);
		if (!state) {
			leave_process(number);
			return 0;
		}
		forget_running();
	}
	state->syscall = NO_SYSCALL;
	state->context_kind = hello.kind;
	state->tls_offset = hello.tls_offset;
	state->word = task->thread.fsbase + hello.tls_offset;
	state->base = hello.base;
	state->mapped = hello.mapped;
	state->top_offset = hello.top_offset;
	state->frame_offset = hello.frame_offset;
	number = state->process;
	process = bpf_map_lookup_elem(&processes, &number);
	if (!process)
		return 0;
	if (!process->greetings)
		bpf_probe_read_user_str(process->path, sizeof(process->path), (void *)hello.path);
	process->greetings++;
	process->state = PROCESS_GREETED;
	return 0;
}

/* ---- tracepoints ------------------------------------------------------------------------------ */

SEC("tp_btf/sys_enter")
int sys_enter(u64 *arguments)
{
	struct pt_regs *regs = (void *)arguments[0];
	long number = arguments[1];
	struct state *state = state_with(arguments[0]);

	if (number == NR_PRCTL) {
		if ((u32)regs->di == HELLO)
			return greet(regs->si);
		if ((u32)regs->di == GOODBYE && state) {
			drop(bpf_get_current_task_btf()->pid, state);
			return 0;
		}
	}
	if (!state)
		return 0;
	/* The syscall instruction leaves its return address in rcx; int 0x80 doesn't. */
	if (regs->cx != regs->ip && bpf_get_current_task_btf()->thread_info.status & TS_COMPAT)
		number += COMPAT;
	state->syscall = number;
	state->context = context_of(state);
	state->off_cpu_ns = 0;
	state->left_ns = 0;
	state->entered_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *arguments)
{
	s64 result = arguments[1];
	struct state *state = state_with(arguments[0]);
	u64 now, ns;
	struct row *row;

	if (!state || state->syscall == NO_SYSCALL)
		return 0;
	now = bpf_ktime_get_ns();
	/* Some kernels don't show every switch. */
	if (state->left_ns)
		end_wait(state);
	ns = now - state->entered_ns;
	row = row_for(state, state->context, state->syscall);
	state->syscall = NO_SYSCALL;
	if (!row) {
		COUNT(lost_calls);
		return 0;
	}
	add(row, ns);
	row->off_cpu_ns += state->off_cpu_ns;
	if (result >= 0)
		row->returned += result;
	else if (result == -512 || result == -513 || result == -514 || result == -516)
		row->restarts++;
	else if (result >= -4095)
		add_error(row, -result);
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *arguments)
{
	u64 preempted = arguments[0];
	struct task_struct *previous = (void *)arguments[1], *next = (void *)arguments[2];
	u32 previous_state = arguments[3];
	struct state *state = state_of(previous->pid);

	forget_running();
	if (state) {
		state->left_kind = !(preempted & 1) && previous_state ? WAIT_VOLUNTARY : WAIT_PREEMPTED;
		state->left_context =
			state->syscall == NO_SYSCALL ? context_of(state) : state->context;
		state->left_ns = bpf_ktime_get_ns();
	}
	state = state_of(next->pid);
	if (!state)
		return 0;
	state->word = next->thread.fsbase + state->tls_offset;
	if (state->left_ns)
		end_wait(state);
	return 0;
}

/* Before the new task runs for the first time; the current one is its creator. */
SEC("tp_btf/task_newtask")
int task_newtask(u64 *arguments)
{
	struct task_struct *task = (void *)arguments[0];
	u64 flags = arguments[1];
	struct state *creator = current_state(), *state;
	struct process *process;
	u32 number;

	if (!creator)
		return 0;
	number = creator->process;
	if (flags & CLONE_VM) {
		process = bpf_map_lookup_elem(&processes, &number);
		if (!process)
			return 0;
		__sync_fetch_and_add(&process->live, 1);
	} else {
		number = make_process(task, PROCESS_FORKED, number);
		if (number == PROCESSES)
			return 0;
	}
	state = make_state(task, number);
	if (!state) {
		leave_process(number);
		return 0;
	}
	if (flags & CLONE_VM) {
		state->context_kind = creator->context_kind;
		state->tls_offset = creator->tls_offset;
		state->word = task->thread.fsbase + creator->tls_offset;
		state->base = creator->base;
		state->mapped = creator->mapped;
		state->top_offset = creator->top_offset;
		state->frame_offset = creator->frame_offset;
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int sched_process_exec(u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 old_thread = arguments[1], number, *place;
	struct linux_binprm *image = (void *)arguments[2];
	struct state *state = current_state();

	if (!state)
		return 0;
	close_syscall(state, 1);
	if (gains_privilege(image) || !is_owner(task)) {
		COUNT(dropped);
		drop(old_thread, state);
		return 0;
	}
	number = make_process(task, PROCESS_EXECED, state->process);
	if (number == PROCESSES) {
		drop(old_thread, state);
		return 0;
	}
	leave_process(state->process);
	state->process = number;
	state->context_kind = CONTEXT_NONE;
	state->left_ns = 0;
	__builtin_memset(state->cache, 0, sizeof(state->cache));
	if (old_thread == (u32)task->pid)
		return 0;
	/* Another thread than the first has taken over its number. */
	state->tid = own_number(task->thread_pid);
	place = place_of(old_thread);
	if (!place)
		return 0;
	number = *place;
	*place = 0;
	place = place_of(task->pid);
	if (place)
		*place = number;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(u64 *arguments __attribute__((unused)))
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = current_state();

	if (!state)
		return 0;
	close_syscall(state, state->syscall == NR_EXIT || state->syscall == NR_EXIT_GROUP);
	drop(task->pid, state);
	return 0;
}

char program_license[] SEC("license") = "Dual MIT/GPL";
