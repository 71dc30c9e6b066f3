/* level_errors -- how much a level differs from what it stands for: against a double computation,
 * and where nothing is as it should be. */
#include "stages/frame/level_cost.h"
#include "stages/lod/error_windows.h"
#include "stages/lod/errors.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 20000 };

/* ---- rows ------------------------------------------------------------------------------------ */
typedef struct {
    kiln_coarsen_rows rows;
    float means[3 * MOST], log_scales[3 * MOST], quats[4 * MOST], logits[MOST], sh0[3 * MOST];
    uint32_t first[MOST];
} node_rows;

static node_rows *rows_new(uint64_t n)
{
    node_rows *r = calloc(1, sizeof *r);
    assert_true(n <= MOST);
    r->rows = (kiln_coarsen_rows){.n = n,
                                  .means = r->means,
                                  .log_scales = r->log_scales,
                                  .quats = r->quats,
                                  .opacity_logits = r->logits,
                                  .sh0 = r->sh0,
                                  .source_first = r->first};
    for (uint64_t i = 0; i < n; i++) {
        r->quats[i] = 1;
        r->first[i] = (uint32_t)i;
    }
    return r;
}

static void set_row(node_rows *r, uint64_t i, const float mean[3], float log_scale, float logit,
                    const float sh0[3])
{
    for (uint64_t c = 0; c < 3; c++) {
        r->means[c * r->rows.n + i] = mean[c];
        r->log_scales[c * r->rows.n + i] = log_scale;
        r->sh0[c * r->rows.n + i] = sh0[c];
    }
    r->logits[i] = logit;
}

static float between(uint64_t *seed, float lo, float hi)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (float)(*seed >> 40) / (float)(1 << 24);
}

/* In a box of side `size` about the origin. */
static node_rows *random_rows(uint64_t n, float size, uint64_t seed)
{
    node_rows *r = rows_new(n);
    for (uint64_t i = 0; i < n; i++) {
        float mean[3], sh0[3];
        for (int c = 0; c < 3; c++) {
            mean[c] = between(&seed, -0.5f, 0.5f) * size;
            sh0[c] = between(&seed, -1.5f, 1.5f);
        }
        set_row(r, i, mean, logf(size) + between(&seed, -5, -3), between(&seed, -2, 4), sh0);
    }
    return r;
}

/* Every step-th row, wider. */
static node_rows *thinned(const node_rows *of, uint64_t step)
{
    node_rows *r = rows_new(of->rows.n / step);
    for (uint64_t i = 0; i < r->rows.n; i++) {
        float mean[3], sh0[3];
        for (uint64_t c = 0; c < 3; c++) {
            mean[c] = of->means[c * of->rows.n + step * i];
            sh0[c] = of->sh0[c * of->rows.n + step * i];
        }
        set_row(r, i, mean, of->log_scales[step * i] + 0.5f * logf((float)step),
                of->logits[step * i], sh0);
    }
    return r;
}

/* ---- cameras --------------------------------------------------------------------------------- */
/* At (x, y, z), looking along +z. */
static kiln_camera camera_at(double x, double y, double z, const char *split)
{
    kiln_camera c = {.r = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                     .t = {-x, -y, -z},
                     .width = 400,
                     .height = 300,
                     .fx = 500,
                     .fy = 400};
    c.cx = 200;
    c.cy = 150;
    strcpy(c.split, split);
    return c;
}

static kiln_lod_error_source source_of(const kiln_camera *cameras, uint32_t n)
{
    kiln_lod_error_source s = {.profile = KILN_PROFILE_INRIA, .near_m = 0.2};
    kiln_error err;
    assert_int_equal(kiln_lod_error_source_cameras(&s, cameras, n, &err), KILN_OK);
    return s;
}

