/* export_views -- see the header. The key says of which of them a written file is. */
#include "stages/formats/export_views.h"

#include <string.h>

static kiln_status count_table(void *context, const kiln_tile_table *t, kiln_error *err)
{
    kiln_export_views *v = context;
    (void)err;
    if (v->n_tables++) return KILN_OK;
    memcpy(v->profile, t->profile, sizeof v->profile);
    v->antialiased = t->antialiased;
    v->near_m = t->near_m;
    return KILN_OK;
}

kiln_status kiln_export_views_load(kiln_manifest *m, kiln_export_views *out, kiln_error *err)
{
    kiln_scene_size size;
    kiln_stage_row tiles;
    *out = (kiln_export_views){.m = m};
    KILN_TRY(kiln_scene_size_get(m, &size, err));
    out->n_cameras = (uint32_t)size.cameras;
    KILN_TRY(kiln_stage_get(m, "tiles", &tiles, err));
    out->tiles = tiles.state;
    return kiln_tile_tables_each(m, false, count_table, out, err);
}

static kiln_status key_camera(void *hasher, const kiln_camera *c, kiln_error *err)
{
    kiln_hasher *h = hasher;
    (void)err;
    kiln_key_text(h, "camera", c->name);
    kiln_key_hash(h, "pose", kiln_camera_hash(c));
    kiln_key_text(h, "split", c->split);
    kiln_key_u64(h, "flags", (uint64_t)c->distorted << 1 | c->synthetic);
    return KILN_OK;
}

static kiln_status key_table(void *hasher, const kiln_tile_table *t, kiln_error *err)
{
    kiln_hasher *h = hasher;
    (void)err;
    kiln_key_text(h, "table", t->camera);
    kiln_key_text(h, "profile", t->profile);
    kiln_key_u64(h, "antialiased", t->antialiased);
    kiln_key_f64(h, "near", t->near_m);
    kiln_key_hash(h, "digest", t->digest);
    return KILN_OK;
}

kiln_status kiln_export_views_key(kiln_hasher *h, const kiln_export_views *v, kiln_error *err)
{
    kiln_key_u64(h, "cameras", v->n_cameras);
    KILN_TRY(kiln_cameras_each(v->m, key_camera, h, err));
    kiln_key_u64(h, "tiles", v->tiles);
    kiln_key_u64(h, "tables", v->n_tables);
    return kiln_tile_tables_each(v->m, false, key_table, h, err);
}
