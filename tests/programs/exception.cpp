/* Exceptions through library callbacks, with destructors that call libraries: whoever replaced a
 * return address, or keeps a stack of his own, loses his place here.
 * usage: exception THREADS ROUNDS */
#include "trap.h"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Guard {
    long *destroyed;
    ~Guard()
    {
        trap_empty();
        *destroyed = trap_add(*destroyed, 1);
    }
};

struct Round {
    long number, destroyed = 0, caught_inside = 0;
};

static void innermost(void *argument)
{
    auto *round = static_cast<Round *>(argument);
    Guard guard{&round->destroyed};
    throw std::runtime_error("round " + std::to_string(round->number));
}

static void middle(void *argument)
{
    auto *round = static_cast<Round *>(argument);
    Guard guard{&round->destroyed};
    try {
        Guard inner{&round->destroyed};
        trap_call(innermost, argument);
    } catch (const std::exception &) {
        round->caught_inside++;
        trap_empty();
        if (round->number % 2)
            throw;
        throw std::logic_error("another");
    }
}

static int compare(const void *a, const void *b)
{
    if (*static_cast<const int *>(a) == 7 || *static_cast<const int *>(b) == 7)
        throw 7;
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void run(long rounds, std::string *result)
{
    Round round{0};
    long runtime = 0, logic = 0, ints = 0;
    for (long i = 0; i < rounds; i++) {
        round.number = i;
        try {
            trap_call(middle, &round);
        } catch (const std::runtime_error &error) {
            runtime += error.what() == "round " + std::to_string(i);
        } catch (const std::logic_error &) {
            logic++;
        }
        int numbers[] = {3, 1, 7, 2};
        try {
            qsort(numbers, 4, sizeof(int), compare);
        } catch (int seven) {
            ints += seven == 7;
        }
    }
    *result = "runtime " + std::to_string(runtime) + " logic " + std::to_string(logic) + " int " +
              std::to_string(ints) + " destroyed " + std::to_string(round.destroyed) + " inside " +
              std::to_string(round.caught_inside);
}

int main(int, char **argv)
{
    long threads = atol(argv[1]), rounds = atol(argv[2]);
    std::vector<std::string> results(threads);
    std::vector<std::thread> running;
    for (long i = 1; i < threads; i++)
        running.emplace_back(run, rounds, &results[i]);
    run(rounds, &results[0]);
    for (auto &thread : running)
        thread.join();
    for (auto &result : results)
        puts(result.c_str());
}
