/* The library of known functions that the programs call. */
#define _GNU_SOURCE
#include "trap.h"

#include <complex.h>
#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <x86intrin.h>

void trap_empty(void) {}

long trap_add(long a, long b) { return a + b; }

void trap_call(void (*callback)(void *), void *argument)
{
    callback(argument);
    /* Not a tail call: the frame stays below the callback. */
    __asm__ volatile("" ::: "memory");
}

long trap_nest(long depth, long (*callback)(long))
{
    long result = callback(depth);
    __asm__ volatile("" ::: "memory");
    return result + 1;
}

static double ticks_per_ns;

__attribute__((constructor)) static void calibrate(void)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    uint64_t start = __rdtsc();
    long ns;
    do {
        clock_gettime(CLOCK_MONOTONIC, &b);
        ns = (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
    } while (ns < 200000);
    ticks_per_ns = (double)(__rdtsc() - start) / (double)ns;
}

uint64_t trap_spin(uint64_t ns)
{
    uint64_t start = __rdtsc(), now;
    uint64_t ticks = (uint64_t)((double)ns * ticks_per_ns);
    do
        now = __rdtsc();
    while (now - start < ticks);
    return now - start;
}

void trap_forever(volatile int *entered)
{
    *entered = 1;
    for (;;)
        __asm__ volatile("pause");
}

void *trap_address_of_empty(void) { return (void *)trap_empty; }

int trap_errno(int value)
{
    int old = errno;
    errno = value;
    return old;
}

long trap_leaf(long a)
{
    volatile long v[12];
    for (int i = 0; i < 12; i++)
        v[i] = a + i;
    long sum = 0;
    for (int i = 0; i < 12; i++)
        sum += v[i];
    return sum;
}

struct pair trap_swap(struct pair p) { return (struct pair){p.y, p.x}; }

struct mixed trap_mixed(struct mixed m) { return (struct mixed){(long)m.d, (double)m.i}; }

struct small trap_small(struct small s)
{
    return (struct small){(char)(s.c + 1), (short)(s.s * 2), s.f / 2};
}

struct large trap_reverse(struct large l)
{
    struct large r;
    for (int i = 0; i < 12; i++)
        r.v[i] = l.v[11 - i];
    return r;
}

__int128 trap_mul128(__int128 a, __int128 b) { return a * b; }

long double trap_addl(long double a, long double b) { return a + b; }

double trap_sum_doubles(int count, ...)
{
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += va_arg(list, double);
    va_end(list);
    return sum;
}

long trap_sum_longs(int count, ...)
{
    va_list list;
    va_start(list, count);
    long sum = 0;
    for (int i = 0; i < count; i++)
        sum += va_arg(list, long);
    va_end(list);
    return sum;
}

long trap_many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
               double k, double l, double m, double n, double o, double p, double q, double r,
               double s, double t)
{
    double sum = k + 2 * l + 3 * m + 4 * n + 5 * o + 6 * p + 7 * q + 8 * r + 9 * s + 10 * t;
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + (long)sum;
}

bool trap_not(bool b) { return !b; }
signed char trap_negate(signed char c) { return (signed char)-c; }
unsigned char trap_complement(unsigned char c) { return (unsigned char)~c; }
float trap_halve(float f) { return f / 2; }
double _Complex trap_mulc(double _Complex a, double _Complex b) { return a * b; }
float _Complex trap_mulcf(float _Complex a, float _Complex b) { return a * b; }
long double _Complex trap_mulcl(long double _Complex a, long double _Complex b) { return a * b; }
