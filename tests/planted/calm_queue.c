// A producer and a consumer of equal speed, with room between them; a logger with little to do.
// cause: none
#include <semaphore.h>
#include "planted.h"

static sem_t items, lines;

static void *consume(void *argument)
{
    for (int item = 0; item < 40; item++) {
        while (sem_wait(&items)) {
        }
        work(1000000);
    }
    return argument;
}

static void *log_lines(void *argument)
{
    for (int line = 0; line < 10; line++)
        while (sem_wait(&lines)) {
        }
    return argument;
}

int main(void)
{
    pthread_t consumer, logger;
    sem_init(&items, 0, 0);
    sem_init(&lines, 0, 0);
    for (int item = 0; item < 40; item++)
        sem_post(&items);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_create(&logger, NULL, log_lines, NULL);
    for (int line = 0; line < 10; line++) {
        work(4000000);
        sem_post(&lines);
    }
    pthread_join(consumer, NULL);
    pthread_join(logger, NULL);
    return 0;
}
