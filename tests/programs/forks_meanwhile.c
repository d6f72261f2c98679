// Forks without pause, in several threads, while another allocates and throws; each child walks the list of loaded
// objects, which takes the loader's lock, and loads a library. Ends when a line comes on standard input, and says how many
// children failed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKERS = 2, ALLOCATORS = 2, PATIENCE_S = 60 };

static volatile int over;
static int failed[FORKERS], forked[FORKERS];

static int count(struct dl_phdr_info *info, size_t size, void *to) {
    (void)info, (void)size;
    ++*(int *)to;
    return 0;
}

static int child(void) {
    int objects = 0;
    // A lock that was copied while it was held is never free.
    alarm(PATIENCE_S);
    dl_iterate_phdr(count, &objects);
    void *handle = dlopen("libm.so.6", RTLD_NOW);
    free(malloc(100));
    return objects > 2 && handle != NULL ? 0 : 1;
}

static void *forks(void *number) {
    long own = (long)number;
    while (!over) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child());
        int status = -1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            failed[own]++;
        forked[own]++;
    }
    return NULL;
}

static void *allocates(void *unused) {
    (void)unused;
    for (size_t i = 0; !over; i++) {
        void *memory = malloc(i * 97 % 5000 + 1);
        memset(memory, 1, 1);
        free(memory);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[FORKERS + ALLOCATORS];
    for (long i = 0; i < FORKERS; i++)
        pthread_create(&threads[i], NULL, forks, (void *)i);
    for (int i = FORKERS; i < FORKERS + ALLOCATORS; i++)
        pthread_create(&threads[i], NULL, allocates, NULL);
    puts("ready");
    fflush(stdout);
    getchar();
    over = 1;
    for (int i = 0; i < FORKERS + ALLOCATORS; i++)
        pthread_join(threads[i], NULL);
    int failures = 0, forks_made = 0;
    for (int i = 0; i < FORKERS; i++)
        failures += failed[i], forks_made += forked[i];
    printf("%d failed, some were made: %d\n", failures, forks_made > 0);
    return 0;
}
