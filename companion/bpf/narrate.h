/* System calls one by one, with their arguments and what these lead to, of the threads that are to be narrated. */
#pragma once

#include "waits.h"

#define NR_EXECVE 59
#define NR_EXECVEAT 322

/* Where the texts of a call are: the number of the argument that leads to it, plus one, and what it is. */
#define ARGUMENT 0x07
#define STRING 0x08   /* ends with NUL */
#define COUNTED 0x10  /* as many bytes as the call returned */
#define SIZED 0x18    /* as many bytes as the next argument says */
#define WORDS_2 0x20  /* the beginning of a structure, in words of eight bytes */
#define WORDS_4 0x28
#define WORDS_7 0x30
#define ADDRESS 0x38  /* of a socket: as many bytes as the number says that the next argument leads to */
#define WORDS_12 0x100
#define WORDS_12_ON 0x108 /* the two words behind the first twelve */
#define BYTES_96_ON 0x110 /* the forty bytes behind the first 96 */
#define KIND 0x138
#define READ_FIRST 0x40 /* read at the beginning, since the call may change it; for one text of a call */
#define FILLED 0x80     /* by the call, if it succeeds */

#define FIRST(argument, kind) ((argument) + 1 + (kind))
#define SECOND(argument, kind) (FIRST(argument, kind) << 16)

/* Size of an argument of a program, with its end, and the most of these, and of its variables, that are counted. */
#define ARGUMENT_TEXT 32
#define MOST_STRINGS 4096

#define NR_IOCTL 16
#define TCGETS 0x5401
#define TIOCGWINSZ 0x5413

