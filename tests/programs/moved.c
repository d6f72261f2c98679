/* A library that comes back to where it was, while the one whose function it calls comes back elsewhere.
 * usage: moved CALLER PROVIDER CALLS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

struct extent { char *start; size_t length; };

static int find(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct extent *extent = argument;
    (void)size;
    if ((char *)info->dlpi_addr != extent->start)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && header->p_vaddr + header->p_memsz > extent->length)
            extent->length = header->p_vaddr + header->p_memsz;
    }
    return 1;
}

static struct extent extent_of(void *library)
{
    struct link_map *map;
    CHECK(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
    struct extent extent = {(char *)map->l_addr, 0};
    CHECK(dl_iterate_phdr(find, &extent) == 1);
    return extent;
}

static void occupy(struct extent place)
{
    CHECK(mmap(place.start, place.length, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == place.start);
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    struct extent callers[2], providers[2];
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            occupy(providers[0]);
            occupy(callers[0]);
        }
        void *provider = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
        CHECK(provider != NULL);
        if (round == 1)
            CHECK(munmap(callers[0].start, callers[0].length) == 0);
        void *caller = dlopen(argv[1], RTLD_NOW);
        CHECK(caller != NULL);
        providers[round] = extent_of(provider), callers[round] = extent_of(caller);
        long (*call)(long) = (long (*)(long))dlsym(caller, "call_often");
        printf("%ld\n", call(atol(argv[3])));
        CHECK(dlclose(caller) == 0 && dlclose(provider) == 0);
    }
    trap_tell(argv[4], "stayed", callers[0].start == callers[1].start);
    trap_tell(argv[4], "moved", providers[0].start != providers[1].start);
    return 0;
}