static kiln_level_node node_of(const kiln_coarsen_rows *r)
{
    kiln_level_node n = {.n_levels = 1};
    for (uint64_t c = 0; c < 3; c++) {
        n.box_min[c] = INFINITY;
        n.box_max[c] = -INFINITY;
        for (uint64_t i = 0; i < r->n; i++) {
            n.box_min[c] = fminf(n.box_min[c], r->means[c * r->n + i]);
            n.box_max[c] = fmaxf(n.box_max[c], r->means[c * r->n + i]);
        }
    }
    return n;
}

static kiln_lod_error_request request_of(const kiln_camera *cameras, uint32_t n,
                                         const kiln_coarsen_rows *rows)
{
    kiln_lod_error_request q;
    kiln_lod_error_source s = source_of(cameras, n);
    const kiln_level_node node = node_of(rows);
    kiln_lod_error_request_init(&q, &s, &node);
    free(s.cameras);
    return q;
}

static kiln_lod_errors measure(const kiln_lod_error_request *q, const kiln_coarsen_rows *reference,
                               const kiln_coarsen_rows *levels, uint32_t n)
{
    kiln_lod_errors e;
    kiln_error err;
    const kiln_lod_measured_node node = {
        .request = q, .reference = reference, .levels = levels, .n_levels = n};
    assert_int_equal(kiln_lod_errors_measure(&node, 1, &e, &err), KILN_OK);
    return e;
}

/* ---- against doubles ------------------------------------------------------------------------- */
/* A round Gaussian of this scale in the middle of a picture, from the classic profile's definition:
 * its alpha r pixels off. */
static double alpha_at(double sigma_px, double opacity, double r2)
{
    const double alpha = fmin(0.99, opacity * exp(-0.5 * r2 / (sigma_px * sigma_px + 0.3)));
    return alpha < 1 / 255.0 ? 0 : alpha;
}

/* Integral over the picture of the squared difference of two such Gaussians with one grey each,
 * pixels. */
static double energy_of_two(const double sigma_px[2], const double opacity[2], const double grey[2])
{
    double sum = 0;
    const double h = 0.1;
    for (double y = -60 + h / 2; y < 60; y += h)
        for (double x = -60 + h / 2; x < 60; x += h) {
            const double d = grey[0] * alpha_at(sigma_px[0], opacity[0], x * x + y * y) -
                             grey[1] * alpha_at(sigma_px[1], opacity[1], x * x + y * y);
            sum += d * d * h * h;
        }
    return sum;
}

static void one_gaussian_for_another_is_what_doubles_say(void **state)
{
    static const float middle[3] = {0, 0, 0}, light[3] = {1, 1, 1}, dark[3] = {-0.5f, -0.5f, -0.5f};
    const kiln_camera camera = camera_at(0, 0, -5, "train");
    node_rows *a = rows_new(1), *b = rows_new(1);
    (void)state;
    set_row(a, 0, middle, logf(0.1f), 1, light);
    set_row(b, 0, middle, logf(0.08f), 0.5f, dark);
    const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    const kiln_lod_errors e = measure(&q, &a->rows, &b->rows, 1);
    assert_int_equal(e.n_levels, 1);
    assert_int_equal(e.first_step, -7); /* 5 / 500 = 0.01, and 2^-7 = 0.0078 */
    const double grey[2] = {0.5 + 0.28209479, 0.5 - 0.14104740},
                 opacity[2] = {1 / (1 + exp(-1)), 1 / (1 + exp(-0.5))};
    double measured[KILN_LOD_STEPS];
    for (int i = 0; i < KILN_LOD_STEPS; i += 2) {
        const double f = ldexp(1, e.first_step + i), sigma[2] = {0.1 / f, 0.08 / f};
        measured[i] = f * f * energy_of_two(sigma, opacity, grey);
        assert_true(fabs(e.at[0][i] - measured[i]) <
                    /* the last: a sum over 4 pixels is no integral */
                    (i < 6 ? 0.002 : 0.2) * measured[i]);
    }
    for (int i = 1; i < KILN_LOD_STEPS; i += 2)
        assert_true(fabs(e.at[0][i] - 0.5 * (e.at[0][i - 1] + e.at[0][i + 1])) < 1e-6 * e.at[0][i]);
    free(a);
    free(b);
}

