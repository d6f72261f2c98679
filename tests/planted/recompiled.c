// A pattern is compiled again for each line.
// cause: made-again
// group: main of recompiled
// site: is_request recompiled.c
// says: Compiled once
// size: told
#include <regex.h>
#include "planted.h"

enum { LINES = 3000 };

static long spent;

__attribute__((noinline)) static int is_request(const char *line)
{
    regex_t pattern;
    long start = now_ns();
    if (regcomp(&pattern, "^([0-9]+) (GET|POST) /([a-z]+)/?$", REG_EXTENDED))
        exit(1);
    spent += now_ns() - start;
    int is_it = !regexec(&pattern, line, 0, NULL, 0);
    regfree(&pattern);
    return is_it;
}

int main(void)
{
    int requests = 0;
    for (int line = 0; line < LINES; line++) {
        requests += is_request("12 GET /index");
        work(10000);
    }
    tell_size(spent);
    return requests != LINES;
}
