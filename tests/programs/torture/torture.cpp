/* A random program, the same for the same seed: its actions call libraries in all the ways that make hooking hard, one in
 * the other, in threads, coroutines and processes. What they compute goes into a checksum, and each call of the libraries
 * is counted; both are shared by all of its processes.
 * usage: torture SEED FUEL COUNTS TOLD PLUGIN... */
#include "coroutines.h"
#include "nested.h"
#include "plain.h"
#include "state.h"
#include "tasks.h"

#include <csignal>
#include <execinfo.h>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>

namespace {

struct Action {
    uint64_t (*function)(State &);
    unsigned often;
    /* What takes locks, or many resources. */
    bool heavy;
};
const Action ACTIONS[] = {
    {leaves, 6, false},     {values, 6, false},       {hot, 3, false},    {tails, 3, false},
    {nested, 10, false},    {deep, 2, false},         {sorted, 2, false}, {jumps, 6, false},
    {throws, 6, true},      {coroutines, 5, true},    {signals, 3, false}, {makes_threads, 3, true},
    {forks, 2, false},      {vforks, 1, false},       {executes, 1, true}, {loads, 3, true},
    {looks_back, 1, true},
};

uint64_t act(State &state)
{
    state.fuel--;
    if (state.fuel <= 0 || state.depth > 12)
        return leaves(state);
    unsigned all = 0;
    for (const Action &action : ACTIONS)
        all += action.often;
    uint64_t chosen = state.below(all);
    for (const Action &action : ACTIONS) {
        if (chosen < action.often)
            return action.heavy && state.alone ? leaves(state) : action.function(state);
        chosen -= action.often;
    }
    return 0;
}

void at_exit() { CALL(trap_empty)(); }

/* After all else, in the first process. */
pid_t teller;
void tell()
{
    if (getpid() != teller)
        return;
    static const char *const names[] = {
#define X(name) #name,
        FUNCTIONS(X)
#undef X
    };
    std::string begun = std::string(arguments[4]) + ".begun", forked = std::string(arguments[4]) + ".forked";
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        trap_tell(arguments[4], names[i], static_cast<long>(shared->calls[i] + of_forks->calls[i]));
        trap_tell(begun.c_str(), names[i], static_cast<long>(shared->begun[i] + of_forks->begun[i]));
        trap_tell(forked.c_str(), names[i], static_cast<long>(of_forks->calls[i]));
    }
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc > 5);
    arguments = argv;
    argument_count = argc;
    long fuel = atol(argv[2]);
    bool first = fuel > 0;
    int file = open(argv[3], O_RDWR | (first ? O_CREAT : 0), 0600);
    CHECK(file >= 0 && ftruncate(file, 2 * SHARED) == 0);
    for (struct shared **counters : {&shared, &of_forks}) {
        long at = counters == &shared ? 0 : SHARED;
        void *map = mmap(nullptr, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);
        CHECK(map != MAP_FAILED);
        *counters = static_cast<struct shared *>(map);
    }
    close(file);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    sigaction(SIGALRM, &action, nullptr);
    pthread_key_create(&key, at_thread_end);
    teller = first ? getpid() : 0;
    atexit(tell);
    atexit(at_exit);
    void *frames[4];
    backtrace(frames, 4);
    State state = {strtoul(argv[1], nullptr, 10) * 0x9e3779b97f4a7c15ull | 1, labs(fuel), 0, false, false};
    struct itimerval timer = {{0, 1500}, {0, 1500}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    uint64_t sum = 0;
    while (state.fuel > 0)
        sum = sum * 31 + act(state);
    timer = {};
    setitimer(ITIMER_REAL, &timer, nullptr);
    __atomic_fetch_add(&shared->checksum, sum, __ATOMIC_RELAXED);
    if (!first)
        return static_cast<int>(sum & 63);
    printf("%016lx\n", static_cast<unsigned long>(shared->checksum + of_forks->checksum));
    return 0;
}
