// A text is put together of two characters at a time.
// cause: many-tiny-calls
// says: fwrite
#include "planted.h"

int main(void)
{
    FILE *out = fopen("/dev/null", "w");
    for (int i = 0; i < 8000000; i++)
        fwrite("ab", 2, 1, out);
    fclose(out);
    return 0;
}
