// Each empty cell of a table is an exception.
// cause: exceptions
// group: main of exceptions
// site: cell exceptions.cpp
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

__attribute__((noinline)) static long cell(const std::string &text)
{
    try {
        return std::stol(text);
    } catch (const std::invalid_argument &) {
        return 0;
    }
}

int main()
{
    std::vector<std::string> cells;
    for (int i = 0; i < 1000; i++)
        cells.push_back(i % 10 ? "" : std::to_string(i));
    long sum = 0;
    for (int round = 0; round < 300; round++)
        for (const std::string &text : cells)
            sum += cell(text);
    std::printf("%ld\n", sum);
}