/* The same from afar, with other focal lengths, turned: the error of a footprint is the camera's
 * alone in its direction. */
static void an_error_is_of_a_footprint_not_of_a_camera(void **state)
{
    node_rows *a = random_rows(200, 1, 3), *b = thinned(a, 2);
    (void)state;
    kiln_camera near = camera_at(0, 0, -5, "train"), far = camera_at(0, 0, -40, "train");
    far.fx = 4000;
    far.fy = 3000;
    const kiln_lod_error_request qn = request_of(&near, 1, &a->rows),
                                 qf = request_of(&far, 1, &a->rows);
    const kiln_lod_errors en = measure(&qn, &a->rows, &b->rows, 1),
                          ef = measure(&qf, &a->rows, &b->rows, 1);
    assert_int_equal(en.first_step, ef.first_step);
    for (int i = 0; i < KILN_LOD_STEPS; i++) assert_true(fabs(en.at[0][i] / ef.at[0][i] - 1) < 0.2);
    free(a);
    free(b);
}

/* ---- order of errors ------------------------------------------------------------------------- */
static void check_order(const kiln_lod_errors *e)
{
    assert_true(kiln_lod_errors_good(e, e->n_levels));
    for (uint32_t k = 1; k < e->n_levels; k++)
        for (int i = 0; i < KILN_LOD_STEPS; i++) assert_true(e->at[k][i] >= e->at[k - 1][i]);
}

static void errors_grow_with_the_level_and_fall_in_pixels(void **state)
{
    const kiln_camera cameras[3] = {camera_at(0, 0, -5, "train"), camera_at(1, 0, -6, "train"),
                                    camera_at(0, 1, -7, "test")};
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        node_rows *a = random_rows(400, 1, seed), *half = thinned(a, 2), *quarter = thinned(a, 4),
                  *wrong = random_rows(100, 1, seed + 9);
        const kiln_lod_error_request q = request_of(cameras, 3, &a->rows);
        assert_int_equal(q.n_views, 2);
        /* the third is worse than the fourth, which is made no better than it */
        const kiln_coarsen_rows levels[4] = {half->rows, quarter->rows, wrong->rows, half->rows};
        const kiln_lod_errors e = measure(&q, &a->rows, levels, 4);
        check_order(&e);
        assert_true(e.at[0][0] > 0 && e.at[2][0] > e.at[0][0] && e.at[3][0] == e.at[2][0]);
        const kiln_lod_errors same = measure(&q, &a->rows, &a->rows, 1);
        for (int i = 0; i < KILN_LOD_STEPS; i++) assert_true(same.at[0][i] == 0);
        free(a);
        free(half);
        free(quarter);
        free(wrong);
    }
}

static void threads_do_not_show(void **state)
{
    const kiln_camera camera = camera_at(0, 0, -5, "train");
    node_rows *a = random_rows(600, 1, 8), *b = thinned(a, 2);
    kiln_lod_errors one, three;
    kiln_error err;
    (void)state;
    const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    const kiln_lod_measured_node node = {
        .request = &q, .reference = &a->rows, .levels = &b->rows, .n_levels = 1};
    assert_int_equal(kiln_lod_errors_measure(&node, 1, &one, &err), KILN_OK);
    assert_int_equal(kiln_lod_errors_measure(&node, 3, &three, &err), KILN_OK);
    assert_memory_equal(&one, &three, sizeof one);
    free(a);
    free(b);
}

