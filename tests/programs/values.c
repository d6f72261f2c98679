/* Every kind of argument and result that the calling convention knows.
 * usage: values ROUNDS */
#include "trap.h"

#include <complex.h>

static void once(void *argument)
{
    long i = (long)argument;
    double d = (double)i + 0.5;

    struct pair p = trap_swap((struct pair){d, -d});
    CHECK(p.x == -d && p.y == d);
    struct mixed m = trap_mixed((struct mixed){i, d + 1});
    CHECK(m.i == i + 1 && m.d == (double)i);
    struct small s = trap_small((struct small){'a', (short)(i % 1000), 3});
    CHECK(s.c == 'b' && s.s == i % 1000 * 2 && s.f == 1.5f);
    struct large l = {{0}};
    for (int k = 0; k < 12; k++)
        l.v[k] = i * k;
    l = trap_reverse(l);
    for (int k = 0; k < 12; k++)
        CHECK(l.v[k] == i * (11 - k));
    __int128 big = ((__int128)i << 70) + 3;
    CHECK(trap_mul128(big, 5) == big * 5);
    CHECK(trap_addl(1e4000L, (long double)i) == 1e4000L + (long double)i);
    CHECK(trap_sum_doubles(9, d, d, d, d, d, d, d, d, d) == 9 * d);
    CHECK(trap_sum_doubles(0) == 0);
    CHECK(trap_sum_longs(9, i, i, i, i, i, i, i, i, i) == 9 * i);
    CHECK(trap_many(i, 2, 3, 4, 5, 6, 7, 8, 9, 10, d, 2, 3, 4, 5, 6, 7, 8, 9, 10) ==
          i + 384 + (long)(d + 384));
    CHECK(trap_not(i % 2) == !(i % 2));
    CHECK(trap_negate((signed char)(i % 100)) == -(i % 100));
    CHECK(trap_complement((unsigned char)i) == (unsigned char)~i);
    CHECK(trap_halve((float)i) == (float)i / 2);
    double _Complex z = d + 2 * I;
    CHECK(trap_mulc(z, I) == -2 + d * I);
    float _Complex f = (float)(i % 1000) + 2 * I;
    CHECK(trap_mulcf(f, I) == -2 + (float)(i % 1000) * I);
    long double _Complex g = (long double)d + 2 * I;
    CHECK(trap_mulcl(g, I) == -2 + (long double)d * I);
}

int main(int argc, char **argv)
{
    long rounds = atol(argv[argc - 1]);
    for (long i = 0; i < rounds; i++)
        if (i % 2)
            trap_call(once, (void *)i);
        else
            once((void *)i);
    char text[80];
    snprintf(text, sizeof text, "%.3f %s %ld %.1f %Lf %c %e", 1.5, "text", rounds, 2.5, 3.25L, 'c',
             6e10);
    puts(text);
    return 0;
}
