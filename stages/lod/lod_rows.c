/* Rows of nodes: arrays, reading, putting. The table of planes is the one list of what a level
 * has. */
#include "stages/lod/lod_rows.h"

#include "base/memory.h"
#include "kernels/bounds/bounds.h"
#include "stages/engine/parent/run_layers.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(kiln_coarsen_rows, member)
const kiln_lod_plane kiln_lod_planes[KILN_LOD_PLANES] = {
    {"means", KILN_TYPE_F32, 3, AT(means), false},
    {"log_scales", KILN_TYPE_F32, 3, AT(log_scales), false},
    {"quats", KILN_TYPE_F32, 4, AT(quats), false},
    {"opacity_logits", KILN_TYPE_F32, 1, AT(opacity_logits), false},
    {"sh0", KILN_TYPE_F32, 3, AT(sh0), false},
    {"shN", KILN_TYPE_F32, 0, AT(shN), false},
    {"source_row", KILN_TYPE_U32, 1, AT(source_first), false},
    {"source_last", KILN_TYPE_U32, 1, AT(source_last), false},
    {"source_count", KILN_TYPE_U32, 1, AT(source_count), false},
    {"weights", KILN_TYPE_F32, 1, AT(weights), false},
    {"visibility", KILN_TYPE_F32, 1, AT(visibility), true},
    {"prominence", KILN_TYPE_F32, 1, AT(prominence), true},
};

uint32_t kiln_lod_components(const kiln_lod_plane *p, uint32_t sh_degree, bool weighted)
{
    if (p->weighted && !weighted) return 0;
    return p->components ? p->components : 3 * ((sh_degree + 1) * (sh_degree + 1) - 1);
}

void kiln_lod_output_name(uint32_t level, const char *plane, char name[KILN_LOD_OUTPUT_NAME])
{
    (void)snprintf(name, KILN_LOD_OUTPUT_NAME, "%u %s", level, plane);
}

/* ---- arrays ---------------------------------------------------------------------------------- */
enum { LINE = 64, ELEMENT = 4 }; /* every plane has elements of four bytes */

static uint64_t plane_bytes(uint64_t n, uint32_t components)
{
    return (n * components * ELEMENT + LINE - 1) / LINE * LINE;
}

uint64_t kiln_lod_rows_bytes(uint64_t n, uint32_t sh_degree, bool weighted)
{
    uint64_t sum = 0;
    for (int p = 0; p < KILN_LOD_PLANES; p++)
        sum += plane_bytes(n, kiln_lod_components(&kiln_lod_planes[p], sh_degree, weighted));
    return sum;
}

kiln_status kiln_lod_rows_make(uint64_t n, uint32_t sh_degree, bool weighted, kiln_lod_rows *out,
                               kiln_error *err)
{
    uint64_t at = 0;
    *out = (kiln_lod_rows){.rows = {.n = n, .sh_degree = sh_degree}};
    KILN_TRY(kiln_alloc_unset((void **)&out->store, kiln_lod_rows_bytes(n, sh_degree, weighted), 1,
                              "the rows of a node", err));
    for (int p = 0; p < KILN_LOD_PLANES; p++) {
        const uint32_t components = kiln_lod_components(&kiln_lod_planes[p], sh_degree, weighted);
        void *plane = components ? out->store + at : NULL;
        memcpy((char *)&out->rows + kiln_lod_planes[p].at, &plane, sizeof plane);
        at += plane_bytes(n, components);
    }
    return KILN_OK;
}

void kiln_lod_rows_release(kiln_lod_rows *r)
{
    free(r->store);
    *r = (kiln_lod_rows){.store = NULL};
}

void *kiln_lod_rows_plane(const kiln_coarsen_rows *r, const kiln_lod_plane *p)
{
    void *plane;
    memcpy(&plane, (const char *)r + p->at, sizeof plane);
    return plane;
}

/* ---- level 0 --------------------------------------------------------------------------------- */
static bool is_of_level_0(int plane)
{
    return plane < KILN_LOD_DRAWN || kiln_lod_planes[plane].at == AT(source_first);
}

