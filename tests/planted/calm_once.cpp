// Work in vectors and strings, with memory as it is needed.
// cause: none
#include <algorithm>
#include <string>
#include <vector>
#include "planted.h"

int main()
{
    unsigned long all = 0;
    for (int round = 0; round < 40; round++) {
        std::vector<std::string> words;
        for (int i = 0; i < 2000; i++)
            words.push_back("word number " + std::to_string((i * 7919 + round) % 2000));
        std::sort(words.begin(), words.end());
        for (const auto &word : words)
            all += word.size() + work(600);
    }
    return all == 1;
}
