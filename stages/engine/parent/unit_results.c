/* What a stage reads of its units when they are done, and how it refuses what it cannot use. */
#include "stages/engine/parent/unit_results.h"

#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/json_text.h"
#include "stages/engine/parent/run.h"

#include <stdlib.h>
#include <string.h>

void kiln_units_release(kiln_unit *units, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        kiln_unit *u = &units[i];
        for (uint32_t k = 0; u->volatile_data && k < u->result.n; k++) free(u->volatile_data[k]);
        free(u->volatile_data);
        u->volatile_data = NULL;
        free(u->counters_again);
        u->counters_again = NULL;
        kiln_unit_result_release(&u->result);
    }
}

/* ---- refused results ------------------------------------------------------------------------- */
static bool is_of_the_result(kiln_status st)
{
    return st == KILN_E_IO || st == KILN_E_INPUT || st == KILN_E_STALE || st == KILN_E_BUG;
}

static bool is_refused(const kiln_refusals *all, kiln_hash key)
{
    for (size_t at = 0; at < all->keys.size; at += sizeof key.bytes)
        if (memcmp(all->keys.data + at, key.bytes, sizeof key.bytes) == 0) return true;
    return false;
}

/* Keeps the first sentence, or the first that reports a bug. */
static void remember_refusal(kiln_refusals *all, const kiln_error *err)
{
    const bool first = all->keys.size == sizeof(kiln_hash);
    if (err && (first || (err->status == KILN_E_BUG && all->first.status != KILN_E_BUG)))
        all->first = *err;
}

kiln_status kiln_unit_refuse(kiln_run *r, const kiln_unit *u, kiln_status st, kiln_error *err)
{
    if (!is_of_the_result(st) || u->volatile_result) return st;
    /* a function that this one called has named the unit */
    if (is_refused(&r->refusals, u->key)) return st;
    const kiln_error why = err ? *err : (kiln_error){0};
    KILN_TRY(kiln_buffer_put(&r->refusals.keys, u->key.bytes, sizeof u->key.bytes, err));
    if (kiln_run_is_once(r)) /* the run changes no state, so it drops nothing */
        st = kiln_fail(err, KILN_E_IO,
                       "the stored results of unit '%s' cannot be used: %s; run"
                       " kiln-%s without options that keep the state (and with --force if it has "
                       "nothing to do) to drop them",
                       u->name, why.msg, r->program->name);
    else
        st = kiln_fail(err, KILN_E_IO,
                       "the stored results of unit '%s' cannot be used: %s; run the same command "
                       "to compute them again",
                       u->name, why.msg);
    remember_refusal(&r->refusals, err);
    return st;
}

kiln_status kiln_unit_doubt(kiln_run *r, const kiln_unit *u, kiln_error *err)
{
    static const char report[] = "report this, unless the machine's memory is failing";
    const kiln_error why = err ? *err : (kiln_error){0};
    kiln_status st;
    KILN_TRY(kiln_buffer_put(&r->refusals.keys, u->key.bytes, sizeof u->key.bytes, err));
    if (kiln_run_is_once(r))
        st = kiln_fail(err, KILN_E_BUG,
                       "%s; %s; this run keeps the stored results; kiln-%s --force without options "
                       "that keep the state drops them",
                       why.msg, report, r->program->name);
    else
        st = kiln_fail(
            err, KILN_E_BUG,
            "%s; %s; the stored results are dropped; run the same command again to store new ones",
            why.msg, report);
    remember_refusal(&r->refusals, err);
    return st;
}

kiln_status kiln_unit_pass(const kiln_run *r, const kiln_unit *u, kiln_status st)
{
    return st != KILN_E_NOMEM && is_refused(&r->refusals, u->key) ? KILN_OK : st;
}

kiln_status kiln_run_refused(const kiln_run *r, kiln_error *err)
{
    const kiln_status st =
        r->refusals.first.status == KILN_OK ? KILN_E_IO : r->refusals.first.status;
    return r->refusals.keys.size ? kiln_fail(err, st, "%s", r->refusals.first.msg) : KILN_OK;
}

