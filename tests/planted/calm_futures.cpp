// A few tasks of equal size, and their results.
// cause: none
#include <future>
#include <vector>
#include "planted.h"

int main()
{
    unsigned long sum = 0;
    for (int round = 0; round < 5; round++) {
        std::vector<std::future<unsigned long>> results;
        for (int i = 0; i < 2; i++)
            results.push_back(std::async(std::launch::async, work, 8000000));
        for (auto &result : results)
            sum += result.get();
    }
    return sum == 1;
}