/* v lies in (0, 1]; what a stranger's manifest says is looked at like any other plane. */
static kiln_status read_visibility(kiln_manifest *m, const kiln_array *seen, kiln_coarsen_rows *r,
                                   kiln_error *err)
{
    if (!r->visibility) return KILN_OK;
    for (uint64_t i = 0; !seen && i < r->n; i++) r->visibility[i] = 1;
    if (!seen) return KILN_OK;
    if (seen->raw_bytes != r->n * sizeof *r->visibility)
        return kiln_fail(err, KILN_E_IO, "the visibility of a chunk with %llu rows has %llu bytes",
                         (unsigned long long)r->n, (unsigned long long)seen->raw_bytes);
    KILN_TRY(kiln_manifest_read_array(m, seen, r->visibility, err));
    for (uint64_t i = 0; i < r->n; i++)
        if (!(r->visibility[i] > 0 && r->visibility[i] <= 1))
            return kiln_fail(err, KILN_E_IO,
                             "the visibility of row %llu of a chunk is no number from 0 to 1",
                             (unsigned long long)i);
    return KILN_OK;
}

static kiln_status read_prominence(kiln_manifest *m, const kiln_array *prominence,
                                   kiln_coarsen_rows *r, kiln_error *err)
{
    if (!r->prominence) return KILN_OK;
    for (uint64_t i = 0; !prominence && i < r->n; i++) r->prominence[i] = 1;
    if (!prominence) return KILN_OK;
    if (prominence->raw_bytes != r->n * sizeof *r->prominence)
        return kiln_fail(err, KILN_E_IO, "the prominence of a chunk with %llu rows has %llu bytes",
                         (unsigned long long)r->n, (unsigned long long)prominence->raw_bytes);
    KILN_TRY(kiln_manifest_read_array(m, prominence, r->prominence, err));
    for (uint64_t i = 0; i < r->n; i++)
        if (!(r->prominence[i] > 0 && r->prominence[i] < INFINITY))
            return kiln_fail(err, KILN_E_IO,
                             "the prominence of row %llu of a chunk is no number above 0",
                             (unsigned long long)i);
    return KILN_OK;
}

kiln_status kiln_lod_rows_read(kiln_manifest *m, const kiln_chunk *c, const kiln_array *visibility,
                               const kiln_array *prominence, kiln_lod_rows *rows, kiln_error *err)
{
    kiln_coarsen_rows *r = &rows->rows;
    for (int p = 0; p < KILN_LOD_PLANES; p++) {
        const kiln_lod_plane *plane = &kiln_lod_planes[p];
        const uint32_t components = kiln_lod_components(plane, r->sh_degree, false);
        if (is_of_level_0(p) && components)
            KILN_TRY(kiln_plane_read(m, c, plane->name, kiln_lod_rows_plane(r, plane),
                                     r->n * components * ELEMENT, err));
    }
    KILN_TRY(read_visibility(m, visibility, r, err));
    KILN_TRY(read_prominence(m, prominence, r, err));
    memcpy(r->source_last, r->source_first, r->n * sizeof *r->source_last);
    for (uint64_t i = 0; i < r->n; i++) r->source_count[i] = 1;
    kiln_coarsen_weights(r);
    return KILN_OK;
}

/* ---- levels of a result ---------------------------------------------------------------------- */
static void spread(const void *from, uint64_t count, uint32_t components, void *to, uint64_t first,
                   uint64_t n)
{
    for (uint32_t c = 0; c < components; c++)
        memcpy((char *)to + (c * n + first) * ELEMENT, (const char *)from + c * count * ELEMENT,
               count * ELEMENT);
}

/* kiln_plane_read checks what planes.def knows: so the result is read as the chunk that the layer
 * will have. */
