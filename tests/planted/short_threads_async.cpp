// Each small piece of work is a future of its own, which is a thread of its own.
// cause: short-threads
// group: weigh
// says: 3000 threads
#include <future>
#include "planted.h"

__attribute__((noinline)) static unsigned long weigh(unsigned long item)
{
    return work(item % 2 + 1000);
}

int main()
{
    unsigned long sum = 0;
    for (unsigned long item = 0; item < 3000; item++)
        sum += std::async(std::launch::async, weigh, item).get();
    return sum == 1;
}
