/* Which threads are traced: beginnings and ends of processes and threads, and which processes may be traced. */
#pragma once

#include "rows.h"

/* Set by the companion before loading. */
const volatile u64 session = 0;
const volatile u32 owner_uid = 0;

INLINE u32 own_number(struct pid *pid)
{
	struct upid of = {};
	u32 level = READ(pid, level);

	bpf_probe_read_kernel(&of.nr, sizeof(of.nr), (char *)&pid->numbers[0].nr + level * 16);
	return of.nr;
}

/* A slot with one thread; PROCESSES if there is none. `parent` is the slot of the parent process or previous image; PROCESSES if there is none. */
INLINE u32 make_process(struct task_struct *task, u32 kind, u32 parent)
{
	struct process *process, *from;
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
	process->own_pid = own_number(READ(READ(task, group_leader), thread_pid));
	process->parent_pid = 0;
	from = bpf_map_lookup_elem(&processes, &parent);
	if (from)
		process->parent_pid = from->own_pid;
	process->began_ns = bpf_ktime_get_ns();
	process->ended_ns = 0;
	process->path[0] = 0;
	process->greetings = 0;
	process->attached = 0;
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
	if (__sync_fetch_and_sub(&process->live, 1) == 2 && process->attached == IS_MET) {
		process->attached = IS_LEFT;
		__sync_fetch_and_sub(&process->live, 1);
	}
}

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
	state->tid = own_number(READ(task, thread_pid));
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

	/* (In a switch, the descriptors of the running task may be another's.) */
	if (state->waited_to)
		add_wait(state, 0);
	leave_process(state->process);
	forget_running();
	if (!place)
		return;
	number = *place - 1;
	*place = 0;
	bpf_map_push_elem(&free_states, &number, UPDATE_ANY);
}

/* The running thread has begun an image, and has the first thread's number instead of its own, `old`: all others have ended. (It may have
 * been adopted since under the new one. How long it has been off the CPU since counts as time on it.) */
static __attribute__((noinline)) int take_over(struct task_struct *task, u32 old)
{
	u32 *from = place_of(old), *to = place_of(task->pid);
	struct state *adopted = current_state();

	if (!from || !to || !*from)
		return 0;
	if (adopted)
		drop(task->pid, adopted);
	*to = *from;
	*from = 0;
	return 0;
}

/* The running thread's process ran before its hello: with 1, all its threads are to be traced, with 0, none any more. */
static __attribute__((noinline)) int attach(struct state *state, u64 on)
{
	u32 pid = bpf_get_current_task_btf()->tgid, number;
	struct process *process;
	struct attached it = {};

	if (!state)
		return 0;
	number = state->process;
	process = bpf_map_lookup_elem(&processes, &number);
	if (!process)
		return 0;
	if (on && !process->attached) {
		it.process = number;
		it.narrates = state->narrates;
		it.tls_offset = state->tls_offset;
		it.thread_offset = state->thread_offset;
		it.base = state->base;
		it.mapped = state->mapped;
		it.own = state->own;
		it.own_end = state->own_end;
		if (bpf_map_update_elem(&attached_of, &pid, &it, UPDATE_ANY))
			return 0;
		process->attached = IS_ATTACHED;
		__sync_fetch_and_add(&process->live, 1);
		COUNT(attached);
	} else if (!on && process->attached != IS_LEFT) {
		number = process->attached;
		process->attached = IS_LEFT;
		if (number) {
			bpf_map_delete_elem(&attached_of, &pid);
			__sync_fetch_and_sub(&process->live, 1);
		}
		COUNT(attached);
	}
	return 0;
}

/* A thread that is about to run and is not traced: it is from now on, if its process says so. */
static __attribute__((noinline)) int adopt(struct task_struct *task)
{
	u32 pid = task->tgid, number;
	struct attached *it = bpf_map_lookup_elem(&attached_of, &pid);
	struct process *process;
	struct state *state;

	/* One whose end was noted may wait before it is gone: it would be traced for good. */
	if (!it || READ(task, flags) & PF_EXITING)
		return 0;
	number = it->process;
	process = bpf_map_lookup_elem(&processes, &number);
	/* (The process may have ended, and its number be another's.) */
	if (!process || process->pid != pid || !process->live ||
	    (process->attached != IS_ATTACHED && process->attached != IS_MET)) {
		bpf_map_delete_elem(&attached_of, &pid);
		return 0;
	}
	state = make_state(task, number);
	if (!state)
		return 0;
	__sync_fetch_and_add(&process->live, 1);
	process->attached = IS_MET;
	process->ended_ns = 0;
	state->narrates = it->narrates;
	state->tls_offset = it->tls_offset;
	state->thread_offset = it->thread_offset;
	state->base = it->base;
	state->mapped = it->mapped;
	state->own = it->own;
	state->own_end = it->own_end;
	return 1;
}

/* The last thread of a process ends, which was attached to: perhaps before any of its own threads has been seen to run. */
static __attribute__((noinline)) int end_attached(struct task_struct *task)
{
	u32 pid = task->tgid, number;
	struct attached *it = bpf_map_lookup_elem(&attached_of, &pid);
	struct process *process;

	if (!it || READ(READ(task, signal), live.counter))
		return 0;
	number = it->process;
	bpf_map_delete_elem(&attached_of, &pid);
	process = bpf_map_lookup_elem(&processes, &number);
	if (!process || process->pid != pid || process->attached != IS_ATTACHED)
		return 0;
	process->attached = IS_LEFT;
	process->ended_ns = bpf_ktime_get_ns();
	__sync_fetch_and_sub(&process->live, 1);
	return 0;
}

/* Whether a thread's process is to be traced no more. */
INLINE int is_left(struct state *state)
{
	u32 number = state->process;
	struct process *process = bpf_map_lookup_elem(&processes, &number);

	return process && process->attached == IS_LEFT;
}

/* Whether a thread's process was attached to: what stops its threads then is `chase attach`, which is not their time. */
INLINE int was_attached(struct state *state)
{
	u32 number = state->process;
	struct process *process = bpf_map_lookup_elem(&processes, &number);

	return process && process->attached;
}

INLINE int is_owner(struct task_struct *task)
{
	struct cred *cred = READ(task, cred);

	return READ(cred, uid.val) == owner_uid && READ(cred, euid.val) == owner_uid &&
	       READ(cred, suid.val) == owner_uid && READ(cred, gid.val) == READ(cred, egid.val);
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
