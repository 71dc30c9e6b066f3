/* against -- see against.h. */
#include "stages/render/against.h"

#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/frame/camera_path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which pictures -------------------------------------------------------------------------- */
static bool is_test(const kiln_camera *c) { return strcmp(c->split, "test") == 0; }

kiln_status kiln_against_list(kiln_render_plan *s, uint32_t first, uint32_t n, kiln_error *err)
{
    const uint32_t levels = kiln_level_tree_coarsest(&s->drawn.tree);
    uint32_t n_test = 0, at = 0;
    for (uint32_t i = 0; i < n; i++) n_test += is_test(&s->cameras[first + i]);
    const uint64_t all = (uint64_t)levels * (n_test > 0 ? n_test : n);
    if (all > UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT, "%u levels of %u cameras are too many pictures", levels,
                         n);
    KILN_TRY(KILN_ALLOC(&s->jobs, all, "cameras", err));
    KILN_TRY(KILN_ALLOC(&s->smaller, all, "cameras", err));
    s->n_jobs = (uint32_t)all;
    for (uint32_t level = 1; level <= levels; level++)
        for (uint32_t i = 0; i < n; i++) {
            if (n_test > 0 && !is_test(&s->cameras[first + i])) continue;
            s->smaller[at] = s->cameras[first + i];
            kiln_camera_for_level(&s->smaller[at], level);
            s->jobs[at].camera = &s->smaller[at];
            s->jobs[at++].level = level;
        }
    return KILN_OK;
}

kiln_status kiln_against_place(const kiln_render_plan *s, const kiln_render_job *j, uint32_t format,
                               kiln_render_unit *u, kiln_error *err)
{
    u->format = format;
    u->against_full = true;
    if (format == KILN_RENDER_NO_FILE) return KILN_OK;
    char name[KILN_PATH_MAX];
    if ((size_t)snprintf(name, sizeof name, "level_%u/%s.%s", j->level, j->camera->name,
                         kiln_picture_suffix((kiln_picture_format)format)) >= sizeof name)
        return kiln_fail(err, KILN_E_INPUT, "the name of camera '%.80s...' is too long for a file",
                         j->camera->name);
    KILN_TRY(kiln_path_join(u->picture, sizeof u->picture, s->against, name, err));
    u->full_at = (uint32_t)(strlen(u->picture) - strlen(name));
    return KILN_OK;
}

/* ---- what is measured ------------------------------------------------------------------------ */
void kiln_against_add(kiln_against_sums *t, const kiln_render_job *j, double full_db)
{
    const uint32_t k = j->level <= KILN_LEVELS_MAX ? j->level : KILN_LEVELS_MAX;
    const bool first = t->of[k].n == t->of[k].equal;
    t->of[k].n++;
    t->of[k].rows += j->detail.rows;
    t->of[k].full += j->detail.full;
    if (isinf(full_db)) {
        t->of[k].equal++;
        return;
    }
    t->of[k].psnr += full_db;
    if (!first && full_db >= t->of[k].least) return;
    t->of[k].least = full_db;
    t->of[k].worst = j->camera->name;
}

static double mean_of(const kiln_against_sums *t, uint32_t k)
{
    return t->of[k].psnr / (t->of[k].n - t->of[k].equal);
}

static void print_level(const kiln_against_sums *t, uint32_t k)
{
    const double views = t->of[k].n;
    kiln_print_part("%5u %12.0f %12.0f", k, (double)t->of[k].rows / views,
                    (double)t->of[k].full / views);
    if (t->of[k].equal == t->of[k].n)
        kiln_print("    equal");
    else if (t->of[k].equal > 0)
        kiln_print(" %8.3f %8.3f (%s); %u of %u equal", mean_of(t, k), t->of[k].least,
                   t->of[k].worst, t->of[k].equal, t->of[k].n);
    else
        kiln_print(" %8.3f %8.3f (%s)", mean_of(t, k), t->of[k].least, t->of[k].worst);
}

static json_t *level_json(const kiln_against_sums *t, uint32_t k)
{
    json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:I}", "level", (json_int_t)k, "views",
                            (json_int_t)t->of[k].n, "equal", (json_int_t)t->of[k].equal, "rows",
                            (json_int_t)t->of[k].rows, "full", (json_int_t)t->of[k].full);
    if (!row || t->of[k].equal == t->of[k].n) return row;
    const int failed = json_object_set_new(row, "psnr", kiln_json_real(mean_of(t, k))) |
                       json_object_set_new(row, "least", kiln_json_real(t->of[k].least)) |
                       json_object_set_new(row, "worst", kiln_json_string(t->of[k].worst));
    if (!failed) return row;
    json_decref(row);
    return NULL;
}

kiln_status kiln_against_report(const kiln_against_sums *t, json_t *report, bool prints,
                                kiln_error *err)
{
    json_t *rows = json_array();
    if (!rows || json_object_set_new(report, "levels_against", rows) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    bool headed = !prints;
    for (uint32_t k = 1; k <= KILN_LEVELS_MAX; k++) {
        if (t->of[k].n == 0) continue;
        if (!headed) kiln_print("level    Gaussians      in full  psnr dB    least");
        headed = true;
        if (prints) print_level(t, k);
        if (json_array_append_new(rows, level_json(t, k)) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    }
    return KILN_OK;
}
