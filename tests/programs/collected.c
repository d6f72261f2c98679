/* Blocks of a conservative garbage collector that only a register, or a list's chain, holds; and how much it looks
 * through for pointers at each collection.
 * usage: collected */
#define _GNU_SOURCE
#include <gc.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* Takes the place of what calls have left on the stack. */
__attribute__((noinline)) void clear(void)
{
    char stack[16384];
    memset(stack, 0, sizeof stack);
    __asm__ volatile("" ::"r"(stack) : "memory");
}

/* Gets the blocks that were freed, and writes to them. */
__attribute__((noinline)) void take_all(void)
{
    for (int i = 0; i < 2000; i++)
        *(long *)GC_malloc(64) = 7;
}

/* A block that is in `rbx` only while the library collects. */
__attribute__((noinline)) static int is_kept(void)
{
    long found;
    __asm__ volatile("mov $64, %%edi; call GC_malloc@PLT; mov %%rax, %%rbx\n"
                     "movq $0x1234567, (%%rbx); xor %%eax, %%eax\n"
                     "call clear; call GC_gcollect@PLT; call take_all\n"
                     "mov (%%rbx), %0; xor %%ebx, %%ebx"
                     : "=a"(found)
                     :
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                       "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory", "cc");
    return found == 0x1234567;
}

struct item {
    struct item *next;
    long value;
};

/* At -O2 the list's head is in a register while the next block is made. */
__attribute__((noinline)) static long sum_of_list(long length)
{
    struct item *head = NULL;
    for (long i = 0; i < length; i++) {
        struct item *item = GC_MALLOC(sizeof *item);
        item->value = i;
        item->next = head;
        head = item;
    }
    long sum = 0;
    for (; head; head = head->next)
        sum += head->value;
    return sum;
}

/* What objects have that is writable, also after relocation, and so may hold pointers. */
static int add_writable(struct dl_phdr_info *object, size_t size, void *bytes)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_W))
            *(size_t *)bytes += header->p_memsz;
        if (header->p_type == PT_GNU_RELRO)
            *(size_t *)bytes -= header->p_memsz;
    }
    return 0;
}

int main(void)
{
    GC_INIT();
    size_t writable = 0;
    dl_iterate_phdr(add_writable, &writable);
    printf("%zu bytes of roots\n", writable);
    int kept = 0;
    for (int i = 0; i < 100; i++)
        kept += is_kept();
    printf("%d of 100\n", kept);
    long sum = 0;
    for (int i = 0; i < 10; i++)
        sum += sum_of_list(100000);
    printf("sum %ld\n", sum);
    return 0;
}
