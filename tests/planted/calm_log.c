// A program with a thread that writes its log: that waits for lines to write for most of its life, and hardly works, as it should be.
// cause: none
#include <fcntl.h>
#include "planted.h"

enum { LINES = 120 };

static pthread_mutex_t lines_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_lines = PTHREAD_COND_INITIALIZER;
static int lines, is_over;

static void *write_lines(void *argument)
{
    int file = *(int *)argument;
    for (;;) {
        pthread_mutex_lock(&lines_mu);
        while (!lines && !is_over)
            pthread_cond_wait(&has_lines, &lines_mu);
        int some = lines;
        lines = 0;
        pthread_mutex_unlock(&lines_mu);
        if (!some)
            return NULL;
        for (int line = 0; line < some; line++)
            if (write(file, "one more item is done\n", 22) != 22)
                exit(1);
    }
}

static void log_line(int is_last)
{
    pthread_mutex_lock(&lines_mu);
    lines += !is_last;
    is_over = is_last;
    pthread_cond_signal(&has_lines);
    pthread_mutex_unlock(&lines_mu);
}

int main(void)
{
    pthread_t writer;
    int file = open("/dev/null", O_WRONLY);
    pthread_create(&writer, NULL, write_lines, &file);
    for (int line = 0; line < LINES; line++) {
        work(1000000);
        log_line(0);
    }
    log_line(1);
    pthread_join(writer, NULL);
    return 0;
}
