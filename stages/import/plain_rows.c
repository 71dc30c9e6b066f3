/* plain_rows -- see the header. */
#include "stages/import/plain_rows.h"

#include "base/file.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/import/dataset/additions.h"
#include "stages/import/dataset/findings.h"
#include "stages/import/import_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what travels to workers ----------------------------------------------------------------- */

/* Requests of a file's blocks differ in little else. */
typedef struct {
    uint32_t part;
    uint64_t first, n, offset, row;
} block_record;

/* { number of requests, one of each part, a record for each block } */
static kiln_status pack_requests(kiln_plain_rows *rows, kiln_error *err)
{
    const kiln_import_result *i = &rows->in;
    const uint64_t n_parts = i->n_parts;
    KILN_TRY(kiln_buffer_put(&rows->packed, &n_parts, sizeof n_parts, err));
    for (uint32_t k = 0; k < i->n_parts; k++)
        KILN_TRY(kiln_buffer_put(&rows->packed, &rows->requests[i->parts[k].first_block],
                                 sizeof *rows->requests, err));
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        const kiln_block_request *q = &rows->requests[b];
        const uint32_t part = (uint32_t)(kiln_part_of_block(i->parts, i->n_parts, b) - i->parts);
        const block_record r = {part, q->first, q->n, q->offset, q->row};
        KILN_TRY(kiln_buffer_put(&rows->packed, &r, sizeof r, err));
    }
    return KILN_OK;
}

/* ---- parent ---------------------------------------------------------------------------------- */

/* Files behind the first, as items of kiln-import's --add. */
static kiln_status list_added(const char *const *files, unsigned n, const char **list,
                              kiln_error *err)
{
    const kiln_opt row = KILN_OPTION_LIST("add", list, "FILE", "");
    char path[KILN_PATH_MAX], full[KILN_PATH_MAX];
    kiln_move move;
    kiln_status st = KILN_OK;
    kiln_buffer text = {0};
    *list = NULL;
    for (unsigned i = 0; i < n; i++) {
        text.size = 0;
        KILN_GO(kiln_addition_parse(files[i], path, &move, err));
        if (!realpath(path, full)) KILN_GO(kiln_addition_not_there(files[i], path, err));
        KILN_GO(kiln_addition_text(full, &move, &text, err));
        KILN_GO(kiln_opt_list_add(&row, (const char *)text.data, err));
    }
done:
    kiln_buffer_release(&text);
    return st;
}

static char left_out[KILN_PATH_MAX]; /* kiln_plain_rows_leave_out */

void kiln_plain_rows_leave_out(const char *path)
{
    (void)snprintf(left_out, sizeof left_out, "%s", path ? path : "");
}

static kiln_dataset_wishes wishes_given(const char *cameras, const char *add)
{
    const kiln_import_options *o = &kiln_import_given;
    return (kiln_dataset_wishes){.cameras = cameras,
                                 .avoid = "",
                                 .add = add,
                                 .parts = o->parts,
                                 .read = {.frame = (kiln_source_frame)o->frame,
                                          .lod = o->lod,
                                          .is_static = o->is_static,
                                          .activated = o->activated,
                                          .no_extras = o->extra != 0},
                                 .stays = "",
                                 .leave_out = left_out[0] ? left_out : NULL,
                                 .rows_alone = !cameras};
}

kiln_status kiln_plain_rows_find(const char *const *files, unsigned n, const char *cameras,
                                 kiln_plain_rows *rows, kiln_error *err)
{
    kiln_import_result *i = &rows->in;
    const char *add;
    KILN_TRY(list_added(files + 1, n - 1, &add, err));
    const kiln_dataset_wishes wishes = wishes_given(cameras, add);
    i->move = (kiln_move){.scale = 1};
    i->dropped_rows = json_array();
    KILN_TRY(kiln_dataset_find(files[0], &wishes, &i->data, err));
    KILN_TRY(kiln_parts_make(&i->data, &i->move, &i->parts, &i->n_parts, err));
    return i->n_parts
               ? KILN_OK
               : kiln_fail(err, KILN_E_INPUT, "'%s' holds neither Gaussians nor points", files[0]);
}

/* ---- what headers say ------------------------------------------------------------------------ */

/* As if scanned. False: a header does not say how many rows there are, or cannot be read. */
static bool look_at_part(kiln_join_part *p, const kiln_read_options *read)
{
    kiln_scan *scan = &p->scan;
    const kiln_reader *reader;
    kiln_error unread;
    if (kiln_source_look(p->path, read, &reader, &scan->info, &unread) != KILN_OK ||
        !scan->info.n_rows)
        return false;
    memset(scan->keep, 1, sizeof scan->keep);
    scan->n_blocks = kiln_div_up(scan->info.n_rows, KILN_BLOCK_ROWS);
    p->reader = reader;
    return true;
}

