/* time_left -- the arithmetic, and how progress asks for it. bake_times.c reads what it is made
 * of. */
#include "stages/front/time_left.h"

#include "stages/engine/stage_graph.h"
#include "stages/front/bake_times.h"

#include <math.h>
#include <string.h>

/* Microseconds for each row, pair and so on, and seconds for the whole, measured with the demo and
 * a generated scene on two cores. Only the ratios between stages matter: the first stages show how
 * fast the machine is. */
static const struct {
    const char *stage;
    double row, row_and_view, pair, photo_pixel, once_s;
} weights[] = {
    {.stage = "import", .row = 1.2},
    {.stage = "knn", .row = 0.27},
    {.stage = "prune", .row = 0.3, .row_and_view = 0.085},
    {.stage = "chunk", .row = 1.6},
    {.stage = "lod", .row = 15, .row_and_view = 1},
    {.stage = "tiles", .row_and_view = 0.09, .pair = 0.045},
    {.stage = "render", .row_and_view = 0.15, .pair = 0.07, .photo_pixel = 0.09},
    {.stage = "export", .row = 1.15},
    {.stage = "report", .once_s = 0.7},
};

enum {
    WEIGHED = 1 /* the report */
#define STAGE(...) +1
#include "pipelines/stages.def"
#undef STAGE
};
_Static_assert(
    sizeof weights / sizeof *weights == WEIGHED,
    "each stage of stages.def has a row here: without one it counts as one that takes no time");

/* Before lists of tiles are counted. Measured: 1.1 in the demo, 1.5 in a generated scene at 1920 x
 * 1080. */
#define PAIRS_PER_PIXEL 1.3

/* So many seconds as expected count beside what was seen, so that a short first stage does not
 * decide. */
#define PRIOR_S 0.5

/* ---- a stage --------------------------------------------------------------------------------- */
/* What is not known counts only where there is something to be multiplied with. */
static double times(double weight, double count) { return weight > 0 ? weight * count : 0; }

/* NAN where a count is needed that is not known. */
static double by_weights(const kiln_time_left *t, size_t s)
{
    const kiln_bake_size *z = &t->size;
    const double pairs = isnan(z->pairs) ? z->pixels * PAIRS_PER_PIXEL : z->pairs;
    size_t i = 0;
    while (strcmp(weights[i].stage, t->stage[s].name) != 0) /* a stage that nobody has measured */
        if (++i == sizeof weights / sizeof *weights) return 0;
    return weights[i].once_s +
           1e-6 * (times(weights[i].row, z->rows) +
                   times(weights[i].row_and_view, z->rows * z->views) +
                   times(weights[i].pair, pairs) + times(weights[i].photo_pixel, z->photo_pixels));
}

static double ratio(double now, double then)
{
    const double r = now / then;
    return isfinite(r) && r > 0 ? fmin(fmax(r, 0.01), 100) : 1;
}

/* As before, for the rows and views of now. NAN: it has not run before. */
static double by_record(const kiln_time_left *t, size_t s)
{
    const kiln_timed_stage *g = &t->stage[s];
    return g->stored_s * ratio(t->size.rows, g->rows) * ratio(t->size.views, g->views);
}

/* How many times as long as was expected in this way the stages of this bake took. */
static double slowness(const kiln_time_left *t, double (*expect)(const kiln_time_left *t, size_t s))
{
    double took = PRIOR_S, expected = PRIOR_S;
    for (size_t s = 0; s < t->n; s++) {
        const double e = expect(t, s);
        if (isnan(t->stage[s].took_s) || isnan(e)) continue;
        took += t->stage[s].took_s;
        expected += e;
    }
    return took / expected;
}

double kiln_time_left_of_stage(const kiln_time_left *t, size_t s)
{
    const double stored = by_record(t, s);
    return isnan(stored) ? by_weights(t, s) * slowness(t, by_weights)
                         : stored * slowness(t, by_record);
}

