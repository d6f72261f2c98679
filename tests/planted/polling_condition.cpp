// A condition that nobody signals in time, with a limit of a millisecond.
// cause: polling
// object: changed
// waker: nobody: time was over
// site: look
#include <chrono>
#include <condition_variable>
#include <mutex>
#include "planted.h"

static std::mutex guard;
static std::condition_variable changed;

__attribute__((noinline)) static void look()
{
    std::unique_lock<std::mutex> held(guard);
    changed.wait_for(held, std::chrono::milliseconds(1));
}

int main()
{
    for (int i = 0; i < 250; i++)
        look();
}
