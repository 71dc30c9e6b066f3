/* units_used -- which units the current output of a stage was made from.
 *
 * Rows of `unit` do not say who uses them, and a stage's plan has outputs that no layer names. So
 * the last transaction of a stage stores the keys of all units that its run asked for, as a unit of
 * its own: hashed, verified and replaced like any other. */
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_NAME "units of the current output"
#define KEYS "keys"

kiln_hash kiln_units_used_key(const char *stage)
{
    kiln_hasher *h = kiln_key_begin(stage, 0);
    kiln_key_text(h, "what", UNIT_NAME);
    return kiln_key_end(h);
}

static kiln_status pack_segments(const unsigned char *data, uint64_t bytes, uint32_t n,
                                 kiln_unit_output *outputs, kiln_blob *blobs, kiln_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t size = kiln_array_segment_bytes(bytes, i);
        KILN_TRY(kiln_blob_pack(data + (uint64_t)i * KILN_BLOB_MAX, size, 1, &blobs[i], err));
        outputs[i] = (kiln_unit_output){
            .name = KEYS, .segment = i, .hash = blobs[i].hash, .raw_bytes = size, .elem = 1};
    }
    return KILN_OK;
}

kiln_status kiln_units_used_put(kiln_manifest *m, const char *stage, const kiln_hash *keys,
                                uint64_t n, kiln_error *err)
{
    const uint64_t bytes = n * sizeof *keys;
    const uint32_t n_segments = kiln_array_segments(bytes);
    const kiln_unit_done unit = {
        .key = kiln_units_used_key(stage), .stage = stage, .name = UNIT_NAME};
    kiln_unit_result result = {.n = n_segments};
    kiln_blob *blobs = NULL;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&blobs, n_segments, "the units in use", err));
    KILN_GO(KILN_ALLOC(&result.outputs, n_segments, "the units in use", err));
    KILN_GO(
        pack_segments((const unsigned char *)keys, bytes, n_segments, result.outputs, blobs, err));
    KILN_GO(kiln_unit_forget(m, unit.key, err));
    KILN_GO(kiln_unit_store(m, &unit, &result, blobs, err));
done:
    for (uint32_t i = 0; blobs && i < n_segments; i++) free(blobs[i].packed);
    free(blobs);
    free(result.outputs);
    return st;
}

kiln_status kiln_units_used_get(kiln_manifest *m, const char *stage, bool *known, kiln_hash **keys,
                                uint64_t *n, kiln_error *err)
{
    kiln_unit_result result;
    uint64_t bytes = 0;
    *keys = NULL;
    *n = 0;
    KILN_TRY(kiln_unit_find(m, kiln_units_used_key(stage), known, &result, err));
    kiln_status st = *known && result.n > 0
                         ? kiln_unit_result_read(m, &result, KEYS, (void **)keys, &bytes, err)
                         : KILN_OK;
    kiln_unit_result_release(&result);
    if (st == KILN_OK && bytes % sizeof **keys != 0)
        st = kiln_fail(err, KILN_E_IO,
                       "the list of units in use of stage '%.31s' has %" PRIu64 " bytes", stage,
                       bytes);
    if (st == KILN_OK) {
        *n = bytes / sizeof **keys;
        return KILN_OK;
    }
    free(*keys);
    *keys = NULL;
    return st;
}
