// Threads map memory, write to it and unmap it, while another one maps and unmaps large pieces: all wait for the map of the process's
// memory, which one thread changes at a time.
// cause: memory-map-lock
// also: too-many-threads
// also: mapping-churn
// group: fill
// site: use_pages memory_map.c
// waker: in mun
#include "planted.h"

#include <sys/mman.h>

static atomic_int stop;

__attribute__((noinline)) static void use_pages(size_t size, int flags)
{
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    for (size_t at = 0; at < size; at += 4096)
        pages[at] = 1;
    munmap(pages, size);
}

static void *load(void *argument)
{
    while (!atomic_load(&stop))
        use_pages(64 << 20, MAP_POPULATE);
    return argument;
}

static void *fill(void *argument)
{
    for (int times = 0; times < 15; times++)
        use_pages(8 << 20, 0);
    return argument;
}

int main(void)
{
    pthread_t loader;
    pthread_create(&loader, NULL, load, NULL);
    run_threads(6, fill);
    atomic_store(&stop, 1);
    pthread_join(loader, NULL);
    return 0;
}
