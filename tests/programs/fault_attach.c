/* Runs a program to which chase attaches: of the system calls that it makes between its two marks, and that are not its own
 * (see own_calls), the one of this number fails with this error and does nothing. With number 0 none fails. How many there
 * were is told to FILE. The process is the program's own; a seccomp filter asks another one about each call, so that the
 * program can be traced.
 * usage: fault_attach NUMBER ERRNO FILE PROGRAM [ARGUMENT...] */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARK 0xabcdef
/* The end of a call that chase has the process make: a system call that there is none of. */
#define CALL_ENDS 0xffffff

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW_CALL(number) IF(number, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define ALLOW_CALL_OF(number, descriptor) \
    IF(number, 0, 4), LOAD(args[0]), IF(descriptor, 0, 1), RETURN(SECCOMP_RET_ALLOW), \
        RETURN(SECCOMP_RET_USER_NOTIF)

/* Those of the program, and those that can't fail, or do their work when they do. (Of a new thread, the C library takes the
 * program's life if rseq fails.) */
static struct sock_filter own_calls[] = {
    LOAD(nr),
    ALLOW_CALL_OF(SYS_read, 0),
    ALLOW_CALL_OF(SYS_write, 1),
    ALLOW_CALL(SYS_clock_nanosleep),
    ALLOW_CALL(SYS_restart_syscall),
    ALLOW_CALL(SYS_sendmsg),
    ALLOW_CALL(SYS_futex),
    ALLOW_CALL(SYS_rt_sigprocmask),
    ALLOW_CALL(SYS_rt_sigreturn),
    ALLOW_CALL(SYS_close),
    ALLOW_CALL(SYS_rseq),
    ALLOW_CALL(SYS_set_robust_list),
    ALLOW_CALL(SYS_gettid),
    ALLOW_CALL(SYS_getpid),
    ALLOW_CALL(SYS_exit),
    ALLOW_CALL(SYS_exit_group),
    ALLOW_CALL(CALL_ENDS),
    RETURN(SECCOMP_RET_USER_NOTIF),
};

static void fail(const char *what)
{
    perror(what);
    _exit(97);
}

/* A descriptor passes through a socket. */
static int pass(int socket, int descriptor)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {0};
    char byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (descriptor < 0) {
        if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
            fail("recvmsg");
        memcpy(&descriptor, CMSG_DATA(&control.header), sizeof(int));
        return descriptor;
    }
    control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
    if (sendmsg(socket, &message, 0) != 1)
        fail("sendmsg");
    return descriptor;
}

/* Decides about each call until the program has ended. */
static void decide(int listener, long number, int error, const char *report)
{
    long at = 0;
    int is_counted = 0;
    for (;;) {
        struct pollfd waits = {listener, POLLIN, 0};
        if (poll(&waits, 1, -1) != 1 || !(waits.revents & POLLIN))
            return;
        struct seccomp_notif call = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
            continue; /* Who made it is gone. */
        struct seccomp_notif_resp answer = {.id = call.id,
                                            .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (call.data.nr == MARK) {
            is_counted = !is_counted;
            FILE *file = is_counted ? NULL : fopen(report, "w");
            if (file) {
                fprintf(file, "calls %ld\n", at);
                fclose(file);
            }
        } else if (is_counted && ++at == number) {
            if (getenv("FAULT_SAYS"))
                fprintf(stderr, "fault: system call %d\n", call.data.nr);
            answer.flags = 0;
            answer.error = -error;
        }
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int main(int argc, char **argv)
{
    int sockets[2];
    if (argc < 5)
        return 99;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        fail("socketpair");
    pid_t child = fork();
    if (child == 0) {
        /* Nobody waits for this one, and it keeps none of the program's pipes. */
        if (fork() != 0)
            _exit(0);
        close(0);
        close(1);
        close(sockets[0]);
        decide(pass(sockets[1], -1), atol(argv[1]), atoi(argv[2]), argv[3]);
        _exit(0);
    }
    close(sockets[1]);
    struct sock_fprog program = {sizeof own_calls / sizeof *own_calls, own_calls};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("no_new_privs");
    long listener =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        fail("seccomp");
    pass(sockets[0], (int)listener);
    close(sockets[0]);
    close((int)listener);
    execv(argv[4], argv + 4);
    fail(argv[4]);
}
