/* convert_run -- see the header. Chunks of the layer are blocks of the files, so the bytes are
 * those of kiln-export --layer source.
 */
#include "stages/convert/convert_run.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/convert/convert_inputs.h"
#include "stages/convert/convert_target.h"
#include "stages/export/bakes.h"
#include "stages/export/export_options.h"
#include "stages/export/export_told.h"
#include "stages/formats/folder_owner.h"
#include "stages/import/plain_rows.h"
#include "stages/products/product_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the target ------------------------------------------------------------------------------ */

/* A format that nobody has named would be a PLY without a word. */
static kiln_status refuse_no_suffix(const char *out, kiln_error *err)
{
    char written[KILN_WRITERS_TEXT];
    kiln_writers_text(KILN_ASKS_CONVERT, written);
    return kiln_fail(err, KILN_E_USAGE,
                     "'%.1500s' has no suffix that names a format; these are written: %s; or name "
                     "one with --format",
                     out, written);
}

kiln_status kiln_convert_writer(const char *out, const kiln_writer **writer, kiln_error *err)
{
    const kiln_writer *list[KILN_WRITERS_MAX];
    uint32_t n;
    const bool given = kiln_opt_given(&kiln_export_cli, "format");
    KILN_TRY(kiln_writers_parse(kiln_export_given.format, list, &n, err));
    if (n > 1)
        return kiln_fail(err, KILN_E_USAGE,
                         "OUT is one file or folder, and --format names %u formats", n);
    *writer = list[0];
    if (kiln_convert_is_folder(out)) return kiln_export_spz_version(writer, &n, err);
    if (!given && !kiln_path_has_suffix(out)) return refuse_no_suffix(out, err);
    KILN_TRY(kiln_writer_for(out, list[0], given, KILN_ASKS_CONVERT, writer, err));
    return kiln_export_spz_version(writer, &n, err);
}

/* What is read was compared before the run; a manifest, which knows a scene, is none. */
static kiln_status guard_target(kiln_export_target *t, kiln_error *err)
{
    const bool overwrite = kiln_export_given.overwrite;
    const kiln_writer_functions *const f = t->writer->functions;
    kiln_product_guard *g;
    if (f->place == KILN_PLACE_FOLDER) /* what -w does not replace, before -w is advised */
        KILN_TRY(kiln_folder_check(f, t->path, true, err));
    KILN_TRY(kiln_product_guard_open(NULL, overwrite, &g, err));
    kiln_product_guard_keep_ours(g);
    const kiln_status st = kiln_export_target_check(g, t, overwrite, err);
    kiln_product_guard_close(g);
    return st;
}

static kiln_target_kind target_kind(const kiln_writer *w, bool bakes)
{
    if (w->functions->place != KILN_PLACE_FILE) return KILN_TARGET_FOLDER;
    return kiln_export_given.overwrite && !bakes ? KILN_TARGET_REPLACED : KILN_TARGET_FILE;
}

