/* Functions that call back, `back_0` and on. */
#include "contexts.h"

#define DEFINE(number)                                                                            \
    void back_##number(void (*callback)(long), long argument)                                     \
    {                                                                                             \
        callback(argument);                                                                       \
        /* Not a tail call: the frame stays below the callback. */                                \
        __asm__ volatile("" ::: "memory");                                                        \
    }
EACH(DEFINE)
