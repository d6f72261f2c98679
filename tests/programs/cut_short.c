// Waits in system calls that a stop of the thread ends: those that have done a part of what they were asked to, and those that
// fail where the kernel does not begin them again. At each line that it gets, the waits end, and it says what came of them.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MUCH = 1 << 20, PIECES = 3, LONG_S = 60 };

static unsigned char *data; // MUCH bytes, each of which tells where it is
static int piped[2], vectored[2], sent[2], copied[2], received[2], quiet[2], listening;

static int two(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static ssize_t in_one_piece(void)
{
	return write(piped[1], data, MUCH);
}

static ssize_t in_pieces(void)
{
	struct iovec pieces[PIECES] = { { data, 70001 }, { data + 70001, 0 }, { data + 70001, MUCH - 70001 } };
	return writev(vectored[1], pieces, PIECES);
}

static ssize_t by_a_socket(void)
{
	return send(sent[1], data, MUCH, 0);
}

static ssize_t from_a_file(void)
{
	int file = memfd_create("file", 0);
	if (write(file, data, MUCH) != MUCH || lseek(file, 0, SEEK_SET) != 0)
		return -1;
	return sendfile(copied[1], file, NULL, MUCH);
}

static int is_in_order(const unsigned char *bytes, size_t count)
{
	return memcmp(bytes, data, count) == 0;
}

static ssize_t to_the_last_byte(void)
{
	static unsigned char bytes[MUCH];
	ssize_t count = recv(received[0], bytes, MUCH, MSG_WAITALL);
	return count > 0 && is_in_order(bytes, (size_t)count) ? count : -1;
}

static ssize_t for_a_time(void)
{
	char byte;
	struct timeval most = { LONG_S, 0 };
	setsockopt(quiet[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	return recv(quiet[0], &byte, 1, 0);
}

static ssize_t for_a_guest(void)
{
	struct timeval most = { LONG_S, 0 };
	setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	return accept(listening, NULL, NULL) >= 0 ? 1 : -1;
}

static ssize_t for_a_signal(void)
{
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	return sigwaitinfo(&one, NULL);
}

static struct wait {
	ssize_t (*waits)(void);
	ssize_t result;
	int error;
	pthread_t thread;
} all[] = { { .waits = in_one_piece }, { .waits = in_pieces }, { .waits = by_a_socket }, { .waits = from_a_file },
	{ .waits = to_the_last_byte }, { .waits = for_a_time }, { .waits = for_a_guest }, { .waits = for_a_signal } };
enum { COUNT = sizeof all / sizeof *all, SIGNAL = COUNT - 1 };

static void *run(void *argument)
{
	struct wait *wait = argument;
	errno = 0;
	wait->result = wait->waits();
	wait->error = errno;
	return NULL;
}

static int is_complete(int from)
{
	static unsigned char bytes[MUCH];
	size_t count = 0;
	while (count < MUCH) {
		ssize_t more = read(from, bytes + count, MUCH - count);
		if (more <= 0)
			return 0;
		count += (size_t)more;
	}
	return is_in_order(bytes, MUCH);
}

int main(void)
{
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	data = malloc(MUCH);
	for (size_t i = 0; i < MUCH; i++)
		data[i] = (unsigned char)(i ^ i >> 8 ^ i >> 16);
	char line[16];
	do {
		if (pipe(piped) || pipe(vectored) || two(sent) || two(copied) || two(received) || two(quiet))
			return 1;
		listening = socket(AF_UNIX, SOCK_STREAM, 0);
		sa_family_t unnamed = AF_UNIX; // it gets a name that nobody else has
		struct sockaddr_storage address;
		socklen_t length = sizeof address;
		if (bind(listening, (struct sockaddr *)&unnamed, sizeof unnamed) || listen(listening, 1)
			|| getsockname(listening, (struct sockaddr *)&address, &length))
			return 1;
		if (send(received[1], data, MUCH / 8, 0) != MUCH / 8)
			return 1;
		for (int i = 0; i < COUNT; i++)
			pthread_create(&all[i].thread, NULL, run, &all[i]);
		usleep(200000); // until they wait
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			return 0;
		int complete[] = { is_complete(piped[0]), is_complete(vectored[0]), is_complete(sent[0]), is_complete(copied[0]) };
		ssize_t rest = send(received[1], data + MUCH / 8, MUCH - MUCH / 8, 0);
		rest += write(quiet[1], "x", 1);
		rest += connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, length);
		pthread_kill(all[SIGNAL].thread, SIGUSR2);
		for (int i = 0; i < COUNT; i++)
			pthread_join(all[i].thread, NULL);
		printf("%zd, complete %d %d %d %d:", rest, complete[0], complete[1], complete[2], complete[3]);
		for (int i = 0; i < COUNT; i++)
			printf(" %zd%s%s", all[i].result, all[i].error ? " " : "", all[i].error ? strerrorname_np(all[i].error) : "");
		puts("");
		fflush(stdout);
	} while (1);
}