/* By number of the call. (Not cases of a switch, each of which the verifier would follow on its own.) */
#define A_PATH FIRST(0, STRING)
#define PATH_AT FIRST(1, STRING)
#define TWO_PATHS (FIRST(0, STRING) | SECOND(1, STRING))
static const u32 texts[] = {
	[2] = A_PATH, [21] = A_PATH, [76] = A_PATH, [80] = A_PATH, [83] = A_PATH, [84] = A_PATH, [85] = A_PATH, [87] = A_PATH, [90] = A_PATH,
	[92] = A_PATH, [94] = A_PATH, [132] = A_PATH, [133] = A_PATH, [137] = A_PATH, [161] = A_PATH, [166] = A_PATH, [188] = A_PATH,
	[194] = A_PATH, [319] = A_PATH, [NR_EXECVE] = A_PATH,
	[257] = PATH_AT, [258] = PATH_AT, [259] = PATH_AT, [260] = PATH_AT, [261] = PATH_AT, [263] = PATH_AT, [268] = PATH_AT,
	[269] = PATH_AT, [280] = PATH_AT, [254] = PATH_AT, [437] = PATH_AT, [439] = PATH_AT, [NR_EXECVEAT] = PATH_AT,
	[82] = TWO_PATHS, [86] = TWO_PATHS, [88] = TWO_PATHS, [191] = TWO_PATHS, [192] = TWO_PATHS,
	[89] = A_PATH | SECOND(1, COUNTED),
	[267] = PATH_AT | SECOND(2, COUNTED),
	[264] = PATH_AT | SECOND(3, STRING), [265] = PATH_AT | SECOND(3, STRING), [316] = PATH_AT | SECOND(3, STRING),
	[266] = A_PATH | SECOND(2, STRING),
	[4] = A_PATH | SECOND(1, WORDS_7 | FILLED), [6] = A_PATH | SECOND(1, WORDS_7 | FILLED),
	[5] = FIRST(1, WORDS_7 | FILLED),
	[262] = PATH_AT | SECOND(2, WORDS_7 | FILLED),
	[332] = PATH_AT | SECOND(4, WORDS_7 | FILLED),
	[0] = FIRST(1, COUNTED), [17] = FIRST(1, COUNTED), [45] = FIRST(1, COUNTED),
	[318] = FIRST(0, COUNTED), [79] = FIRST(0, COUNTED),
	[1] = FIRST(1, SIZED), [18] = FIRST(1, SIZED), [44] = FIRST(1, SIZED), [42] = FIRST(1, SIZED), [49] = FIRST(1, SIZED),
	[22] = FIRST(0, WORDS_2 | FILLED), [293] = FIRST(0, WORDS_2 | FILLED),
	[35] = FIRST(0, WORDS_2 | READ_FIRST),
	[435] = FIRST(0, SIZED),
	[7] = FIRST(0, WORDS_2),
	[271] = FIRST(0, WORDS_2) | SECOND(2, WORDS_2 | READ_FIRST),
	[61] = FIRST(1, WORDS_2 | FILLED), [97] = FIRST(1, WORDS_2 | FILLED), [228] = FIRST(1, WORDS_2 | FILLED),
	[229] = FIRST(1, WORDS_2 | FILLED),
	[43] = FIRST(1, ADDRESS | FILLED), [288] = FIRST(1, ADDRESS | FILLED), [51] = FIRST(1, ADDRESS | FILLED),
	[52] = FIRST(1, ADDRESS | FILLED),
	[157] = FIRST(1, WORDS_2),
	[160] = FIRST(1, WORDS_2 | READ_FIRST),
	[13] = FIRST(1, WORDS_4 | READ_FIRST) | SECOND(2, WORDS_4 | FILLED),
	[14] = FIRST(1, WORDS_2 | READ_FIRST) | SECOND(2, WORDS_2 | FILLED),
	[NR_IOCTL] = FIRST(2, WORDS_2 | FILLED),
	[230] = FIRST(2, WORDS_2 | READ_FIRST),
	[302] = FIRST(2, WORDS_2 | READ_FIRST) | SECOND(3, WORDS_2 | FILLED),
	[202] = FIRST(3, WORDS_2 | READ_FIRST),
	[53] = FIRST(3, WORDS_2 | FILLED),
	[54] = FIRST(3, SIZED),
	[55] = FIRST(3, ADDRESS | FILLED) | SECOND(4, WORDS_2 | READ_FIRST),
	[63] = FIRST(0, WORDS_12 | FILLED) | SECOND(0, BYTES_96_ON | FILLED),
	[99] = FIRST(0, WORDS_12 | FILLED) | SECOND(0, WORDS_12_ON | FILLED),
	[23] = FIRST(4, WORDS_2 | READ_FIRST), [270] = FIRST(4, WORDS_2 | READ_FIRST),
};

