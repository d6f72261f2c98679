// Threads are started for each pass over an image, and its rows are divided evenly: but those of the first quarter take much longer.
// cause: uneven-work
// group: render
// says: the 3 others have ended
// says: in 10 rounds of work
// says: nanosleep
#include <chrono>
#include <functional>
#include <thread>
#include <vector>
#include "planted.h"

static void render(int first, int last, std::vector<int> &rows)
{
    for (int row = first; row < last; row++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(row < 10 ? 8 : 1));
        rows[row] = row;
    }
}

int main()
{
    std::vector<int> rows(40);
    for (int pass = 0; pass < 10; pass++) {
        std::vector<std::thread> threads;
        for (int part = 0; part < 4; part++)
            threads.emplace_back(render, 10 * part, 10 * part + 10, std::ref(rows));
        for (auto &thread : threads)
            thread.join();
    }
    return rows[39] != 39;
}
