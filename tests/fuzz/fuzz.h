/* fuzz -- what the harnesses share: the table's rows, files without a disk, and the way to say that
 * something is wrong.
 *
 * A harness is a function over any bytes. It must not crash, read outside, hang, or take memory
 * that the input's size does not justify. What it decodes it decodes again to the same, and encodes
 * and decodes again where there is an encoder. Parameters come from the input's last bytes, which
 * stay part of the input, so that any file of the format is a seed as it is.
 *
 * Adding one: its function in a file of this folder, its row in fuzz.def, seeds in
 * tests/data/fuzz/NAME. A reader of Gaussians or points has a row already (fuzz.c makes reader-NAME
 * of kiln_readers[]) and needs the seeds alone. */
#ifndef KILN_TESTS_FUZZ_H
#define KILN_TESTS_FUZZ_H

#include "base/status.h"
#include "stages/formats/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void kiln_fuzz_fn(const void *argument, const uint8_t *data, size_t size);

typedef struct {
    const char *name; /* its seeds are in tests/data/fuzz/NAME */
    kiln_fuzz_fn *run;
    const void *argument; /* what the function gets beside the bytes; NULL nothing */
    uint32_t max_len;     /* longest input that the fuzzer makes, in bytes */
} kiln_fuzz_row;

/* Calls `each` for every row, the readers first; stops where it returns false. */
void kiln_fuzz_each(bool (*each)(void *context, const kiln_fuzz_row *row), void *context);
/* False when there is no such row. */
bool kiln_fuzz_find(const char *name, kiln_fuzz_row *out);

/* Ends the process with the place and the sentence: the fuzzer keeps the input, the replay
 * fails. */
#define HOLDS(condition)                                                  \
    do {                                                                  \
        if (!(condition)) kiln_fuzz_fail(__FILE__, __LINE__, #condition); \
    } while (0)
_Noreturn void kiln_fuzz_fail(const char *file, int line, const char *what);
/* A refusal of bytes from outside: it has a sentence, it is no bug of ours, and memory has not run
 * out over a number in the file.
 */
void kiln_fuzz_refusal(kiln_status st, const kiln_error *err);

/* A file with these bytes in memory; the path is good until the next call. */
const char *kiln_fuzz_path(const uint8_t *data, size_t size);
/* The process's own folder, made at the first call and removed when the process ends. make fuzz
 * puts it into /dev/shm. */
const char *kiln_fuzz_folder(void);
/* Writes folder/name (folder below kiln_fuzz_folder(), made when missing; name may have folders);
 * returns the path, good until the next call. */
const char *kiln_fuzz_file(const char *folder, const char *name, const void *data, size_t size);

/* SQLite in a harness (sqlite.c). The first two before anything else of a process uses SQLite; else
 * they change nothing. */
void kiln_fuzz_plain_sqlite_memory(void); /* libc's in place of the sanitizer's */
/* Memory for n pages of so many bytes, the smaller ones of other files too, is taken once. */
void kiln_fuzz_keep_sqlite_pages(size_t page_bytes, unsigned n);
/* Gives a file that nobody has open pages of 512 bytes and no log: it is read and written fast. */
void kiln_fuzz_small_pages(const char *path);

/* Number made of the `bytes` bytes that end `before_end` bytes before the end; 0 where the input is
 * too short. */
static inline uint64_t kiln_fuzz_tail(const uint8_t *data, size_t size, size_t before_end,
                                      size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes && before_end + i < size; i++)
        v = v << 8 | data[size - 1 - before_end - i];
    return v;
}

/* The harnesses, each in the file that its subject names. */
kiln_fuzz_fn kiln_fuzz_reader, kiln_fuzz_ply_again; /* reader.c, ply_again.c */
kiln_fuzz_fn kiln_fuzz_blob, kiln_fuzz_ranks, kiln_fuzz_table, kiln_fuzz_manifest,
    /* fuzz_blob.c, tables.c, manifest.c */
    kiln_fuzz_manifest_rows;
/* fuzz_cameras.c */
kiln_fuzz_fn kiln_fuzz_camera_file, kiln_fuzz_colmap, kiln_fuzz_cfg_args;
/* fuzz_cameras.c */
kiln_fuzz_fn kiln_fuzz_split_names, kiln_fuzz_dataparser;
/* fuzz_training.c */
kiln_fuzz_fn kiln_fuzz_exposure, kiln_fuzz_training_marks, kiln_fuzz_name;
/* fuzz_foreign.c */
kiln_fuzz_fn kiln_fuzz_foreign;
/* json.c, fuzz_option.c, fuzz_picture.c */
kiln_fuzz_fn kiln_fuzz_json, kiln_fuzz_option, kiln_fuzz_size, kiln_fuzz_picture;
kiln_fuzz_fn kiln_fuzz_words, kiln_fuzz_jobs; /* fuzz_slurm.c */
/* fuzz_chunks.c */
kiln_fuzz_fn kiln_fuzz_chunks_index;
/* fuzz_request.c */
kiln_fuzz_fn kiln_fuzz_request;
kiln_fuzz_fn kiln_fuzz_part, kiln_fuzz_claim; /* fuzz_part.c */
kiln_fuzz_fn kiln_fuzz_unpack;                /* unpack.c */
kiln_fuzz_fn kiln_fuzz_sog;                   /* fuzz_sog.c */

/* What kiln_fuzz_reader does, of the file at `path`; the input gives parameters. */
void kiln_fuzz_source(const kiln_reader *reader, const char *path, const uint8_t *data,
                      size_t size);

#endif
