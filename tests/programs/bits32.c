/* A program of 32 bits, without a C library: says so, and ends with 5. */
#define CALL(number, a, b, c)                                                                     \
    ({                                                                                            \
        int result;                                                                               \
        __asm__ volatile("int $0x80"                                                              \
                         : "=a"(result)                                                           \
                         : "a"(number), "b"(a), "c"(b), "d"(c)                                    \
                         : "memory");                                                             \
        result;                                                                                   \
    })

_Static_assert(sizeof(void *) == 4, "made with -m32");

void _start(void)
{
    CALL(4, 1, "32 bits\n", 8);
    CALL(1, 5, 0, 0);
    __builtin_unreachable();
}
