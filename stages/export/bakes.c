/* bakes -- see bakes.h. */
#include "stages/export/bakes.h"

#include "stages/select/chunk_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a block's rows end in the source. It may hold fewer, which import dropped; a source row is
 * 32 bits. */
static kiln_status block_end(const char *name, uint64_t *out, kiln_error *err)
{
    const bool is_number = name[0] && name[strspn(name, "0123456789")] == '\0';
    const unsigned long long number = is_number ? strtoull(name, NULL, 10) : 0;
    if (!is_number || number > UINT32_MAX / KILN_BLOCK_ROWS)
        return kiln_fail(
            err, KILN_E_INPUT,
            "a block of the source layer is called '%s', which is not the number of a block", name);
    *out = (number + 1) * KILN_BLOCK_ROWS;
    return KILN_OK;
}

static kiln_status end_of_blocks(const kiln_layer *source, uint64_t *out, kiln_error *err)
{
    *out = 0;
    for (uint32_t c = 0; c < source->n_chunks; c++) {
        uint64_t end = 0;
        KILN_TRY(block_end(source->chunks[c].name, &end, err));
        if (end > *out) *out = end;
    }
    return KILN_OK;
}

/* A number that every source_row is below: rows_read, or after a partial import, which has not
 * counted the blocks in between, the end of the last block that it has. */
static kiln_status source_rows(kiln_manifest *m, const kiln_scene *s, uint64_t *out,
                               kiln_error *err)
{
    kiln_stage_row import;
    kiln_layer *source = NULL;
    *out = s->rows_read;
    KILN_TRY(kiln_stage_get(m, "import", &import, err));
    if (import.state != KILN_STAGE_PARTIAL) return KILN_OK;
    kiln_status st = kiln_layer_current(m, KILN_LAYER_source, &source, err);
    if (st == KILN_E_STALE) return KILN_OK; /* the file has no source layer */
    if (st == KILN_OK) st = end_of_blocks(source, out, err);
    kiln_layer_free(source);
    return st;
}

kiln_status kiln_export_bake_open(kiln_manifest *m, const char *path, kiln_layer_kind kind,
                                  kiln_export_bake *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    if (snprintf(out->path, sizeof out->path, "%s", path) >= (int)sizeof out->path)
        return kiln_fail(err, KILN_E_USAGE, "the path '%s' is too long", path);
    KILN_TRY(kiln_scene_get(m, &out->scene, err));
    if (kind == KILN_LAYER_initial && out->scene.kind == KILN_SCENE_SPLATS)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' was imported with Gaussians, so it has no layer 'initial'; use --layer source",
            kiln_manifest_path(m));
    KILN_TRY(kiln_layer_current(m, kind, &out->layer, err));
    return source_rows(m, &out->scene, &out->n_source_rows, err);
}

void kiln_export_bake_release(kiln_export_bake *p)
{
    kiln_layer_free(p->layer);
    kiln_layer_free(p->levels);
}

/* ---- several bakes --------------------------------------------------------------------------- */

static kiln_status open_added(kiln_run *r, const char *path, kiln_layer_kind kind,
                              kiln_export_bake *out, kiln_error *err)
{
    kiln_manifest *m = NULL;
    kiln_status st =
        kiln_manifest_open(path, KILN_OPEN_READ, "export", kiln_run_allow_network(r), &m, err);
    if (st == KILN_OK) st = kiln_run_need_of(r, m, "import", err);
    if (st == KILN_OK) st = kiln_run_need_of(r, m, kiln_layer_kinds[kind].stage, err);
    if (st == KILN_OK) st = kiln_export_bake_open(m, path, kind, out, err);
    kiln_manifest_close(m);
    if (st != KILN_OK) kiln_note(err, "--add");
    return st;
}

static bool has_splats(const kiln_export_bake *p)
{
    return p->layer->n_chunks && kiln_chunk_plane(&p->layer->chunks[0], "log_scales") != NULL;
}

