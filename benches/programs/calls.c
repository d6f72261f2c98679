/*
 * calls MODE THREADS CALLS
 *
 * Makes CALLS calls on each of THREADS threads and prints the nanoseconds of CPU time and of wall
 * time per iteration, averaged over the threads. CPU time does not count the turns of other
 * threads, so there may be more threads than cores.
 *
 * MODE: call    an empty library function
 *       nested  a library function that calls an empty one
 *       deep    64 calls within each other, back and forth between two libraries
 *       stamps  two reads of the time stamp counter instead of a call
 *       stamped an empty library function between two reads of the time stamp counter
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void empty(void);
void nested(void);
void ping(int further);

typedef void loop_fn(long);

struct thread {
	pthread_t id;
	loop_fn *loop;
	long calls;
	pthread_barrier_t *start;
	double cpu_ns, wall_ns;
};

static inline uint64_t stamp(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* Aligned alike, so that where the linker puts a loop makes no difference. */
#define LOOP __attribute__((noinline, aligned(64))) static void

LOOP call_loop(long n)
{
	while (n--)
		empty();
}

LOOP nested_loop(long n)
{
	while (n--)
		nested();
}

LOOP deep_loop(long n)
{
	while (n--)
		ping(63);
}

static volatile uint64_t keep;

LOOP stamps_loop(long n)
{
	uint64_t sum = 0;
	while (n--) {
		uint64_t before = stamp();
		sum += stamp() - before;
	}
	keep = sum;
}

LOOP stamped_loop(long n)
{
	uint64_t sum = 0;
	while (n--) {
		uint64_t before = stamp();
		empty();
		sum += stamp() - before;
	}
	keep = sum;
}

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *run(void *argument)
{
	struct thread *t = argument;

	t->loop(t->calls / 10 + 1);
	pthread_barrier_wait(t->start);
	double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
	t->loop(t->calls);
	t->cpu_ns = (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / t->calls;
	t->wall_ns = (now(CLOCK_MONOTONIC) - wall) / t->calls;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *mode;
		loop_fn *loop;
	} loops[] = {
		{ "call", call_loop },
		{ "nested", nested_loop },
		{ "deep", deep_loop },
		{ "stamps", stamps_loop },
		{ "stamped", stamped_loop },
	};
	loop_fn *loop = NULL;

	for (unsigned i = 0; argc == 4 && i < sizeof loops / sizeof *loops; i++)
		if (!strcmp(argv[1], loops[i].mode))
			loop = loops[i].loop;
	if (!loop) {
		fprintf(stderr, "usage: calls call|nested|deep|stamps|stamped THREADS CALLS\n");
		return 2;
	}
	int threads = atoi(argv[2]);
	struct thread *all = calloc(threads, sizeof *all);
	pthread_barrier_t start;
	double cpu = 0, wall = 0;

	pthread_barrier_init(&start, NULL, threads);
	for (int i = 0; i < threads; i++) {
		all[i] = (struct thread){ .loop = loop, .calls = atol(argv[3]), .start = &start };
		/* The last is the main thread itself. */
		if (i < threads - 1 && pthread_create(&all[i].id, NULL, run, &all[i])) {
			fprintf(stderr, "calls: no thread\n");
			return 1;
		}
	}
	run(&all[threads - 1]);
	for (int i = 0; i < threads; i++) {
		if (i < threads - 1)
			pthread_join(all[i].id, NULL);
		cpu += all[i].cpu_ns / threads;
		wall += all[i].wall_ns / threads;
	}
	printf("%.4f %.4f\n", cpu, wall);
	return 0;
}