static kiln_status forget_bad_units(kiln_run *r, kiln_error *err)
{
    KILN_TRY(kiln_manifest_begin(r->manifest, err));
    for (size_t at = 0; at < r->refusals.keys.size; at += sizeof(kiln_hash)) {
        kiln_hash key;
        memcpy(key.bytes, r->refusals.keys.data + at, sizeof key.bytes);
        KILN_TRY(kiln_unit_forget(r->manifest, key, err));
    }
    return kiln_manifest_commit(r->manifest, err);
}

void kiln_run_drop_bad_units(kiln_run *r)
{
    kiln_error err = {0};
    if (!r->refusals.keys.size || !r->manifest || r->hosts.frozen || kiln_run_is_once(r)) return;
    if (forget_bad_units(r, &err) == KILN_OK) return;
    kiln_manifest_rollback(r->manifest);
    kiln_warn("the stored results could not be dropped: %s", err.msg);
}

/* ---- reading --------------------------------------------------------------------------------- */
static kiln_status read_data(kiln_run *r, const kiln_unit *u, const char *name, void **data,
                             uint64_t *bytes, kiln_error *err)
{
    if (!u->volatile_data)
        return kiln_unit_result_read(r->manifest, &u->result, name, data, bytes, err);
    for (uint32_t i = 0; i < u->result.n; i++) {
        if (strcmp(u->result.outputs[i].name, name)) continue;
        *bytes = u->result.outputs[i].raw_bytes;
        KILN_TRY(kiln_alloc(data, *bytes, 1, "a result", err));
        if (*bytes) memcpy(*data, u->volatile_data[i], *bytes);
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_STALE, "'%s' has no output '%s'", u->name, name);
}

kiln_status kiln_unit_data(kiln_run *r, const kiln_unit *u, const char *name, void **data,
                           uint64_t *bytes, kiln_error *err)
{
    return kiln_unit_refuse(r, u, read_data(r, u, name, data, bytes, err), err);
}

kiln_status kiln_unit_struct(kiln_run *r, const kiln_unit *u, const char *name, void *out,
                             uint64_t bytes, kiln_error *err)
{
    void *data = NULL;
    uint64_t there;
    KILN_TRY(kiln_unit_data(r, u, name, &data, &there, err));
    if (there == bytes) memcpy(out, data, bytes);
    free(data);
    if (there == bytes) return KILN_OK;
    return kiln_unit_refuse(r, u,
                            kiln_fail(err, KILN_E_IO, "its '%s' has %llu bytes instead of %llu",
                                      name, (unsigned long long)there, (unsigned long long)bytes),
                            err);
}

static kiln_status parse_counters(kiln_run *r, const kiln_unit *u, const char *text, json_t **out,
                                  kiln_error *err)
{
    json_error_t why;
    KILN_TRY(
        kiln_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, "counters", out, &why, err));
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return kiln_unit_refuse(
            r, u, kiln_fail(err, KILN_E_IO, "its counters are no JSON object: %.200s", why.text),
            err);
    }
    return KILN_OK;
}

kiln_status kiln_unit_counters(kiln_run *r, const kiln_unit *u, json_t **out, kiln_error *err)
{
    return parse_counters(r, u, u->result.counters ? u->result.counters : "{}", out, err);
}

kiln_status kiln_unit_counters_now(kiln_run *r, const kiln_unit *u, json_t **out, kiln_error *err)
{
    return u->counters_again ? parse_counters(r, u, u->counters_again, out, err)
                             : kiln_unit_counters(r, u, out, err);
}

kiln_status kiln_unit_count(kiln_run *r, const kiln_unit *u, const json_t *counters,
                            const char *name, uint64_t *out, kiln_error *err)
{
    const json_t *v = json_object_get(counters, name);
    *out = 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return kiln_unit_refuse(
            r, u, kiln_fail(err, KILN_E_IO, "its counters have no count '%s'", name), err);
    *out = (uint64_t)json_integer_value(v);
    return KILN_OK;
}
