/* System calls one by one, with their arguments and what these lead to, of the threads that are to be narrated. */
#pragma once

#include "waits.h"

#define NR_EXECVE 59
#define NR_EXECVEAT 322

/* Where the texts of a call are: the number of the argument that leads to it, plus one, and what it is. */
#define STRING 0x10   /* ends with NUL */
#define COUNTED 0x20  /* as many bytes as the call returned */
#define SIZED 0x30    /* as many bytes as the next argument says */
#define WORDS 0x40    /* a structure that the call filled in or reads, of at most WORDS_LEN bytes */
#define WORDS_LEN 16
#define KIND 0xf0

#define FIRST(argument, kind) ((argument) + 1 + (kind))
#define SECOND(argument, kind) (FIRST(argument, kind) << 8)

INLINE u32 texts_of(u32 syscall)
{
	switch (syscall) {
	case 2: case 4: case 6: case 21: case 76: case 80: case 83: case 84: case 85: case 87: case 89: case 90: case 92: case 94:
	case 132: case 133: case 137: case 161: case 166: case 188: case 191: case 192: case 194: case 319: case NR_EXECVE:
		return FIRST(0, STRING);
	case 257: case 258: case 259: case 260: case 261: case 262: case 263: case 267: case 268: case 269: case 280: case 254:
	case 332: case 437: case 439: case NR_EXECVEAT:
		return FIRST(1, STRING);
	case 82: case 86: case 88:
		return FIRST(0, STRING) | SECOND(1, STRING);
	case 264: case 265: case 316:
		return FIRST(1, STRING) | SECOND(3, STRING);
	case 266:
		return FIRST(0, STRING) | SECOND(2, STRING);
	case 0: case 17: case 45:
		return FIRST(1, COUNTED);
	case 318: case 79:
		return FIRST(0, COUNTED);
	case 1: case 18: case 44:
		return FIRST(1, SIZED);
	case 22: case 293: case 35: case 7: case 271: case 435:
		return FIRST(0, WORDS);
	case 42: case 49: case 43: case 288: case 61: case 51: case 52: case 157:
		return FIRST(1, WORDS);
	case 14:
		return FIRST(1, WORDS) | SECOND(2, WORDS);
	case 230:
		return FIRST(2, WORDS);
	case 53:
		return FIRST(3, WORDS);
	}
	return 0;
}

/* Calls that give a descriptor. */
INLINE int opens(u32 syscall)
{
	switch (syscall) {
	case 2: case 32: case 33: case 41: case 43: case 85: case 257: case 288: case 292: case 319: case 437:
		return 1;
	}
	return 0;
}

INLINE int takes_descriptor(u32 syscall)
{
	return syscall == 5 || syscall == 8 || syscall == 217 || syscall == 9 || syscall == 49 || syscall == 50 || syscall == 54 || waits_for_descriptor(syscall);
}

INLINE u32 read_text(char *to, u64 from, u64 len, u32 kind, s64 result, u64 next)
{
	long got;

	if (kind == STRING) {
		got = bpf_probe_read_user_str(to, TEXT, (void *)from);
		return got > 0 ? got : 0;
	}
	if (kind == COUNTED)
		len = result > 0 ? result : 0;
	else if (kind == SIZED)
		len = next;
	else
		len = WORDS_LEN;
	if (len > TEXT)
		len = TEXT;
	if (!len || bpf_probe_read_user(to, len, (void *)from))
		return 0;
	return len;
}

INLINE u64 argument(struct told *told, u32 number)
{
	return number < 6 ? told->arguments[number] : 0;
}

/* The other end of a connection within the machine, by its inode, if it is open. */
INLINE void note_peer(struct told *told, struct sock *sock)
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
	__builtin_memcpy(told->ends.remote, &inode, sizeof(inode));
}

static __attribute__((noinline)) int note_file(struct told *told, u32 descriptor)
{
	struct file *file;
	struct socket *socket;
	struct sock *sock;

	if (!told)
		return 0;
	file = file_of(bpf_get_current_task_btf(), descriptor);
	if (!file)
		return 0;
	told->object = READ(READ(file, f_inode), i_ino);
	told->mode = READ(READ(file, f_inode), i_mode);
	if ((told->mode & S_IFMT) != S_IFSOCK) {
		bpf_probe_read_kernel_str(told->name, sizeof(told->name), READ(READ(file, f_path.dentry), d_name.name));
		return 0;
	}
	socket = READ(file, private_data);
	sock = READ(socket, sk);
	told->ends.family = READ(sock, __sk_common.skc_family);
	if (told->ends.family == AF_INET) {
		told->ends.local_port = READ(sock, __sk_common.skc_num);
		told->ends.remote_port = READ(sock, __sk_common.skc_dport);
		bpf_probe_read_kernel(told->ends.local, 4, &sock->__sk_common.skc_rcv_saddr);
		bpf_probe_read_kernel(told->ends.remote, 4, &sock->__sk_common.skc_daddr);
	} else if (told->ends.family == AF_INET6) {
		told->ends.local_port = READ(sock, __sk_common.skc_num);
		told->ends.remote_port = READ(sock, __sk_common.skc_dport);
		bpf_probe_read_kernel(told->ends.local, 16, &sock->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(told->ends.remote, 16, &sock->__sk_common.skc_v6_daddr);
	} else if (told->ends.family == AF_UNIX) {
		note_peer(told, sock);
	}
	return 0;
}

/* The call that the thread has entered, or returned from. */
static __attribute__((noinline)) int narrate(struct state *state, struct pt_regs *registers, s64 result, u32 is_begun)
{
	struct told *told;
	u32 texts, first, second;

	if (!state || !registers)
		return 0;
	told = bpf_ringbuf_reserve(&narrated, sizeof(*told), 0);
	if (!told) {
		COUNT(lost_told);
		return 0;
	}
	__builtin_memset(told, 0, sizeof(*told));
	told->process = state->process;
	told->tid = state->tid;
	told->context = state->context;
	told->syscall = state->syscall;
	told->entered_ns = state->entered_ns;
	told->left_ns = is_begun ? 0 : bpf_ktime_get_ns();
	told->result = result;
	told->arguments[0] = READ(registers, di);
	told->arguments[1] = READ(registers, si);
	told->arguments[2] = READ(registers, dx);
	told->arguments[3] = READ(registers, r10);
	told->arguments[4] = READ(registers, r8);
	told->arguments[5] = READ(registers, r9);
	texts = texts_of(state->syscall);
	first = texts & 0xff;
	second = texts >> 8 & 0xff;
	if (first)
		told->lens[0] = read_text(told->texts[0], argument(told, (first & 15) - 1), 0, first & KIND, result,
					  argument(told, first & 15));
	if (second)
		told->lens[1] = read_text(told->texts[1], argument(told, (second & 15) - 1), 0, second & KIND, result, 0);
	if (!is_begun && opens(state->syscall) && result >= 0)
		note_file(told, result);
	else if (takes_descriptor(state->syscall))
		note_file(told, state->syscall == 9 ? told->arguments[4] : told->arguments[0]);
	bpf_ringbuf_submit(told, RING_NO_WAKEUP);
	return 0;
}