/* ---- visibility ------------------------------------------------------------------------------ */
static void what_is_hidden_counts_less_among_rows(void **state)
{
    static float shown[400], hidden[400];
    const kiln_camera camera = camera_at(0, 0, -5, "train"), inside = camera_at(0, 0, 0, "train");
    node_rows *a = random_rows(400, 1, 8), *b = thinned(a, 2);
    (void)state;
    kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    const kiln_lod_errors outside = measure(&q, &a->rows, &b->rows, 1);
    for (int i = 0; i < 400; i++) hidden[i] = 0.02f;
    a->rows.visibility = b->rows.visibility = hidden; /* what hides it is asked for each view */
    const kiln_lod_errors same_outside = measure(&q, &a->rows, &b->rows, 1);
    assert_memory_equal(&outside, &same_outside, sizeof outside);
    a->rows.visibility = b->rows.visibility = NULL;
    q = request_of(&inside, 1, &a->rows);
    const kiln_lod_errors plain = measure(&q, &a->rows, &b->rows, 1);
    for (int i = 0; i < 400; i++) shown[i] = 0.5f;
    a->rows.visibility = b->rows.visibility = shown;
    const kiln_lod_errors same = measure(&q, &a->rows, &b->rows, 1);
    a->rows.visibility = b->rows.visibility = hidden;
    const kiln_lod_errors less = measure(&q, &a->rows, &b->rows, 1);
    assert_memory_equal(&plain, &same, sizeof plain);
    for (int i = 0; i < KILN_LOD_STEPS; i++)
        assert_true(fabs(less.at[0][i] / plain.at[0][i] - 0.2) < 1e-3);
    free(a);
    free(b);
}

/* ---- children -------------------------------------------------------------------------------- */
static void children_are_added_at_the_same_footprint(void **state)
{
    kiln_lod_errors child = {.n_levels = 2, .first_step = -3};
    double sum[KILN_LOD_STEPS] = {0};
    (void)state;
    for (int i = 0; i < KILN_LOD_STEPS; i++) child.at[1][i] = (float)(64 >> i);
    kiln_lod_errors_add(&child, -3, sum);
    for (int i = 0; i < KILN_LOD_STEPS; i++) assert_true(sum[i] == child.at[1][i]);
    memset(sum, 0, sizeof sum);
    kiln_lod_errors_add(&child, -1, sum); /* the last two have the child's last */
    assert_true(sum[0] == 16 && sum[4] == 1 && sum[5] == 1 && sum[6] == 1);
    memset(sum, 0, sizeof sum);
    /* the first two are finer than the child's: along its first two */
    kiln_lod_errors_add(&child, -5, sum);
    assert_true(sum[0] == 96 && sum[1] == 96 && sum[2] == 64 && sum[6] == 4);
}

static void what_children_lost_is_lost(void **state)
{
    const kiln_camera camera = camera_at(0, 0, -5, "train");
    node_rows *a = random_rows(200, 1, 8), *b = thinned(a, 2);
    kiln_lod_child_errors children[2] = {{.errors = {.n_levels = 1, .first_step = -7}},
                                         {.errors = {.n_levels = 1, .first_step = -7}}};
    kiln_lod_errors e;
    kiln_error err;
    (void)state;
    for (int i = 0; i < KILN_LOD_STEPS; i++)
        children[0].errors.at[0][i] = 2, children[1].errors.at[0][i] = 3;
    const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    const kiln_lod_errors alone = measure(&q, &a->rows, &b->rows, 1);
    const kiln_lod_measured_node node = {.request = &q,
                                         .reference = &a->rows,
                                         .levels = &b->rows,
                                         .n_levels = 1,
                                         .n_children = 2,
                                         .children = children};
    assert_int_equal(kiln_lod_errors_measure(&node, 1, &e, &err), KILN_OK);
    for (int i = 0; i < KILN_LOD_STEPS; i++)
        assert_true(fabs(e.at[0][i] - (5 + alone.at[0][i])) < 1e-5);
    free(a);
    free(b);
}

/* ---- memory ---------------------------------------------------------------------------------- */
static uint64_t status_kib(const char *field)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0)
            (void)sscanf(line + strlen(field), ": %llu", &kib);
    fclose(f);
    return kib;
}

