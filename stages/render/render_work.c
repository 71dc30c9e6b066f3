/* render_work -- what the pictures of a run take on the CPU, about: whether opening a GPU pays. */
#include "stages/render/render_plan.h"

#include "base/minmax.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/devices/work.h"

#include <string.h>

/* What the pictures that are due take on the CPU, by the tables of their inputs, which say how much
 * there is to draw. Tables are in the order of their cameras, and so are jobs. */
typedef struct {
    const kiln_render_plan *plan;
    uint32_t next;   /* the first job that no table is for yet */
    double work;     /* of those before it that are due */
    bool lacks_some; /* a picture that is due has no table */
} table_work;

static kiln_status add_table(void *context, const kiln_tile_table *t, kiln_error *err)
{
    table_work *w = context;
    const kiln_render_plan *s = w->plan;
    (void)err;
    for (; w->next < s->n_jobs; w->next++) {
        const kiln_render_job *j = &s->jobs[w->next];
        const int order = strcmp(j->camera->name, t->camera);
        if (order > 0 || (order == 0 && !kiln_hash_equal(t->key, j->table_key))) return KILN_OK;
        if (order < 0)
            w->lacks_some |= j->due;
        else if (j->due)
            w->work +=
                kiln_work_picture((double)t->visible, (double)j->camera->width * j->camera->height,
                                  (double)t->pairs, j->camera->photo[0] != '\0');
    }
    return KILN_OK;
}

/* 0, which is not known, if one of the pictures has no table. */
static kiln_status work_with_tables(kiln_run *r, const kiln_render_plan *s, double *work,
                                    kiln_error *err)
{
    table_work w = {.plan = s};
    KILN_TRY(kiln_tile_tables_each(kiln_run_manifest(r), false, add_table, &w, err));
    for (; w.next < s->n_jobs; w.next++) w.lacks_some |= s->jobs[w.next].due;
    *work = w.lacks_some ? 0 : w.work;
    return KILN_OK;
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
kiln_status kiln_render_plan_expect(kiln_run *r, const kiln_render_plan *s, bool fast,
                                    kiln_error *err)
{
    const unsigned threads = kiln_devices_threads(kiln_common_values.threads);
    double work;
    uint32_t n_due;
    const double least = least_work(s, &n_due);
    if (n_due == 0 || fast || kiln_run_named_kind(r) || kiln_work_pays(least, threads, false))
        return KILN_OK;
    KILN_TRY(work_with_tables(r, s, &work, err));
    const double decoding =
        kiln_work_decode((double)most_rows(s)) * (n_due < threads ? n_due : threads);
    kiln_run_expect_work(r, work > 0 ? work + decoding : 0);
    return KILN_OK;
}
