// A server that is ended by a signal while it works: a consumer sleeps for each job, and the thread that accepts jobs waits for room.
// cause: sleeping-stage
// group: deliver
// site: deliver sleepy_server.c
// says: while accept_jobs waits for it
#include "planted.h"
#include <signal.h>

enum { ROOM = 16 };

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t has_room, has_jobs;
    int jobs[ROOM], first, count;
};

static struct queue jobs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};

static void push(struct queue *queue, int job)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == ROOM)
        pthread_cond_wait(&queue->has_room, &queue->mutex);
    queue->jobs[(queue->first + queue->count++) % ROOM] = job;
    pthread_cond_signal(&queue->has_jobs);
    pthread_mutex_unlock(&queue->mutex);
}

static int pop(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->count)
        pthread_cond_wait(&queue->has_jobs, &queue->mutex);
    int job = queue->jobs[queue->first];
    queue->first = (queue->first + 1) % ROOM;
    queue->count--;
    pthread_cond_signal(&queue->has_room);
    pthread_mutex_unlock(&queue->mutex);
    return job;
}

static void *deliver(void *argument)
{
    for (;;) {
        pop(&jobs);
        usleep(5000);
    }
    return argument;
}

static void *accept_jobs(void *argument)
{
    for (int job = 0;; job++) {
        work(30000);
        push(&jobs, job);
    }
    return argument;
}

static void on_end(int signal)
{
    (void)signal;
    _exit(0);
}

int main(void)
{
    pthread_t acceptor, deliverer;
    signal(SIGTERM, on_end);
    pthread_create(&deliverer, NULL, deliver, NULL);
    pthread_create(&acceptor, NULL, accept_jobs, NULL);
    nap_ms(1500);
    kill(getpid(), SIGTERM);
    pthread_join(acceptor, NULL);
}
