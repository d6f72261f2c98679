/* The lock is taken inside a library.
 * Expected: serialising-lock, pthread_mutex_lock, those that wait; the longest wait. */
#include "known.h"

#include <algorithm>
#include <thread>
#include <vector>

extern "C" long store_put(long ns);

int main()
{
    std::vector<long> waited(5);
    std::vector<std::thread> threads;
    for (int self = 0; self < 5; self++)
        threads.emplace_back([self, &waited] {
            for (int call = 0; call < 15; call++) {
                known_parse(1 * MS);
                waited[self] += store_put(4 * MS);
            }
        });
    for (auto &thread : threads)
        thread.join();
    tell("saves_ns", *std::max_element(waited.begin(), waited.end()));
}