/* ---- the whole ------------------------------------------------------------------------------- */
/* The rest of the stage in work: what its list says by its own speed, the more the further it is;
 * before, what was expected, as more lists may follow. */
static double rest_of_stage(const kiln_time_left *t, double stage_s, double list_s, double share)
{
    const double expected = kiln_time_left_of_stage(t, t->now) - stage_s;
    if (!(share > 0)) return expected; /* NAN too */
    const double list_left = list_s * (1 - fmin(share, 1)) / share, trust = share * share;
    return isnan(expected) ? list_left
                           : trust * list_left + (1 - trust) * fmax(list_left, expected);
}

double kiln_time_left_now(const kiln_time_left *t, double stage_s, double list_s, double share)
{
    double left = fmax(0, rest_of_stage(t, stage_s, list_s, share)); /* ignores NAN */
    if (isnan(kiln_time_left_of_stage(t, t->now)) && !(share > 0)) return NAN;
    for (size_t s = t->now + 1; s < t->n; s++)
        if (t->stage[s].runs) left += kiln_time_left_of_stage(t, s);
    return isfinite(left) ? left : NAN;
}

/* A new estimate counts by the time since the last one: half of the difference is made up in some
 * seconds, or in a tenth of what is left. Between estimates the clock runs down. */
double kiln_time_left_show(kiln_time_left *t, double seconds, uint64_t now_ns)
{
    const double passed = now_ns > t->shown_ns ? (double)(now_ns - t->shown_ns) * 1e-9 : 0;
    if (isnan(seconds) || isnan(t->shown_s)) {
        t->shown_s = seconds;
    } else {
        const double clock = fmax(0, t->shown_s - passed), slow = 1.5 + 0.1 * clock;
        t->shown_s = fmax(0, seconds + (clock - seconds) * exp2(-passed / slow));
    }
    t->shown_ns = now_ns;
    return t->shown_s;
}

/* ---- beside progress ------------------------------------------------------------------------- */
static double seconds_left(void *context, const kiln_progress *p, uint64_t now_ns)
{
    kiln_time_left *t = context;
    const double stage_s = (double)(now_ns - t->stage_ns) * 1e-9,
                 list_s = (double)(now_ns - p->start_ns) * 1e-9;
    const double share = p->total ? (double)p->done / (double)p->total : 0;
    return kiln_time_left_show(t, kiln_time_left_now(t, stage_s, list_s, share), now_ns);
}

void kiln_time_left_init(kiln_time_left *t, size_t n, const char *const names[], const bool runs[],
                         const char *manifest)
{
    *t = (kiln_time_left){
        .n = n < KILN_STAGES_MAX ? n : KILN_STAGES_MAX,
        .size = {NAN, NAN, NAN, NAN, NAN},
        .manifest = manifest,
        .bake_ns = kiln_wall_ns(),
        .shown_s = NAN,
        .whole = {
            .name = "bake", .part_name = "stage", .seconds_left = seconds_left, .context = t}};
    for (size_t s = 0; s < t->n; s++) {
        t->stage[s] = (kiln_timed_stage){names[s], runs[s], NAN, NAN, NAN, NAN};
        t->whole.parts += runs[s] && kiln_stage_find(names[s]);
    }
    kiln_bake_times_read(t);
}

void kiln_time_left_begin(kiln_time_left *t, size_t s)
{
    t->now = s;
    t->whole.part++;
    t->stage_ns = kiln_now_ns();
    kiln_progress_within(&t->whole);
}

/* A stage that had nothing to do is over too soon to tell anything, and a bake with nothing to do
 * is to stay quick. */
void kiln_time_left_end(kiln_time_left *t, size_t s)
{
    const double took_s = (double)(kiln_now_ns() - t->stage_ns) * 1e-9;
    kiln_progress_within(NULL);
    if (took_s >= 0.05) kiln_bake_times_learn(t, s, took_s);
}
