/* Built three times: with few imports, with many, and as their neighbour. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void run(void)
{
#if NUMBER == 1
    puts("small");
#elif NUMBER == 2
    char *memory = malloc(10);
    strcpy(memory, "large");
    puts(memory);
    free(memory);
    if (getppid() == 0 || getuid() != geteuid() || getgid() != getegid())
        perror("who");
#else
    char text[64];
    snprintf(text, sizeof text, "neighbour %d", getpid() > 0);
    puts(text);
    char *memory = realloc(NULL, 100);
    memory[0] = (char)rand();
    free(memory);
#endif
}
