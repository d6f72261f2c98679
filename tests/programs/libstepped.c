/* What stepped_load loads. */
void loaded(void);
__attribute__((constructor)) static void begin(void) { loaded(); }
