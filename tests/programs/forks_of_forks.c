// Each process forks the next, and waits for it; the argument is how many. The last one maps so much that
// there is no more room beneath what is mapped, and forks once more.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trap.h"

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < processes; i++) {
        trap_empty();
        pid_t child = fork();
        if (child != 0) {
            int status = 0;
            waitpid(child, &status, 0);
            return WEXITSTATUS(status);
        }
    }
    // The kernel finds no room for this but beneath the recordings.
    void *large = mmap(0, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        trap_empty();
        return large == MAP_FAILED;
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) + 5;
}
