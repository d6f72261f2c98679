/* Calls, through its PLT, a function that the program defines too. */
#include <stdio.h>

const char *who(void)
{
    return "the library";
}

void run(void)
{
    puts(who());
}