static kiln_status check_together(const kiln_export_bake *a, const kiln_export_bake *b,
                                  kiln_error *err)
{
    if (has_splats(a) != has_splats(b))
        return kiln_fail(err, KILN_E_INPUT, "'%.1500s' of --add holds %s; they cannot be one file",
                         b->path,
                         has_splats(b) ? "Gaussians, but the first bake holds points"
                                       : "points, but the first bake holds Gaussians");
    if (a->scene.antialiased != b->scene.antialiased)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%.1500s' of --add was trained %s antialiasing, but the first bake %s "
                         "it; one file cannot be right for "
                         "both",
                         b->path, b->scene.antialiased ? "with" : "without",
                         a->scene.antialiased ? "with" : "without");
    return KILN_OK;
}

/* Where nothing was chunked yet, the rows that were imported can be written all the same. */
static kiln_status need_layer(kiln_run *r, kiln_layer_kind kind, kiln_error *err)
{
    const char *const stage = kiln_layer_kinds[kind].stage;
    kiln_stage_row row;
    kiln_error none;
    char why[sizeof err->msg];
    const kiln_status st = kiln_run_need(r, stage, err);
    if (st != KILN_E_STALE || kind != KILN_LAYER_baked) return st;
    if (kiln_stage_get(kiln_run_manifest(r), stage, &row, &none) != KILN_OK ||
        row.state != KILN_STAGE_MISSING)
        return st;
    (void)snprintf(why, sizeof why, "%s", err->msg);
    return kiln_fail(err, st, "%s, or write the imported rows with --layer source", why);
}

kiln_status kiln_export_bakes_open(kiln_run *r, const char *added, kiln_layer_kind kind,
                                   kiln_export_bake **bakes, uint32_t *n, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(KILN_ALLOC(bakes, KILN_EXPORT_BAKES, "bakes", err));
    *n = 1;
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(need_layer(r, kind, err));
    KILN_TRY(kiln_export_bake_open(kiln_run_manifest(r), "", kind, &(*bakes)[0], err));
    while (kiln_opt_list_next(&added, path, sizeof path)) {
        if (*n == KILN_EXPORT_BAKES)
            return kiln_fail(err, KILN_E_USAGE, "--add takes %d bakes at most",
                             KILN_EXPORT_BAKES - 1);
        KILN_TRY(open_added(r, path, kind, &(*bakes)[(*n)++], err));
        KILN_TRY(check_together(&(*bakes)[0], &(*bakes)[*n - 1], err));
    }
    return KILN_OK;
}

void kiln_export_bakes_release(kiln_export_bake *bakes, uint32_t n)
{
    for (uint32_t p = 0; bakes && p < n; p++) kiln_export_bake_release(&bakes[p]);
    free(bakes);
}

