/* Turns of event loops: what a thread does from the end of a wait for descriptors to the beginning of its next one. Its clients
 * wait meanwhile. */
#pragma once

#include "rows.h"

/* The larger functions here are not static: so the verifier looks at each of them once, and not once for each way to a call. */

#define NR_POLL 7
#define NR_SELECT 23
#define NR_PSELECT 270
#define NR_PPOLL 271
#define BITS 64

INLINE u32 bits_of(u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555ULL;
	bits = (bits & 0x3333333333333333ULL) + (bits >> 2 & 0x3333333333333333ULL);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return bits * 0x0101010101010101ULL >> 56;
}

/* Whether several descriptors may be waited for, or new connections. Without any, it is a sleep; a wait for a single one belongs to the read or
 * write that follows. (A set of more than 64 for select is taken for several.) */
__attribute__((noinline)) int waits_for_several(struct state *state, u64 first, u64 second, u64 third)
{
	struct file *file;
	struct socket *socket;
	struct sock *sock;
	u64 set = 0;
	u32 descriptor;

	if (!state)
		return 0;
	if (state->syscall == NR_SELECT || state->syscall == NR_PSELECT) {
		first = (u32)first;
		if (first > BITS)
			return 1;
		if (!first || bpf_probe_read_user(&set, sizeof(set), (void *)second))
			set = 0;
		second = 0;
		if (!first || bpf_probe_read_user(&second, sizeof(second), (void *)third))
			second = 0;
		if (first < BITS) {
			set &= (1ULL << first) - 1;
			second &= (1ULL << first) - 1;
		}
		if (bits_of(set) + bits_of(second) != 1)
			return set || second;
		descriptor = bits_of(((set | second) & -(set | second)) - 1);
	} else if (state->syscall == NR_POLL || state->syscall == NR_PPOLL) {
		if (second != 1)
			return second > 1;
		if (bpf_probe_read_user(&descriptor, sizeof(descriptor), (void *)first))
			return 0;
	} else {
		return 1;
	}
	file = file_of(bpf_get_current_task_btf(), descriptor);
	if (!file || (READ(READ(file, f_inode), i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = READ(file, private_data);
	sock = READ(socket, sk);
	return READ(sock, __sk_common.skc_state) == LISTENS;
}

/* Whether a system call waits for operations of io_uring to be over, by a descriptor (and not by a number that the ring has for the thread alone). */
INLINE int waits_for_completion(u32 syscall, u64 least, u64 flags)
{
	return syscall == NR_IO_URING_ENTER && (u32)least && (flags & IORING_ENTER_GETEVENTS) &&
	       !(flags & IORING_ENTER_REGISTERED_RING);
}

/* The results of operations in a ring: so many have been put there, and the thread has not taken note of the last ones. */
struct results {
	u32 put, pending;
};

static __attribute__((noinline)) int results_in(u32 descriptor, struct results *results)
{
	struct file *file = file_of(bpf_get_current_task_btf(), descriptor);
	struct io_ring_ctx *ring = 0;
	struct io_rings *rings;

	if (!results)
		return 0;
	results->put = results->pending = 0;
	if (!file || !__builtin_preserve_field_info(ring->rings, FIELD_EXISTS))
		return 0;
	ring = READ(file, private_data);
	rings = READ(ring, rings);
	results->put = READ(rings, cq.tail);
	results->pending = results->put - READ(rings, cq.head);
	return 0;
}

/* The thread begins operations without waiting. */
INLINE void note_begun(struct state *state, u32 descriptor)
{
	struct results results;

	state->ring_begins = state->ring && descriptor == state->ring;
	if (!state->ring_begins)
		return;
	results_in(descriptor, &results);
	state->put_before = results.put;
}

/* It has begun them. Those that were over at once are what it does itself, and nothing that others wait with. */
INLINE void note_over_at_once(struct state *state)
{
	struct results results;

	results_in(state->ring, &results);
	state->put_at_first += results.put - state->put_before;
	state->ring_begins = 0;
}

/* A thread may wait in several loops, one inside another: what belongs to one of them is found by the descriptor of epoll. (Contexts
 * differ with how a call is recorded.) */
INLINE struct turns *turns_of(struct state *state)
{
	return (struct turns *)row_for(state, state->descriptor, TURNS);
}

/* The thread begins to wait for descriptors: its turn, if there was one, is over. */
__attribute__((noinline)) int end_turn(struct state *state, u64 first, u64 second, u64 third)
{
	struct results results;
	struct turns *turns;
	u64 now, ns;

	if (!state || (state->syscall != NR_IO_URING_ENTER && !waits_for_several(state, first, second, third)))
		return 0;
	now = state->entered_ns;
	state->descriptor = state->syscall == NR_SELECT || state->syscall == NR_PSELECT || state->syscall == NR_POLL ||
			    state->syscall == NR_PPOLL ? NO_DESCRIPTOR : first;
	if (state->syscall == NR_IO_URING_ENTER) {
		/* What has come meanwhile, whether the thread has seen to it or not. */
		results_in(first, &results);
		state->ring_ready = state->ring == (u32)first ? results.put - state->put_at_first : 0;
	}
	turns = turns_of(state);
	if (!turns) {
		COUNT(lost_turns);
		return 0;
	}
	state->in_turns = 1;
	turns->waits++;
	turns->in_context = state->context;
	/* (What another thread left, whose number this one has.) */
	if (!turns->since_ns || !state->first_turn_ns || turns->since_ns < state->first_turn_ns) {
		turns->since_ns = 0;
		return 0;
	}
	ns = now - turns->since_ns;
	turns->turns++;
	turns->total_ns += ns;
	if (ns > turns->max_ns)
		turns->max_ns = ns;
	turns->blocked_ns += state->blocked_ns - turns->since_blocked_ns;
	turns->preempted_ns += state->preempted_ns - turns->since_preempted_ns;
	turns->histogram[bucket_of(ns) % BUCKETS]++;
	if (ns >= LONG_TURN_NS) {
		turns->long_turns++;
		turns->long_ns += ns;
		state->turn.begun_with = turns->begun_with;
		state->turn.begin_ns = turns->since_ns;
		state->turn.end_ns = now;
		state->turn.blocked_ns = state->blocked_ns - turns->since_blocked_ns;
		state->turn.preempted_ns = state->preempted_ns - turns->since_preempted_ns;
		state->blocked_before_ns = state->blocked_ns;
	}
	turns->since_ns = 0;
	return 0;
}

/* Tells of the thread's latest turn, if it was long. */
INLINE void tell_turn(struct state *state, u32 ready)
{
	struct turn *turn;

	if (!state->turn.end_ns)
		return;
	turn = bpf_ringbuf_reserve(&long_turns, sizeof(*turn), 0);
	if (turn) {
		turn->process = state->process;
		turn->tid = state->tid;
		turn->descriptor = state->descriptor;
		turn->ready = ready;
		turn->begun_with = state->turn.begun_with;
		turn->reserved = 0;
		turn->begin_ns = state->turn.begin_ns;
		turn->end_ns = state->turn.end_ns;
		turn->blocked_ns = state->turn.blocked_ns;
		turn->preempted_ns = state->turn.preempted_ns;
		bpf_ringbuf_submit(turn, RING_NO_WAKEUP);
	} else {
		COUNT(lost_long_turns);
	}
	state->turn.end_ns = 0;
}

/* The thread has waited for descriptors, and its turn begins. */
__attribute__((noinline)) int begin_turn(struct state *state, u64 now, s64 result)
{
	struct results results;
	struct turns *turns;

	if (!state)
		return 0;
	state->in_turns = 0;
	if (state->syscall == NR_IO_URING_ENTER) {
		tell_turn(state, state->ring_ready);
		/* (What it returns says how many operations it has begun.) */
		results_in(state->descriptor, &results);
		state->ring = state->descriptor;
		state->put_at_first = results.put;
		if (result >= 0 || result == -62)
			result = results.pending;
	} else {
		/* Those that it was not the thread that waited for. */
		tell_turn(state, result > 0 && state->blocked_ns == state->blocked_before_ns ? result : 0);
	}
	turns = turns_of(state);
	if (!turns)
		return 0;
	turns->waited_ns += now - state->entered_ns;
	/* The wait goes on after a signal's handler, or in another system call. */
	if (result <= -512 && result >= -516)
		return 0;
	if (!state->first_turn_ns)
		state->first_turn_ns = now;
	/* A single wait is no loop: what follows it is no turn. */
	if (turns->turns)
		state->turn_from = now;
	turns->begun_with = result > 0 ? result : 0;
	turns->since_ns = now;
	turns->since_blocked_ns = state->blocked_ns;
	turns->since_preempted_ns = state->preempted_ns;
	return 0;
}
