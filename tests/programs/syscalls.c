/* Known system calls by known library calls, for the companion to tag.
 * usage: syscalls WHAT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&time, NULL);
}

/* A million calls of each, spread over threads as 7 to 3. */
static void *tagged_thread(void *argument)
{
	long count = (long)argument;
	int null = open("/dev/null", O_WRONLY);

	for (long i = 0; i < count; i++) {
		getppid();
		if (write(null, "0123456789", 10) != 10)
			abort();
	}
	close(null);
	return NULL;
}

static void tagged(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, tagged_thread, (void *)300000);
	tagged_thread((void *)700000);
	pthread_join(thread, NULL);
}

/* 1,000,000 bytes, one by one, by blocks of 4096. */
static void stdio(void)
{
	FILE *file = fopen("zeros", "w+");
	char byte = 0;
	long count = 0;

	setvbuf(file, NULL, _IOFBF, 4096);
	for (int i = 0; i < 1000000; i++)
		fwrite(&byte, 1, 1, file);
	rewind(file);
	while (fread(&byte, 1, 1, file) == 1)
		count++;
	fclose(file);
	printf("%ld\n", count);
}

static void *volatile block;

static void memory(void)
{
	for (int i = 0; i < 10; i++) {
		block = malloc(64 << 20);
		free(block);
	}
	for (int i = 0; i < 200; i++)
		block = malloc(10000);
}

static void resolve(void)
{
	struct addrinfo *found = NULL, hint = { .ai_socktype = SOCK_STREAM };

	getaddrinfo("localhost", "80", &hint, &found);
	if (found)
		freeaddrinfo(found);
}

static pthread_mutex_t free_mutex = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int pipe_ends[2], ready;

static void uncontended(void)
{
	for (int i = 0; i < 100000; i++) {
		pthread_mutex_lock(&free_mutex);
		pthread_mutex_unlock(&free_mutex);
	}
}

static void *waker(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&barrier);
	sleep_ms(200);
	if (write(pipe_ends[1], "x", 1) != 1)
		abort();
	pthread_barrier_wait(&barrier);
	sleep_ms(200);
	pthread_mutex_lock(&free_mutex);
	ready = 1;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&free_mutex);
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	sleep_ms(200);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void told(const char *what, uint64_t since)
{
	printf("%s %llu\n", what, (unsigned long long)(now_ns() - since));
}

/* Says how long each wait was. */
static void waits(void)
{
	pthread_t thread;
	uint64_t since;
	char byte;

	if (pipe(pipe_ends))
		abort();
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, waker, NULL);
	pthread_barrier_wait(&barrier);
	since = now_ns();
	if (read(pipe_ends[0], &byte, 1) != 1)
		abort();
	told("read", since);
	pthread_barrier_wait(&barrier);
	since = now_ns();
	pthread_mutex_lock(&free_mutex);
	while (!ready)
		pthread_cond_wait(&condition, &free_mutex);
	pthread_mutex_unlock(&free_mutex);
	told("pthread_cond_wait", since);
	pthread_barrier_wait(&barrier);
	since = now_ns();
	pthread_mutex_lock(&mutex);
	told("pthread_mutex_lock", since);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	since = now_ns();
	sleep_ms(200);
	told("nanosleep", since);
}

static void busy(void)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < 300000000; i++)
		sum += i;
}

static void errors(void)
{
	for (int i = 0; i < 7; i++)
		if (access("/does/not/exist", F_OK) == 0)
			abort();
	for (int i = 0; i < 3; i++)
		if (close(-1) == 0)
			abort();
}

static void nothing(int number)
{
	(void)number;
}

/* A read that a signal interrupts ten times, and that is restarted. */
static void restarts(void)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	int ends[2];
	char byte;
	pid_t child;

	sigaction(SIGUSR1, &action, NULL);
	if (pipe(ends))
		abort();
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 10; i++) {
			sleep_ms(20);
			kill(getppid(), SIGUSR1);
		}
		sleep_ms(20);
		_exit(write(ends[1], "x", 1) != 1);
	}
	if (read(ends[0], &byte, 1) != 1)
		abort();
	waitpid(child, NULL, 0);
}

/* Handlers, whose calls are theirs and not those of what they interrupt. */
static void on_alarm(int number)
{
	(void)number;
	getppid();
}

static void handlers(void)
{
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 100; i++) {
		raise(SIGUSR1);
		getpgid(0);
	}
}

/* A child on this memory, that does what it does in its parent's context. */
static void vforks(void)
{
	for (int i = 0; i < 20; i++) {
		pid_t child = vfork();

		if (child == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(9);
		}
		waitpid(child, NULL, 0);
		getsid(0);
	}
}

static void *waiting_thread(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 100; i++)
		getppid();
	return NULL;
}

static void threads(void)
{
	static pthread_t all[500];
	pthread_attr_t attributes;

	pthread_barrier_init(&barrier, NULL, 500);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < 500; i++)
		if (pthread_create(&all[i], &attributes, waiting_thread, NULL))
			abort();
	for (int i = 0; i < 500; i++)
		pthread_join(all[i], NULL);
}

/* A system call that no library makes. */
static void inline_call(long number)
{
	long result = number;

	__asm__ volatile("syscall" : "+a"(result) : "D"(0) : "rcx", "r11", "memory");
}

static jmp_buf back;
static int jump_at;

static int compare(const void *a, const void *b)
{
	inline_call(SYS_getppid);
	if (jump_at && --jump_at == 0)
		longjmp(back, 1);
	return *(const int *)a - *(const int *)b;
}

static ucontext_t main_context, other_context;

static void other(void)
{
	for (int i = 0; i < 10; i++) {
		inline_call(SYS_getsid);
		getegid();
		swapcontext(&other_context, &main_context);
	}
}

/* Inside qsort's callback (getppid: 2 of two elements, then 1), after a jump out of it (getpgid), in
 * coroutines (getsid), and on the way back from them (getuid). */
static void inlined(void)
{
	static char stack[1 << 16];
	int pair[2] = { 2, 1 };

	qsort(pair, 2, sizeof(int), compare);
	qsort(pair, 2, sizeof(int), compare);
	jump_at = 1;
	if (!setjmp(back))
		qsort(pair, 2, sizeof(int), compare);
	for (int i = 0; i < 5; i++)
		inline_call(SYS_getpgid);
	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&other_context, other, 0);
	for (int i = 0; i < 10; i++) {
		swapcontext(&main_context, &other_context);
		inline_call(SYS_getuid);
	}
}

/* Counts for two seconds, and says in the end how far it came. */
static void lasting(void)
{
	uint64_t until = now_ns() + 2000000000ull;
	unsigned long count = 0;

	while (now_ns() < until) {
		getppid();
		count++;
		sleep_ms(1);
	}
	printf("counted %s\n", count > 100 ? "far" : "not far");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{ "tagged", tagged },	{ "stdio", stdio },	  { "memory", memory },
		{ "resolve", resolve }, { "uncontended", uncontended }, { "waits", waits },
		{ "busy", busy },	{ "errors", errors },	  { "restarts", restarts },
		{ "handlers", handlers }, { "vforks", vforks },	  { "threads", threads },
		{ "lasting", lasting },	{ "inlined", inlined },
	};

	for (unsigned i = 0; argc > 1 && i < sizeof(all) / sizeof(*all); i++) {
		if (!strcmp(argv[1], all[i].name)) {
			all[i].run();
			return 0;
		}
	}
	return 2;
}
