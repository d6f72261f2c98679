/* Asks for the objects that are loaded where it is itself: those of its own namespace. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

struct found {
    long count, is_here;
};

static int look(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct found *found = argument;
    (void)size;
    found->count++;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        ElfW(Addr) offset = (ElfW(Addr))look - info->dlpi_addr - header->p_vaddr;
        if (header->p_type == PT_LOAD && offset < header->p_memsz)
            found->is_here = 1;
    }
    return 0;
}

long plugin_work(long factor)
{
    struct found found = {0, 0};
    dl_iterate_phdr(look, &found);
    return found.is_here * factor + found.count;
}