kiln_status kiln_convert_guard(const char *const *files, unsigned n, const char *target, bool bakes,
                               kiln_error *err)
{
    kiln_export_target *t;
    KILN_TRY(KILN_ALLOC(&t, 1, "a target", err));
    kiln_status st = kiln_convert_writer(target, &t->writer, err);
    if (st == KILN_OK) st = kiln_convert_target(target, files[0], t->writer, t->path, err);
    if (st == KILN_OK)
        st = kiln_convert_spare_inputs(files, n, t->path, target_kind(t->writer, bakes), err);
    if (st == KILN_OK) st = kiln_convert_refuse_scene(target, t->path, t->writer, err);
    if (st == KILN_OK) st = guard_target(t, err);
    free(t);
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

typedef struct {
    kiln_plain_rows rows;
    kiln_export_target to;
    kiln_export_bake bake;
    kiln_export e;
    char temporary[KILN_PATH_MAX];
} conversion;

static kiln_status write_converted(kiln_run *r, conversion *c, kiln_error *err)
{
    kiln_export_said said = {0};
    KILN_TRY(kiln_export_foresee(r, c->to.writer, &c->e, &said.loss, err));
    kiln_status st = kiln_export_run(r, c->to.writer, &c->e, &said, err);
    if (st == KILN_OK) kiln_export_tell(&c->to, &c->e, &said);
    if (st == KILN_OK) st = kiln_export_report(r, &c->to, &c->e, &said, err);
    kiln_buffer_release(&said.notes);
    kiln_buffer_release(&said.remarks);
    return st;
}

/* Where headers say how many rows there are, all lists are announced before the first one. What a
 * refusal names is then enough for all of them. The boxes of blocks are not known yet, so filters
 * choose none. */
static kiln_status foresee_converted(kiln_run *r, conversion *c, kiln_error *err)
{
    kiln_plain_expected expected;
    kiln_status st = KILN_OK;
    const kiln_loss none = {0};
    kiln_export_bake *bake = NULL;
    kiln_export e = {.n_bakes = 1, .target = c->to.path, .temporary = c->temporary};
    KILN_GO(kiln_plain_rows_expect(r, &c->rows, &expected, err));
    if (!expected.layer) goto done;
    KILN_GO(KILN_ALLOC(&bake, 1, "a bake", err));
    bake->layer = expected.layer;
    bake->n_source_rows = expected.layer->count;
    bake->scene.kind = kiln_chunk_plane(expected.layer->chunks, "log_scales") ? KILN_SCENE_SPLATS
                                                                              : KILN_SCENE_POINTS;
    e.bakes = bake;
    e.from = (kiln_export_from){NULL, expected.packed_bytes, expected.block_ram};
    KILN_GO(kiln_export_wishes(&e, err));
    const uint32_t n_filters = e.filters.n;
    e.filters.n = 0;
    KILN_GO(kiln_export_choose(&e, NULL, err));
    e.filters.n = n_filters;
    if (e.splats || c->to.writer->holds & KILN_HOLDS_POINTS)
        KILN_GO(kiln_export_foresee(r, c->to.writer, &e, &none, err));
done:
    free(e.chunks);
    free(bake);
    kiln_layer_free(expected.layer);
    return st;
}

/* All rows are the only bake. */
static kiln_status read_converted(kiln_run *r, const char *const *files, unsigned n, conversion *c,
                                  kiln_error *err)
{
    KILN_TRY(kiln_plain_rows_find(files, n, NULL, &c->rows, err));
    KILN_TRY(foresee_converted(r, c, err));
    KILN_TRY(kiln_plain_rows_open(r, c->to.path, &c->rows, err));
    KILN_TRY(kiln_plain_rows_measure(r, &c->rows, err));
    KILN_TRY(kiln_import_scene(&c->rows.in, &c->bake.scene, err));
    c->bake.layer = c->rows.layer;
    c->bake.n_source_rows = c->bake.scene.rows_read;
    c->e.from = (kiln_export_from){c->rows.packed.data, c->rows.packed.size,
                                   kiln_import_block_ram(&c->rows.in)};
    return KILN_OK;
}

static kiln_status convert_files(kiln_run *r, conversion *c, kiln_error *err)
{
    const kiln_parsed *args = kiln_run_args(r);
    const unsigned n = args->n_positional - 1;
    const char *out = args->positional[n];
    KILN_TRY(kiln_convert_writer(out, &c->to.writer, err));
    (void)snprintf(c->to.path, sizeof c->to.path, "%s", out); /* of kiln_convert_target */
    KILN_TRY(guard_target(&c->to, err));
    KILN_TRY(kiln_temporary_path(c->to.path, c->temporary, err));
    KILN_TRY(kiln_make_parents(c->to.path, err));
    KILN_TRY(read_converted(r, args->positional, n, c, err));
    c->e.bakes = &c->bake;
    c->e.n_bakes = 1;
    c->e.target = c->to.path;
    c->e.replace = c->to.replace;
    c->e.seen = c->to.seen;
    c->e.temporary = c->temporary;
    KILN_TRY(kiln_export_wishes(&c->e, err));
    KILN_TRY(kiln_export_choose(&c->e, NULL, err));
    if (c->e.n_chunks == 0) return kiln_export_fail_empty(&c->e, err);
    KILN_TRY(kiln_writer_check_kind(c->to.writer, c->e.splats, err));
    return write_converted(r, c, err);
}

kiln_status kiln_convert_run(kiln_run *r, kiln_error *err)
{
    conversion *c;
    KILN_TRY(KILN_ALLOC(&c, 1, "a conversion", err));
    const kiln_status st = convert_files(r, c, err);
    free(c->e.chunks);
    kiln_plain_rows_release(&c->rows);
    free(c);
    return st;
}

/* ---- worker ---------------------------------------------------------------------------------- */

typedef struct {
    const kiln_export *e;
    kiln_worker *w;
    const kiln_chunk *chunk; /* whose block is read; NULL: none yet */
    kiln_plain_reader *reader;
} block_planes;

static void close_planes(void *own)
{
    block_planes *p = own;
    if (p) kiln_plain_reader_close(p->reader);
    free(p);
}

static kiln_status open_planes(const kiln_export *e, kiln_worker *w, void **out, kiln_error *err)
{
    block_planes *p;
    KILN_TRY(KILN_ALLOC(&p, 1, "planes of blocks", err));
    *p = (block_planes){.e = e, .w = w};
    *out = p;
    return kiln_plain_reader_open(e->from.data, &p->reader, err);
}

static kiln_status read_block_of(block_planes *p, const kiln_chunk *c, kiln_error *err)
{
    uint64_t kept;
    p->chunk = NULL;
    KILN_TRY(kiln_plain_reader_clean(p->reader, (uint64_t)(c - p->e->bakes[0].layer->chunks),
                                     kiln_worker_threads(p->w), &kept, err));
    if (kept != c->count)
        return kiln_fail(err, KILN_E_INPUT, "a file was changed while it was converted");
    p->chunk = c;
    return KILN_OK;
}

typedef struct {
    const char *name;
    void *dst;
    size_t bytes;
    bool found;
} plane_search;

static kiln_status copy_plane(void *context, const char *name, const void *data, uint64_t bytes,
                              uint32_t elem, kiln_error *err)
{
    plane_search *s = context;
    (void)elem;
    if (s->found || strcmp(name, s->name) != 0) return KILN_OK;
    if (bytes != s->bytes)
        return kiln_fail(err, KILN_E_BUG, "plane '%s' has %zu bytes", name, (size_t)bytes);
    memcpy(s->dst, data, bytes);
    s->found = true;
    return KILN_OK;
}

static kiln_status give_plane(void *own, const kiln_chunk *c, const char *name, void *dst,
                              size_t bytes, kiln_error *err)
{
    block_planes *p = own;
    plane_search s = {name, dst, bytes, false};
    if (p->chunk != c) KILN_TRY(read_block_of(p, c, err));
    KILN_TRY(kiln_plain_reader_planes(p->reader, copy_plane, &s, err));
    return s.found ? KILN_OK : kiln_fail(err, KILN_E_BUG, "a block has no plane '%s'", name);
}

static const kiln_export_planes planes_of_blocks = {open_planes, give_plane, close_planes};

kiln_status kiln_convert_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                              kiln_error *err)
{
    static bool writes; /* of this process: a run measures first and then writes */
    bool reads;
    KILN_TRY(kiln_plain_rows_unit(w, name, payload, bytes, &reads, err));
    if (reads) return KILN_OK;
    /* the reader of blocks: what is kept from here on is an export's */
    if (!writes) kiln_worker_set_state(w, NULL, NULL);
    writes = true;
    return kiln_export_unit_of(w, &planes_of_blocks, payload, bytes, err);
}
