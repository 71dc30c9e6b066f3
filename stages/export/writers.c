/* writers -- the table of formats that a bake is written to. A new one: its file, its line in writers.h, its row here. */
#include "stages/export/writers.h"

#include <stddef.h>
#include <string.h>

const kiln_writer *const kiln_writers[] = {
    &kiln_writer_ply,
    &kiln_writer_chunks,
    NULL,
};

const kiln_writer *kiln_writer_named(const char *name)
{
    for (const kiln_writer *const *w = kiln_writers; *w; w++)
        if (strcmp((*w)->name, name) == 0) return *w;
    return NULL;
}

const kiln_chunk *kiln_export_sample(const kiln_export *e)
{
    for (uint32_t c = 0; c < e->layer->n_chunks; c++)
        if (e->chosen[c] && e->layer->chunks[c].count) return &e->layer->chunks[c];
    return NULL;
}