static kiln_status read_lod_plane(kiln_manifest *m, const kiln_chunk *c, const kiln_lod_plane *p,
                                  uint64_t first, kiln_coarsen_rows *rows, void *scratch,
                                  kiln_error *err)
{
    const uint32_t components = kiln_lod_components(p, rows->sh_degree, rows->visibility != NULL);
    if (components == 0) return KILN_OK;
    KILN_TRY(kiln_plane_read(m, c, p->name, scratch, c->count * components * ELEMENT, err));
    spread(scratch, c->count, components, kiln_lod_rows_plane(rows, p), first, rows->n);
    return KILN_OK;
}

/* Release it with release_chunk, after a failure too. */
static kiln_status chunk_of(const kiln_unit_result *result, uint32_t level, uint32_t sh_degree,
                            bool weighted, kiln_chunk *c, kiln_error *err)
{
    char name[KILN_LOD_OUTPUT_NAME];
    for (int p = 0; p < KILN_LOD_PLANES; p++) {
        const kiln_lod_plane *plane = &kiln_lod_planes[p];
        const uint32_t components = kiln_lod_components(plane, sh_degree, weighted);
        if (components == 0) continue;
        kiln_lod_output_name(level, plane->name, name);
        KILN_TRY(kiln_chunk_add_output(c, result, name, plane->name, plane->type, components, err));
    }
    return KILN_OK;
}

static void release_chunk(kiln_chunk *c)
{
    for (uint32_t i = 0; i < c->n_planes; i++) free(c->planes[i].data.segments);
    free(c->planes);
}

kiln_status kiln_lod_level_check(const kiln_unit_result *result, uint32_t level, uint64_t count,
                                 uint32_t sh_degree, bool weighted, kiln_error *err)
{
    kiln_chunk c = {.name = "a level", .count = count};
    const kiln_status st = chunk_of(result, level, sh_degree, weighted, &c, err);
    release_chunk(&c);
    return st;
}

static uint32_t most_components(const kiln_coarsen_rows *rows)
{
    uint32_t most = 0;
    for (int p = 0; p < KILN_LOD_PLANES; p++) {
        const uint32_t n =
            kiln_lod_components(&kiln_lod_planes[p], rows->sh_degree, rows->visibility != NULL);
        if (n > most) most = n;
    }
    return most;
}

kiln_status kiln_lod_rows_read_level(kiln_manifest *m, const kiln_unit_result *result,
                                     uint32_t level, uint64_t first, uint64_t count,
                                     kiln_lod_rows *rows, kiln_error *err)
{
    kiln_chunk c = {.name = "a level", .count = count};
    void *scratch = NULL;
    kiln_status st;
    KILN_GO(chunk_of(result, level, rows->rows.sh_degree, rows->rows.visibility != NULL, &c, err));
    KILN_GO(kiln_alloc_unset(&scratch, count * most_components(&rows->rows), ELEMENT,
                             "a plane of a level", err));
    for (int p = 0; p < KILN_LOD_PLANES; p++)
        KILN_GO(read_lod_plane(m, &c, &kiln_lod_planes[p], first, &rows->rows, scratch, err));
done:
    free(scratch);
    release_chunk(&c);
    return st;
}

/* ---- outputs --------------------------------------------------------------------------------- */
kiln_status kiln_lod_rows_put(kiln_worker *w, uint32_t level, const kiln_coarsen_rows *rows,
                              kiln_error *err)
{
    char name[KILN_LOD_OUTPUT_NAME];
    kiln_bounds bounds;
    for (int p = 0; p < KILN_LOD_PLANES; p++) {
        const kiln_lod_plane *plane = &kiln_lod_planes[p];
        const uint32_t components =
            kiln_lod_components(plane, rows->sh_degree, rows->visibility != NULL);
        if (components == 0) continue;
        kiln_lod_output_name(level, plane->name, name);
        KILN_TRY(kiln_worker_put(w, name, kiln_lod_rows_plane(rows, plane),
                                 rows->n * components * ELEMENT, ELEMENT, err));
    }
    kiln_chunk_bounds(1, rows->n, rows->means, rows->log_scales, rows->opacity_logits, &bounds);
    kiln_lod_output_name(level, "bounds", name);
    return kiln_worker_put(w, name, &bounds, sizeof bounds, sizeof(float), err);
}
