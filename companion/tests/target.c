/* A stand-in for a recorded program: keeps its context where the hook does, says hello, and does known things in known contexts. Usage: target RECORDING MODE. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../bpf/shared_user.h"

static __thread char *outer[8];
static __thread unsigned depth;
static __thread char *word __attribute__((tls_model("initial-exec")));
static char *base;

/* The thread's root. */
static void enroll(void)
{
	word = base + 1 * 128;
}

static void enter(unsigned context)
{
	outer[depth++] = word;
	word = base + context * 128;
}

static void leave(void)
{
	word = outer[--depth];
}

static void make_recording(const char *path)
{
	uint32_t pid = getpid();
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || ftruncate(fd, 1 << 20) || pwrite(fd, "CHASEREC", 8, 0) != 8 ||
	    pwrite(fd, &pid, 4, 40) != 4)
		exit(3);
	base = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

/* One thing in a hello is not true. */
static void lie(struct hello *hello, const char *what, const char *path)
{
	static char longest[1 << 16];

	if (!strcmp(what, "base")) {
		hello->base = 4096;
	} else if (!strcmp(what, "mapped")) {
		hello->mapped = ~0ull;
	} else if (!strcmp(what, "word")) {
		hello->tls_offset = 1l << 46;
	} else if (!strcmp(what, "thread")) {
		hello->thread_offset = 1l << 46;
	} else if (!strcmp(what, "path")) {
		hello->path = (uint64_t)path;
	} else if (!strcmp(what, "nowhere")) {
		hello->path = 1;
	} else if (!strcmp(what, "long")) {
		memset(longest, '/', sizeof(longest) - 1);
		hello->path = (uint64_t)longest;
	} else if (!strcmp(what, "version")) {
		hello->version++;
	} else if (!strcmp(what, "length")) {
		hello->len = 8;
	}
}

static void say_hello(const char *path, const char *what, const char *other)
{
	const char *session = getenv("CHASE_SESSION");
	uintptr_t thread_pointer;
	struct hello hello = {
		.version = HELLO_VERSION,
		.len = sizeof(hello),
		.session = session ? strtoull(session, NULL, 10) : 0,
		.base = (uint64_t)base,
		.mapped = 1 << 20,
		.path = (uint64_t)path,
	};

	__asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
	hello.tls_offset = (intptr_t)&word - (intptr_t)thread_pointer;
	lie(&hello, what, other);
	if (prctl(HELLO, strcmp(what, "address") ? &hello : (void *)1, 0, 0, 0) != -1 || errno != EINVAL)
		exit(4);
}

static void repeat(unsigned context, unsigned times, long number, long a, long b, long c)
{
	enter(context);
	for (unsigned i = 0; i < times; i++)
		syscall(number, a, b, c);
	leave();
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&time, &time))
		;
}

/* ---- what it does ----------------------------------------------------------------------------- */

static void *counting_thread(void *argument)
{
	enroll();
	repeat((uintptr_t)argument, 10000, SYS_getppid, 0, 0, 0);
	word = NULL;
	return NULL;
}

static void counts(void)
{
	int null = open("/dev/null", O_WRONLY);
	pthread_t threads[4];

	repeat(5, 1000000, SYS_getppid, 0, 0, 0);
	repeat(6, 1000000, SYS_write, null, (long)"0123456789", 10);
	repeat(7, 7, SYS_access, (long)"/does/not/exist", 0, 0);
	repeat(7, 3, SYS_close, -1, 0, 0);
	/* No recorded call is open. */
	for (int i = 0; i < 11; i++)
		syscall(SYS_getpgid, 0);
	/* By the old entry, whose numbers are those of i386. */
	enter(11);
	for (int i = 0; i < 5; i++) {
		long result = 64;

		__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
	}
	leave();
	/* Nested. */
	enter(8);
	repeat(9, 13, SYS_getsid, 0, 0, 0);
	for (int i = 0; i < 17; i++)
		syscall(SYS_getsid, 0);
	leave();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, counting_thread, (void *)(20 + i));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static pthread_barrier_t barrier;

static void *short_thread(void *argument)
{
	enroll();
	/* All live at once. */
	pthread_barrier_wait(&barrier);
	repeat((uintptr_t)argument, 100, SYS_getppid, 0, 0, 0);
	return NULL;
}

