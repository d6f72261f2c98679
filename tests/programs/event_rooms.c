/* One thread after the other, N of them, each with three calls. With "forever": says that they have ended, and stays. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "trap.h"

static void *three_calls(void *unused)
{
	for (int call = 0; call < 3; call++) {
		trap_leaf(call);
	}
	return unused;
}

int main(int count, char **arguments)
{
	int threads = atoi(arguments[1]);

	for (int number = 0; number < threads; number++) {
		pthread_t thread;

		if (pthread_create(&thread, 0, three_calls, 0)) {
			return 1;
		}
		pthread_join(thread, 0);
	}
	write(1, "begun\n", 6);
	while (count > 2) {
		pause();
	}
	return 0;
}
