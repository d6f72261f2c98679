// A server answers by io_uring whoever is ready; one kind of request takes it much longer than the others, and all clients wait.
// cause: event-loop-held-up
// group: held_up_ring
// says: slow_request
// size: told
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "sockets.h"

enum { CLIENTS = 3, SLOW = 5, QUICK = 60, PAUSE_US = 100, SLOW_NS = 60000000, ENTRIES = 8 };

static int ring;
static unsigned *submitted_to, *submission_mask, *submission_array;
static unsigned *completed_from, *completed_to, *completion_mask;
static struct io_uring_sqe *submissions;
static struct io_uring_cqe *completions;

static void make_ring(void)
{
    struct io_uring_params at = {0};
    ring = syscall(SYS_io_uring_setup, ENTRIES, &at);
    if (ring < 0)
        exit(83);
    int shared = PROT_READ | PROT_WRITE;
    char *submission = mmap(NULL, at.sq_off.array + at.sq_entries * 4, shared, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *completion = mmap(NULL, at.cq_off.cqes + at.cq_entries * sizeof(*completions), shared, MAP_SHARED, ring,
                            IORING_OFF_CQ_RING);
    submissions = mmap(NULL, at.sq_entries * sizeof(*submissions), shared, MAP_SHARED, ring, IORING_OFF_SQES);
    if (submission == MAP_FAILED || completion == MAP_FAILED || submissions == MAP_FAILED)
        exit(84);
    submitted_to = (void *)(submission + at.sq_off.tail);
    submission_mask = (void *)(submission + at.sq_off.ring_mask);
    submission_array = (void *)(submission + at.sq_off.array);
    completed_from = (void *)(completion + at.cq_off.head);
    completed_to = (void *)(completion + at.cq_off.tail);
    completion_mask = (void *)(completion + at.cq_off.ring_mask);
    completions = (void *)(completion + at.cq_off.cqes);
}

static void begin_to_read(int from, char *to, int number)
{
    unsigned at = *submitted_to & *submission_mask;
    submissions[at] = (struct io_uring_sqe){
        .opcode = IORING_OP_RECV, .fd = from, .addr = (unsigned long)to, .len = 1, .user_data = number};
    submission_array[at] = at;
    __atomic_store_n(submitted_to, *submitted_to + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1)
        exit(85);
}

static int is_over(void)
{
    return __atomic_load_n(completed_to, __ATOMIC_ACQUIRE) != *completed_from;
}

/* Takes its time, and until another client has asked. (The system call lets the kernel say so.) */
static __attribute__((noinline)) long slow_request(void)
{
    long start = used_ns();
    while (used_ns() - start < SLOW_NS || !is_over())
        work(100000);
    return used_ns() - start;
}

int main(int count, char **arguments)
{
    int port, of_clients[CLIENTS];
    char asked[CLIENTS];
    long slow_ns = 0;
    if (count > 2) {
        signal(SIGPIPE, SIG_IGN);
        return ask_until_silence(atoi(arguments[2]), arguments[1][0] == 'f' ? QUICK : 0, PAUSE_US);
    }
    make_ring();
    int listening = listen_at_any_port(&port);
    for (int i = 0; i < CLIENTS; i++) {
        start(arguments[0], i ? "other" : "first", port);
        of_clients[i] = accept(listening, NULL, NULL);
        begin_to_read(of_clients[i], &asked[i], i);
    }
    for (int slow = 0; slow < SLOW;) {
        if (syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
            return 2;
        while (is_over()) {
            struct io_uring_cqe *over = &completions[*completed_from & *completion_mask];
            int client = over->user_data;
            if (over->res != 1)
                return 3;
            __atomic_store_n(completed_from, *completed_from + 1, __ATOMIC_RELEASE);
            if (asked[client] == 's') {
                slow_ns += slow_request();
                slow++;
            }
            begin_to_read(of_clients[client], &asked[client], client);
            if (write(of_clients[client], "!", 1) != 1)
                return 4;
        }
    }
    /* So that it is known what was ready after the last one. */
    syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    for (int i = 0; i < CLIENTS; i++)
        shutdown(of_clients[i], SHUT_RDWR);
    while (wait(NULL) > 0) {
    }
    tell_size(slow_ns);
    return 0;
}
