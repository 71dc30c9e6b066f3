/* tile_report -- what kiln-tiles says: of every camera what it sees, how many pairs that are and
 * what a table takes; beside it what the renderer's own lists would, which is where such renderers
 * run out of memory. */
#include "stages/tiles/jobs.h"

#include "base/count.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/frame/view_detail.h"

#include <stdio.h>

/* Bytes a pair in gsplat's isect_tiles: a 64-bit key and a 32-bit id, and both again for the
 * sort. */
enum { BOX_PAIR_BYTES = 24 };

static kiln_status no_memory_for_tables(kiln_error *err)
{
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
}

static json_t *describe_job(const kiln_tiles_job *j)
{
    if (!j->counted)
        return json_pack("{s:o, s:b, s:b}", "name", kiln_json_string(j->camera->name), "table", 0,
                         "quarantined", 1);
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b, s:b}", "name",
                     kiln_json_string(j->camera->name), "visible", (json_int_t)j->visible, "pairs",
                     (json_int_t)j->pairs, "box_pairs", (json_int_t)j->box_pairs, "box_bytes",
                     (json_int_t)(BOX_PAIR_BYTES * j->box_pairs), "predicted_bytes",
                     (json_int_t)j->bytes, "predicted_peak_bytes", (json_int_t)j->peak, "bands",
                     (int)j->n_bands, "table", (int)j->has_table, "quarantined",
                     (int)(j->wanted && !j->has_table));
}

/* What is said of all cameras together. */
typedef struct {
    uint64_t pairs, bytes;
    uint64_t without;                 /* cameras whose table failed */
    const kiln_tiles_job *most_ram;   /* of those counted; NULL: none */
    const kiln_tiles_job *most_boxes; /* the same */
    kiln_view_detail detail;          /* summed over n_detail cameras */
    uint32_t n_detail;
} totals;

static void add_job(totals *t, const kiln_tiles_job *j)
{
    t->pairs += j->pairs;
    kiln_detail_add(&t->detail, &j->detail);
    t->n_detail += j->detail.full > 0;
    t->bytes += j->bytes;
    t->without += !j->counted || (j->wanted && !j->has_table);
    if (!j->counted) return;
    if (!t->most_ram || j->peak > t->most_ram->peak) t->most_ram = j;
    if (!t->most_boxes || j->box_pairs > t->most_boxes->box_pairs) t->most_boxes = j;
}

static void print_job(const kiln_tiles_job *j)
{
    char size[32], peak[32];
    if (!j->counted)
        kiln_print("%-28s not counted, see above", j->camera->name);
    else
        kiln_print("%-28s %9llu %10llu %9s %9s %10llu", j->camera->name,
                   (unsigned long long)j->visible, (unsigned long long)j->pairs,
                   j->wanted && !j->has_table ? "failed" : kiln_size_text(j->bytes, size),
                   kiln_size_text(j->peak, peak), (unsigned long long)j->box_pairs);
}

static void print_jobs(const kiln_tiles_bake *b)
{
    if (b->n_jobs == 0) return;
    kiln_print("%-28s %9s %10s %9s %9s %10s", "camera", "visible", "pairs", "table", "memory",
               "box pairs");
    for (uint32_t i = 0; i < b->n_jobs; i++) print_job(&b->jobs[i]);
}

/* Box pairs are those of the renderer's own tile lists. */
static void print_total(const kiln_tiles_bake *b, const totals *t, const char *profile, bool all)
{
    char size[32];
    kiln_print("%s, %s, tables about %s, profile %s", KILN_COUNT(b->n_jobs, "camera"),
               KILN_COUNT(t->pairs, "pair"), kiln_size_text(t->bytes, size), profile);
    kiln_detail_print(&t->detail, t->n_detail, b->level_text);
    if (t->without)
        kiln_print("%s no table, see above", KILN_COUNT(t->without, "of them has|of them have"));
    if (!all || !t->most_ram) return;
    kiln_print("most memory: %s for '%s'", kiln_size_text(t->most_ram->peak, size),
               t->most_ram->camera->name);
    kiln_print("the renderer's own lists take %s at %d bytes a box pair for '%s'",
               kiln_size_text(BOX_PAIR_BYTES * t->most_boxes->box_pairs, size), BOX_PAIR_BYTES,
               t->most_boxes->camera->name);
}

kiln_status kiln_tiles_report(kiln_run *r, const kiln_tiles_bake *b, const char *profile,
                              kiln_error *err)
{
    json_t *out = kiln_run_report(r);
    const bool looks = kiln_run_is_once(r); /* it makes no table */
    totals t = {0};
    KILN_TRY(kiln_run_report_rows(r, "cameras", err));
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        add_job(&t, &b->jobs[i]);
        KILN_TRY(kiln_run_report_row(r, describe_job(&b->jobs[i]), err));
    }
    if (kiln_run_prints_all(r, looks)) print_jobs(b);
    if (kiln_run_prints(r)) print_total(b, &t, profile, kiln_run_prints_all(r, looks));
    json_t *sums = json_pack("{s:s, s:I, s:I, s:I}", "profile", profile, "pairs",
                             (json_int_t)t.pairs, "predicted_bytes", (json_int_t)t.bytes,
                             "cameras_quarantined", (json_int_t)t.without);
    const int failed = !sums || json_object_update(out, sums);
    json_decref(sums);
    if (!failed && t.n_detail > 0 &&
        json_object_set_new(out, "detail", kiln_detail_json(&t.detail)) != 0)
        return no_memory_for_tables(err);
    return failed ? no_memory_for_tables(err) : KILN_OK;
}
