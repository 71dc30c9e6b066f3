/* parts -- see parts.h. */
#include "stages/export/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a block's rows end in the source. It may hold fewer, which import dropped; a source row is 32 bits. */
static kiln_status block_end(const char *name, uint64_t *out, kiln_error *err)
{
    const bool is_number = name[0] && name[strspn(name, "0123456789")] == '\0';
    const unsigned long long number = is_number ? strtoull(name, NULL, 10) : 0;
    if (!is_number || number > UINT32_MAX / KILN_BLOCK_ROWS)
        return kiln_fail(err, KILN_E_INPUT, "a block of the source layer is called '%s', which is no number of a block", name);
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

/* A number that every source_row is below: rows_read, or after a partial import, which has not counted the blocks in between, the
 * end of the last block that it has. */
static kiln_status source_rows(kiln_manifest *m, const kiln_scene *s, uint64_t *out, kiln_error *err)
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

kiln_status kiln_export_part_open(kiln_manifest *m, const char *path, kiln_layer_kind kind, kiln_export_part *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    if (snprintf(out->path, sizeof out->path, "%s", path) >= (int)sizeof out->path)
        return kiln_fail(err, KILN_E_USAGE, "the path '%s' is too long", path);
    KILN_TRY(kiln_scene_get(m, &out->scene, err));
    if (kind == KILN_LAYER_initial && out->scene.kind == KILN_SCENE_SPLATS)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has Gaussians from the start and no layer 'initial'; use --layer source",
                         kiln_manifest_path(m));
    KILN_TRY(kiln_layer_current(m, kind, &out->layer, err));
    return source_rows(m, &out->scene, &out->n_source_rows, err);
}

void kiln_export_part_release(kiln_export_part *p) { kiln_layer_free(p->layer); }

/* ---- chunks --------------------------------------------------------------------------------------------------------------------
 */

/* chosen: of all chunks of all parts, one after the other. */
static kiln_status choose_one(const kiln_export *e, const char *name, uint8_t *chosen, kiln_error *err)
{
    const kiln_layer *first = e->parts[0].layer;
    char *end = NULL;
    const unsigned long index = name[0] == '#' ? strtoul(name + 1, &end, 10) : 0;
    const bool by_index = end && end != name + 1 && *end == '\0';
    bool found = false;
    for (uint32_t p = 0, at = 0; p < e->n_parts; p++)
        for (uint32_t c = 0; c < e->parts[p].layer->n_chunks; c++, at++) {
            if (by_index ? c != index : strcmp(e->parts[p].layer->chunks[c].name, name) != 0) continue;
            chosen[at] = 1;
            found = true;
        }
    if (found) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--chunks: the layer '%s' has no chunk '%s'; it has %u, from '%s' on", first->kind, name,
                     first->n_chunks, first->n_chunks ? first->chunks[0].name : "");
}

static kiln_status choose_listed(const kiln_export *e, const char *list, uint8_t *chosen, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char *copy = strdup(list), *at = copy;
    if (!copy) return kiln_fail(err, KILN_E_NOMEM, "out of memory");
    for (char *name = strsep(&at, ","); name && st == KILN_OK; name = strsep(&at, ",")) st = choose_one(e, name, chosen, err);
    free(copy);
    return st;
}

static void fill_chunks(kiln_export *e, const uint8_t *chosen)
{
    e->n_chunks = 0;
    e->n_rows = 0;
    for (uint32_t p = 0, at = 0; p < e->n_parts; p++)
        for (uint32_t c = 0; c < e->parts[p].layer->n_chunks; c++, at++) {
            const kiln_chunk *chunk = &e->parts[p].layer->chunks[c];
            if (!chosen[at] || chunk->count == 0) continue;
            e->chunks[e->n_chunks++] = (kiln_export_chunk){.part = p, .chunk = chunk, .first = e->n_rows, .n = chunk->count};
            e->n_rows += chunk->count;
        }
}

static void fill_facts(kiln_export *e)
{
    uint64_t rows = 0;
    e->sh_degree = 0;
    for (uint32_t p = 0; p < e->n_parts; p++) {
        e->parts[p].source_first = rows;
        rows += e->parts[p].n_source_rows;
        if (e->parts[p].layer->sh_degree > e->sh_degree) e->sh_degree = e->parts[p].layer->sh_degree;
    }
    for (int c = 0; c < 3; c++) e->origin[c] = e->keep_origin ? 0 : e->parts[0].scene.origin[c];
    e->splats = e->n_chunks && kiln_chunk_plane(kiln_export_sample(e), "log_scales") != NULL;
}

kiln_status kiln_export_choose(kiln_export *e, const char *list, kiln_error *err)
{
    uint32_t n = 0;
    uint8_t *chosen;
    for (uint32_t p = 0; p < e->n_parts; p++) n += e->parts[p].layer->n_chunks;
    KILN_TRY(KILN_ALLOC(&e->chunks, n, "the choice of chunks", err));
    KILN_TRY(KILN_ALLOC(&chosen, n, "the choice of chunks", err));
    if (!list) memset(chosen, 1, n);
    const kiln_status st = list ? choose_listed(e, list, chosen, err) : KILN_OK;
    if (st == KILN_OK) fill_chunks(e, chosen);
    free(chosen);
    if (st == KILN_OK) fill_facts(e);
    return st;
}