/* The process's high-water mark, in a child so that what other tests left does not count. */
static void memory_is_as_predicted(void **state)
{
    const kiln_camera camera = camera_at(0, 0, -5, "train");
    node_rows *a = random_rows(MOST, 1, 8), *b = thinned(a, 2);
    (void)state;
    for (int i = 0; i < 3 * MOST; i++) a->log_scales[i] -= 1;
    const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kiln_lod_errors e;
        kiln_error err;
        const kiln_lod_measured_node node = {
            .request = &q, .reference = &a->rows, .levels = &b->rows, .n_levels = 1};
        const uint64_t held = status_kib("VmRSS");
        const kiln_status st = kiln_lod_errors_measure(&node, 1, &e, &err);
        const uint64_t most = (status_kib("VmHWM") - held) << 10,
                       predicted = kiln_lod_errors_bytes(MOST);
        printf("# measuring %d rows took %.1f MiB, predicted %.1f\n", MOST,
               (double)most / (1 << 20), (double)predicted / (1 << 20));
        fflush(stdout);
        _exit(st != KILN_OK || most > predicted || predicted > 16 * most);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free(a);
    free(b);
}

/* ---- cameras that measure -------------------------------------------------------------------- */
static void cameras_of_the_training_split_measure(void **state)
{
    const kiln_camera cameras[3] = {camera_at(0, 0, -5, "test"), camera_at(0, 0, -6, "train"),
                                    camera_at(0, 0, -7, "test")};
    (void)state;
    kiln_lod_error_source s = source_of(cameras, 3);
    assert_int_equal(s.n_cameras, 1);
    assert_ptr_equal(s.cameras[0], &cameras[1]);
    free(s.cameras);
    s = source_of(cameras, 1); /* there is none for training */
    assert_int_equal(s.n_cameras, 1);
    assert_ptr_equal(s.cameras[0], &cameras[0]);
    free(s.cameras);
}

static void views_are_spread_over_those_that_see_the_node(void **state)
{
    kiln_camera cameras[20];
    node_rows *a = random_rows(20, 1, 1);
    (void)state;
    /* every second looks past it */
    for (int i = 0; i < 20; i++) cameras[i] = camera_at(i % 2 ? 100 : 0, 0, -10 - i, "train");
    const kiln_lod_error_request q = request_of(cameras, 20, &a->rows);
    assert_int_equal(q.n_views, 10); /* the worker chooses among up to KILN_LOD_CANDIDATES */
    for (int i = 0; i < 10; i++)
        assert_true(q.views[i].centre[2] == -10 - 2 * i && q.views[i].centre[0] == 0);
    const kiln_level_node node = node_of(&a->rows);
    assert_true(fabs(q.finest - ((double)node.box_min[2] + 10) / 500) < 1e-9);
    /* none sees it: all count */
    const kiln_lod_error_request past = request_of(cameras + 1, 1, &a->rows);
    assert_int_equal(past.n_views, 1);
    free(a);
}

/* From afar a view looks at the middle of the node, wherever its camera looks. */
static void where_a_camera_looks_does_not_show(void **state)
{
    node_rows *a = random_rows(2000, 1.0f, 7), *b = thinned(a, 2);
    kiln_lod_errors first = {0};
    (void)state;
    for (int k = 0; k < 3; k++) { /* pitched by 0, 0.1 and 0.2; the node stays in the picture */
        const double c = cos(0.1 * k), s = sin(0.1 * k);
        kiln_camera camera = camera_at(0, 0, -10, "train");
        memcpy(camera.r, (const double[]){1, 0, 0, 0, c, -s, 0, s, c}, sizeof camera.r);
        memcpy(camera.t, (const double[]){0, -10 * s, 10 * c}, sizeof camera.t);
        const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
        const kiln_lod_errors e = measure(&q, &a->rows, &b->rows, 1);
        if (k == 0) first = e;
        assert_int_equal(e.first_step, first.first_step);
        for (int i = 0; i < KILN_LOD_STEPS; i++)
            assert_true(fabsf(e.at[0][i] - first.at[0][i]) <= 1e-4f * first.at[0][i]);
    }
    free(a);
    free(b);
}

