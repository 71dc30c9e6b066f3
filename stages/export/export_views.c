/* export_views -- see the header. The parent reads them once; the key says of which of them a written file is. */
#include "stages/export/export_views.h"

#include <stdlib.h>

kiln_status kiln_export_views_load(kiln_manifest *m, kiln_export_views *out, kiln_error *err)
{
    kiln_stage_row tiles;
    KILN_TRY(kiln_cameras_get(m, &out->cameras, &out->n_cameras, err));
    KILN_TRY(kiln_stage_get(m, "tiles", &tiles, err));
    out->tiles = tiles.state;
    return kiln_tile_tables_get(m, true, &out->tables, &out->n_tables, err);
}

void kiln_export_views_release(kiln_export_views *v)
{
    free(v->cameras);
    kiln_tile_tables_free(v->tables, v->n_tables);
    *v = (kiln_export_views){0};
}

void kiln_export_views_key(kiln_hasher *h, const kiln_export_views *v)
{
    kiln_key_u64(h, "cameras", v->n_cameras);
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_camera *c = &v->cameras[i];
        kiln_key_text(h, "camera", c->name);
        kiln_key_hash(h, "pose", kiln_camera_hash(c));
        kiln_key_text(h, "split", c->split);
        kiln_key_u64(h, "flags", (uint64_t)c->distorted << 1 | c->synthetic);
    }
    kiln_key_u64(h, "tiles", v->tiles);
    kiln_key_u64(h, "tables", v->n_tables);
    for (uint32_t i = 0; i < v->n_tables; i++) {
        const kiln_tile_table *t = &v->tables[i];
        kiln_key_text(h, "table", t->camera);
        kiln_key_text(h, "profile", t->profile);
        kiln_key_u64(h, "antialiased", t->antialiased);
        kiln_key_f64(h, "near", t->near_m);
        kiln_key_hash(h, "digest", t->digest);
    }
}
