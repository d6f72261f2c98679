/* A tree of forks, three children each, from within library callbacks: each process has a
 * recording of its own. A process of level l makes 100 + l calls to trap_add.
 * usage: fork_tree LEVELS */
#include "trap.h"

#include <sys/wait.h>
#include <unistd.h>

static long level, levels, descendants;

static void children(void *argument)
{
    (void)argument;
    if (level == levels)
        return;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            level++, descendants = 0;
            for (long k = 0; k < 100 + level; k++)
                trap_add(k, k);
            trap_call(children, NULL);
            exit((int)descendants + 1);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
        descendants += WEXITSTATUS(status);
    }
}

int main(int argc, char **argv)
{
    levels = atol(argv[argc - 1]);
    for (long k = 0; k < 100; k++)
        trap_add(k, k);
    trap_call(children, NULL);
    printf("descendants %ld\n", descendants);
    return 0;
}
