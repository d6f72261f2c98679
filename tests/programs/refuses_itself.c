/* refuses_itself ERRNO NUMBER: installs a filter by which one system call returns an error, and then works in rounds: for each line
   on standard input it says how long its words were together. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    unsigned error = (unsigned)atoi(arguments[1]), refused = (unsigned)atoi(arguments[2]);
    static char line[64];
    size_t length = 0;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    puts("ready");
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    int first = 1;
    while (fgets(line, sizeof line, stdin)) {
        /* (What is called for the first time has its address then.) */
        if (first
            && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0))
            return 3;
        first = 0;
        length += strlen(line);
        printf("%zu\n", length);
    }
    printf("%zu in all\n", length);
    return 0;
}
