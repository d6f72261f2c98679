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
#include "narrate.h"
#include "processes.h"
#include "turns.h"
#include "waking.h"

#define NR_PRCTL 157
#define NR_RT_SIGRETURN 15
#define NR_CLOSE 3
#define NR_MMAP 9
#define NR_EXIT 60
#define NR_EXIT_GROUP 231
#define NR_OPENAT 257
#define CLONE_VM 0x100
#define TS_COMPAT 2
#define TASK_STOPPED 4
#define TASK_TRACED 8
#define SA_RESTART 0x10000000
/* Where cs is in what a program for events gets: the registers, each of eight bytes. */
#define CS_IN_REGISTERS 17

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
	/* Another companion may be meant; then the process is its to watch. */
	if (hello.session != session) {
		if (state)
			drop(task->pid, state);
		return 0;
	}
	if (!is_owner(task) || hello.version != HELLO_VERSION || hello.len < sizeof(hello)) {
		COUNT(refused);
		if (state)
			drop(task->pid, state);
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
		state->on_cpu_ns = bpf_ktime_get_ns();
		forget_running();
	}
	state->syscall = NO_SYSCALL;
	state->starting = 0;
	state->tls_offset = hello.tls_offset;
	state->word = task->thread.fsbase + hello.tls_offset;
	state->base = hello.base;
	state->mapped = hello.mapped;
	state->own = hello.own;
	state->own_end = hello.own_end;
	state->thread_offset = hello.thread_offset;
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

/* Whether a path is that of the hook, which the dynamic linker opens in an image that is about to start. */
static __attribute__((noinline)) int is_hook(u64 path)
{
	static const char name[] = "/libchase.so";
	char text[256]; /* (what is longer is not recognised) */
	s64 len = bpf_probe_read_user_str(text, sizeof(text), (void *)path);
	u32 at = len - sizeof(name);

	if (len < (s64)sizeof(name) || at > sizeof(text) - sizeof(name))
		return 0;
	for (u32 i = 0; i < sizeof(name) - 1; i++)
		if (text[at + i] != name[i])
			return 0;
	return 1;
}

/* A system call of the dynamic linker, which loads the hook, is over: the first mapping takes all the room that the hook needs. */
INLINE void note_loading(struct state *state, struct pt_regs *regs, s64 result)
{
	if (state->syscall == NR_CLOSE || result < 0)
		state->starting = 0;
	else if (state->syscall == NR_MMAP && !state->own) {
		state->own = result;
		state->own_end = result + regs->si;
	}
}

/* ---- tracepoints ------------------------------------------------------------------------------ */

SEC("tp_btf/sys_enter")
int sys_enter(u64 *arguments)
{
	struct pt_regs *regs = (void *)arguments[0];
	long number = arguments[1];
	struct state *state = state_with(arguments[0]);
	u32 is_own = number == NO_CALL;

	if (number == NR_PRCTL) {
		if ((u32)regs->di == HELLO)
			return greet(regs->si);
		if ((u32)regs->di == GOODBYE && state) {
			drop(bpf_get_current_task_btf()->pid, state);
			return 0;
		}
		if ((u32)regs->di == STARTING && state) {
			state->starting = regs->si;
			is_own = 1;
		}
		if ((u32)regs->di == NARRATE && state)
			state->narrates = regs->si == 1 ? WITHOUT_ARGUMENTS : WITH_ALL;
		if ((u32)regs->di == ATTACHED && state)
			return attach(state, regs->si);
	}
	if (!state)
		return 0;
	/* The syscall instruction leaves its return address in rcx; int 0x80 doesn't. */
	if (regs->cx != regs->ip && bpf_get_current_task_btf()->thread_info.status & TS_COMPAT)
		number += COMPAT;
	if (!state->on_cpu_ns)
		find_running(state);
	if (state->is_ready)
		find_ready(state, regs->di, number);
	/* (No handler ran.) */
	if (state->interrupted_by)
		settle_interrupted(state, 0);
	if (number == NR_OPENAT && !state->own && is_hook(regs->si))
		state->starting = LOADING;
	state->syscall = number;
	is_own |= regs->ip - state->own < state->own_end - state->own;
	state->context = is_own ? OWN_CONTEXT : context_of(state);
	state->off_cpu_ns = 0;
	state->entered_ns = bpf_ktime_get_ns();
	if (waits_for_readiness(number) || waits_for_completion(number, regs->dx, regs->r10))
		end_turn(state, regs->di, regs->si, regs->dx);
	else if (number == NR_IO_URING_ENTER)
		note_begun(state, regs->di);
	if (!state->narrates)
		return 0;
	note_read(state, regs);
	/* These do not return, so nothing can be recorded of them afterwards. */
	if (number == NR_EXECVE || number == NR_EXECVEAT || number == NR_EXIT || number == NR_EXIT_GROUP)
		narrate(state, regs, 0, 1);
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
	if (!state->on_cpu_ns)
		find_running(state);
	ns = now - state->entered_ns;
	if (state->waited_to)
		settle_wait(state, result);
	if (state->in_turns)
		begin_turn(state, now, result);
	else if (state->ring_begins)
		note_over_at_once(state);
	/* Its result is that of the syscall that the signal interrupted. */
	if (state->syscall == NR_RT_SIGRETURN)
		result = 0;
	if (state->narrates)
		narrate(state, (void *)arguments[0], result, 0);
	row = row_for(state, state->context, state->syscall);
	if (state->starting == LOADING)
		note_loading(state, (void *)arguments[0], result);
	state->syscall = NO_SYSCALL;
	if (!row) {
		COUNT(lost_calls);
		return 0;
	}
	add(row, ns);
	row->off_cpu_ns += state->off_cpu_ns;
	if (result >= 0)
		row->returned += result;
	else if (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
		 result == -ERESTART_RESTARTBLOCK) {
		state->interrupted = row->syscall;
		state->interrupted_by = -result;
	} else if (result >= -4095)
		add_error(row, -result);
	return 0;
}

