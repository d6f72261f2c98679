// A library that computes its tables when it is loaded, and asks for what it needs.
#include <time.h>
#include <vector>

namespace {

struct Tables {
    std::vector<unsigned long> of;

    Tables()
    {
        unsigned long value = 1;
        for (int number = 0; number < 1 << 16; number++) {
            for (int round = 0; round < 400; round++)
                value = value * 6364136223846793005UL + 1442695040888963407UL;
            of.push_back(value);
        }
        struct timespec time = {0, 150000000}, left;
        while (nanosleep(&time, &left))
            time = left;
    }
};

Tables tables;

} // namespace

extern "C" unsigned long look_up(int number)
{
    return tables.of[number];
}
