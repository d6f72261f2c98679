/* Sixteen std::threads share tasks by a counter: who is done takes the next.
 * Expected: nothing. */
#include "known.h"

#include <atomic>
#include <thread>
#include <vector>

int main()
{
    std::atomic<int> next{0};
    std::vector<std::thread> threads;
    for (int self = 0; self < 16; self++)
        threads.emplace_back([&next] {
            while (next++ < 400)
                known_parse(10 * MS);
        });
    for (auto &thread : threads)
        thread.join();
}
