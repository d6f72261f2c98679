// More threads than processors take one tile after the other. Some get more of the processors, and so do more tiles: nobody waits for
// them.
// cause: too-many-threads
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>
#include "planted.h"

enum { TILES = 40000, THREADS = 24 };

static std::atomic<int> next_tile;
static double picture[TILES];

static double render(int tile)
{
    double light = 0;
    for (int ray = 0; ray < 6000; ray++)
        light += std::sqrt(tile * 0.5 + ray);
    return light;
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([] {
            for (int tile; (tile = next_tile++) < TILES;)
                picture[tile] = render(tile);
        });
    for (auto &thread : threads)
        thread.join();
    return picture[0] < 0;
}
