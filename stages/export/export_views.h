/* export_views -- cameras and tile tables of a bake, for formats that hold them. */
#ifndef KILN_STAGES_EXPORT_VIEWS_H
#define KILN_STAGES_EXPORT_VIEWS_H

#include "stages/export/writer.h"

/* The parent's. */
struct kiln_export_views {
    kiln_camera *cameras; /* [n_cameras] by name */
    uint32_t n_cameras;
    kiln_tile_table *tables; /* [n_tables] with their arrays' segments, by camera */
    uint32_t n_tables;
    kiln_stage_state tiles; /* of the stage that made the tables */
};

/* Reads them from the manifest. Release also after a failure. */
kiln_status kiln_export_views_load(kiln_manifest *m, kiln_export_views *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_export_views_release(kiln_export_views *v);
/* Adds to a key what a format makes of them. */
void kiln_export_views_key(kiln_hasher *h, const kiln_export_views *v);

#endif