kiln_status kiln_export_absolute(const kiln_opt *row, kiln_error *err)
{
    const char **list = row->where, *at = *list;
    char item[KILN_PATH_MAX], full[KILN_PATH_MAX];
    *list = NULL;
    while (kiln_opt_list_next(&at, item, sizeof item)) {
        if (!realpath(item, full))
            return kiln_fail(err, KILN_E_INPUT, "cannot open '%s' of --%s: %s", item, row->name,
                             strerror(errno));
        KILN_TRY(kiln_opt_list_add(row, full, err));
    }
    return KILN_OK;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static kiln_status bind_filters(const kiln_export *e, const kiln_export_bake *bake,
                                kiln_filters *filters, kiln_error *err)
{
    const kiln_status st =
        kiln_filters_bind(filters, &bake->layer->chunks[0], bake->layer->sh_degree, err);
    if (st != KILN_OK && e->n_bakes > 1)
        kiln_note(err, "'%s'", bake->path[0] ? bake->path : "the first bake");
    return st;
}

/* Chunks of which the filters keep nothing are left out; others may still lose rows, which the
 * survey counts. */
static kiln_status fill_chunks(kiln_export *e, uint8_t *chosen, kiln_error *err)
{
    e->n_chunks = 0;
    e->n_rows = 0;
    for (uint32_t p = 0, at = 0; p < e->n_bakes; p++) {
        const kiln_export_bake *bake = &e->bakes[p];
        kiln_filters filters = e->filters;
        if (filters.n && bake->layer->n_chunks) KILN_TRY(bind_filters(e, bake, &filters, err));
        for (uint32_t c = 0; c < bake->layer->n_chunks; c++, at++) {
            const kiln_chunk *chunk = &bake->layer->chunks[c];
            if (chosen[at])
                chosen[at] =
                    kiln_filters_chunk(&filters, chunk, bake->scene.origin) != KILN_CHUNK_NONE;
            if (!chosen[at]) continue;
            e->chunks[e->n_chunks++] = (kiln_export_chunk){.bake = p,
                                                           .chunk = chunk,
                                                           .first = e->n_rows,
                                                           .n = chunk->count,
                                                           .node = KILN_NO_NODE};
            e->n_rows += chunk->count;
        }
    }
    return KILN_OK;
}

static void choose_origin(kiln_export *e, const uint8_t *chosen)
{
    kiln_edits_span span = {0};
    for (uint32_t p = 0; p < e->n_bakes; p++) {
        kiln_edits_span_add(&span, &e->edits, e->bakes[p].layer, chosen, e->bakes[p].scene.origin);
        chosen += e->bakes[p].layer->n_chunks;
    }
    kiln_edits_origin(&span, &e->edits, e->base);
    for (int c = 0; c < 3; c++) e->origin[c] = e->keep_origin ? 0 : e->base[c];
}

static void fill_facts(kiln_export *e)
{
    uint64_t rows = 0;
    e->sh_degree = 0;
    e->edited = e->edits.moves;
    for (uint32_t p = 0; p < e->n_bakes; p++) {
        const uint32_t degree = kiln_edits_degree(&e->edits, e->bakes[p].layer->sh_degree);
        e->bakes[p].source_first = rows;
        rows += e->bakes[p].n_source_rows;
        if (degree > e->sh_degree) e->sh_degree = degree;
    }
    e->splats = e->n_chunks && kiln_chunk_plane(kiln_export_sample(e), "log_scales") != NULL;
}

kiln_status kiln_export_choose(kiln_export *e, const char *list, kiln_error *err)
{
    const kiln_layer *layers[KILN_EXPORT_BAKES];
    uint32_t n = 0;
    uint8_t *chosen;
    for (uint32_t p = 0; p < e->n_bakes; p++) {
        layers[p] = e->bakes[p].layer;
        n += layers[p]->n_chunks;
    }
    KILN_TRY(KILN_ALLOC(&e->chunks, n, "the choice of chunks", err));
    KILN_TRY(KILN_ALLOC(&chosen, n, "the choice of chunks", err));
    kiln_status st = kiln_chunks_choose(layers, e->n_bakes, list, chosen, err);
    if (st == KILN_OK) st = fill_chunks(e, chosen, err);
    if (st == KILN_OK) choose_origin(e, chosen);
    free(chosen);
    if (st == KILN_OK) fill_facts(e);
    return st;
}

kiln_status kiln_export_fail_empty(const kiln_export *e, kiln_error *err)
{
    static const char *const names[KILN_FILTER_KINDS] = {"--filter-box", "--filter-sphere",
                                                         "--filter-value"};
    bool has[KILN_FILTER_KINDS] = {false};
    char list[64] = "";
    const char *const kind = e->bakes[0].layer->kind;
    for (uint32_t i = 0; i < e->filters.n; i++) has[e->filters.filters[i].kind] = true;
    for (int k = 0; k < KILN_FILTER_KINDS; k++)
        if (has[k])
            (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                           list[0] ? ", " : "", names[k]);
    if (!list[0])
        return kiln_fail(
            err, KILN_E_INPUT,
            "no rows are left to export: the layer '%s' or the choice of chunks is empty", kind);
    return kiln_fail(err, KILN_E_INPUT,
                     "there is no row to export: of the layer '%s', %s keeps nothing", kind, list);
}
