/* A child gives up most system calls, in all of its threads, and has a handler told of any other. It calls
 * more functions, starts threads and forks. Its parent has only asked whether the kernel knows filters, and
 * lent its memory to a child with one. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 50000, THREADS = 4 };

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void *work(void *argument)
{
    for (int i = 0; i < CALLS; i++) {
        int numbers[] = {4, 3, 2, 1};
        qsort(numbers, 4, sizeof(int), compare);
    }
    return argument;
}

static int stage;

static void reach(int wanted)
{
    __atomic_store_n(&stage, wanted, __ATOMIC_RELEASE);
}

static void await(int wanted)
{
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != wanted)
        ;
}

static void *work_before_and_after(void *argument)
{
    work(argument);
    reach(1);
    await(2);
    return work(argument);
}

/* Calls of functions that were not called before. */
static int more(void)
{
    return strcasecmp("a", "A") == 0 && strpbrk("abc", "c") != NULL;
}

static void offended(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char text[] = "system call 000\n";
    for (int i = 14, rest = info->si_syscall; i > 11; i--, rest /= 10)
        text[i] = (char)('0' + rest % 10);
    (void)!write(2, text, sizeof text - 1);
    _exit(9);
}

static int give_up(void)
{
    static const int allowed[] = {
        SYS_write, SYS_exit, SYS_exit_group, SYS_clone, SYS_clone3, SYS_mmap, SYS_munmap, SYS_brk,
        SYS_mprotect, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_futex, SYS_set_robust_list, SYS_rseq,
        SYS_wait4, SYS_getpid, SYS_sched_yield};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[4 + COUNT + 2];
    int at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        filter[at++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(COUNT + 3 - i), 0);
    /* The C library gives back the stacks of threads. */
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 2);
    filter[at++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
    filter[at++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 1, 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)at, .filter = filter};
    struct sigaction action = {.sa_sigaction = offended, .sa_flags = SA_SIGINFO | SA_NODEFER};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static int ended(pid_t pid)
{
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int confined(void)
{
    pthread_t before, threads[THREADS];
    pthread_create(&before, NULL, work_before_and_after, NULL);
    work(NULL);
    await(1);
    if (!give_up())
        return 1;
    reach(2);
    work(NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(before, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        work(NULL);
        _exit(more() ? 5 : 2);
    }
    return ended(pid) == 5 && more() ? 7 : 3;
}

static pid_t give_up_alone(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(give_up() ? 6 : 1);
    return pid;
}

int main(void)
{
    int right = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT;
    right += syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT;
    work(NULL);
    right += ended(give_up_alone()) == 6;
    pid_t pid = fork();
    if (pid == 0)
        exit(confined());
    printf("%d %d\n", right, ended(pid));
    work(NULL);
    return more() ? 0 : 1;
}
