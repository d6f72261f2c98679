/* One of eight std::threads takes longer, in a function called inside another.
 * Expected: slow-threads, known_pack, that thread. */
#include "known.h"

#include <thread>
#include <vector>

int main()
{
    std::vector<long> took(8);
    std::vector<std::thread> threads;
    for (long self = 0; self < 8; self++)
        threads.emplace_back([self, &took] {
            for (int call = 0; call < 20; call++) {
                known_parse(2 * MS);
                known_pack(self == 6 ? 15 * MS : 3 * MS);
            }
            took[self] = known_log(KNOWN_PACK)->total;
            if (self == 6)
                tell("thread", own_tid());
        });
    for (auto &thread : threads)
        thread.join();
    tell_slow(took.data(), 8, 6);
}
