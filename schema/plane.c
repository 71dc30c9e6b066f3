/* plane -- element types, and reading one plane of a chunk. */
#include "base/checked.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t size;
} types[] = {
    [KILN_TYPE_U8] = {"u8", 1},   [KILN_TYPE_I8] = {"i8", 1},   [KILN_TYPE_U16] = {"u16", 2},
    [KILN_TYPE_I16] = {"i16", 2}, [KILN_TYPE_U32] = {"u32", 4}, [KILN_TYPE_I32] = {"i32", 4},
    [KILN_TYPE_F32] = {"f32", 4}, [KILN_TYPE_F64] = {"f64", 8},
};

const char *kiln_type_name(kiln_type t) { return types[t].name; }

uint32_t kiln_type_size(kiln_type t) { return types[t].size; }

bool kiln_type_find(const char *name, kiln_type *out)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        *out = (kiln_type)i;
        return true;
    }
    return false;
}

const kiln_plane *kiln_chunk_plane(const kiln_chunk *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_planes; i++)
        if (strcmp(c->planes[i].name, name) == 0) return &c->planes[i];
    return NULL;
}

kiln_status kiln_plane_read(kiln_manifest *m, const kiln_chunk *c, const char *name, void *dst,
                            size_t dst_bytes, kiln_error *err)
{
    const kiln_plane *p = kiln_chunk_plane(c, name);
    if (!p) return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has no plane '%s'", c->name, name);
    uint64_t elements, bytes;
    if (!kiln_mul(c->count, p->components, &elements) ||
        !kiln_mul(elements, kiln_type_size(p->type), &bytes) || bytes != p->data.raw_bytes)
        return kiln_fail(err, KILN_E_IO,
                         "'%s' is damaged: chunk '%s', plane '%s' has %" PRIu64
                         " bytes for %" PRIu64 " rows",
                         kiln_manifest_path(m), c->name, name, p->data.raw_bytes, c->count);
    /* known planes were checked as the layer was read; other columns have the type that the file
     * gives */
    if (bytes != dst_bytes)
        return kiln_fail(err, strncmp(name, "extra/", 6) == 0 ? KILN_E_INPUT : KILN_E_BUG,
                         "chunk '%s', plane '%s' has %" PRIu64 " bytes, not %zu", c->name, name,
                         bytes, dst_bytes);
    kiln_status st = kiln_manifest_read_array(m, &p->data, dst, err);
    if (st != KILN_OK)
        kiln_note(err, "chunk '%s', plane '%s'", c->name, name);
    else if ((st = kiln_row_check_values(c, p, dst, err)) != KILN_OK)
        kiln_note(err, "manifest '%s' is damaged", m->path);
    return st;
}
