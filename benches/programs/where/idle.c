/* A GLib main loop that computes in an idle callback, and uses GLib's tables and strings there. */
#include <glib.h>

static guint rounds;
static GHashTable *table;

static gboolean compute(gpointer data)
{
	guint64 *state = data;
	GString *text = g_string_new(NULL);

	for (int i = 0; i < 20; i++) {
		gchar *key = g_strdup_printf("%u", (guint)(*state >> 52));

		for (int j = 0; j < 600; j++)
			*state = *state * 6364136223846793005u + 1442695040888963407u;
		g_string_append(text, key);
		g_hash_table_replace(table, key, GUINT_TO_POINTER(text->len));
	}
	g_string_free(text, TRUE);
	return ++rounds < 150000 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static gboolean is_done(gpointer loop)
{
	if (rounds >= 150000)
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	guint64 state = 1;

	table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_idle_add(compute, &state);
	g_timeout_add(5, is_done, loop);
	g_main_loop_run(loop);
	g_print("%u %u\n", rounds, g_hash_table_size(table));
	return 0;
}
