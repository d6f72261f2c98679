/* Vector arguments and results of WIDTH bytes, with the upper halves in use, in registers, on the
 * stack and among variable arguments.
 * usage: vectors ROUNDS */
#include "trap.h"
#include "vectors.h"

#define LANES ((int)(WIDTH / sizeof(double)))

static vector numbers(double first)
{
    vector v;
    for (int i = 0; i < LANES; i++)
        v[i] = first + i;
    return v;
}

static void once(void *argument)
{
    double d = (double)(long)argument;
    vector v[9];
    for (int i = 0; i < 9; i++)
        v[i] = numbers(d + 10 * i);
    vector got = trap_vector(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]);
    for (int i = 0; i < LANES; i++) {
        double want = 0;
        for (int k = 0; k < 9; k++)
            want += (k + 1) * (d + 10 * k + i);
        CHECK(got[i] == want);
    }
    got = trap_vector_varargs(3, v[0], v[4], v[8]);
    for (int i = 0; i < LANES; i++)
        CHECK(got[i] == 3 * (d + i) + 120);
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]);
    for (long i = 0; i < rounds; i++)
        if (i % 2)
            trap_call(once, (void *)i);
        else
            once((void *)i);
    puts("all as they were");
    return 0;
}
