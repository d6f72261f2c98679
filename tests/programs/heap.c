/* Keeps a block that a function allocates, for who looks where memory is from; in the end, starts threads and a child that do the same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept[8];

static __attribute__((noinline)) void keep(int at, size_t size)
{
    kept[at] = malloc(size);
    memset(kept[at], at, size);
}

static void *thread(void *argument)
{
    for (int i = 0; i < 100; i++) {
        free(kept[*(int *)argument]);
        keep(*(int *)argument, 1000);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    int places[4] = {1, 2, 3, 4};
    keep(0, 3000000);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, thread, &places[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pid_t child = fork();
    if (child == 0) {
        keep(5, 2000);
        _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}
