/* GLib's threads, and its pools: a pool's thread runs GLib's own function first. */
#include <glib.h>
#include <stdio.h>

static gpointer alone(gpointer data)
{
    puts(data);
    return NULL;
}

static void pooled(gpointer item, gpointer data)
{
    printf("%s %d\n", (char *)data, GPOINTER_TO_INT(item));
}

int main(void)
{
    g_thread_join(g_thread_new("alone", alone, "alone"));
    GThreadPool *pool = g_thread_pool_new(pooled, "pooled", 1, TRUE, NULL);
    for (int i = 1; i <= 3; i++)
        g_thread_pool_push(pool, GINT_TO_POINTER(i), NULL);
    g_thread_pool_free(pool, FALSE, TRUE);
}
