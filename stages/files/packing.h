/* packing -- files that are one compressed stream: what packs them, their first bytes, and all of
 * them into a scratch file.
 *
 * Readers need random access, because blocks of rows are read in any order by several workers, and
 * a compressed stream has none. So a packed file is unpacked once, as a stream in fixed memory,
 * into scratch (spool.h), and the reader reads that. Everything that is stored and said is about
 * the file that the user has: its path, hash, size and time. A packing is one row of packings[] in
 * packing.c, seeds in tests/data/fuzz/unpack (unit/fuzz), and a function that packs in
 * tests/unit/packing_test.c.
 */
#ifndef KILN_STAGES_FILES_PACKING_H
#define KILN_STAGES_FILES_PACKING_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct kiln_unpacker kiln_unpacker; /* a packing's own */

/* One step of unpacking. */
typedef struct {
    const unsigned char *in;
    size_t n;     /* bytes of in */
    size_t taken; /* of them; set */
    unsigned char *out;
    size_t capacity; /* bytes of out */
    size_t given;    /* written there; set */
    /* a stream has ended just here, so the file may end or a further stream follow; set */
    bool at_end;
} kiln_unpack_step;

typedef struct {
    const char *name;   /* "gzip" */
    const char *suffix; /* "gz": behind the suffix of the format */
    unsigned char magic[4];
    size_t magic_bytes;
    kiln_unpacker *(*open)(void); /* NULL: out of memory */
    /* While it holds bytes back it leaves some of the stream untaken (gzip its trailer, zstd its
     * last byte). Returns NULL, or what is wrong with the bytes at in[taken]. */
    const char *(*step)(kiln_unpacker *u, kiln_unpack_step *s);
    void (*close)(kiln_unpacker *u);
} kiln_packing;

/* What a file may unpack to where its header fixes that: so many bytes more, for what writers
 * add. */
enum { KILN_UNPACK_MORE = 1 << 20 };
/* Host memory of an unpacker and its buffers. A zstd frame whose window is larger than 8 MiB is
 * refused. */
enum { KILN_UNPACK_RAM = 12 << 20, KILN_ZSTD_WINDOW_LOG = 23 };
/* What scratch leaves free of its disk for others: a sixteenth, or so many bytes if that is
 * less. */
enum { KILN_SCRATCH_KEPT_FREE = 256 << 20 };

/* What packs the file, by its first bytes; *out NULL: nothing that is known here. */
kiln_status kiln_packing_find(const char *path, const kiln_packing **out,
                              kiln_error *err) KILN_MUST_CHECK;
/* Length of `name` without the suffix of a packing ("x.ply.gz": 5). */
size_t kiln_packing_stem(const char *name);
/* Length of a scene's path without the suffixes of its last name: of x.sog.gz and x.compressed.ply
 * that of x. name: gets the path without the suffix of a packing. */
size_t kiln_scene_stem(const char *scene, char name[4096]);
/* Prints the packings, one a line, for --list-formats; formats: those that can be packed. */
void kiln_packings_list(const char *formats);

/* What is unpacked, where to, and how much of it. */
typedef struct {
    const char *name;    /* the user's file, for sentences */
    int from;            /* a file of which the bytes [begin, end) are a packed file */
    uint64_t begin, end; /* end may lie behind the file's */
    int to;              /* gets the unpacked bytes, from its byte `at` on */
    uint64_t at;
    uint64_t limit; /* unpacking stops after so many bytes, without a look at what follows */
    uint64_t keep;  /* bytes behind so many are checked and not written */
    uint64_t most;  /* more bytes are refused, with `why`: "its header says 40 bytes" */
    const char *why;
} kiln_unpacking;
/* *bytes: how many there are. KILN_E_INPUT with the offset in the packed file where the stream is
 * damaged, cut short, or followed by something else, or when it holds more than q->most; KILN_E_IO
 * where the disk is full, or would be left with less than a sixteenth of it (at most 256 MiB)
 * free. */
kiln_status kiln_unpack_range(const kiln_packing *p, const kiln_unpacking *q, uint64_t *bytes,
                              kiln_error *err) KILN_MUST_CHECK;
/* The same of the whole file at `path`, into fd from its byte 0 on, up to `limit`. */
kiln_status kiln_unpack(const kiln_packing *p, const char *path, int fd, uint64_t limit,
                        uint64_t *bytes, kiln_error *err) KILN_MUST_CHECK;
/* Unpacks it whole. file_bytes: what it holds by the header inside, so that KILN_UNPACK_MORE more
 * are refused; 0: unknown, and what is refused is more than max_inflated times the packed size, and
 * more than KILN_UNPACK_MORE. */
kiln_status kiln_unpack_whole(const kiln_packing *p, const char *path, int fd, uint64_t file_bytes,
                              uint64_t max_inflated, kiln_error *err) KILN_MUST_CHECK;

const kiln_packing *kiln_packing_named(const char *name); /* NULL when there is none */
/* Writes n bytes to scratch. name: the user's file, for the sentence about a full disk
 * (KILN_E_IO). */
kiln_status kiln_unpacked_write(int fd, const char *name, uint64_t at, const void *data, size_t n,
                                kiln_error *err) KILN_MUST_CHECK;

/* A file as a reader may look at it before it is unpacked: a packed one has its first MiB, and
 * zeros behind that, because sizes are not known yet. */
typedef struct {
    const kiln_packing *packing; /* NULL: the file itself */
    int fd;
    char path[KILN_PATH_MAX]; /* what to open */
    /* it seems to be as large as files may be here (ulimit -f), and no larger */
    bool is_limited;
} kiln_peek;
kiln_status kiln_peek_open(const char *path, kiln_peek *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_peek_close(kiln_peek *p);

#endif
