// Very many small files are read, once each, and one of settings at the start of each part.
// cause: none
#include <fcntl.h>
#include <sys/stat.h>
#include "planted.h"

enum { PARTS = 20, FILES = 300 };

static void name(char *path, int part, int file, const char *rest)
{
    sprintf(path, "of_%d_%d%s", part, file, rest);
}

static void use(const char *path, int flags)
{
    char text[100] = "text";
    int file = open(path, flags, 0600);
    ssize_t done = flags & O_CREAT ? write(file, text, 100) : read(file, text, 100);
    if (done != 100)
        exit(1);
    close(file);
}

int main(void)
{
    char path[64];
    struct stat about;
    use("settings", O_CREAT | O_WRONLY);
    for (int part = 0; part < PARTS; part++)
        for (int file = 0; file < FILES; file++) {
            name(path, part, file, "");
            mkdir(path, 0700);
            // (All have the same name, in a directory each.)
            name(path, part, file, "/index");
            use(path, O_CREAT | O_WRONLY);
        }
    for (int part = 0; part < PARTS; part++) {
        use("settings", O_RDONLY);
        for (int file = 0; file < FILES; file++) {
            name(path, part, file, "/index");
            if (stat(path, &about))
                return 1;
            use(path, O_RDONLY);
        }
    }
    return 0;
}
