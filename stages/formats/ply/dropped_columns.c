#include "stages/formats/ply/dropped_columns.h"

#include "stages/formats/ply/ply_columns.h"

#include <stdio.h>
#include <string.h>

static bool is_unknown(const char *name)
{
    const bool is_normal = name[0] == 'n' && name[1] && strchr("xyz", name[1]) && !name[2];
    return !is_normal && kiln_ply_role(name, KILN_SCENE_SPLATS, false, 0).role == KILN_ROLE_NONE;
}

kiln_status kiln_dropped_columns(const kiln_export *e, kiln_buffer *text, uint32_t *n,
                                 kiln_error *err)
{
    enum { NAMED = 4 };
    /* merged rows have no others */
    const kiln_chunk *sample = e->cut ? &e->bakes[0].layer->chunks[0] : kiln_export_sample(e);
    const char *format = kiln_export_scene(e)->source_format;
    kiln_buffer names = {0};
    kiln_status st = KILN_OK;
    *n = 0;
    if (strcmp(format, "ply") != 0 && strcmp(format, KILN_JOINED_FORMAT) != 0) return KILN_OK;
    for (uint32_t i = 0; i < sample->n_planes && st == KILN_OK; i++) {
        const char *plane = sample->planes[i].name;
        if (strncmp(plane, "extra/", 6) != 0 || !is_unknown(plane + 6)) continue;
        if (*n < NAMED) st = kiln_buffer_printf(&names, err, "%s%s", *n ? ", " : "", plane + 6);
        ++*n;
    }
    if (st == KILN_OK && *n)
        st = kiln_buffer_printf(text, err, "%u column%s of unknown meaning %s left out: %s%s", *n,
                                *n == 1 ? "" : "s", *n == 1 ? "is" : "are",
                                (const char *)names.data, *n > NAMED ? ", ..." : "");
    kiln_buffer_release(&names);
    return st;
}
