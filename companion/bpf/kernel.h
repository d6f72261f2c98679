/* What the program uses of the kernel: fields by CO-RE (their offsets are fitted to the running
 * kernel at load time), helpers by number (linux/bpf.h, stable). */
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long r10, r9, r8, cx, dx, si, di, orig_ax, ip;
};

typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	u32 val;
} kgid_t;

struct cred {
	kuid_t uid, suid, euid;
	kgid_t gid, sgid, egid;
};

struct upid {
	int nr;
};

struct pid {
	u32 level;
	struct upid numbers[1];
};

struct thread_struct {
	unsigned long fsbase;
};

struct thread_info {
	u32 status;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct in6_addr {
	u32 in6_u;
};

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	unsigned short skc_dport, skc_num, skc_family;
	u8 skc_state;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
};

struct unix_sock {
	struct sock *peer;
};

struct socket {
	struct sock *sk;
	struct file *file;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct vm_area_struct {
	unsigned long vm_start, vm_flags, vm_pgoff;
	struct file *vm_file;
};

struct io_uring {
	u32 head, tail;
};

struct io_rings {
	struct io_uring cq;
};

struct io_ring_ctx {
	struct io_rings *rings;
};

struct fdtable {
	u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads of the process that have not begun to end */
};

struct task_struct {
	struct thread_info thread_info;
	u32 flags;
	int exit_state; /* 0 until its end has been noted */
	int pid, tgid;
	struct files_struct *files;
	u64 start_boottime;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct cred *cred;
	struct signal_struct *signal;
	struct thread_struct thread;
};

struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

struct linux_binprm {
	u32 secureexec : 1;
};

#pragma clang attribute pop

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* What to ask of a field; a bit field is shifted to the left end of 64 bits, and back. */
enum {
	FIELD_OFFSET = 0,
	FIELD_SIZE = 1,
	FIELD_EXISTS = 2,
	FIELD_SHIFT_LEFT = 4,
	FIELD_SHIFT_RIGHT = 5,
};

/* Definition of a map by BTF: the sizes of array types carry the numbers. */
#define NUMBER(name, value) int (*name)[value]
#define TYPE(name, type) typeof(type) *name

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PER_CPU_ARRAY = 6,
	MAP_QUEUE = 22,
	MAP_RING = 27,

	MAP_MMAPABLE = 1 << 10,

	UPDATE_ANY = 0,

	RING_NO_WAKEUP = 1,
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_find_vma)(struct task_struct *task, u64 address, void *step, void *state, u64 flags) = (void *)180;
static long (*bpf_loop)(u32 most, void *step, void *state, u64 flags) = (void *)181;
static long (*bpf_probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

/* What a pointer in a structure of the kernel's leads to. To follow one directly is faster, but has
 * the verifier search all types of the kernel by name, several times: some 25 ms in all. So this is
 * for what is rare. */
#define READ(from, field)                                                \
	({                                                               \
		typeof((from)->field) value = 0;                         \
		bpf_probe_read_kernel(&value, sizeof(value), &(from)->field); \
		value;                                                   \
	})
