/* Who wakes a thread, and whether that ends its wait. */
#pragma once

#include "waits.h"

/* A thread may be woken on another processor while this one is still switching away from it. Such a wake is seen at most so long before
 * that the switch is. */
#define EARLY_NS 20000

/* A mutex that was handed on meanwhile: its last holder gives it away. If that has waited since, it was there that it had the mutex. */
INLINE void note_last_holder(struct state *state, struct state *waker)
{
	struct wait_key *wait = &state->wait;

	if (!state->handed || waker->process != state->process)
		return;
	wait->holder = waker->tid;
	if (waker->waited_from >= state->left_ns) {
		wait->holder_context = waker->wait.context;
		wait->holder_site = waker->wait.site;
	}
}

/* Notes what the running thread, or what interrupts it, does when it wakes this one. */
static __attribute__((noinline)) int note_waking(struct state *state)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct pt_regs *registers = bpf_task_pt_regs(current);
	struct waking *waking;
	struct state *waker;

	if (!state)
		return 0;
	waking = &state->waking;
	waking->ns = bpf_ktime_get_ns();
	waking->flags = current->flags;
	waking->tid = current->pid;
	waking->pid = current->tgid;
	waking->process = PROCESSES;
	waking->futex.place = 0;
	if (current->flags & PF_KTHREAD)
		return 0;
	waking->syscall = READ(registers, orig_ax);
	waking->first = READ(registers, di);
	waking->operation = READ(registers, si);
	if (waking->syscall == NR_FUTEX && !(waking->operation & FUTEX_PRIVATE))
		find_futex(waking->first, &waking->futex);
	bpf_get_current_comm(waking->name, sizeof(waking->name));
	waker = state_of(current->pid);
	if (waker) {
		waking->process = waker->process;
		waking->context = context_of(waker);
		waking->site = site_of(waker);
	}
	return 0;
}

/* Decides who it was that has ended the wait, now that it is known what is waited for. */
static __attribute__((noinline)) int settle_waking(struct state *state)
{
	struct waking *waking;
	struct process *process;
	struct wait_key *wait;
	struct state *waker;
	u32 number;

	if (!state)
		return 0;
	waking = &state->waking;
	wait = &state->wait;
	/* (After it was taken off the CPU, for who subtracts.) */
	state->woken_ns = waking->ns > state->left_ns ? waking->ns : state->left_ns + 1;
	waking->ns = 0;
	wait->waker_process = wait->waker = wait->waker_context = 0;
	wait->waker_site = 0;
	if (waking->flags & PF_KTHREAD) {
		wait->waker_kind = waking->tid ? WAKER_KERNEL : WAKER_INTERRUPT;
		return 0;
	}
	if (!can_wake(state, waking) && !(waking->process == state->process && can_hand_map(wait, waking->syscall))) {
		wait->waker_kind = WAKER_INTERRUPT;
		return 0;
	}
	__builtin_memcpy(state->waker_name, waking->name, sizeof(state->waker_name));
	if (waking->process != PROCESSES) {
		wait->waker_kind = WAKER_THREAD;
		wait->waker_process = waking->process;
		wait->waker = waking->tid;
		wait->waker_context = waking->context;
		wait->waker_site = waking->site;
		waker = state_of(waking->tid);
		if (waker)
			note_last_holder(state, waker);
		return 0;
	}
	/* One that ends may no longer be traced when it wakes who joins it. */
	number = state->process;
	process = bpf_map_lookup_elem(&processes, &number);
	if (process && process->pid == waking->pid) {
		wait->waker_kind = WAKER_THREAD;
		wait->waker_process = state->process;
		wait->waker = waking->tid;
		return 0;
	}
	wait->waker_kind = WAKER_PROCESS;
	wait->waker_process = waking->pid;
	return 0;
}

/* The thread, which is being switched away from, waits. */
INLINE void begin_wait(struct state *state, struct task_struct *task)
{
	note_wait(state, task);
	state->is_noted = 1;
	if (state->waking.ns + EARLY_NS > state->left_ns)
		settle_waking(state);
}
