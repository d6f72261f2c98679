// A consumer whose producer is slow, by a semaphore; no wait takes so long that it is kept by itself.
// cause: limiting-stage
// group: produce
// object: items
// site: take slow_producer.c
// waker: produce, in sem_post
// size: told
#define ITEMS 400
#define PRODUCED_IN_NS 500000
#define CONSUMED_IN_NS 50000
#include "slow_producer.c"
