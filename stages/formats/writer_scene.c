/* writer_scene -- what writers ask of the scene that is exported (writer.h). */
#include "stages/formats/writer.h"

#include "stages/engine/json_text.h"
#include "stages/formats/rows.h"
#include "stages/select/up_axis.h"

#include <stdio.h>
#include <string.h>

void kiln_export_up_axis(const kiln_export *e, char *out, size_t size)
{
    kiln_similarity turn;
    kiln_similarity_identity(&turn);
    (void)snprintf(out, size, "%s", kiln_export_scene(e)->up_axis);
    if (e->edited && memcmp(e->edits.move.r, turn.r, sizeof turn.r) != 0)
        kiln_turn_axis(&e->edits.move, out, size);
}

kiln_status kiln_export_is_2dgs(const kiln_export *e, bool *yes, kiln_error *err)
{
    json_t *notes; /* NULL: they are no JSON */
    const char *text = kiln_export_scene(e)->notes;
    KILN_TRY(kiln_json_parse(text, strlen(text), 0, "the scene's notes", &notes, NULL, err));
    const char *dialect = json_string_value(json_object_get(notes, "dialect"));
    *yes = dialect && strcmp(dialect, "2dgs") == 0;
    json_decref(notes);
    return KILN_OK;
}

const kiln_plane *kiln_export_plane_of_all(const kiln_export *e, const char *name)
{
    const kiln_plane *plane = kiln_chunk_plane(kiln_export_sample(e), name);
    for (uint32_t p = 0; p < e->n_bakes && plane; p++) {
        const kiln_layer *layer = e->bakes[p].layer;
        const kiln_plane *other =
            layer->n_chunks ? kiln_chunk_plane(&layer->chunks[0], name) : plane;
        if (!other || other->type != plane->type || other->components != plane->components)
            plane = NULL;
    }
    /* rows that stand for others have those that draw, and source_row */
    if (e->cut && plane && kiln_export_plane_bit(name) == KILN_ROWS_EXTRAS) plane = NULL;
    return plane;
}

uint64_t kiln_export_shared_ram(const kiln_export *e, uint64_t plan_bytes)
{
    const uint64_t paths = 2 * (uint64_t)KILN_PATH_MAX;
    const uint64_t bytes = sizeof(kiln_export) + KILN_SHARED_HEAD +
                           e->n_bakes * (uint64_t)(KILN_PATH_MAX + KILN_SHARED_BAKE) +
                           e->n_chunks * (uint64_t)KILN_SHARED_CHUNK +
                           e->made.n * (uint64_t)KILN_SHARED_MADE + paths + plan_bytes;
    const kiln_layer *l = e->bakes[0].layer;
    const uint64_t chunks =
        e->from.bytes
            ? l->n_chunks * (sizeof *l->chunks + l->chunks[0].n_planes * sizeof(kiln_plane))
            : 0;
    const uint64_t from = e->from.bytes ? sizeof(kiln_scene) + e->from.bytes + chunks : 0;
    return kiln_shared_payload_ram(bytes + from) + bytes + from;
}