INLINE u32 texts_of(u32 syscall)
{
	return syscall < sizeof(texts) / sizeof(texts[0]) ? texts[syscall] : 0;
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

INLINE u32 read_text(char *to, u64 from, u32 what, s64 result, u64 next)
{
	u32 kind = what & KIND, filled = 0;
	u64 len;
	long got;

	if (what & FILLED && result < 0)
		return 0;
	if (kind == STRING) {
		got = bpf_probe_read_user_str(to, TEXT, (void *)from);
		return got > 0 ? got : 0;
	}
	if (kind == COUNTED)
		len = result > 0 ? result : 0;
	else if (kind == SIZED)
		len = next;
	else if (kind == ADDRESS)
		len = bpf_probe_read_user(&filled, sizeof(filled), (void *)next) ? 0 : filled;
	else
		len = kind == WORDS_12 ? 96 : kind == WORDS_7 ? 56 : kind == BYTES_96_ON ? 40 : kind == WORDS_4 ? 32 : 16;
	if (kind == WORDS_12_ON || kind == BYTES_96_ON)
		from += TEXT;
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

INLINE u64 argument_in(struct pt_regs *registers, u32 number)
{
	switch (number) {
	case 0: return READ(registers, di);
	case 1: return READ(registers, si);
	case 2: return READ(registers, dx);
	case 3: return READ(registers, r10);
	case 4: return READ(registers, r8);
	}
	return READ(registers, r9);
}

/* Keeps what the call that begins is to read. */
static __attribute__((noinline)) int note_read(struct state *state, struct pt_regs *registers)
{
	u32 texts, what, len;

	if (!state || !registers)
		return 0;
	state->read_len = 0;
	texts = texts_of(state->syscall);
	what = texts & READ_FIRST ? texts : texts >> 16;
	if (!(what & READ_FIRST))
		return 0;
	len = (what & KIND) == WORDS_4 ? 32 : 16;
	if (!bpf_probe_read_user(state->read, len, (void *)argument_in(registers, (what & ARGUMENT) - 1)))
		state->read_len = len;
	return 0;
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
		note_peer(&told->ends, sock);
	}
	return 0;
}

/* One of the texts of a call. What could not be read at the beginning, since it was not in memory yet, can be now, unless the call has
 * put another text in its place. */
INLINE u32 text_of(struct state *state, struct told *told, char *to, u32 what, u32 other, s64 result)
{
	u64 from = argument(told, (what & ARGUMENT) - 1);

	if (what & READ_FIRST) {
		if (state->read_len) {
			__builtin_memcpy(to, state->read, sizeof(state->read));
			return state->read_len;
		}
		if (other & FILLED && argument(told, (other & ARGUMENT) - 1) == from)
			return 0;
	}
	return read_text(to, from, what, result, argument(told, what & ARGUMENT));
}

/* Strings of a list that ends with 0. */
struct strings {
	u64 at; /* of the next one's address */
	u64 number;
};

static long count_string(u32 number __attribute__((unused)), struct strings *strings)
{
	u64 string = 0;

	if (bpf_probe_read_user(&string, sizeof(string), (void *)strings->at) || !string)
		return 1;
	strings->at += sizeof(string);
	strings->number++;
	return 0;
}

INLINE u32 strings_at(u64 list)
{
	struct strings strings = { list, 0 };

	if (list)
		bpf_loop(MOST_STRINGS, count_string, &strings, 0);
	return strings.number;
}

/* What a program is started with: the first of its arguments one after the other, each with its end, and how many of them and how many
 * variables there are. */
__attribute__((noinline)) int note_program(struct told *told, u32 narrates, u32 arguments)
{
	u64 list, string;
	u32 at = 0, i;
	long len;

	if (!told)
		return 0;
	list = argument(told, arguments);
	told->object = strings_at(list) | (u64)strings_at(argument(told, arguments + 1)) << 32;
	if (narrates == WITHOUT_ARGUMENTS)
		return 0;
	for (i = 0; i < TEXT / 2; i++) {
		if (at > TEXT - ARGUMENT_TEXT)
			break;
		if (bpf_probe_read_user(&string, sizeof(string), (void *)(list + i * sizeof(string))) || !string)
			break;
		len = bpf_probe_read_user_str(told->texts[1] + at, ARGUMENT_TEXT, (void *)string);
		if (len <= 0 || len > ARGUMENT_TEXT)
			break;
		at += len;
	}
	told->lens[1] = at;
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
	/* Of other requests it is not known what they lead to. */
	if (state->syscall == NR_IOCTL && told->arguments[1] != TCGETS && told->arguments[1] != TIOCGWINSZ)
		texts = 0;
	first = texts & 0xffff;
	second = texts >> 16;
	if (first)
		told->lens[0] = text_of(state, told, told->texts[0], first, second, result);
	if (second)
		told->lens[1] = text_of(state, told, told->texts[1], second, first, result);
	if (!is_begun && opens(state->syscall) && result >= 0)
		note_file(told, result);
	else if (takes_descriptor(state->syscall))
		note_file(told, state->syscall == 9 ? told->arguments[4] : told->arguments[0]);
	if (state->syscall == NR_EXECVE || state->syscall == NR_EXECVEAT)
		note_program(told, state->narrates, state->syscall == NR_EXECVE ? 1 : 2);
	bpf_ringbuf_submit(told, RING_NO_WAKEUP);
	return 0;
}
