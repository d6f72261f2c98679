// Threads whose argument is a small block of the heap, of which a part was never written, a number, or
// nothing.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *run(void *argument)
{
    return argument;
}

int main(void)
{
    void *arguments[] = {NULL, (void *)(uintptr_t)8, malloc(24), (void *)(uintptr_t)0x123456789abc};
    ((char *)arguments[2])[0] = 1;
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, arguments[i]);
        pthread_join(thread, NULL);
    }
    free(arguments[2]);
    printf("%ld\n", strtol("12", NULL, 10));
    return 3;
}
