// A convoy on a std::recursive_mutex, taken twice, that is a member of a global.
// cause: serialising-lock
// object: registry
// site: Registry::add
// holder: in nanosleep
// size: told
#include <mutex>
#include <thread>
#include <vector>
#include "planted.h"

struct Registry {
    long entries = 0;
    std::recursive_mutex guard;

    __attribute__((noinline)) long add()
    {
        long start = now_ns();
        std::lock_guard<std::recursive_mutex> held(guard);
        long waited = now_ns() - start;
        count();
        nap_ms(8);
        return waited;
    }

    __attribute__((noinline)) void count()
    {
        std::lock_guard<std::recursive_mutex> held(guard);
        entries++;
    }
};

Registry registry;

int main()
{
    long waited[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 10; round++)
                waited[i] += registry.add();
        });
    for (auto &thread : threads)
        thread.join();
    tell_size(most(waited, 4));
}
