/* What a stage reads of its units when they are done. */
#include "stages/engine/engine_internal.h"
#include "stages/engine/json_text.h"

#include <stdlib.h>
#include <string.h>

void kiln_units_release(kiln_unit *units, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        kiln_unit *u = &units[i];
        for (uint32_t k = 0; u->volatile_data && k < u->result.n; k++) free(u->volatile_data[k]);
        free(u->volatile_data);
        u->volatile_data = NULL;
        kiln_unit_result_release(&u->result);
    }
}

kiln_status kiln_unit_data(kiln_run *r, const kiln_unit *u, const char *name, void **data, uint64_t *bytes, kiln_error *err)
{
    if (!u->volatile_data) return kiln_unit_result_read(r->manifest, &u->result, name, data, bytes, err);
    for (uint32_t i = 0; i < u->result.n; i++) {
        if (strcmp(u->result.outputs[i].name, name)) continue;
        *bytes = u->result.outputs[i].raw_bytes;
        KILN_TRY(kiln_alloc(data, *bytes, 1, "a result", err));
        if (*bytes) memcpy(*data, u->volatile_data[i], *bytes);
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_STALE, "'%s' has no output '%s'", u->name, name);
}

kiln_status kiln_unit_counters(const kiln_unit *u, json_t **out, kiln_error *err)
{
    json_error_t why;
    const char *text = u->result.counters ? u->result.counters : "{}";
    KILN_TRY(kiln_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, "counters", out, &why, err));
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return kiln_fail(err, KILN_E_IO, "the counters of '%s' are no JSON object: %s", u->name, why.text);
    }
    return KILN_OK;
}
