/* A server whose processes write into the memory of their arguments what they are for, as nginx's and PostgreSQL's do:
 * three workers, one of which ends by _exit, and a cleaner.
 * usage: titles SOMETHING_LONG */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *area;
static size_t room;

static void set_title(const char *title)
{
    memset(area, 0, room);
    strncpy(area, title, room - 1);
}

static void child(int number)
{
    char title[64];
    snprintf(title, sizeof title, number < 3 ? "server: worker process %d" : "server: cleaner", number);
    set_title(title);
    for (int i = 0; i < 100; i++)
        free(strdup(title));
    if (number == 1)
        _exit(0);
    exit(0);
}

int main(int argc, char **argv)
{
    area = argv[0];
    room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - area);
    for (int number = 0; number < 4; number++) {
        pid_t pid = fork();
        if (pid == 0)
            child(number);
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    set_title("server: main process /usr/sbin/server");
    puts("done");
    return 0;
}