static void without_cameras_nothing_is_measured(void **state)
{
    node_rows *a = random_rows(20, 1, 1);
    (void)state;
    const kiln_lod_error_request q = request_of(NULL, 0, &a->rows);
    assert_int_equal(q.n_views, 0);
    const kiln_lod_errors e = measure(&q, &a->rows, &a->rows, 1);
    assert_int_equal(e.n_levels, 0);
    free(a);
}

/* ---- parts of a picture ---------------------------------------------------------------------- */
static double whole_of(const kiln_lod_error_part *parts, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(parts[i].left + parts[i].width <= 1000 &&
                    parts[i].top + parts[i].height <= 600);
        assert_true(parts[i].width <= KILN_LOD_CELL_MOST && parts[i].height <= KILN_LOD_CELL_MOST);
        sum += parts[i].stands * parts[i].coarse[0];
    }
    return sum;
}

static void parts_stand_for_the_picture(void **state)
{
    static kiln_lod_error_map map;
    kiln_lod_error_part parts[KILN_LOD_PARTS];
    (void)state;
    memset(&map, 0, sizeof map);
    /* no difference anywhere */
    assert_int_equal(kiln_lod_error_parts(&map, 1, 1000, 600, parts), 0);
    for (int i = 0; i < KILN_LOD_CELLS * KILN_LOD_CELLS; i++) map.cell[0][i] = 2;
    uint32_t n = kiln_lod_error_parts(&map, 1, 1000, 600, parts);
    assert_true(n > 1 &&
                fabs(whole_of(parts, n) / (2 * KILN_LOD_CELLS * KILN_LOD_CELLS) - 1) < 1e-9);
    memset(&map, 0, sizeof map);
    map.cell[0][5 * KILN_LOD_CELLS + 20] = 7; /* all of it in one cell */
    n = kiln_lod_error_parts(&map, 1, 1000, 600, parts);
    assert_true(n >= 1 && fabs(whole_of(parts, n) - 7) < 0.3 * 7);
    for (uint32_t i = 0; i < n; i++)
        if (parts[i].coarse[0] > 0)
            assert_true(parts[i].left <= 20 * 1000 / 32 &&
                        parts[i].left + parts[i].width >= 21 * 1000 / 32);
}

/* ---- odd scenes ------------------------------------------------------------------------------ */
static void a_camera_that_looks_away_measures_from_outside(void **state)
{
    node_rows *a = random_rows(300, 1, 5), *b = thinned(a, 2);
    const kiln_camera cameras[2] = {camera_at(0, 0, 9, "train"), camera_at(3, 0, 2, "train")};
    const kiln_camera usual = camera_at(0, 0, -5, "train");
    (void)state;
    const kiln_lod_error_request qu = request_of(&usual, 1, &a->rows);
    const kiln_lod_errors eu = measure(&qu, &a->rows, &b->rows, 1);
    for (int i = 0; i < 2; i++) {
        const kiln_lod_error_request q = request_of(&cameras[i], 1, &a->rows);
        const kiln_lod_errors e = measure(&q, &a->rows, &b->rows, 1);
        check_order(&e);
        const kiln_chunk c = {.n_errors = 1, .error_step = e.first_step, .errors = {e.at[0][0]}};
        assert_true(c.errors[0] > 0.2f * eu.at[0][0] && c.errors[0] < 5 * eu.at[0][0]);
    }
    free(a);
    free(b);
}

/* Of a camera within counts what it sees: not what is behind it, and at the distances of the
 * rows. */
