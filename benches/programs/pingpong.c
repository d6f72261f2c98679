/*
 * pingpong pipe|futex PAIRS TURNS SPIN_NS
 *
 * PAIRS pairs of threads, each pair on a processor of its own, hand a token back and forth, TURNS times each; whoever has
 * it works for SPIN_NS before. Prints the nanoseconds of processor time that the threads took for each wait, how often they
 * were switched out by their own will, and how many such switches a second that is.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct pair {
	int there[2], back[2];
	int turn;
	int processor;
};

struct side {
	struct pair *pair;
	int is_second;
	long switches;
	double cpu_ns;
};

static int uses_futex, turns;
static long spin_ns;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void work(void)
{
	double end = now(CLOCK_MONOTONIC) + spin_ns;

	while (spin_ns && now(CLOCK_MONOTONIC) < end)
		;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Waits until it is this side's turn. */
static void await(struct side *side)
{
	char token;

	if (!uses_futex) {
		int *from = side->is_second ? side->pair->there : side->pair->back;

		if (read(from[0], &token, 1) != 1)
			fail("read");
		return;
	}
	while (__atomic_load_n(&side->pair->turn, __ATOMIC_ACQUIRE) != side->is_second)
		syscall(SYS_futex, &side->pair->turn, FUTEX_WAIT_PRIVATE, !side->is_second, NULL);
}

static void pass(struct side *side)
{
	if (!uses_futex) {
		int *to = side->is_second ? side->pair->back : side->pair->there;

		if (write(to[1], "", 1) != 1)
			fail("write");
		return;
	}
	__atomic_store_n(&side->pair->turn, !side->is_second, __ATOMIC_RELEASE);
	syscall(SYS_futex, &side->pair->turn, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static void *run(void *argument)
{
	struct side *side = argument;
	struct rusage before, after;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(side->pair->processor, &one);
	if (pthread_setaffinity_np(pthread_self(), sizeof one, &one))
		fail("pthread_setaffinity_np");
	double start = now(CLOCK_THREAD_CPUTIME_ID);
	getrusage(RUSAGE_THREAD, &before);
	for (int turn = 0; turn < turns; turn++) {
		if (turn || side->is_second)
			await(side);
		work();
		pass(side);
	}
	getrusage(RUSAGE_THREAD, &after);
	side->switches = after.ru_nvcsw - before.ru_nvcsw;
	side->cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - start;
	return NULL;
}

int main(int argc, char **argv)
{
	int pairs = argc == 5 ? atoi(argv[2]) : 0;
	cpu_set_t allowed;

	uses_futex = argc == 5 && !strcmp(argv[1], "futex");
	if (pairs <= 0 || (!uses_futex && strcmp(argv[1], "pipe"))) {
		fprintf(stderr, "usage: pingpong pipe|futex PAIRS TURNS SPIN_NS\n");
		return 2;
	}
	turns = atoi(argv[3]);
	spin_ns = atol(argv[4]);
	sched_getaffinity(0, sizeof allowed, &allowed);

	struct pair all[pairs];
	struct side sides[2 * pairs];
	pthread_t threads[2 * pairs];
	int processor = -1;
	double start = now(CLOCK_MONOTONIC), cpu_ns = 0;
	long switches = 0;

	for (int i = 0; i < 2 * pairs; i++) {
		struct pair *pair = &all[i / 2];

		if (i % 2 == 0) {
			/* The next one that is allowed, from the first one again after the last. */
			do
				processor = (processor + 1) % CPU_SETSIZE;
			while (!CPU_ISSET(processor, &allowed));
			pair->processor = processor;
			pair->turn = 0;
			if (pipe(pair->there) || pipe(pair->back))
				fail("pipe");
		}
		sides[i] = (struct side){ pair, i % 2, 0, 0 };
		if (pthread_create(&threads[i], NULL, run, &sides[i]))
			fail("pthread_create");
	}
	for (int i = 0; i < 2 * pairs; i++) {
		pthread_join(threads[i], NULL);
		switches += sides[i].switches;
		cpu_ns += sides[i].cpu_ns;
	}
	double seconds = (now(CLOCK_MONOTONIC) - start) / 1e9;

	printf("%.1f %ld %.0f\n", cpu_ns / (2.0 * pairs * turns) - spin_ns, switches, switches / seconds);
	return 0;
}
