/* Calls of a known order: N slow ones, that sleep for 20 ms, with fast ones between, marks, and a thread with one slow call of its own.
   With "forever": calls without end, the first of which are told on standard output. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../hook/include/chase.h"
#include "trap.h"

static void *slow_thread(void *unused)
{
	usleep(20000);
	return unused;
}

int main(int count, char **arguments)
{
	int rounds = count > 1 ? atoi(arguments[1]) : 3;
	pthread_t thread;

	if (count > 2 && !strcmp(arguments[2], "forever")) {
		for (long round = 0;; round++) {
			trap_leaf(1);
			if (round == rounds) {
				write(1, "begun\n", 6);
			}
		}
	}
	chase_mark("begin");
	for (int round = 0; round < rounds; round++) {
		trap_leaf(round);
		usleep(20000);
		chase_mark("round");
	}
	pthread_create(&thread, 0, slow_thread, 0);
	pthread_join(thread, 0);
	chase_mark("end");
	puts("done");
	return 0;
}
