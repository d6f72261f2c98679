/* Runs a program whose preloaded library meets one failure: of the system calls that are made in libchase.so's text, in all
 * processes and threads of the program, the one of this number fails with this error and does nothing; or all is killed
 * there. Whatever else the program calls is left alone. With number 0 none fails. How many there were is told to FILE.
 * usage: fault NUMBER ERRNO|kill FILE PROGRAM [ARGUMENT...] */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 4096

/* By process: where libchase.so's text is. Children begin with their parent's. */
struct task {
    pid_t tid;
    int inside, fails;
    unsigned long low, high;
};
static struct task tasks[MANY];
static int count;
static long number, at, error, kills;
static const char *report;

static struct task *task_of(pid_t tid)
{
    for (int i = 0; i < count; i++)
        if (tasks[i].tid == tid)
            return &tasks[i];
    if (count == MANY)
        exit(98);
    tasks[count] = (struct task){.tid = tid};
    return &tasks[count++];
}

static void look(struct task *task)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", task->tid);
    FILE *maps = fopen(path, "r");
    task->low = task->high = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long low, high;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s", &low, &high, mode) == 3 && strchr(mode, 'x') &&
            strstr(line, "libchase")) {
            if (!task->low)
                task->low = low;
            task->high = high;
        }
    }
    if (maps)
        fclose(maps);
}

/* What can't fail, or does its work when it does, or ends the process. */
static int is_sure(unsigned long call)
{
    return call == SYS_rt_sigprocmask || call == SYS_exit_group || call == SYS_close ||
           call == SYS_gettid || call == SYS_getpid;
}

static void tell(void)
{
    FILE *file = fopen(report, "w");
    if (file) {
        fprintf(file, "calls %ld\n", at);
        fclose(file);
    }
}

static void system_call(struct task *task)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, task->tid, 0, &registers) != 0)
        return;
    task->inside = !task->inside;
    if (!task->inside) {
        if (task->fails) {
            registers.rax = (unsigned long)-error;
            ptrace(PTRACE_SETREGS, task->tid, 0, &registers);
            task->fails = 0;
        }
        return;
    }
    if (!task->low)
        look(task);
    if (registers.rip < task->low || registers.rip >= task->high || is_sure(registers.orig_rax))
        return;
    if (++at != number)
        return;
    if (getenv("FAULT_SAYS"))
        fprintf(stderr, "fault: system call %lld\n", (long long)registers.orig_rax);
    if (kills) {
        tell();
        for (int i = 0; i < count; i++)
            kill(tasks[i].tid, SIGKILL);
        return;
    }
    registers.orig_rax = (unsigned long)-1;
    ptrace(PTRACE_SETREGS, task->tid, 0, &registers);
    task->fails = 1;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 99;
    number = atol(argv[1]);
    kills = strcmp(argv[2], "kill") == 0;
    error = atol(argv[2]);
    report = argv[3];
    pid_t first = fork();
    if (first == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[4], argv + 4);
        _exit(97);
    }
    int status, result = 0;
    waitpid(first, &status, 0);
    ptrace(PTRACE_SETOPTIONS, first, 0,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
               PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
    task_of(first);
    ptrace(PTRACE_SYSCALL, first, 0, 0);
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0)
            break;
        struct task *task = task_of(tid);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (tid == first)
                result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            *task = tasks[--count];
            continue;
        }
        int signal = WSTOPSIG(status), event = status >> 16;
        if (signal == (SIGTRAP | 0x80)) {
            system_call(task);
            signal = 0;
        } else if (signal == SIGTRAP && event) {
            unsigned long other = 0;
            ptrace(PTRACE_GETEVENTMSG, tid, 0, &other);
            if (event == PTRACE_EVENT_EXEC) {
                task->low = task->high = 0;
            } else if (other) {
                struct task *child = task_of((pid_t)other);
                child->low = task->low;
                child->high = task->high;
            }
            signal = 0;
        } else if (signal == SIGSTOP) {
            /* A new one's first stop; nobody else sends it here. */
            signal = 0;
        }
        ptrace(PTRACE_SYSCALL, tid, 0, signal);
    }
    tell();
    return result;
}
