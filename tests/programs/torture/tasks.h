/* Threads, processes, and what is loaded. */
#ifndef TASKS_H
#define TASKS_H

#include "state.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/* ---- threads ---- */

struct Thread {
    State state;
    int kind;
    uint64_t result;
    sem_t waits;
};
uint64_t waiting(void *context, uint64_t)
{
    Thread *own = static_cast<Thread *>(context);
    own->result = several(own->state);
    sem_post(&own->waits);
    if (own->kind == 1)
        pthread_exit(own);
    for (;;)
        pause();
}
void *runs(void *argument)
{
    Thread *own = static_cast<Thread *>(argument);
    pthread_setspecific(key, own);
    if (own->kind == 0)
        own->result = several(own->state);
    else
        CALL(torture_apply)(waiting, own, 0);
    return own;
}
void at_thread_end(void *) { CALL(trap_leaf)(2); }
uint64_t makes_threads(State &state)
{
    Thread all[3];
    pthread_t ids[3];
    int count = 1 + static_cast<int>(state.below(3));
    if (threads.fetch_add(count) > 40) {
        threads -= count;
        return 0;
    }
    for (int i = 0; i < count; i++) {
        all[i].state = state.fork(state.fuel / 4);
        all[i].state.small = true;
        all[i].kind = static_cast<int>(state.below(3));
        all[i].result = 0;
        sem_init(&all[i].waits, 0, 0);
        CHECK(pthread_create(&ids[i], nullptr, runs, &all[i]) == 0);
    }
    uint64_t sum = several(state);
    for (int i = 0; i < count; i++) {
        if (all[i].kind == 2) {
            while (sem_wait(&all[i].waits) != 0) {
            }
            pthread_cancel(ids[i]);
        }
        CHECK(pthread_join(ids[i], nullptr) == 0);
        sum = sum * 31 + all[i].result;
        sem_destroy(&all[i].waits);
    }
    threads -= count;
    return sum;
}

/* ---- processes ---- */

uint64_t waited_for(pid_t child)
{
    int status = 0;
    CHECK(child > 0);
    while (waitpid(child, &status, 0) != child)
        CHECK(errno == EINTR);
    return static_cast<uint64_t>(status);
}
/* In a fork: what is called is counted apart from now on. */
void count_as_fork()
{
    if (of_forks)
        CHECK(mremap(of_forks, SHARED, SHARED, MREMAP_MAYMOVE | MREMAP_FIXED, shared) == shared);
    of_forks = nullptr;
}
uint64_t forks(State &state)
{
    State inner = state.fork(state.fuel / 3);
    pid_t child = fork();
    if (child == 0) {
        count_as_fork();
        inner.alone = inner.alone || threads.load() > 1;
        uint64_t result = several(inner);
        __atomic_fetch_add(&shared->checksum, result, __ATOMIC_RELAXED);
        if (inner.alone || (result & 1) != 0)
            _exit(static_cast<int>(result & 63));
        exit(static_cast<int>(result & 63));
    }
    return waited_for(child);
}
uint64_t vforks(State &)
{
    pid_t child = vfork();
    if (child == 0) {
        CALL(trap_add)(1, 2);
        _exit(3);
    }
    return waited_for(child);
}
uint64_t executes(State &state)
{
    char seed[32], fuel[32];
    State inner = state.fork(state.fuel / 4);
    snprintf(seed, sizeof seed, "%lu", static_cast<unsigned long>(inner.random));
    snprintf(fuel, sizeof fuel, "-%ld", inner.fuel / 2);
    char **own = static_cast<char **>(calloc(static_cast<size_t>(argument_count) + 1, sizeof *own));
    memcpy(own, arguments, static_cast<size_t>(argument_count) * sizeof *own);
    own[1] = seed;
    own[2] = fuel;
    pid_t child;
    if (state.below(2)) {
        CHECK(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, own, environ) == 0);
    } else if ((child = fork()) == 0) {
        count_as_fork();
        CALL(trap_leaf)(3);
        execv("/proc/self/exe", own);
        _exit(127);
    }
    uint64_t status = waited_for(child);
    free(own);
    return status;
}

/* ---- what is loaded ---- */

uint64_t loads(State &state)
{
    uint64_t sum = 0;
    for (uint64_t round = 1 + state.below(3); round > 0; round--) {
        const char *name = arguments[5 + state.below(static_cast<uint64_t>(argument_count) - 5)];
        void *plugin = dlopen(name, state.below(2) ? RTLD_NOW : RTLD_LAZY);
        CHECK(plugin != nullptr);
        auto begin = reinterpret_cast<void (*)(struct shared *)>(dlsym(plugin, "plugin_begin"));
        auto work = reinterpret_cast<uint64_t (*)(uint64_t, uint64_t)>(dlsym(plugin, "plugin_work"));
        auto pass = reinterpret_cast<long (*)(long, long)>(dlsym(plugin, "plugin_pass"));
        CHECK(begin && work && pass);
        begin(shared);
        sum = sum * 31 + work(state.next(), state.below(60));
        sum = sum * 31 + static_cast<uint64_t>(pass(static_cast<long>(state.below(99)), 4));
        if (state.below(3) == 0)
            sum += act(state);
        CHECK(dlclose(plugin) == 0);
    }
    return sum;
}

} // namespace

#endif
