// A document is saved at the end, and put in the place of the old one.
// cause: none
#include <fcntl.h>
#include "planted.h"

int main(void)
{
    static char text[4096];
    work(120000000);
    int file = open("document.new", O_CREAT | O_WRONLY, 0600);
    if (write(file, text, sizeof(text)) != sizeof(text))
        return 1;
    close(file);
    return rename("document.new", "document");
}
