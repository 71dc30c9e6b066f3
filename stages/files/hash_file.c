/* hash_file -- see the header. */
#include "stages/files/hash_file.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/minmax.h"

#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

/* A piece still lies in the cache of the core that reads it when it is hashed, and hashing it takes
 * longer than waking the thread whose turn is next. */
enum { HASH_STEP = KILN_HASH_RAM };

typedef struct {
    const char *path;
    int fd;
    uint64_t size;
    kiln_hasher *hasher;
    unsigned char *buffers; /* a piece for each thread */
    kiln_status status;     /* of the first piece that failed */
    kiln_error *err;
} file_hash;

static void hash_piece(file_hash *f, kiln_status read, const kiln_error *why,
                       const unsigned char *data, size_t bytes)
{
    if (f->status != KILN_OK) return;
    if (read == KILN_OK)
        kiln_hasher_update(f->hasher, data, bytes);
    else
        f->status = kiln_fail(f->err, read, "%s", why->msg);
}

static void hash_pieces(file_hash *f, unsigned threads)
{
    const uint64_t n = kiln_div_up(f->size, HASH_STEP);
    bool failed = false; /* what is behind a failure need not be read */
#pragma omp parallel for ordered schedule(static, 1) num_threads(threads) if (threads > 1)
    for (uint64_t i = 0; i < n; i++) {
        unsigned char *piece = f->buffers + (size_t)omp_get_thread_num() * HASH_STEP;
        const uint64_t at = i * HASH_STEP;
        const size_t bytes = f->size - at < HASH_STEP ? (size_t)(f->size - at) : HASH_STEP;
        kiln_error why = {0};
        kiln_status st = KILN_OK;
        bool stop;
#pragma omp atomic read
        stop = failed;
        if (!stop) st = kiln_file_read_at(f->fd, f->path, at, piece, bytes, &why);
#pragma omp ordered
        hash_piece(f, st, &why, piece, bytes);
        if (st != KILN_OK) {
#pragma omp atomic write
            failed = true;
        }
    }
}

kiln_status kiln_hash_file_with(const char *path, unsigned threads, kiln_hash *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_file_info info;
    file_hash f = {.path = path, .fd = -1, .err = err};
    KILN_TRY(kiln_file_open(path, &f.fd, err));
    KILN_GO(kiln_file_stat(path, &info, err));
    f.size = info.size;
    const uint64_t pieces = kiln_div_up(f.size, HASH_STEP);
    const unsigned team = pieces < threads ? (unsigned)kiln_max_u64(pieces, 1) : threads;
    KILN_GO(kiln_alloc_unset((void **)&f.buffers, team, HASH_STEP, "file content", err));
    f.hasher = kiln_hasher_new();
    if (!f.hasher) KILN_GO(kiln_fail(err, KILN_E_NOMEM, "out of memory while reading '%s'", path));
    hash_pieces(&f, team);
    st = f.status;
    *out = kiln_hasher_end(f.hasher);
done:
    free(f.buffers);
    close(f.fd);
    return st;
}

kiln_status kiln_hash_file(const char *path, kiln_hash *out, kiln_error *err)
{
    return kiln_hash_file_with(path, 1, out, err);
}
