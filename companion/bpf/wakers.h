/* Which syscalls can end which waits. */
#pragma once

#include "state.h"

#define NR_FUTEX 202
#define NR_NANOSLEEP 35
#define NR_CLOCK_NANOSLEEP 230
#define FUTEX_COMMAND 0x7f
#define FUTEX_PRIVATE 0x80
#define VM_SHARED 0x8
#define PF_KTHREAD 0x00200000 /* flags of a task */
#define PF_EXITING 0x4
#define PAGE_BITS 12

struct at {
	u64 address;
	struct futex futex;
};

static long note_futex(struct task_struct *task __attribute__((unused)), struct vm_area_struct *map, struct at *at)
{
	struct file *file = READ(map, vm_file);
	struct inode *inode = READ(file, f_inode);

	at->futex.place = OF_PROCESS;
	if (!file || !(READ(map, vm_flags) & VM_SHARED))
		return 0;
	at->futex.place = IN_FILE;
	at->futex.inode = READ(inode, i_ino);
	at->futex.device = READ(READ(inode, i_sb), s_dev);
	at->futex.offset = at->address - READ(map, vm_start) + ((u64)READ(map, vm_pgoff) << PAGE_BITS);
	return 0;
}

/* Where a futex of the running thread's is that other processes may have, too. It stays unknown while the memory map is being changed. */
static __attribute__((noinline)) int find_futex(u64 address, struct futex *futex)
{
	struct at at = { address, {} };

	if (!futex)
		return 0;
	bpf_find_vma(bpf_get_current_task_btf(), address, note_futex, &at, 0);
	*futex = at.futex;
	return 0;
}

/* Whether a futex that is woken is the one that another thread waits for. Where that can't be told, it is. */
INLINE int is_same_futex(struct state *waiting, struct waking *waking)
{
	struct futex *other = &waiting->futex, *own = &waking->futex;

	if (waking->first == waiting->wait.object)
		return 1;
	if ((waking->operation | waiting->wait.detail) & FUTEX_PRIVATE || other->place == OF_PROCESS)
		return 0;
	if (!own->place || !other->place)
		return 1;
	return own->place == other->place && own->inode == other->inode && own->device == other->device && own->offset == other->offset;
}

/* mmap, mprotect, munmap, brk, mremap, madvise */
INLINE int maps_memory(s64 syscall)
{
	return (syscall >= 9 && syscall <= 12) || syscall == 25 || syscall == 28;
}

/* Whether a thread may give this one of its process the right to change or to read the memory map: one that changes it, or, where nothing
 * else can have been waited for, one that has a page fault. (The registers don't tell a fault from an interrupt, and a fault, mmap and
 * madvise may also wait for a disk.) */
INLINE int can_hand_map(struct wait_key *wait, s64 syscall)
{
	if (wait->syscall != NO_SYSCALL && !maps_memory(wait->syscall))
		return 0;
	return maps_memory(syscall) ||
	       (syscall == -1 && wait->syscall != NO_SYSCALL && wait->syscall != 9 && wait->syscall != 28);
}

/* Whether the syscall that the waker is in can be what ends this wait. An interrupt that comes at that moment finds the same task; but mostly one
 * that does something else. (The kernel's own count of interrupts under way is a variable that a program can't reach on all kernels. And
 * what is sent through the loopback device is received in an interrupt of the sender's.) */
INLINE int can_wake(struct state *waiting, struct waking *waking)
{
	struct wait_key *wait = &waiting->wait;
	s64 syscall = waking->syscall;

	/* Who sleeps is woken by time, or by a signal. */
	if (wait->syscall == NR_NANOSLEEP || wait->syscall == NR_CLOCK_NANOSLEEP)
		return syscall == 62 || syscall == 200 || syscall == 234 || syscall == 424;
	if (waking->flags & PF_EXITING)
		return 1;
	switch (syscall) {
	case NR_FUTEX:
		if (wait->syscall != NR_FUTEX)
			return 0;
		switch (waking->operation & FUTEX_COMMAND) {
		case 1: case 7: case 10: /* wake */
			return is_same_futex(waiting, waking);
		case 3: case 4: case 5: case 12: /* two futexes */
			return 1;
		}
		return 0;
	case 60: case 231: /* exit, exit_group */
	case 62: case 200: case 234: case 424: /* kill and its like */
		return 1;
	case 56: case 57: case 58: case 59: case 435: /* clone, fork, vfork, execve */
	case 322: /* execveat */
	case 1: case 3: case 18: case 20: case 32: case 33: case 40: case 42: case 43: case 44: case 46: case 48: case 72:
	case 73: case 233: case 275: case 276: case 278: case 286: case 288: case 292: case 296: case 307: case 326: case 426:
	case 436:
	case 0: case 17: case 19: case 45: case 47: case 299: /* a reader makes room for who writes */
		return wait->syscall != NR_FUTEX;
	}
	return 0;
}
