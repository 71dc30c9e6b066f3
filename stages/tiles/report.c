/* report -- what kiln-tiles says: of every camera what it sees, how many pairs that are and what a table takes; beside it what
 * the renderer's own lists would, which is where such renderers run out of memory. */
#include "stages/tiles/jobs.h"

#include "base/quote.h"
#include "stages/engine/json_text.h"

#include <stdio.h>

/* Bytes a pair in gsplat's isect_tiles: a 64-bit key and a 32-bit id, and both again for the sort. */
enum { BOX_PAIR_BYTES = 24 };

static kiln_status no_memory(kiln_error *err) { return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report"); }

static json_t *describe(const kiln_tiles_job *j)
{
    if (!j->counted) return json_pack("{s:o, s:b, s:b}", "name", kiln_json_string(j->camera->name), "table", 0, "quarantined", 1);
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b, s:b}", "name", kiln_json_string(j->camera->name), "visible",
                     (json_int_t)j->visible, "pairs", (json_int_t)j->pairs, "box_pairs", (json_int_t)j->box_pairs, "box_bytes",
                     (json_int_t)(BOX_PAIR_BYTES * j->box_pairs), "predicted_bytes", (json_int_t)j->bytes, "predicted_peak_bytes",
                     (json_int_t)j->peak, "bands", (int)j->n_bands, "table", (int)j->has_table, "quarantined",
                     (int)(j->wanted && !j->has_table));
}

static void print_job(const kiln_tiles_job *j)
{
    char size[32], peak[32], boxes[32];
    if (!j->counted) {
        kiln_print("%-32s not counted, see above", j->camera->name);
        return;
    }
    kiln_print("%-32s visible %9llu  pairs %11llu  table about %9s  needs at most %9s%s", j->camera->name,
               (unsigned long long)j->visible, (unsigned long long)j->pairs, kiln_size_text(j->bytes, size),
               kiln_size_text(j->peak, peak), j->wanted && !j->has_table ? "  no table, see above" : "");
    kiln_print("%-32s in the renderer's own boxes %11llu, lists of 24 bytes a pair %9s", "", (unsigned long long)j->box_pairs,
               kiln_size_text(BOX_PAIR_BYTES * j->box_pairs, boxes));
}

static void print_total(const kiln_tiles_bake *b, uint64_t pairs, uint64_t bytes, const char *profile)
{
    char size[32];
    kiln_print("%u cameras, %llu pairs, tables about %s, profile %s", b->n_jobs, (unsigned long long)pairs,
               kiln_size_text(bytes, size), profile);
}

kiln_status kiln_tiles_report(kiln_run *r, const kiln_tiles_bake *b, const char *profile, kiln_error *err)
{
    json_t *out = kiln_run_report(r), *rows = json_array();
    uint64_t pairs = 0, bytes = 0, without = 0;
    if (!rows || json_object_set_new(out, "cameras", rows) != 0) return no_memory(err);
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        const kiln_tiles_job *j = &b->jobs[i];
        pairs += j->pairs;
        bytes += j->bytes;
        without += !j->counted || (j->wanted && !j->has_table);
        if (json_array_append_new(rows, describe(j)) != 0) return no_memory(err);
        if (!kiln_run_json(r)) print_job(j);
    }
    if (!kiln_run_json(r)) print_total(b, pairs, bytes, profile);
    json_t *sums = json_pack("{s:s, s:I, s:I, s:I}", "profile", profile, "pairs", (json_int_t)pairs, "predicted_bytes",
                             (json_int_t)bytes, "cameras_quarantined", (json_int_t)without);
    const int failed = !sums || json_object_update(out, sums);
    json_decref(sums);
    return failed ? no_memory(err) : KILN_OK;
}
