/* plain_rows -- rows of files without a manifest, for programs that store nothing of them: the
 * files are found, made readable and checked as by kiln-import, and a block is read and sanitised
 * again whenever a worker asks for it, so none is held. */
#ifndef KILN_STAGES_IMPORT_PLAIN_ROWS_H
#define KILN_STAGES_IMPORT_PLAIN_ROWS_H

#include "base/file.h"
#include "stages/import/import_units.h"

/* The file of a word of the command line: behind the first, position > 0, it may hold a move. */
kiln_status kiln_plain_rows_file(const char *word, unsigned position, char path[KILN_PATH_MAX],
                                 kiln_error *err) KILN_MUST_CHECK;
/* Gives each file that the rows of this one come from, or of this folder; none where they cannot be
 * found, which the run tells. */
typedef kiln_status kiln_plain_source_fn(void *context, const char *path, kiln_error *err);
kiln_status kiln_plain_rows_sources(const char *path, unsigned position, kiln_plain_source_fn *each,
                                    void *context, kiln_error *err) KILN_MUST_CHECK;

/* The parent's side. Release it after a failure, too. */
typedef struct {
    kiln_import_result in;
    kiln_sources sources;
    uint64_t *offsets;
    kiln_unit *units; /* [in.scan.n_blocks], of kiln_plain_rows_measure */
    kiln_block_request *requests;
    kiln_layer *layer;  /* blocks and their planes, without data; of kiln_plain_rows_measure */
    kiln_buffer packed; /* what workers read the rows by */
} kiln_plain_rows;

/* Leaves a file out of folders that are looked through from now on. path: its real path, copied;
 * NULL: none. Of the parent's main thread. */
void kiln_plain_rows_leave_out(const char *path);
/* files [n]: their rows are joined. cameras: a file of some, or NULL; else none are looked for. */
kiln_status kiln_plain_rows_find(const char *const *files, unsigned n, const char *cameras,
                                 kiln_plain_rows *rows, kiln_error *err) KILN_MUST_CHECK;
/* After find, before open: what the headers of the files say. So needs of memory are known before
 * the first list, whose refusal names them. Announces what checking the rows takes. *layer has all
 * blocks and planes, in a box of no meaning; the caller frees it with kiln_layer_free. It is NULL
 * where a header does not say the number of rows. Sizes are bytes: of `packed`, and of a block that
 * is read. KILN_E_NOMEM. */
typedef struct {
    kiln_layer *layer;
    uint64_t packed_bytes, block_ram;
} kiln_plain_expected;
kiln_status kiln_plain_rows_expect(kiln_run *r, kiln_plain_rows *rows, kiln_plain_expected *out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* After find: checks all rows. near: a path beside which scratch may lie. As kiln_run_units. */
kiln_status kiln_plain_rows_open(kiln_run *r, const char *near, kiln_plain_rows *rows,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Counts and bounds of all blocks; reports them as kiln-import does. */
kiln_status kiln_plain_rows_measure(kiln_run *r, kiln_plain_rows *rows,
                                    kiln_error *err) KILN_MUST_CHECK;
void kiln_plain_rows_release(kiln_plain_rows *rows);
/* The units of both, in a worker; *is_one false: it is none of them. */
kiln_status kiln_plain_rows_unit(kiln_worker *w, const char *name, const void *payload,
                                 size_t bytes, bool *is_one, kiln_error *err) KILN_MUST_CHECK;

/* A worker's side: packed is borrowed. */
typedef struct kiln_plain_reader kiln_plain_reader;
kiln_status kiln_plain_reader_open(const void *packed, kiln_plain_reader **out,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_plain_reader_close(kiln_plain_reader *p); /* accepts NULL */
/* A block as the file has it (kiln_block_raw), or sanitised. *block is valid until the next
 * call. */
kiln_status kiln_plain_reader_raw(kiln_plain_reader *p, uint64_t number,
                                  const kiln_block_reader **block, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_plain_reader_clean(kiln_plain_reader *p, uint64_t number, unsigned threads,
                                    uint64_t *kept, kiln_error *err) KILN_MUST_CHECK;
/* Of the sanitised block. */
kiln_status kiln_plain_reader_planes(const kiln_plain_reader *p, kiln_block_plane_fn *each,
                                     void *context, kiln_error *err) KILN_MUST_CHECK;

#endif