/* A signal is delivered. If a handler runs, the first one decides whether the syscall that was interrupted is made again. */
SEC("tp_btf/signal_deliver")
int signal_deliver(u64 *arguments)
{
	struct k_sigaction *action = (void *)arguments[2];
	struct state *state = current_state();
	u32 by;

	/* (0 and 1 are no handlers.) */
	if (!state || !state->interrupted_by || (u64)READ(action, sa.sa_handler) <= 1)
		return 0;
	by = state->interrupted_by;
	settle_interrupted(state, by == ERESTARTNOHAND || by == ERESTART_RESTARTBLOCK ||
				      (by == ERESTARTSYS && !(READ(action, sa.sa_flags) & SA_RESTART)));
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *arguments)
{
	u64 preempted = arguments[0];
	struct task_struct *previous = (void *)arguments[1], *next = (void *)arguments[2];
	u32 previous_state = arguments[3];
	struct state *state = state_of(previous->pid);
	struct totals *t;
	u64 now;

	forget_running();
	now = bpf_ktime_get_ns();
	/* (One that has ended may have the number of the thread that has taken over its own.) */
	if (state && !previous->exit_state) {
		if (!state->on_cpu_ns)
			find_running(state);
		add_on_cpu(state, now);
		state->on_cpu_ns = 0;
		state->left_kind = !(preempted & 1) && previous_state ? WAIT_VOLUNTARY : WAIT_PREEMPTED;
		state->left_context =
			state->syscall == NO_SYSCALL ? context_of(state) : state->context;
		state->is_noted = 0;
		state->left_ns = now;
		if (previous_state & TASK_TRACED && was_attached(state))
			state->left_ns = 0;
		else if (state->left_kind == WAIT_VOLUNTARY)
			begin_wait(state, previous);
		if (previous_state & (TASK_STOPPED | TASK_TRACED) && state->left_kind == WAIT_VOLUNTARY) {
			state->wait.syscall = NO_SYSCALL;
			state->wait.object = 0;
			state->wait.detail = STOPPED;
		}
	}
	state = next->exit_state ? 0 : state_of(next->pid);
	t = sums();
	if (t && t->attached) {
		if (!state && adopt(next))
			state = state_of(next->pid);
		else if (state && is_left(state)) {
			drop(next->pid, state);
			return 0;
		}
	}
	if (!state)
		return 0;
	state->word = next->thread.fsbase + state->tls_offset;
	if (state->on_cpu_ns)
		find_gone(state, next);
	state->on_cpu_ns = now;
	if (state->left_ns) {
		if (state->left_kind == WAIT_PREEMPTED)
			note_preempted(state, now);
		end_wait(state, next);
	}
	return 0;
}

