/* render_work -- what the pictures of a run take on the CPU, about: whether opening a GPU pays. */
#include "stages/render/render_plan.h"

#include "base/minmax.h"
#include "stages/engine/devices.h"
#include "stages/engine/work.h"

#include <string.h>

/* What the pictures that are due take on the CPU; 0, which is not known, if one of them has no table of these inputs, which would
 * say how much there is to draw. Tables are in the order of their cameras, and so are jobs. */
static double work_with_tables(const kiln_render_plan *s, const kiln_tile_table *tables, uint32_t n)
{
    double work = 0;
    for (uint32_t i = 0, first = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        if (!j->due) continue;
        while (first < n && strcmp(tables[first].camera, j->camera->name) < 0) first++;
        uint32_t t = first;
        while (t < n && !strcmp(tables[t].camera, j->camera->name) && !kiln_hash_equal(tables[t].key, j->table_key)) t++;
        if (t == n || strcmp(tables[t].camera, j->camera->name) != 0) return 0;
        work += kiln_work_picture((double)tables[t].visible, (double)j->camera->width * j->camera->height, (double)tables[t].pairs,
                                  j->camera->photo[0] != '\0');
    }
    return work;
}

/* The least that they take, whatever there is to draw. */
static double least_work(const kiln_render_plan *s, uint32_t *n_due)
{
    double work = 0;
    *n_due = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_camera *c = s->jobs[i].camera;
        if (!s->jobs[i].due) continue;
        work += kiln_work_picture(0, (double)c->width * c->height, 0, false);
        ++*n_due;
    }
    return work;
}

/* Rows that a worker decodes, about: cameras see much the same chunks. */
static uint64_t most_rows(const kiln_render_plan *s)
{
    uint64_t rows = 0;
    if (!s->drawn.levels) return s->layer->count;
    for (uint32_t i = 0; i < s->n_jobs; i++) rows = kiln_max_u64(rows, s->jobs[i].chunks.rows);
    return rows;
}

/* The tables of a large bake are not read for this. */
kiln_status kiln_render_plan_expect(kiln_run *r, const kiln_render_plan *s, bool fast, kiln_error *err)
{
    const unsigned threads = kiln_devices_threads(kiln_common_values.threads);
    kiln_tile_table *tables;
    uint32_t n, n_due;
    const double least = least_work(s, &n_due);
    if (n_due == 0 || fast || kiln_run_named_kind(r) || kiln_work_pays(least, threads, false)) return KILN_OK;
    KILN_TRY(kiln_tile_tables_get(kiln_run_manifest(r), false, &tables, &n, err));
    const double work = work_with_tables(s, tables, n);
    kiln_tile_tables_free(tables, n);
    const double decoding = kiln_work_decode((double)most_rows(s)) * (n_due < threads ? n_due : threads);
    kiln_run_expect_work(r, work > 0 ? work + decoding : 0);
    return KILN_OK;
}
