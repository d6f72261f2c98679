// The program begins with what a library does for it, by a virtual function.
// cause: none
// links: libengine.cpp
#include "planted.h"

struct Engine {
    virtual unsigned long run(unsigned long steps);
};

extern "C" Engine *make_engine();

int main()
{
    unsigned long sum = make_engine()->run(100000000);
    sum += work(30000000);
    return sum == 1;
}
