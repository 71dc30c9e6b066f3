/* convert_rows -- see the header. */
#include "stages/convert/convert_rows.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "stages/import/dataset/additions.h"
#include "stages/import/dataset/findings.h"
#include "stages/import/import_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what travels to workers
 * ----------------------------------------------------------------------------------------------------- */

/* Requests of a file's blocks differ in little else. */
typedef struct {
    uint32_t part;
    uint64_t first, n, offset, row;
} block_record;

/* { number of requests, one of each part, a record for each block } */
static kiln_status pack_requests(kiln_convert_rows *rows, kiln_error *err)
{
    const kiln_import_result *i = &rows->in;
    const uint64_t n_parts = i->n_parts;
    KILN_TRY(kiln_buffer_put(&rows->from, &n_parts, sizeof n_parts, err));
    for (uint32_t k = 0; k < i->n_parts; k++)
        KILN_TRY(kiln_buffer_put(&rows->from, &rows->requests[i->parts[k].first_block], sizeof *rows->requests, err));
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        const kiln_block_request *q = &rows->requests[b];
        const uint32_t part = (uint32_t)(kiln_part_of_block(i->parts, i->n_parts, b) - i->parts);
        const block_record r = {part, q->first, q->n, q->offset, q->row};
        KILN_TRY(kiln_buffer_put(&rows->from, &r, sizeof r, err));
    }
    return KILN_OK;
}

/* ---- parent
 * ---------------------------------------------------------------------------------------------------------------------- */

/* Files behind the first, as items of kiln-import's --add. */
static kiln_status list_added(const char *const *files, unsigned n, const char **list, kiln_error *err)
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

static kiln_status find_rows(const char *const *files, unsigned n, kiln_import_result *i, kiln_error *err)
{
    const char *add;
    const kiln_import_options *o = &kiln_import_given;
    KILN_TRY(list_added(files + 1, n - 1, &add, err));
    const kiln_dataset_wishes wishes = {.avoid = "",
                                        .add = add,
                                        .parts = o->parts,
                                        .read = {.frame = (kiln_source_frame)o->frame,
                                                 .lod = o->lod,
                                                 .is_static = o->is_static,
                                                 .activated = o->activated,
                                                 .no_extras = o->extra != 0},
                                        .stays = "",
                                        .rows_alone = true};
    i->move = (kiln_move){.scale = 1};
    i->dropped_rows = json_array();
    KILN_TRY(kiln_dataset_find(files[0], &wishes, &i->data, err));
    return kiln_parts_make(&i->data, &i->move, &i->parts, &i->n_parts, err);
}

static kiln_status measure_rows(kiln_run *r, kiln_convert_rows *rows, kiln_error *err)
{
    kiln_import_result *i = &rows->in;
    KILN_TRY(KILN_ALLOC(&rows->units, i->scan.n_blocks, "units", err));
    KILN_TRY(KILN_ALLOC(&rows->requests, i->scan.n_blocks, "units", err));
    KILN_TRY(kiln_import_measure(r, i, &rows->sources, rows->units, rows->requests, err));
    KILN_TRY(kiln_import_layer(i, r, rows->units, &rows->layer, err));
    return kiln_import_report(i, kiln_run_report(r), err);
}

kiln_status kiln_convert_rows_read(kiln_run *r, const char *const *files, unsigned n, const char *out, kiln_convert_rows *rows,
                                   kiln_export_bake *bake, kiln_export_from *from, kiln_error *err)
{
    kiln_import_result *i = &rows->in;
    KILN_TRY(find_rows(files, n, i, err));
    KILN_TRY(kiln_sources_collect(&i->data, &rows->sources, err));
    KILN_TRY(kiln_import_prepare(r, out, i, &rows->sources, err));
    KILN_TRY(kiln_import_scan(r, i, &rows->sources, &rows->offsets, err));
    i->scan.info.antialiased |= i->data.antialiased;
    kiln_join_say(i->parts, i->n_parts);
    kiln_findings_say(&i->data);
    kiln_join_say_moves(i->parts, i->n_parts, &i->move);
    KILN_TRY(measure_rows(r, rows, err));
    KILN_TRY(kiln_import_scene(i, &bake->scene, err));
    KILN_TRY(kiln_sources_unchanged(&rows->sources, err));
    KILN_TRY(pack_requests(rows, err));
    bake->layer = rows->layer;
    bake->n_source_rows = bake->scene.rows_read;
    *from = (kiln_export_from){rows->from.data, rows->from.size, kiln_import_block_ram(i)};
    return KILN_OK;
}