static void many_threads(void)
{
	static pthread_t threads[500];
	pthread_attr_t attributes;

	pthread_barrier_init(&barrier, NULL, 500);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < 500; i++)
		if (pthread_create(&threads[i], &attributes, short_thread, (void *)40))
			exit(6);
	for (int i = 0; i < 500; i++)
		pthread_join(threads[i], NULL);
}

static int pipe_ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *waking_thread(void *argument)
{
	(void)argument;
	enroll();
	pthread_barrier_wait(&barrier);
	sleep_ms(200);
	if (write(pipe_ends[1], "x", 1) != 1)
		exit(5);
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	sleep_ms(300);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void waits(void)
{
	pthread_t thread;
	uint64_t start;
	char byte;

	start = now_ns();
	enter(30);
	for (int i = 0; i < 10; i++)
		sleep_ms(20);
	leave();
	printf("30 %llu\n", (unsigned long long)(now_ns() - start));
	if (pipe(pipe_ends))
		exit(5);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, waking_thread, NULL);
	pthread_barrier_wait(&barrier);
	start = now_ns();
	enter(31);
	if (read(pipe_ends[0], &byte, 1) != 1)
		exit(5);
	leave();
	printf("31 %llu\n", (unsigned long long)(now_ns() - start));
	pthread_barrier_wait(&barrier);
	start = now_ns();
	enter(32);
	pthread_mutex_lock(&mutex);
	leave();
	printf("32 %llu\n", (unsigned long long)(now_ns() - start));
	pthread_join(thread, NULL);
	enter(33);
	for (start = now_ns(); now_ns() - start < 200000000ull;)
		;
	leave();
	fflush(stdout);
}

static unsigned long long cpu_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static __attribute__((noinline)) void compute(unsigned long long ns)
{
	unsigned long long start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start < ns)
		for (volatile int i = 0; i < 100000; i++)
			;
}

/* Its processor time is 1 : 3 in two contexts, in turns. Says what it was in all, and where that was. */
static void samples(void)
{
	for (int i = 0; i < 40; i++) {
		enter(41);
		compute(7000000);
		leave();
		enter(42);
		compute(21000000);
		leave();
	}
	printf("%llu %lx\n", cpu_ns(CLOCK_THREAD_CPUTIME_ID), (unsigned long)compute);
	fflush(stdout);
}

static void tree(int depth)
{
	for (int i = 0; depth > 0 && i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			for (int j = 0; j < 50; j++)
				syscall(SYS_getppid);
			tree(depth - 1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

static void spawn(char **command)
{
	pid_t child = vfork();

	if (!child) {
		execvp(command[0], command);
		_exit(127);
	}
	waitpid(child, NULL, 0);
}

static void *replacing_thread(void *argument)
{
	char **arguments = argument;

	enroll();
	repeat(50, 100, SYS_getppid, 0, 0, 0);
	execl(arguments[0], arguments[0], arguments[3], "lie", "nothing", "", NULL);
	exit(6);
}

/* Runs itself again, with another recording, by another thread than the first. */
static void replace(char **arguments)
{
	pthread_t thread;

	repeat(5, 10, SYS_getppid, 0, 0, 0);
	pthread_create(&thread, NULL, replacing_thread, arguments);
	pthread_join(thread, NULL);
}

int main(int count, char **arguments)
{
	const char *mode = arguments[2];

	if (count < 3)
		return 2;
	make_recording(arguments[1]);
	enroll();
	if (!strcmp(mode, "lie") && count == 5) {
		say_hello(arguments[1], arguments[3], arguments[4]);
		repeat(5, 100, SYS_getppid, 0, 0, 0);
		return 0;
	}
	say_hello(arguments[1], "nothing", "");
	if (!strcmp(mode, "counts"))
		counts();
	else if (!strcmp(mode, "waits"))
		waits();
	else if (!strcmp(mode, "samples"))
		samples();
	else if (!strcmp(mode, "threads"))
		many_threads();
	else if (!strcmp(mode, "tree"))
		tree(4);
	else if (!strcmp(mode, "spawn"))
		spawn(arguments + 3);
	else if (!strcmp(mode, "replace"))
		replace(arguments);
	else if (!strcmp(mode, "long"))
		for (int i = 0; i < 200; i++) {
			repeat(5, 100, SYS_getppid, 0, 0, 0);
			sleep_ms(10);
		}
	return 0;
}
