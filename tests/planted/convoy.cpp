// A convoy on a std::mutex that is a member of an object on the heap.
// cause: serialising-lock
// object: (taken in Ledger::post convoy.cpp:
// site: Ledger::post
// holder: in nanosleep
// size: told
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include "planted.h"

struct Ledger {
    std::mutex guard;
    long total = 0;

    __attribute__((noinline)) long post()
    {
        long start = now_ns();
        std::lock_guard<std::mutex> held(guard);
        long waited = now_ns() - start;
        total++;
        nap_ms(8);
        return waited;
    }
};

int main()
{
    auto ledger = std::make_unique<Ledger>();
    long waited[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 10; round++)
                waited[i] += ledger->post();
        });
    for (auto &thread : threads)
        thread.join();
    tell_size(most(waited, 4));
}
