/* For each line, waits for a child that has its memory for half a second. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char line[16];
	int status = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		pid_t child = vfork();

		if (child == 0) {
			usleep(500000);
			_exit(7);
		}
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
	}
	return 0;
}
