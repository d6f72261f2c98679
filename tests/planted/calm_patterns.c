// Patterns are compiled once, and match all lines.
// cause: none
#include <regex.h>
#include "planted.h"

enum { PATTERNS = 24, LINES = 6000 };

int main(void)
{
    static regex_t patterns[PATTERNS];
    char text[64];
    int found = 0;
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        sprintf(text, "^([0-9]+) (GET|POST) /p%d/?$", pattern);
        if (regcomp(&patterns[pattern], text, REG_EXTENDED))
            return 1;
    }
    for (int line = 0; line < LINES; line++) {
        found += !regexec(&patterns[line % PATTERNS], "12 GET /p3", 0, NULL, 0);
        work(10000);
    }
    return found == 0;
}
