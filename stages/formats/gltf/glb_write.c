/* glb_write -- a GLB with KHR_gaussian_splatting, as glb_layout.h draws it. Every attribute is an
 * array of all rows, so a chunk has a place in each of them: some twenty large pieces. Floats are
 * as the layer has them, apart from what glTF wants linear. An origin is the translation of the
 * node, in double, so that positions keep all of their digits. */
#include "stages/formats/float_places.h"
#include "stages/formats/gltf/glb_layout.h"
#include "stages/formats/gltf/glb_rows.h"
#include "stages/formats/linear.h"
#include "stages/formats/rows.h"
#include "stages/formats/writer.h"

#include <stdlib.h>
#include <string.h>

static const int from_rdf[3] = {-1, -1, 1}, unchanged[3] = {1, 1, 1}; /* glTF: left, up, forward */
static const kiln_export_count counts[] = {
    {"opacity was clamped to 1e-38 .. 0.99999994, the floats next to 0 and 1",
     "opacities were clamped to 1e-38 .. 0.99999994, the floats next to 0 and 1"},
    {NULL, NULL}};

static const int *signs_of(const kiln_export *e)
{
    return e->frame == KILN_FRAME_AS_IS ? unchanged : from_rdf;
}

static uint32_t glb_degree(const kiln_export *e)
{
    return kiln_export_degree(e, KILN_GLB_SH_DEGREE_MAX);
}

/* ---- parent ---------------------------------------------------------------------------------- */

static kiln_glb_scene scene_of(const kiln_export *e)
{
    const int *sign = signs_of(e);
    kiln_glb_scene s = {.n_rows = e->n_rows,
                        .sh_degree = glb_degree(e),
                        .antialiased = kiln_export_scene(e)->antialiased};
    for (int c = 0; c < 3; c++) { /* + 0: no minus before a zero */
        s.least[c] = (sign[c] < 0 ? -e->survey.means[c].hi : e->survey.means[c].lo) + 0.0f;
        s.most[c] = (sign[c] < 0 ? -e->survey.means[c].lo : e->survey.means[c].hi) + 0.0f;
        s.translation[c] = sign[c] * e->origin[c] + 0.0;
    }
    return s;
}

/* The plan is the place of the first array. */
static kiln_status plan_glb(kiln_export_parent *p, kiln_error *err)
{
    const kiln_glb_scene s = scene_of(p->e);
    kiln_buffer head = {0};
    kiln_status st = kiln_glb_head(&s, &head, err);
    const uint64_t at = head.size;
    kiln_buffer_release(&head);
    KILN_TRY(st);
    if (p->e->sh_degree > s.sh_degree)
        KILN_TRY(kiln_export_note(
            p, err,
            "a GLB holds spherical harmonics up to degree 3; those of degree 4 are left out"));
    if (s.antialiased)
        KILN_TRY(kiln_export_note(p, err,
                                  "a GLB cannot say that a scene is antialiased; the flag is in "
                                  "the extras of its primitive, "
                                  "where kiln-import finds it"));
    KILN_TRY(kiln_origin_note(p, err));
    return kiln_buffer_put(p->plan, &at, sizeof at, err);
}

static kiln_status begin_glb(kiln_export_parent *p, kiln_error *err)
{
    const kiln_glb_scene s = scene_of(p->e);
    kiln_buffer head = {0};
    kiln_status st = kiln_glb_head(&s, &head, err);
    if (st == KILN_OK) st = kiln_export_put(p, head.data, head.size, 0, err);
    if (st == KILN_OK)
        st = kiln_export_resize(
            p, head.size + kiln_glb_place(s.n_rows, kiln_glb_attributes(s.sh_degree)), err);
    kiln_buffer_release(&head);
    return st;
}

/* ---- worker ---------------------------------------------------------------------------------- */

enum { ELEMENT_MAX = 16 };

static uint64_t glb_writer_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) +
           e->chunks[unit].chunk->count * ELEMENT_MAX + sizeof(kiln_glb_tables);
}

static kiln_status have_tables(kiln_export_worker *x, kiln_error *err)
{
    kiln_glb_tables *t;
    if (x->own) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&t, 1, "tables", err));
    kiln_glb_tables_make(signs_of(x->e), t);
    x->own = t;
    return KILN_OK;
}

static kiln_status write_arrays(kiln_export_worker *x, const kiln_export_rows *rows,
                                kiln_error *err)
{
    const uint64_t n = rows->n;
    uint64_t at;
    kiln_status st = KILN_OK;
    void *out = NULL;
    kiln_linear_scales(3 * n, rows->log_scales, rows->log_scales);
    kiln_unit_quats(n, rows->quats, rows->quats);
    x->counts[0] += kiln_alphas(n, rows->opacity_logits, rows->opacity_logits);
    const kiln_glb_rows r = {
        n, rows->means, rows->log_scales, rows->quats, rows->opacity_logits, rows->sh0, rows->shN};
    if (x->e->plan_bytes != sizeof at)
        return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", x->e->plan_bytes);
    memcpy(&at, x->e->plan, sizeof at);
    KILN_TRY(kiln_alloc_unset(&out, n, ELEMENT_MAX, "elements of an attribute", err));
    for (uint32_t a = 0; a < kiln_glb_attributes(glb_degree(x->e)) && st == KILN_OK; a++) {
        const uint64_t size = kiln_glb_element_bytes(a);
        kiln_glb_encode(x->own, &r, a, out);
        st = kiln_export_write(x, out, n * size,
                               at + kiln_glb_place(x->e->n_rows, a) + rows->first * size, err);
    }
    free(out);
    return st;
}

static kiln_status write_glb_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    KILN_TRY(have_tables(x, err));
    KILN_TRY(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    const kiln_status st = rows.n ? write_arrays(x, &rows, err) : KILN_OK;
    kiln_export_rows_release(&rows);
    return st;
}

static const kiln_export_round rounds[] = {
    {.what = "exporting", .ram = glb_writer_ram, .run = write_glb_chunk}};

const kiln_writer_functions kiln_writer_glb = {.place = KILN_PLACE_FILE,
                                               .counts = counts,
                                               .plan = plan_glb,
                                               .begin = begin_glb,
                                               .rounds = rounds,
                                               .n_rounds = 1,
                                               .reader = "gltf"};
