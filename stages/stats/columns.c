/* columns -- see the header. Planes are planar, so a column is a component of a plane. */
#include "stages/stats/columns.h"

#include "base/harmonics.h"

#include <stdio.h>
#include <string.h>

static void add_column(kiln_stats_columns *out, const char *name, kiln_type type, const void *data)
{
    if (out->n == KILN_STATS_COLUMNS) return;
    kiln_stats_column *c = &out->at[out->n++];
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    c->type = type;
    c->data = data;
    c->origin = 0;
    c->is_extra = false;
}

static void add_extra(kiln_stats_columns *out, const char *name, kiln_type type, const void *data)
{
    const uint32_t before = out->n;
    add_column(out, name, type, data);
    for (uint32_t i = before; i < out->n; i++) out->at[i].is_extra = true;
}

/* Component c of a plane of n rows. */
static const void *component(const void *plane, uint64_t n, uint64_t c, kiln_type type)
{
    return plane ? (const char *)plane + c * n * kiln_type_size(type) : NULL;
}

static void add_components(kiln_stats_columns *out, const char *const *names, kiln_type type,
                           const void *plane, uint64_t n)
{
    for (uint64_t c = 0; names[c]; c++)
        add_column(out, names[c], type, component(plane, n, c, type));
}

/* A PLY has all coefficients of red, then those of green, then of blue; the plane has the colours
 * of one coefficient together. */
static void add_rest(kiln_stats_columns *out, uint32_t degree, const float *shN, uint64_t n)
{
    const uint64_t k = kiln_sh_components(degree) / 3;
    char name[32];
    for (uint64_t i = 0; i < 3 * k; i++) {
        (void)snprintf(name, sizeof name, "f_rest_%u", (unsigned)i);
        add_column(out, name, KILN_TYPE_F32, component(shN, n, i % k * 3 + i / k, KILN_TYPE_F32));
    }
}

static const char *const xyz[] = {"x", "y", "z", NULL},
                         *const rot[] = {"rot_0", "rot_1", "rot_2", "rot_3", NULL},
                         *const scale[] = {"scale_0", "scale_1", "scale_2", NULL},
                         *const opacity[] = {"opacity", NULL},
                         *const dc[] = {"f_dc_0", "f_dc_1", "f_dc_2", NULL},
                         *const rgb[] = {"red", "green", "blue", NULL};

/* Of the positions, if there are any. */
static void set_origin(kiln_stats_columns *out, const double origin[3])
{
    const uint32_t x = kiln_stats_column_find(out, "x");
    for (uint32_t a = 0; a < 3 && x != UINT32_MAX; a++) out->at[x + a].origin = origin[a];
}

void kiln_stats_columns_of_rows(const kiln_source_info *info, const kiln_rows *rows,
                                const double origin[3], kiln_stats_columns *out)
{
    static const kiln_rows none;
    const kiln_rows *r = rows ? rows : &none;
    out->n = 0;
    add_components(out, xyz, KILN_TYPE_F64, r->means, r->n);
    set_origin(out, origin);
    if (info->kind == KILN_SCENE_SPLATS) {
        add_components(out, rot, KILN_TYPE_F32, r->quats, r->n);
        add_components(out, scale, KILN_TYPE_F32, r->log_scales, r->n);
        add_components(out, opacity, KILN_TYPE_F32, r->opacity_logits, r->n);
        if (!info->has_rgb) add_components(out, dc, KILN_TYPE_F32, r->sh0, r->n);
        add_rest(out, info->sh_degree, r->shN, r->n);
    }
    if (info->has_rgb) add_components(out, rgb, KILN_TYPE_F32, r->rgb, r->n);
    for (uint32_t e = 0; e < info->n_extras; e++)
        if (!info->extras[e].raw)
            add_extra(out, info->extras[e].name, info->extras[e].type, r->extras[e]);
}

void kiln_stats_columns_of_chunk(const kiln_chunk *c, const void *const *planes,
                                 const double origin[3], kiln_stats_columns *out)
{
    static const struct {
        const char *plane;
        const char *const *names;
    } known[] = {{"means", xyz}, {"quats", rot}, {"log_scales", scale}, {"opacity_logits", opacity},
                 {"sh0", dc},    {"rgb", rgb}};
    const kiln_plane *p;
    out->n = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if ((p = kiln_chunk_plane(c, known[k].plane)))
            add_components(out, known[k].names, p->type, planes ? planes[p - c->planes] : NULL,
                           c->count);
    set_origin(out, origin);
    if ((p = kiln_chunk_plane(c, "shN"))) {
        uint32_t degree = 1;
        while (degree < 4 && kiln_sh_components(degree) < p->components) degree++;
        add_rest(out, degree, planes ? planes[p - c->planes] : NULL, c->count);
    }
    for (uint32_t i = 0; i < c->n_planes; i++)
        if (strncmp(c->planes[i].name, "extra/", 6) == 0 && c->planes[i].components == 1)
            add_extra(out, c->planes[i].name + 6, c->planes[i].type, planes ? planes[i] : NULL);
}

uint32_t kiln_stats_column_find(const kiln_stats_columns *c, const char *name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->at[i].name, name) == 0) return i;
    return UINT32_MAX;
}