/* i: a copy, with parts of its own. */
static kiln_status expect_layer(kiln_run *r, kiln_import_result *i, kiln_plain_expected *out,
                                kiln_error *err)
{
    uint64_t *offsets, n_blocks = 0, block = KILN_SCAN_RAM;
    kiln_error unread;
    kiln_run_foresee_ram(r, KILN_SCAN_RAM, 1); /* also where a header says nothing */
    for (uint32_t k = 0; k < i->n_parts; k++) {
        kiln_join_part *p = &i->parts[k];
        if (!look_at_part(p, &i->data.read)) return KILN_OK;
        n_blocks += p->scan.n_blocks;
        block = kiln_max_u64(block,
                             kiln_max_u64(kiln_scan_ram(p->reader, &p->scan.info),
                                          kiln_block_ram(p->reader, &p->scan.info, p->scan.keep)));
    }
    i->scan_ram = block + kiln_list_ram(n_blocks);
    kiln_run_foresee_ram(r, block, n_blocks);
    KILN_TRY(KILN_ALLOC(&offsets, n_blocks, "blocks", err));
    const bool joined = kiln_join(i->parts, i->n_parts, offsets, &i->scan, &unread) == KILN_OK;
    free(offsets);
    if (!joined) return KILN_OK; /* the run says why */
    out->packed_bytes = sizeof(uint64_t) + i->n_parts * sizeof(kiln_block_request) +
                        n_blocks * sizeof(block_record);
    out->block_ram = kiln_import_block_ram(i);
    return kiln_import_layer_expected(i, &out->layer, err);
}

kiln_status kiln_plain_rows_expect(kiln_run *r, kiln_plain_rows *rows, kiln_plain_expected *out,
                                   kiln_error *err)
{
    kiln_import_result *i = NULL;
    kiln_status st = KILN_OK;
    memset(out, 0, sizeof *out);
    KILN_GO(KILN_ALLOC(&i, 1, "what headers say", err));
    *i = rows->in;
    i->parts = NULL;
    KILN_GO(KILN_ALLOC(&i->parts, i->n_parts, "what headers say", err));
    memcpy(i->parts, rows->in.parts, i->n_parts * sizeof *i->parts);
    KILN_GO(expect_layer(r, i, out, err));
    rows->in.scan_ram = i->scan_ram;
done:
    if (i) free(i->parts);
    free(i);
    return st;
}

/* ---- files ----------------------------------------------------------------------------------- */

