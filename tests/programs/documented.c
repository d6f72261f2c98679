/* What the commands in the documentation are tried on: threads of one name that checksum, allocate and wait for a lock, and
 * a main thread that has it for a while and reads. Takes any arguments. With "wait" it says its number and lives until its input ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;
static atomic_int waiting;

static void *worker(void *unused)
{
	char piece[4096];

	(void)unused;
	pthread_setname_np(pthread_self(), "worker");
	memset(piece, 'x', sizeof piece);
	for (int i = 0; i < 200; i++) {
		unsigned long found = crc32(0, (const Bytef *)piece, sizeof piece);
		char *copy = malloc(100 + (size_t)i);

		snprintf(copy, 100, "%lu", found);
		if (!i)
			waiting = gettid();
		pthread_mutex_lock(&mutex);
		sum += strtoul(copy, NULL, 10);
		pthread_mutex_unlock(&mutex);
		free(copy);
	}
	return NULL;
}

/* Returns when the thread sleeps. */
static void await_sleep(int thread)
{
	char path[64], text[64];
	char state = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		if (!file || fscanf(file, "%*d (%63[^)]) %c", text, &state) != 2)
			exit(1);
		fclose(file);
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[3];
	char text[256];
	size_t have = 0;
	char *none = calloc(10, 10);
	FILE *file = fopen("/proc/self/status", "r");

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	while (!waiting)
		usleep(1000);
	await_sleep(waiting);
	usleep(3000);
	pthread_mutex_unlock(&mutex);
	while (file && fread(text, 1, sizeof text, file) > 0)
		have++;
	if (file) {
		rewind(file);
		have += (size_t)read(fileno(file), text, sizeof text) > 0;
		fclose(file);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%d %lu %d\n", (int)getpid(), sum, have > 0 && none);
	fflush(stdout);
	free(none);
	if (argc > 1 && !strcmp(argv[1], "wait"))
		while (read(0, text, sizeof text) > 0)
			;
	return 0;
}
