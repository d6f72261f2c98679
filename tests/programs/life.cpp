/* Library calls from before main to after it: constructors, atexit handlers, destructors of
 * static and thread_local objects and of pthread keys. Each phase calls a function of its own. */
#include "trap.h"

#include <pthread.h>
#include <thread>

struct Static {
    Static() { trap_not(true); }
    ~Static() { trap_negate(1); }
};
static Static object;

struct Local {
    ~Local() { trap_complement(1); }
    void touch() {}
};
static thread_local Local local;

__attribute__((constructor)) static void constructor() { trap_add(1, 1); }
__attribute__((destructor)) static void destructor() { trap_leaf(1); }

static void at_exit() { trap_empty(); }
static void of_key(void *) { trap_halve(1); }

int main()
{
    atexit(at_exit);
    pthread_key_t key;
    pthread_key_create(&key, of_key);
    local.touch();
    for (int i = 0; i < 10; i++)
        std::thread([key] {
            local.touch();
            pthread_setspecific(key, &object);
        }).join();
    puts("main ends");
}
