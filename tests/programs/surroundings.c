/* What a program can see of itself and around it that a helper process might change: children,
 * descriptors, session, process group, signal mask, working directory, limits. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void on_child(int number)
{
	(void)number;
	ended++;
}

int main(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	sigset_t mask;
	int status, highest = -1, count = 0;

	signal(SIGCHLD, on_child);
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] != '.') {
			count++;
			if (atoi(entry->d_name) > highest)
				highest = atoi(entry->d_name);
		}
	}
	closedir(directory);
	printf("descriptors %d, up to %d\n", count, highest);
	printf("children: %d", waitpid(-1, &status, WNOHANG | __WALL));
	printf(" %s\n", strerror(errno));
	printf("leader %d\n", getsid(0) == getpid());
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < 32; i++)
		if (sigismember(&mask, i))
			printf("blocked %d\n", i);
	usleep(300000);
	printf("signals %d\n", (int)ended);
	return 0;
}
