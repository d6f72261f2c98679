/*
 * memory THREADS
 *
 * Has THREADS further threads, each of which has called a few library functions, and prints the
 * process's resident and private dirty memory while all of them are alive, in kB.
 */
#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t ready, done;

/* To be compiled with -fno-builtin, so that each of these is a call. */
static void use_libraries(void)
{
	char text[64], copy[64];

	for (int i = 0; i < 100; i++) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		snprintf(text, sizeof text, "%d %ld", i, t.tv_nsec);
		memcpy(copy, text, sizeof copy);
		if (strlen(copy) > sizeof copy || strcmp(copy, text) || !strchr(copy, ' '))
			abort();
		toupper(copy[0]);
		memset(copy, 0, sizeof copy);
		getpid();
	}
}

static void *run(void *argument)
{
	use_libraries();
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&done);
	return argument;
}

static long field(const char *rollup, const char *name)
{
	const char *at = strstr(rollup, name);
	return at ? atol(at + strlen(name)) : -1;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *ids = calloc(threads + 1, sizeof *ids);
	pthread_attr_t small;
	static char rollup[4096];

	pthread_barrier_init(&ready, NULL, threads + 1);
	pthread_barrier_init(&done, NULL, threads + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 * 1024);
	use_libraries();
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], &small, run, NULL)) {
			fprintf(stderr, "memory: thread %d of %d can't be created\n", i, threads);
			_exit(1);
		}
	pthread_barrier_wait(&ready);

	int file = open("/proc/self/smaps_rollup", O_RDONLY);
	if (file < 0 || read(file, rollup, sizeof rollup - 1) <= 0) {
		perror("memory: /proc/self/smaps_rollup");
		_exit(1);
	}
	close(file);
	long rss = field(rollup, "\nRss:"), dirty = field(rollup, "\nPrivate_Dirty:");

	pthread_barrier_wait(&done);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%ld %ld\n", rss, dirty);
	return rss < 0 || dirty < 0;
}
