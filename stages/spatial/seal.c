/* seal -- see seal.h. */
#include "stages/spatial/seal.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* LAYOUT: raise it when the bytes of any scratch file change their meaning, so that those of an
 * earlier version are made again. */
enum { LAYOUT = 1, PIECES_AT_ONCE = 256, READ_BYTES = 1 << 16 };

static const char magic[8] = {'k', 'i', 'l', 'n', 's', 'e', 'a', 'l'};

typedef struct {
    uint64_t at, bytes;
    kiln_hash hash;
} seal_piece;

typedef struct {
    char magic[8];
    uint64_t layout, bytes, n;
    kiln_hash place;
    kiln_hash sum; /* of the pieces, and of this with a sum of zeros */
} seal_end;
_Static_assert(sizeof(seal_piece) == 32 && sizeof(seal_end) == 64, "a seal has no gaps");

struct kiln_seal {
    pthread_mutex_t lock;
    seal_piece *pieces; /* [capacity] */
    uint64_t n, capacity;
};

uint64_t kiln_seal_ram(uint64_t n_writes)
{
    return 2 * n_writes * sizeof(seal_piece); /* the list grows by doubling */
}

/* ---- writing --------------------------------------------------------------------------------- */
kiln_seal *kiln_seal_new(void)
{
    kiln_seal *s;
    if (KILN_ALLOC(&s, 1, "the seal of a scratch file", NULL) != KILN_OK) return NULL;
    if (pthread_mutex_init(&s->lock, NULL) == 0) return s;
    free(s);
    return NULL;
}

void kiln_seal_free(kiln_seal *s)
{
    if (!s) return;
    (void)pthread_mutex_destroy(&s->lock);
    free(s->pieces);
    free(s);
}

static kiln_status add_piece(kiln_seal *s, const seal_piece *piece, kiln_error *err)
{
    if (s->n == s->capacity) {
        const uint64_t capacity = s->capacity ? 2 * s->capacity : 16;
        seal_piece *pieces = realloc(s->pieces, capacity * sizeof *pieces);
        if (!pieces)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the seal of a scratch file");
        s->pieces = pieces;
        s->capacity = capacity;
    }
    s->pieces[s->n++] = *piece;
    return KILN_OK;
}

kiln_status kiln_seal_note(kiln_seal *s, uint64_t at, const void *data, size_t bytes,
                           kiln_error *err)
{
    if (bytes == 0) return KILN_OK;
    const seal_piece piece = {.at = at, .bytes = bytes, .hash = kiln_hash_of(data, bytes)};
    (void)pthread_mutex_lock(&s->lock);
    const kiln_status st = add_piece(s, &piece, err);
    (void)pthread_mutex_unlock(&s->lock);
    return st;
}

static int compare_places(const void *a, const void *b)
{
    const seal_piece *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static bool pieces_cover(const seal_piece *pieces, uint64_t n, uint64_t *at)
{
    for (uint64_t i = 0; i < n; i++) {
        if (pieces[i].at != *at || pieces[i].bytes > UINT64_MAX - *at) return false;
        *at += pieces[i].bytes;
    }
    return true;
}

/* The folder's own name and the file's: the bake may be moved, and hosts may see it at different
 * paths. */
static kiln_hash hash_place(const char *path)
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash : path;
    while (from > path && from[-1] != '/') from--;
    return kiln_hash_of(from, strlen(from));
}

static seal_end end_for(const char *path, uint64_t bytes, uint64_t n)
{
    seal_end end = {.layout = LAYOUT, .bytes = bytes, .n = n, .place = hash_place(path)};
    memcpy(end.magic, magic, sizeof magic);
    return end;
}

kiln_status kiln_seal_write(kiln_seal *s, int fd, const char *path, uint64_t bytes, int *why,
                            kiln_error *err)
{
    uint64_t covered = 0;
    *why = 0;
    if (s->n > 1) qsort(s->pieces, s->n, sizeof *s->pieces, compare_places);
    if (!pieces_cover(s->pieces, s->n, &covered) || covered != bytes)
        return kiln_fail(err, KILN_E_BUG,
                         "scratch '%s' of %llu bytes is not written exactly once at byte %llu",
                         path, (unsigned long long)bytes, (unsigned long long)covered);
    seal_end end = end_for(path, bytes, s->n);
    kiln_hasher *h = kiln_hasher_new();
    kiln_hasher_update(h, s->pieces, s->n * sizeof *s->pieces);
    kiln_hasher_update(h, &end, sizeof end);
    if (!h) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the seal of scratch '%s'", path);
    end.sum = kiln_hasher_end(h);
    if (s->n) *why = kiln_file_pwrite(fd, bytes, s->pieces, s->n * sizeof *s->pieces, NULL);
    if (!*why)
        *why = kiln_file_pwrite(fd, bytes + s->n * sizeof *s->pieces, &end, sizeof end, NULL);
    if (!*why) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot write the seal of scratch '%s': %s", path,
                     strerror(*why));
}

