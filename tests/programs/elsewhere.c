// Says what it reads, line by line: as another user, in a namespace of process numbers of its own, or in a thread that outlives the first one.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *say(void *unused) {
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        fputs(line, stdout);
        fflush(stdout);
    }
    return unused;
}

int main(int argc, char **argv) {
    const char *where = argc > 1 ? argv[1] : "";
    if (strcmp(where, "user") == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 1;
    if (strcmp(where, "namespace") == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            return 1;
        pid_t child = fork();
        if (child != 0) {
            printf("ready\n%d\n", (int)child);
            fflush(stdout);
            waitpid(child, NULL, 0);
            return 0;
        }
    } else {
        puts("ready");
        fflush(stdout);
    }
    if (strcmp(where, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, say, NULL);
        pthread_exit(NULL);
    }
    say(NULL);
    return 0;
}
