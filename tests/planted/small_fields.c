// A table is written through a stream without a buffer: each number and each separator is a system call of its own, in two functions.
// cause: small-transfers
// also: small-transfers
// object: table.csv
// site: emit_row small_fields.c
#include "planted.h"

struct exporter {
    FILE *out;
    long rows;
};

static struct exporter *exporter_open(const char *path)
{
    struct exporter *exporter = malloc(sizeof *exporter);
    exporter->out = fopen(path, "w");
    setvbuf(exporter->out, NULL, _IONBF, 0);
    exporter->rows = 0;
    return exporter;
}

__attribute__((noinline)) static void emit_row(struct exporter *exporter, int id)
{
    for (int column = 0; column < 6; column++) {
        fprintf(exporter->out, "%d", id * column);
        fputc(column == 5 ? '\n' : ',', exporter->out);
    }
    exporter->rows++;
}

int main(void)
{
    struct exporter *exporter = exporter_open("table.csv");
    for (int id = 0; id < 60000; id++)
        emit_row(exporter, id);
    fclose(exporter->out);
    free(exporter);
}
