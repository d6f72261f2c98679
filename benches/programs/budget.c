/* Calls an empty function of a library, and after every 64 of them another one: nanoseconds of
 * processor time per call. usage: budget CALLS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void empty(void);

int main(int argc, char **argv)
{
	long calls = argc == 2 ? atol(argv[1]) : 0;
	struct timespec start, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	for (long i = 1; i <= calls; i++) {
		empty();
		if (i % 64 == 0)
			rand();
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	printf("%.4f\n", ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / calls);
	return 0;
}
