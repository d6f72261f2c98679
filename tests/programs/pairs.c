/* 64 threads in pairs: of a pair, one holds a lock while the other one waits for it. All of them sort, by a comparison that sleeps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAIRS 32

static struct {
	pthread_mutex_t lock;
	sem_t held;
} pairs[PAIRS];

static int slowly(const void *a, const void *b)
{
	usleep(200);
	return *(const int *)a - *(const int *)b;
}

static void sort(void)
{
	int numbers[] = {5, 2, 7, 1, 8, 3, 6, 4};

	qsort(numbers, 8, sizeof *numbers, slowly);
}

static void name(const char *role, long pair)
{
	char text[16];

	snprintf(text, sizeof text, "%s %ld", role, pair);
	pthread_setname_np(pthread_self(), text);
}

static void *holder(void *number)
{
	long pair = (long)number;

	name("holder", pair);
	pthread_mutex_lock(&pairs[pair].lock);
	sem_post(&pairs[pair].held);
	usleep(50000);
	pthread_mutex_unlock(&pairs[pair].lock);
	sort();
	return NULL;
}

static void *waiter(void *number)
{
	long pair = (long)number;

	name("waiter", pair);
	sem_wait(&pairs[pair].held);
	pthread_mutex_lock(&pairs[pair].lock);
	pthread_mutex_unlock(&pairs[pair].lock);
	sort();
	return NULL;
}

int main(void)
{
	pthread_t threads[2 * PAIRS];

	for (long pair = 0; pair < PAIRS; pair++) {
		pthread_mutex_init(&pairs[pair].lock, NULL);
		sem_init(&pairs[pair].held, 0, 0);
		pthread_create(&threads[2 * pair], NULL, waiter, (void *)pair);
		pthread_create(&threads[2 * pair + 1], NULL, holder, (void *)pair);
	}
	for (int thread = 0; thread < 2 * PAIRS; thread++)
		pthread_join(threads[thread], NULL);
	puts("done");
	return 0;
}