void kiln_convert_rows_release(kiln_convert_rows *rows)
{
    kiln_import_result *i = &rows->in;
    if (rows->units) kiln_units_release(rows->units, i->scan.n_blocks);
    free(rows->units);
    free(rows->requests);
    free(rows->offsets);
    kiln_layer_free(rows->layer);
    kiln_buffer_release(&rows->from);
    kiln_sources_release(&rows->sources);
    for (uint32_t k = 0; k < i->n_parts; k++) kiln_prepared_release(&i->parts[k].prepared);
    free(i->parts);
    kiln_dataset_release(&i->data);
    json_decref(i->dropped_rows);
}

/* ---- worker
 * ---------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    const kiln_export *e;
    kiln_worker *w;
    const kiln_block_request *parts;
    const block_record *blocks;
    kiln_block_request request; /* of the block that is read */
    const kiln_chunk *chunk;    /* the same; NULL: none yet */
    kiln_block_reader *reader;
} block_planes;

static kiln_status open_planes(const kiln_export *e, kiln_worker *w, void **out, kiln_error *err)
{
    const unsigned char *data = e->from.data;
    uint64_t n_parts;
    block_planes *p;
    memcpy(&n_parts, data, sizeof n_parts);
    KILN_TRY(KILN_ALLOC(&p, 1, "planes of blocks", err));
    p->e = e;
    p->w = w;
    p->parts = (const void *)(data + sizeof n_parts);
    p->blocks = (const void *)(p->parts + n_parts);
    *out = p;
    return KILN_OK;
}

static void close_planes(void *own)
{
    block_planes *p = own;
    if (p) kiln_block_reader_free(p->reader);
    free(p);
}

static kiln_status read_planes(block_planes *p, const kiln_chunk *c, kiln_error *err)
{
    const block_record *b = &p->blocks[c - p->e->bakes[0].layer->chunks];
    kiln_block_request *q = &p->request;
    kiln_row_counts counts = {0};
    p->chunk = NULL;
    *q = p->parts[b->part];
    q->first = b->first;
    q->n = b->n;
    q->offset = b->offset;
    q->row = b->row;
    if (!kiln_block_reader_is_of(p->reader, q)) {
        kiln_block_reader_free(p->reader);
        p->reader = NULL;
        KILN_TRY(kiln_block_reader_open(q, &p->reader, err));
    }
    KILN_TRY(kiln_block_read(p->reader, q, kiln_worker_threads(p->w), &counts, err));
    if (counts.kept != c->count) return kiln_fail(err, KILN_E_INPUT, "'%s' was changed while it was converted", q->place.path);
    p->chunk = c;
    return KILN_OK;
}

typedef struct {
    const char *name;
    void *dst;
    size_t bytes;
    bool found;
} plane_search;

static kiln_status copy_plane(void *context, const char *name, const void *data, uint64_t bytes, uint32_t elem, kiln_error *err)
{
    plane_search *s = context;
    (void)elem;
    if (s->found || strcmp(name, s->name) != 0) return KILN_OK;
    if (bytes != s->bytes) return kiln_fail(err, KILN_E_BUG, "plane '%s' has %zu bytes", name, (size_t)bytes);
    memcpy(s->dst, data, bytes);
    s->found = true;
    return KILN_OK;
}

static kiln_status give_plane(void *own, const kiln_chunk *c, const char *name, void *dst, size_t bytes, kiln_error *err)
{
    block_planes *p = own;
    plane_search s = {name, dst, bytes, false};
    if (p->chunk != c) KILN_TRY(read_planes(p, c, err));
    KILN_TRY(kiln_block_planes(p->reader, &p->request, copy_plane, &s, err));
    return s.found ? KILN_OK : kiln_fail(err, KILN_E_BUG, "a block has no plane '%s'", name);
}

const kiln_export_planes kiln_convert_planes = {open_planes, give_plane, close_planes};
