/* The functions of libtrap.so, whose calls the tests count, and what programs share. */
#ifndef TRAP_H
#define TRAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Empty and small. */
void trap_empty(void);
long trap_add(long a, long b);

/* Call back. */
void trap_call(void (*callback)(void *), void *argument);
long trap_nest(long depth, long (*callback)(long));

/* Spins for that long and returns how long it was, in ticks of the time stamp counter. Makes no
 * library call. */
uint64_t trap_spin(uint64_t ns);

/* Says that it was entered, and never returns. */
void trap_forever(volatile int *entered);

/* The address of trap_empty, as the library itself sees it. */
void *trap_address_of_empty(void);

/* Sets errno and returns what it was. */
int trap_errno(int value);

/* A leaf that keeps its locals in the red zone. */
long trap_leaf(long a);

/* Values. */
struct pair { double x, y; };
struct mixed { long i; double d; };
struct small { char c; short s; float f; };
struct large { long v[12]; };

struct pair trap_swap(struct pair p);
struct mixed trap_mixed(struct mixed m);
struct small trap_small(struct small s);
struct large trap_reverse(struct large l);
__int128 trap_mul128(__int128 a, __int128 b);
long double trap_addl(long double a, long double b);
double trap_sum_doubles(int count, ...);
long trap_sum_longs(int count, ...);
long trap_many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
               double k, double l, double m, double n, double o, double p, double q, double r,
               double s, double t);
bool trap_not(bool b);
signed char trap_negate(signed char c);
unsigned char trap_complement(unsigned char c);
float trap_halve(float f);
#ifndef __cplusplus
double _Complex trap_mulc(double _Complex a, double _Complex b);
float _Complex trap_mulcf(float _Complex a, float _Complex b);
long double _Complex trap_mulcl(long double _Complex a, long double _Complex b);
#endif

#ifdef __cplusplus
}
#endif

/* Ends a program that went wrong in a way that its output would not show. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(99);                                                                              \
        }                                                                                          \
    } while (0)

/* A program whose number of calls differs from run to run tells it to the test in a file. */
static inline void trap_tell(const char *file, const char *what, long count)
{
    FILE *out = fopen(file, "a");
    CHECK(out);
    fprintf(out, "%s %ld\n", what, count);
    fclose(out);
}

#endif