/* ---- reading --------------------------------------------------------------------------------- */
typedef struct {
    int fd;
    const char *path;
    uint64_t bytes; /* the file's own */
    seal_end end;
    seal_piece *some; /* [PIECES_AT_ONCE] */
    unsigned char *data;
} seal_reader;

static bool read_end(seal_reader *r)
{
    struct stat s;
    if (fstat(r->fd, &s) != 0 || !S_ISREG(s.st_mode)) return false;
    const uint64_t size = (uint64_t)s.st_size;
    if (size < sizeof r->end || size - sizeof r->end < r->bytes) return false;
    if (kiln_file_read_at(r->fd, r->path, size - sizeof r->end, &r->end, sizeof r->end, NULL) !=
        KILN_OK)
        return false;
    const seal_end expected = end_for(r->path, r->bytes, r->end.n);
    return memcmp(&r->end, &expected, offsetof(seal_end, sum)) == 0 &&
           r->end.n == (size - sizeof r->end - r->bytes) / sizeof(seal_piece) &&
           (size - sizeof r->end - r->bytes) % sizeof(seal_piece) == 0;
}

/* Pieces [first, first + *n), as many as are read at once. */
static bool read_pieces(const seal_reader *r, uint64_t first, uint64_t *n)
{
    *n = r->end.n - first < PIECES_AT_ONCE ? r->end.n - first : PIECES_AT_ONCE;
    return kiln_file_read_at(r->fd, r->path, r->bytes + first * sizeof *r->some, r->some,
                             *n * sizeof *r->some, NULL) == KILN_OK;
}

static bool is_seal_sound(const seal_reader *r, kiln_hasher *h)
{
    seal_end end = r->end;
    uint64_t at = 0, n = 0;
    bool sound = true;
    for (uint64_t first = 0; first < r->end.n && sound; first += n) {
        sound = read_pieces(r, first, &n) && pieces_cover(r->some, n, &at);
        kiln_hasher_update(h, r->some, sound ? n * sizeof *r->some : 0);
    }
    memset(&end.sum, 0, sizeof end.sum);
    kiln_hasher_update(h, &end, sizeof end);
    return kiln_hash_equal(kiln_hasher_end(h), r->end.sum) && sound && at == r->bytes;
}

static bool is_piece_sound(const seal_reader *r, const seal_piece *piece, kiln_hasher *h)
{
    bool sound = true;
    for (uint64_t done = 0; done < piece->bytes && sound;) {
        const uint64_t n = piece->bytes - done < READ_BYTES ? piece->bytes - done : READ_BYTES;
        sound = kiln_file_read_at(r->fd, r->path, piece->at + done, r->data, n, NULL) == KILN_OK;
        kiln_hasher_update(h, r->data, sound ? n : 0);
        done += n;
    }
    return kiln_hash_equal(kiln_hasher_end(h), piece->hash) && sound;
}

static kiln_status check_pieces(const seal_reader *r, bool *sound, kiln_error *err)
{
    uint64_t n = 0;
    for (uint64_t first = 0; first < r->end.n && *sound; first += n) {
        *sound = read_pieces(r, first, &n);
        for (uint64_t i = 0; i < n && *sound; i++) {
            kiln_hasher *h = kiln_hasher_new();
            if (!h)
                return kiln_fail(err, KILN_E_NOMEM, "out of memory while checking scratch '%s'",
                                 r->path);
            *sound = is_piece_sound(r, &r->some[i], h);
        }
    }
    return KILN_OK;
}

static kiln_status check_seal(const seal_reader *r, bool *sound, kiln_error *err)
{
    kiln_hasher *h = kiln_hasher_new();
    if (!h)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory while checking scratch '%s'", r->path);
    *sound = is_seal_sound(r, h);
    return KILN_OK;
}

static void close_reader(seal_reader *r)
{
    free(r->some);
    free(r->data);
}

static kiln_status open_reader(int fd, const char *path, uint64_t bytes, seal_reader *r,
                               kiln_error *err)
{
    *r = (seal_reader){.fd = fd, .path = path, .bytes = bytes};
    KILN_TRY(KILN_ALLOC_UNSET(&r->some, PIECES_AT_ONCE, "the seal of a scratch file", err));
    return KILN_ALLOC_UNSET(&r->data, READ_BYTES, "a piece of a scratch file", err);
}

bool kiln_seal_fits(int fd, const char *path, uint64_t bytes)
{
    seal_reader r = {.fd = fd, .path = path, .bytes = bytes};
    return read_end(&r);
}

kiln_status kiln_seal_check(int fd, const char *path, uint64_t bytes, bool *sound, kiln_error *err)
{
    seal_reader r;
    kiln_status st = open_reader(fd, path, bytes, &r, err);
    *sound = st == KILN_OK && read_end(&r);
    if (*sound) st = check_seal(&r, sound, err);
    if (st == KILN_OK && *sound) st = check_pieces(&r, sound, err);
    if (st != KILN_OK) *sound = false;
    close_reader(&r);
    return st;
}