kiln_status kiln_plain_rows_file(const char *word, unsigned position, char path[KILN_PATH_MAX],
                                 kiln_error *err)
{
    kiln_move move;
    if (position > 0) return kiln_addition_parse(word, path, &move, err);
    if (snprintf(path, KILN_PATH_MAX, "%s", word) < KILN_PATH_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", word);
}

kiln_status kiln_plain_rows_sources(const char *path, unsigned position, kiln_plain_source_fn *each,
                                    void *context, kiln_error *err)
{
    kiln_dataset *data;
    kiln_sources sources = {0};
    kiln_error unread;
    kiln_dataset_wishes wishes = wishes_given(NULL, NULL);
    wishes.parts = wishes.parts && position == 0;
    KILN_TRY(KILN_ALLOC(&data, 1, "a data set", err));
    kiln_status st = kiln_dataset_find(path, &wishes, data, &unread);
    if (st == KILN_OK) st = kiln_sources_collect(data, &sources, &unread);
    const uint32_t n = st == KILN_OK ? sources.n : 0;
    st = KILN_OK;
    for (uint32_t i = 0; i < n && st == KILN_OK; i++)
        st = each(context, sources.files[i].path, err);
    kiln_sources_release(&sources);
    kiln_dataset_release(data);
    free(data);
    return st;
}

kiln_status kiln_plain_rows_open(kiln_run *r, const char *near, kiln_plain_rows *rows,
                                 kiln_error *err)
{
    kiln_import_result *i = &rows->in;
    KILN_TRY(kiln_sources_collect(&i->data, &rows->sources, err));
    KILN_TRY(kiln_import_prepare(r, near, i, &rows->sources, err));
    KILN_TRY(kiln_import_scan(r, i, &rows->sources, &rows->offsets, err));
    i->scan.info.antialiased |= i->data.antialiased;
    KILN_TRY(KILN_ALLOC(&rows->units, i->scan.n_blocks, "units", err));
    KILN_TRY(KILN_ALLOC(&rows->requests, i->scan.n_blocks, "units", err));
    kiln_import_requests(i, &rows->sources, rows->requests);
    return pack_requests(rows, err);
}

kiln_status kiln_plain_rows_measure(kiln_run *r, kiln_plain_rows *rows, kiln_error *err)
{
    kiln_import_result *i = &rows->in;
    kiln_join_say(i->parts, i->n_parts);
    kiln_findings_say(&i->data);
    kiln_join_say_moves(i->parts, i->n_parts, &i->move);
    KILN_TRY(kiln_import_measure(r, i, rows->units, rows->requests, err));
    KILN_TRY(kiln_import_layer(i, r, rows->units, &rows->layer, err));
    KILN_TRY(kiln_import_report(i, kiln_run_report(r), err));
    return kiln_sources_unchanged(&rows->sources, err);
}

void kiln_plain_rows_release(kiln_plain_rows *rows)
{
    kiln_import_result *i = &rows->in;
    if (rows->units) kiln_units_release(rows->units, i->scan.n_blocks);
    free(rows->units);
    free(rows->requests);
    free(rows->offsets);
    kiln_layer_free(rows->layer);
    kiln_buffer_release(&rows->packed);
    kiln_sources_release(&rows->sources);
    for (uint32_t k = 0; k < i->n_parts; k++) kiln_prepared_release(&i->parts[k].prepared);
    free(i->parts);
    kiln_dataset_release(&i->data);
    json_decref(i->dropped_rows);
}

/* ---- worker ---------------------------------------------------------------------------------- */

kiln_status kiln_plain_rows_unit(kiln_worker *w, const char *name, const void *payload,
                                 size_t bytes, bool *is_one, kiln_error *err)
{
    static const char *const of_import[] = {KILN_UNPACK_UNIT, KILN_SPOOL_UNIT, KILN_SCAN_UNIT};
    *is_one = true;
    for (size_t i = 0; i < sizeof of_import / sizeof *of_import; i++)
        if (strcmp(name, of_import[i]) == 0) return kiln_import_unit(w, name, payload, bytes, err);
    *is_one = strncmp(name, KILN_BLOCK_UNIT, strlen(KILN_BLOCK_UNIT)) == 0;
    return *is_one ? kiln_block_measure(w, payload, err) : KILN_OK;
}

struct kiln_plain_reader {
    const kiln_block_request *parts;
    const block_record *blocks;
    kiln_block_request request; /* of the block that is read */
    kiln_block_reader *reader;
};

kiln_status kiln_plain_reader_open(const void *packed, kiln_plain_reader **out, kiln_error *err)
{
    const unsigned char *data = packed;
    uint64_t n_parts;
    memcpy(&n_parts, data, sizeof n_parts);
    KILN_TRY(KILN_ALLOC(out, 1, "a reader of blocks", err));
    (*out)->parts = (const void *)(data + sizeof n_parts);
    (*out)->blocks = (const void *)((*out)->parts + n_parts);
    return KILN_OK;
}

void kiln_plain_reader_close(kiln_plain_reader *p)
{
    if (p) kiln_block_reader_free(p->reader);
    free(p);
}

/* Opens the file of the block, unless it is open. */
static kiln_status choose_block(kiln_plain_reader *p, uint64_t number, kiln_error *err)
{
    const block_record *b = &p->blocks[number];
    kiln_block_request *q = &p->request;
    *q = p->parts[b->part];
    q->first = b->first;
    q->n = b->n;
    q->offset = b->offset;
    q->row = b->row;
    if (kiln_block_reader_is_of(p->reader, q)) return KILN_OK;
    kiln_block_reader_free(p->reader);
    p->reader = NULL;
    return kiln_block_reader_open(q, &p->reader, err);
}

kiln_status kiln_plain_reader_raw(kiln_plain_reader *p, uint64_t number,
                                  const kiln_block_reader **block, kiln_error *err)
{
    KILN_TRY(choose_block(p, number, err));
    *block = p->reader;
    return kiln_block_read_raw(p->reader, &p->request, err);
}

kiln_status kiln_plain_reader_clean(kiln_plain_reader *p, uint64_t number, unsigned threads,
                                    uint64_t *kept, kiln_error *err)
{
    kiln_row_counts counts = {0};
    KILN_TRY(choose_block(p, number, err));
    KILN_TRY(kiln_block_read(p->reader, &p->request, threads, &counts, err));
    *kept = counts.kept;
    return KILN_OK;
}

kiln_status kiln_plain_reader_planes(const kiln_plain_reader *p, kiln_block_plane_fn *each,
                                     void *context, kiln_error *err)
{
    return kiln_block_planes(p->reader, &p->request, each, context, err);
}