/* Runs in the waker, or in an interrupt of any thread that is running. */
SEC("tp_btf/sched_waking")
int sched_waking(u64 *arguments)
{
	struct task_struct *task = (void *)arguments[0];
	struct state *state = state_of(task->pid);

	if (!state)
		return 0;
	note_waking(state);
	if (state->left_ns && state->left_kind == WAIT_VOLUNTARY && state->is_noted)
		settle_waking(state);
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
	state->narrates = creator->narrates;
	state->own = creator->own;
	state->own_end = creator->own_end;
	if (flags & CLONE_VM) {
		state->tls_offset = creator->tls_offset;
		state->word = task->thread.fsbase + creator->tls_offset;
		state->base = creator->base;
		state->mapped = creator->mapped;
		state->thread_offset = creator->thread_offset;
		/* (The thread that `chase attach` has made does nothing else.) */
		state->starting = creator->starting == IS_STARTING;
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int sched_process_exec(u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 old_thread = arguments[1], number;
	struct linux_binprm *image = (void *)arguments[2];
	struct state *state;

	if (old_thread != (u32)task->pid)
		take_over(task, old_thread);
	state = current_state();
	if (!state)
		return 0;
	close_syscall(state, 1);
	add_on_cpu(state, bpf_ktime_get_ns());
	if (gains_privilege(image) || !is_owner(task)) {
		COUNT(dropped);
		drop(task->pid, state);
		return 0;
	}
	number = make_process(task, PROCESS_EXECED, state->process);
	if (number == PROCESSES) {
		drop(task->pid, state);
		return 0;
	}
	leave_process(state->process);
	state->tid = own_number(READ(task, thread_pid));
	state->process = number;
	/* Not before: a sample that came in between would find the old process's row again, which will soon be another's. */
	asm volatile("" ::: "memory");
	state->cpu_row = 0;
	state->mapped = 0;
	state->own = state->own_end = 0;
	state->starting = 0;
	state->left_ns = 0;
	state->turn_from = 0;
	state->first_turn_ns = 0;
	__builtin_memset(state->cache, 0, sizeof(state->cache));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(u64 *arguments __attribute__((unused)))
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = current_state();
	struct totals *t = sums();

	if (state) {
		close_syscall(state, state->syscall == NR_EXIT || state->syscall == NR_EXIT_GROUP);
		add_on_cpu(state, bpf_ktime_get_ns());
		tell_turn(state, 0);
		drop(task->pid, state);
	}
	if (t && t->attached)
		end_attached(task);
	return 0;
}

/* The clock of a CPU, so many times a second. The thread may be anywhere, in the middle of any program here too. */
SEC("perf_event")
int take_sample(u64 *registers)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = state_of(task->pid);
	struct pt_regs *in_user_space;
	struct sample *sample;
	struct file *file;
	u64 now;

	if (!state)
		return 0;
	now = bpf_ktime_get_ns();
	if (state->on_cpu_ns)
		add_on_cpu(state, now);
	else
		find_running(state);
	sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
	if (!sample) {
		COUNT(lost_samples);
		return 0;
	}
	in_user_space = bpf_task_pt_regs(task);
	sample->process = state->process;
	sample->tid = state->tid;
	sample->context = context_of(state);
	sample->in_kernel = !(registers[CS_IN_REGISTERS] & 3);
	sample->address = READ(in_user_space, ip);
	sample->syscall = state->syscall;
	sample->file = 0;
	sample->mode = 0;
	sample->name[0] = 0;
	sample->at_ns = now;
	sample->is_late = state->turn_from && now - state->turn_from >= LONG_TURN_NS;
	sample->reserved = 0;
	if (sample->in_kernel && waits_for_descriptor(state->syscall)) {
		file = file_of(task, READ(in_user_space, di));
		if (file) {
			sample->file = READ(READ(file, f_inode), i_ino);
			sample->mode = READ(READ(file, f_inode), i_mode);
			bpf_probe_read_kernel_str(sample->name, sizeof(sample->name),
						  READ(READ(file, f_path.dentry), d_name.name));
		}
	}
	bpf_ringbuf_submit(sample, RING_NO_WAKEUP);
	return 0;
}

char program_license[] SEC("license") = "Dual MIT/GPL";
