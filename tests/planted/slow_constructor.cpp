// A linked library takes long before main begins.
// cause: slow-start
// group: slow_constructor
// says: libslow_tables.so takes
// says: nanosleep
// says: libslow_tables.cpp
// links: libslow_tables.cpp
#include "planted.h"

extern "C" unsigned long look_up(int number);

int main()
{
    unsigned long sum = 0;
    for (int number = 0; number < 12; number++)
        sum += work(3000000) + look_up(number);
    return sum == 1;
}
