/* The context that a thread is in, and the rows that are counted in. */
#pragma once

#include "waits.h"

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
	if (bpf_map_update_elem(&row_of, &key, &number, UPDATE_ANY)) {
		bpf_map_push_elem(&free_rows, &number, UPDATE_ANY);
		return ROWS;
	}
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

/* The thread has been on the CPU until now. It is the thread that was interrupted, that is being switched out,
 * or that calls this itself. (With a row of its own in `state`: a sample may come in the middle of row_for.) */
INLINE void add_on_cpu(struct state *state, u64 now)
{
	u32 number = state->cpu_row;
	struct row *row;
	u64 since;

	if (!state->on_cpu_ns)
		return;
	if (!number) {
		number = make_row(state, 0, ON_CPU) + 1;
		if (number > ROWS)
			return;
		state->cpu_row = number;
	}
	number--;
	row = bpf_map_lookup_elem(&rows, &number);
	if (!row)
		return;
	since = state->on_cpu_ns;
	/* A sample may have come since `now` was read, and have added all of that, perhaps to another row. */
	if (now <= since)
		return;
	state->on_cpu_ns = now;
	row->total_ns += now - since;
	row->count++;
}

/* The thread, which is this one, runs again. */
INLINE void end_wait(struct state *state, struct task_struct *task)
{
	u64 now = bpf_ktime_get_ns(), ns = now - state->left_ns;
	struct row *row = row_for(state, state->left_context, state->left_kind);

	if (state->left_kind == WAIT_VOLUNTARY) {
		state->waited_from = state->left_ns;
		state->waited_to = now;
		/* From when it was woken, others had the CPU. */
		if (state->woken_ns > state->left_ns && state->woken_ns < now) {
			state->blocked_ns += state->woken_ns - state->left_ns;
			state->preempted_ns += now - state->woken_ns;
		} else {
			state->blocked_ns += ns;
		}
	} else {
		state->preempted_ns += ns;
	}
	state->left_ns = 0;
	state->off_cpu_ns += ns;
	if (row)
		add(row, ns);
	else
		COUNT(lost_waits);
	/* What a syscall returns tells whether time ended the wait; one that was preempted since may still wait for that. */
	if (state->syscall == NO_SYSCALL && state->waited_to && !state->is_ready)
		add_wait(state, task);
}

/* The thread runs, and its switch to the CPU was not shown: some kernels don't show every one (of 360 ms on the CPU, 72 were missing once on
 * Linux 6.18). How long ago it was is not known; the time since is counted as a wait, and is that to the next syscall, sample or switch away at most. */
static __attribute__((noinline)) int find_running(struct state *state)
{
	if (!state)
		return 0;
	state->on_cpu_ns = bpf_ktime_get_ns();
	if (state->left_ns)
		end_wait(state, bpf_get_current_task_btf());
	return 0;
}

/* The thread, which is about to run, was on the CPU as far as is known: its switch away was not shown. It is taken to have left when it was last seen
 * to run, and to have waited if it was in a syscall. (Its memory can't be read here: the one that it follows is still current.) */
static __attribute__((noinline)) int find_gone(struct state *state, struct task_struct *next)
{
	struct wait_key *wait;

	if (!state)
		return 0;
	state->left_kind = WAIT_PREEMPTED;
	state->left_context = 0;
	if (state->syscall != NO_SYSCALL) {
		if (state->entered_ns > state->on_cpu_ns)
			add_on_cpu(state, state->entered_ns);
		state->left_kind = WAIT_VOLUNTARY;
		state->left_context = state->context;
		/* (An earlier wait may not be told yet: for a descriptor that was ready.) */
		if (state->waited_to)
			add_wait(state, next);
		wait = &state->wait;
		__builtin_memset(wait, 0, sizeof(*wait));
		wait->process = state->process;
		wait->tid = state->tid;
		wait->context = state->context;
		wait->syscall = state->syscall;
		state->woken_ns = 0;
		state->handed = 0;
		state->is_first = 0;
	}
	state->left_ns = state->on_cpu_ns;
	return 0;
}

#define EINTR 4
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* It is known what became of the syscall that a signal interrupted: it failed, or is made again. */
static __attribute__((noinline)) int settle_interrupted(struct state *state, u32 fails)
{
	struct row *row;

	if (!state)
		return 0;
	row = row_for(state, state->context, state->interrupted);
	if (row && fails)
		add_error(row, EINTR);
	else if (row)
		row->restarts++;
	state->interrupted_by = 0;
	return 0;
}

/* The syscall under way never returns to where it was made. */
INLINE void close_syscall(struct state *state, u64 finished)
{
	struct row *row;

	if (state->waited_to)
		add_wait(state, bpf_get_current_task_btf());
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