static void a_camera_among_the_rows_measures_what_it_sees(void **state)
{
    node_rows *a = random_rows(300, 8, 5), *behind = thinned(a, 1), *ahead = thinned(a, 1);
    const kiln_camera camera = camera_at(0, 0, 0, "train");
    const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    (void)state;
    for (int i = 0; i < 300; i++) (a->means[600 + i] < -0.5f ? behind : ahead)->sh0[i] += 1;
    const kiln_lod_errors unseen = measure(&q, &a->rows, &behind->rows, 1),
                          seen = measure(&q, &a->rows, &ahead->rows, 1);
    check_order(&seen);
    for (int i = 0; i < KILN_LOD_STEPS; i++) assert_true(unseen.at[0][i] == 0 && seen.at[0][i] > 0);
    const double x = q.views[0].tan_x, y = q.views[0].tan_y;
    const kiln_level_eye eye = {.axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                .left = -x,
                                .right = x,
                                .top = -y,
                                .bottom = y,
                                .near_m = q.near_m};
    kiln_level_sight of_rows;
    assert_true(kiln_level_rows_seen(ahead->means, NULL, NULL, 300, &eye, &of_rows));
    const double away = of_rows.distance;
    assert_true(away > 0.5 && away < 5 && of_rows.share < 0.2);
    /* the first footprint is that of the camera's own picture, of 400 pixels; sites are not quite
     * as far away as rows */
    const double side = 2 * away * fmax(x, y) / ldexp(1, seen.first_step);
    assert_true(side > 400 / 1.5 && side < 1.5 * 2 * 400);
    free(a);
    free(behind);
    free(ahead);
}

static void extremes_give_finite_errors(void **state)
{
    static const float sizes[] = {1e-20f, 1e-6f, 1e6f, 1e20f, 1e30f};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        node_rows *a = random_rows(100, sizes[k], k + 1), *b = thinned(a, 2);
        const kiln_camera camera = camera_at(0, 0, -5.0 * (double)sizes[k], "train");
        const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
        const kiln_lod_errors e = measure(&q, &a->rows, &b->rows, 1);
        assert_int_equal(e.n_levels, 1);
        check_order(&e);
        free(a);
        free(b);
    }
    /* of the largest scales and colours that a file may hold, and one row that reaches as far as
     * floats do */
    node_rows *a = random_rows(300, 1, 5), *b = thinned(a, 2);
    const kiln_camera camera = camera_at(0, 0, -5, "train");
    a->log_scales[7] = a->log_scales[307] = 88;
    b->sh0[3] = FLT_MAX;
    b->sh0[4] = -FLT_MAX;
    b->logits[5] = 1e30f;
    kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    kiln_lod_errors e = measure(&q, &a->rows, &b->rows, 1);
    check_order(&e);
    assert_true(e.at[0][0] > 1e3f);
    for (int i = 0; i < 300; i++) a->log_scales[i] = 88;
    e = measure(&q, &a->rows, &b->rows, 1);
    check_order(&e);
    free(a);
    free(b);
}

/* Poses and lenses that a file may hold, and no camera has. */
static void odd_cameras_give_finite_errors(void **state)
{
    static const double places[] = {0, 1e-300, 1e20, 1e39, 1e300},
                        focals[] = {1e-300, 1e-9, 1e9, 1e300};
    node_rows *a = random_rows(100, 1, 5), *b = thinned(a, 2);
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t k = 0; k < sizeof focals / sizeof *focals; k++) {
            kiln_camera camera = camera_at(places[i], 0, -places[i], "train");
            camera.fx = camera.fy = focals[k];
            const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
            const kiln_lod_errors e = measure(&q, &a->rows, &b->rows, 1);
            assert_int_equal(e.n_levels, 1);
            check_order(&e);
        }
    free(a);
    free(b);
}

/* One row that covers all the rest does not blur the measure: the window leaves it out. */
/* Errors below the least normal float are rounded when they are halved: each stays at most four
 * times the one before. */
