/* Makes a key and looks what is there. */
#include <pthread.h>
#include <stdio.h>

static pthread_key_t key;
static int made;

void run(void)
{
    if (!made)
        pthread_key_create(&key, NULL);
    made = 1;
    void *value = pthread_getspecific(key);
    puts(!value ? "nothing" : value == &made ? "mine" : "somebody else's");
    fflush(stdout);
    pthread_setspecific(key, &made);
}
