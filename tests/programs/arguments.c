/* Threads whose arguments are not what they seem: numbers, addresses where nothing is mapped or
 * nothing may be read, the last word before the end of a mapping, memory that is gone. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void *echo(void *argument) { return argument; }

static int check(uintptr_t argument)
{
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, echo, (void *)argument))
        return 1;
    pthread_join(thread, &result);
    return (uintptr_t)result != argument;
}

int main(void)
{
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    munmap(pages + 2 * 4096, 4096);
    /* A second word that is an address of the same kinds. */
    uintptr_t inner[] = { 0, (uintptr_t)pages + 4096, 0 }, at_end[] = { 0, (uintptr_t)pages + 4088 };
    memset(pages, 0xff, 4096);
    uintptr_t arguments[] = {
        0, 1, 8, 4095, 4096, 42, -1, INTPTR_MAX, INTPTR_MIN, (uintptr_t)1 << 47,
        0xffffffffff600000, 0xdeadbeefdeadbee8, (uintptr_t)pages, (uintptr_t)pages + 1,
        (uintptr_t)pages + 4088, (uintptr_t)pages + 4095, (uintptr_t)pages + 4096,
        (uintptr_t)pages + 2 * 4096, (uintptr_t)inner, (uintptr_t)at_end, (uintptr_t)main,
    };
    int wrong = 0;
    for (unsigned i = 0; i < sizeof arguments / sizeof *arguments; i++)
        wrong += check(arguments[i]);
    printf("%d wrong\n", wrong);
    return wrong;
}
