/* export_views -- cameras and tile tables of a bake, for formats that hold them. There may be many:
 * they are read one after the other (kiln_cameras_each, kiln_tile_tables_each), and no list of them
 * is kept. */
#ifndef KILN_STAGES_FORMATS_EXPORT_VIEWS_H
#define KILN_STAGES_FORMATS_EXPORT_VIEWS_H

#include "stages/formats/writer.h"

/* The parent's. */
struct kiln_export_views {
    kiln_manifest *m; /* borrowed: the one that has them */
    uint32_t n_cameras, n_tables;
    char profile[32]; /* of the first table; "" without one */
    bool antialiased;
    double near_m;
    kiln_stage_state tiles; /* of the stage that made the tables */
};

/* Looks at them; m outlives *out. */
kiln_status kiln_export_views_load(kiln_manifest *m, kiln_export_views *out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Adds to a key what a format makes of them. */
kiln_status kiln_export_views_key(kiln_hasher *h, const kiln_export_views *v,
                                  kiln_error *err) KILN_MUST_CHECK;

#endif
