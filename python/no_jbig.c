/* no_jbig -- what libtiff asks of libjbig, which is under the GPL and so may not be in the wheel.
 * The wheel has this file's library by that name. JBIG packs pictures of one bit a pixel, which are
 * no photos: kiln reads none of them, whichever library is there. Every call fails, so that libtiff
 * refuses such a picture.
 *
 * The names are those that libtiff 4 calls. What a state looks like is known to neither: it is the
 * caller's memory, not touched. */
#include <stddef.h>

enum { NOT_SUPPORTED = 1 << 4 };

const char *jbg_strerror(int code);
void jbg_newlen(unsigned char *data, size_t bytes);
void jbg_dec_init(void *state);
void jbg_dec_free(void *state);
int jbg_dec_in(void *state, unsigned char *data, size_t bytes, size_t *taken);
unsigned long jbg_dec_getsize(const void *state);
unsigned char *jbg_dec_getimage(const void *state, int plane);
void jbg_enc_init(void *state, unsigned long width, unsigned long height, int planes,
                  unsigned char **plane, void *put, void *file);
void jbg_enc_out(void *state);
void jbg_enc_free(void *state);

const char *jbg_strerror(int code)
{
    (void)code;
    return "JBIG is not in this build";
}

void jbg_newlen(unsigned char *data, size_t bytes) { (void)data, (void)bytes; }
void jbg_dec_init(void *state) { (void)state; }
void jbg_dec_free(void *state) { (void)state; }

int jbg_dec_in(void *state, unsigned char *data, size_t bytes, size_t *taken)
{
    (void)state, (void)data, (void)bytes;
    if (taken) *taken = 0;
    return NOT_SUPPORTED;
}

unsigned long jbg_dec_getsize(const void *state)
{
    (void)state;
    return 0;
}

unsigned char *jbg_dec_getimage(const void *state, int plane)
{
    (void)state, (void)plane;
    return NULL;
}

void jbg_enc_init(void *state, unsigned long width, unsigned long height, int planes,
                  unsigned char **plane, void *put, void *file)
{
    (void)state, (void)width, (void)height, (void)planes, (void)plane, (void)put, (void)file;
}

void jbg_enc_out(void *state) { (void)state; }
void jbg_enc_free(void *state) { (void)state; }