static void errors_of_a_tiny_node_can_be_stored(void **state)
{
    (void)state;
    for (int power = 18; power <= 24; power++) {
        const float size = powf(10, -(float)power);
        node_rows *rows = random_rows(200, size, 7), *level = thinned(rows, 2);
        const kiln_camera camera = camera_at(0, 0, -3 * (double)size, "train");
        kiln_lod_error_source s = source_of(&camera, 1);
        kiln_lod_error_request q;
        const kiln_level_node node = node_of(&rows->rows);
        s.near_m = 0.01 * (double)size;
        kiln_lod_error_request_init(&q, &s, &node);
        const kiln_lod_errors e = measure(&q, &rows->rows, &level->rows, 1);
        assert_true(kiln_lod_errors_good(&e, 1));
        free(s.cameras);
        free(rows);
        free(level);
    }
}

static void large_rows_do_not_coarsen_the_footprint(void **state)
{
    node_rows *a = random_rows(600, 1, 5), *b = thinned(a, 2);
    const kiln_camera camera = camera_at(0, 0, -5, "train");
    (void)state;
    const kiln_lod_error_request q = request_of(&camera, 1, &a->rows);
    const int32_t before = measure(&q, &a->rows, &b->rows, 1).first_step;
    for (int i = 0; i < 3; i++) a->log_scales[i] = 0; /* of 600, 3 are left out */
    assert_int_equal(measure(&q, &a->rows, &b->rows, 1).first_step, before);
    for (int i = 0; i < 30; i++) a->log_scales[i] = 0;
    /* what does not fit is drawn in parts */
    assert_true(abs(measure(&q, &a->rows, &b->rows, 1).first_step - before) <= 1);
    free(a);
    free(b);
}

static void stored_errors_are_looked_at(void **state)
{
    kiln_lod_errors e = {.n_levels = 2, .first_step = -4};
    (void)state;
    assert_true(kiln_lod_errors_good(&e, 2));
    assert_false(kiln_lod_errors_good(&e, 3));
    e.at[1][3] = 1;
    assert_false(kiln_lod_errors_good(&e, 2)); /* from 0 to 1 */
    for (int i = 0; i < KILN_LOD_STEPS; i++) e.at[1][i] = 1;
    assert_true(kiln_lod_errors_good(&e, 2));
    e.at[1][6] = NAN;
    assert_false(kiln_lod_errors_good(&e, 2));
    e.at[1][6] = INFINITY;
    assert_false(kiln_lod_errors_good(&e, 2));
    e.at[1][6] = -1;
    assert_false(kiln_lod_errors_good(&e, 2));
    e.at[1][6] = 1;
    e.first_step = INT32_MAX;
    assert_false(kiln_lod_errors_good(&e, 2));
    e.first_step = 0;
    e.n_levels = UINT32_MAX;
    assert_false(kiln_lod_errors_good(&e, UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gaussian_for_another_is_what_doubles_say),
        cmocka_unit_test(an_error_is_of_a_footprint_not_of_a_camera),
        cmocka_unit_test(errors_grow_with_the_level_and_fall_in_pixels),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(what_is_hidden_counts_less_among_rows),
        cmocka_unit_test(children_are_added_at_the_same_footprint),
        cmocka_unit_test(what_children_lost_is_lost),
        cmocka_unit_test(memory_is_as_predicted),
        cmocka_unit_test(cameras_of_the_training_split_measure),
        cmocka_unit_test(views_are_spread_over_those_that_see_the_node),
        cmocka_unit_test(where_a_camera_looks_does_not_show),
        cmocka_unit_test(without_cameras_nothing_is_measured),
        cmocka_unit_test(parts_stand_for_the_picture),
        cmocka_unit_test(a_camera_that_looks_away_measures_from_outside),
        cmocka_unit_test(a_camera_among_the_rows_measures_what_it_sees),
        cmocka_unit_test(extremes_give_finite_errors),
        cmocka_unit_test(errors_of_a_tiny_node_can_be_stored),
        cmocka_unit_test(odd_cameras_give_finite_errors),
        cmocka_unit_test(large_rows_do_not_coarsen_the_footprint),
        cmocka_unit_test(stored_errors_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
