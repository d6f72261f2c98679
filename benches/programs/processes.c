/*
 * processes thread|fork|exec COUNT
 *
 * Prints the nanoseconds of wall time that each of COUNT threads or processes takes, one after the
 * other: created, some library calls made, ended and waited for. "exec" starts this program anew in
 * the forked process.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* To be compiled with -fno-builtin, so that each of these is a call. */
static int use_libraries(const char *text)
{
	return (int)strlen(text) + (strchr(text, 'x') != NULL) + (getppid() < 0);
}

static void *run(void *text)
{
	return use_libraries(text) > 1000 ? text : NULL;
}

static int one_thread(char *name)
{
	pthread_t thread;
	void *result;

	return pthread_create(&thread, NULL, run, name) || pthread_join(thread, &result) || result;
}

static int wait_for(pid_t child)
{
	int status;

	return child < 0 || waitpid(child, &status, 0) != child || status;
}

static int one_fork(char *name)
{
	pid_t child = fork();

	if (!child)
		_exit(use_libraries(name) > 1000);
	return wait_for(child);
}

static int one_exec(char *name)
{
	pid_t child = fork();

	if (!child) {
		execl(name, name, NULL);
		_exit(127);
	}
	return wait_for(child);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*one)(char *);
	} kinds[] = { { "thread", one_thread }, { "fork", one_fork }, { "exec", one_exec } };
	int (*one)(char *) = NULL;
	int count = argc == 3 ? atoi(argv[2]) : 0;

	/* What "exec" starts. */
	if (argc == 1)
		return use_libraries(argv[0]) > 1000;
	for (unsigned i = 0; count > 0 && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(argv[1], kinds[i].name))
			one = kinds[i].one;
	if (!one) {
		fprintf(stderr, "usage: processes thread|fork|exec COUNT\n");
		return 2;
	}

	double start = now();
	for (int i = 0; i < count; i++)
		if (one(argv[0])) {
			fprintf(stderr, "processes: %s %d of %d failed\n", argv[1], i, count);
			return 1;
		}
	printf("%.1f\n", (now() - start) / count);
	return 0;
}
