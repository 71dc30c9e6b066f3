/* The worker's side of kiln-lod: which unit it is. */
#include "stages/lod/lod_units.h"

#include "base/memory.h"
#include "stages/lod/refine.h"
#include "stages/lod/visibility_units.h"

#include <string.h>

/* The head is copied: a payload is aligned, but what is behind it need not be. */
static kiln_status run_merge_unit(kiln_worker *w, const char *name, const char *payload,
                                  size_t bytes, kiln_error *err)
{
    kiln_lod_unit u;
    if (bytes < sizeof u)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         bytes);
    memcpy(&u, payload, sizeof u);
    if (bytes != sizeof u + u.n_children * sizeof(kiln_lod_child) || u.n_levels > KILN_LEVELS_MAX)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         bytes);
    if (u.unit == KILN_LOD_LEAF) return kiln_lod_leaf_unit(w, &u, err);
    return kiln_lod_inner_unit(w, &u, (const kiln_lod_child *)(payload + sizeof u), err);
}

kiln_status kiln_lod_compute(kiln_worker *w, const char *name, const void *payload,
                             size_t payload_bytes, kiln_error *err)
{
    kiln_lod_unit_kind kind;
    if (payload_bytes < sizeof kind)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         payload_bytes);
    memcpy(&kind, payload, sizeof kind);
    if (kind == KILN_LOD_LEAF || kind == KILN_LOD_INNER)
        return run_merge_unit(w, name, payload, payload_bytes, err);
    if (kind == KILN_LOD_SHARES || kind == KILN_LOD_SEEN)
        return kiln_lod_visibility_unit(w, name, payload, payload_bytes, err);
    if (kind == KILN_LOD_REFINE) return kiln_lod_refine_compute(w, payload, payload_bytes, err);
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of kind %d", name, (int)kind);
}
