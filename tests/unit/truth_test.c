/* truth_test -- every picture of shared/truth, drawn by our kernels, is what the renderer itself drew (truth/README.md).
 *
 * For each render: at least 85 dB over the stored rectangle, RGBA; means of the whole unclamped picture within 2e-6;
 * `visible` within 2; pairs within 0.05 % of exact_pairs, at least 3. A line is printed for each that fails, or for all
 * with KILN_TRUTH_VERBOSE set. */
#include "kernels/ops.h"
#include "stages/image/image.h"
#include "tests/unit/truth_scene.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const kiln_exec exec_cpu = {.device = -1, .threads = 2};

typedef struct {
    char shared[3072];
    json_t *truth; /* NULL: shared/ is absent */
    truth_scene scenes[3];
} fixture;

/* What a view of a scene comes to. Owned by whoever calls picture_release. */
typedef struct {
    uint64_t visible, pairs, rectangles;
    uint32_t width, height;
    float *rgba, *depth;
} picture;

static void picture_release(picture *p)
{
    free(p->rgba);
    free(p->depth);
    *p = (picture){0};
}

#define RUN(op, args)                                           \
    do {                                                        \
        size_t bytes = 0;                                       \
        KILN_GO(ops->op(&exec_cpu, (args), NULL, &bytes, err)); \
        void *work = NULL;                                      \
        KILN_GO(kiln_alloc(&work, bytes, 1, #op, err));         \
        st = ops->op(&exec_cpu, (args), work, &bytes, err);     \
        free(work);                                             \
        if (st != KILN_OK) goto done;                           \
    } while (0)

/* Visible Gaussians of the scene in depth order; *splats is the caller's. */
static kiln_status look(const kiln_ops *ops, const truth_scene *s, const kiln_view *view, kiln_profile_id profile, bool aa,
                        kiln_splat2d **splats, uint64_t *visible, kiln_error *err)
{
    kiln_status st;
    kiln_splat2d *found = NULL;
    float *depths = NULL;
    uint32_t *rows = NULL, *order = NULL;
    KILN_GO(KILN_ALLOC(&found, s->n, "splats", err));
    kiln_project_args project = {.n = s->n,
                                 .means = s->means,
                                 .log_scales = s->log_scales,
                                 .quats = s->quats,
                                 .opacity_logits = s->opacity_logits,
                                 .sh0 = s->sh0,
                                 .shN = s->shN,
                                 .sh_degree = 3,
                                 .view = view,
                                 .profile = profile,
                                 .antialiased = aa,
                                 .splats = found,
                                 .n_visible = visible};
    RUN(project, &project);
    KILN_GO(KILN_ALLOC(&depths, *visible, "depths", err));
    KILN_GO(KILN_ALLOC(&rows, *visible, "rows", err));
    KILN_GO(KILN_ALLOC(&order, *visible, "order", err));
    KILN_GO(KILN_ALLOC(splats, *visible, "splats", err));
    for (uint64_t i = 0; i < *visible; i++) {
        depths[i] = found[i].depth;
        rows[i] = found[i].row;
    }
    kiln_depth_order_args sort = {.n = *visible, .depths = depths, .source_rows = rows, .order = order};
    RUN(depth_order, &sort);
    for (uint64_t i = 0; i < *visible; i++) (*splats)[i] = found[order[i]];
done:
    free(order);
    free(rows);
    free(depths);
    free(found);
    return st;
}

static kiln_status draw(const kiln_ops *ops, const truth_scene *s, const kiln_view *view, kiln_profile_id profile, bool aa,
                        picture *p, kiln_error *err)
{
    kiln_status st;
    const uint32_t tiles_x = kiln_view_tiles_x(view), tiles_y = kiln_view_tiles_y(view);
    kiln_splat2d *splats = NULL;
    uint64_t *row_pairs = NULL;
    uint32_t *tile_counts = NULL, *ranks = NULL;
    *p = (picture){.width = view->width, .height = view->height};
    KILN_GO(look(ops, s, view, profile, aa, &splats, &p->visible, err));
    for (uint64_t i = 0; i < p->visible; i++)
        p->rectangles += (uint64_t)(splats[i].tile_x1 - splats[i].tile_x0) * (uint64_t)(splats[i].tile_y1 - splats[i].tile_y0);
    KILN_GO(KILN_ALLOC(&row_pairs, tiles_y, "row pairs", err));
    kiln_tile_pairs_count_args count = {.n = p->visible, .splats = splats, .view = view, .row1 = tiles_y, .row_pairs = row_pairs};
    RUN(tile_pairs_count, &count);
    for (uint32_t r = 0; r < tiles_y; r++) p->pairs += row_pairs[r];
    KILN_GO(KILN_ALLOC(&tile_counts, tiles_x * tiles_y, "tile counts", err));
    KILN_GO(KILN_ALLOC(&ranks, p->pairs, "ranks", err));
    kiln_tile_pairs_emit_args emit = {.n = p->visible,
                                      .splats = splats,
                                      .view = view,
                                      .row1 = tiles_y,
                                      .room = p->pairs,
                                      .tile_counts = tile_counts,
                                      .ranks = ranks};
    RUN(tile_pairs_emit, &emit);
    KILN_GO(KILN_ALLOC(&p->rgba, (uint64_t)4 * view->width * view->height, "picture", err));
    KILN_GO(KILN_ALLOC(&p->depth, (uint64_t)view->width * view->height, "depth", err));
    kiln_raster_args raster = {.n = p->visible,
                               .splats = splats,
                               .view = view,
                               .profile = profile,
                               .row1 = tiles_y,
                               .tile_counts = tile_counts,
                               .ranks = ranks,
                               .n_pairs = p->pairs,
                               .rgba = p->rgba,
                               .depth = p->depth};
    RUN(raster, &raster);
done:
    free(ranks);
    free(tile_counts);
    free(row_pairs);
    free(splats);
    return st;
}

/* ---- truth.json -------------------------------------------------------------------------------------------------- */

static double number(const json_t *v) { return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v); }
static double field(const json_t *o, const char *key) { return number(json_object_get(o, key)); }

static void camera_view(const json_t *camera, float near_m, kiln_profile_id profile, kiln_view *view)
{
    double r[9], t[3];
    const double origin[3] = {0, 0, 0};
    for (size_t i = 0; i < 9; i++) r[i] = number(json_array_get(json_object_get(camera, "R"), i));
    for (size_t i = 0; i < 3; i++) t[i] = number(json_array_get(json_object_get(camera, "t"), i));
    const double intrinsics[4] = {field(camera, "fx"), field(camera, "fy"), field(camera, "cx"), field(camera, "cy")};
    kiln_view_init(view, r, t, origin, intrinsics, (uint32_t)field(camera, "width"), (uint32_t)field(camera, "height"), near_m,
                   kiln_profiles[profile].far_m);
}

/* "chair/cam0/gsplat-1.6_aa" */
static bool parse_name(const char *name, char scene[32], unsigned *camera, kiln_profile_id *profile, bool *aa)
{
    char rest[32];
    if (sscanf(name, "%31[^/]/cam%u/%31s", scene, camera, rest) != 3) return false;
    char *suffix = strstr(rest, "_aa");
    *aa = suffix != NULL;
    if (suffix) *suffix = '\0';
    *profile = kiln_profile_find(rest);
    return *profile != KILN_PROFILE_COUNT;
}

static double clamp01(double v) { return v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v; }

/* dB over the stored rectangle; INFINITY where none is stored, NAN where it cannot be read. */
static double stored_db(const fixture *f, const json_t *render, const picture *p, kiln_error *err)
{
    const json_t *file = json_object_get(render, "file"), *rect = json_object_get(render, "rect");
    char path[4096];
    kiln_picture stored = {0};
    if (!file) return INFINITY;
    snprintf(path, sizeof path, "%s/truth/%s", f->shared, json_string_value(file));
    if (kiln_picture_read(path, &stored, err) != KILN_OK) return NAN;
    const size_t x0 = (size_t)number(json_array_get(rect, 0)), y0 = (size_t)number(json_array_get(rect, 1));
    double sum = 0.0;
    if (stored.channels != 4 || x0 + stored.width > p->width || y0 + stored.height > p->height) {
        kiln_picture_release(&stored);
        return NAN;
    }
    for (size_t y = 0; y < stored.height; y++)
        for (size_t i = 0; i < (size_t)stored.width * 4; i++) {
            const double ours = clamp01(p->rgba[((y0 + y) * p->width + x0) * 4 + i]);
            const double d = ours - stored.data[y * stored.width * 4 + i];
            sum += d * d;
        }
    const double mse = sum / ((double)stored.width * stored.height * 4.0);
    kiln_picture_release(&stored);
    return -10.0 * log10(mse);
}

/* Largest difference of the four means of the whole picture. */
static double means_off(const json_t *render, const picture *p)
{
    double mean[4] = {0}, worst = 0.0;
    const size_t pixels = (size_t)p->width * p->height;
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < 4; c++) mean[c] += p->rgba[4 * i + c];
    for (size_t c = 0; c < 4; c++) {
        const double want = c < 3 ? number(json_array_get(json_object_get(render, "mean_rgb"), c)) : field(render, "mean_alpha");
        const double off = fabs(mean[c] / (double)pixels - want);
        worst = off > worst ? off : worst;
    }
    return worst;
}

static bool close_to(double got, double want, double tolerance) { return fabs(got - want) <= tolerance; }

/* True when the render meets its truth. */
static bool check(const fixture *f, const char *name, const json_t *render)
{
    char scene[32];
    unsigned camera;
    kiln_profile_id profile;
    bool aa;
    kiln_view view;
    picture p = {0};
    kiln_error err = {0};
    if (!parse_name(name, scene, &camera, &profile, &aa)) return false;
    const truth_scene *s = NULL;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(f->scenes[i].name, scene) == 0) s = &f->scenes[i];
    if (!s) return false;
    const json_t *cameras = json_object_get(json_object_get(f->truth, "cameras"), scene);
    camera_view(json_array_get(cameras, camera), (float)field(render, "near"), profile, &view);
    bool good = false;
    if (draw(kiln_ops_cpu(), s, &view, profile, aa, &p, &err) == KILN_OK) {
        const double db = stored_db(f, render, &p, &err), means = means_off(render, &p);
        const double exact = field(render, "exact_pairs"), visible = field(render, "visible");
        const double room = exact * 0.0005 > 3.0 ? exact * 0.0005 : 3.0;
        good = db >= 85.0 && means <= 2e-6 && close_to((double)p.visible, visible, 2.0) && close_to((double)p.pairs, exact, room);
        if (profile == KILN_PROFILE_INRIA) good = good && close_to((double)p.rectangles, field(render, "pairs"), 5.0);
        if (!good || getenv("KILN_TRUTH_VERBOSE"))
            print_message("%-36s %6.2f dB  means %.1e  visible %+.0f of %.0f  pairs %+.0f of %.0f  tiles in bounds %llu of %.0f\n",
                          name, db, means, (double)p.visible - visible, visible, (double)p.pairs - exact, exact,
                          (unsigned long long)p.rectangles, field(render, "pairs"));
    }
    if (err.msg[0]) print_message("%s: %s\n", name, err.msg);
    picture_release(&p);
    return good;
}

/* ---- fixture ------------------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    char path[4096];
    kiln_error err = {0};
    if (!f) return -1;
    *state = f;
    const char *shared = getenv("KILN_SHARED");
    snprintf(f->shared, sizeof f->shared, "%s", shared ? shared : "../shared");
    snprintf(path, sizeof path, "%s/truth/truth.json", f->shared);
    if (!kiln_is_file(path)) return 0;
    json_error_t why;
    f->truth = json_load_file(path, 0, &why);
    if (!f->truth) {
        print_message("%s: line %d: %s\n", path, why.line, why.text);
        return -1;
    }
    kiln_status st = truth_scene_synthetic(&f->scenes[0], 50000, &err);
    snprintf(path, sizeof path, "%s/scenes/chair/chair.ply", f->shared);
    if (st == KILN_OK) st = truth_scene_ply(&f->scenes[1], "chair", path, &err);
    snprintf(path, sizeof path, "%s/scenes/files/brush_leica_8192.ply", f->shared);
    if (st == KILN_OK) st = truth_scene_ply(&f->scenes[2], "brush_leica_8192", path, &err);
    if (st != KILN_OK) print_message("%s\n", err.msg);
    return st == KILN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < 3; i++) truth_scene_release(&f->scenes[i]);
    json_decref(f->truth);
    free(f);
    return 0;
}

static void every_profile_meets_its_renderer(void **state)
{
    const fixture *f = *state;
    const char *name;
    json_t *render;
    unsigned failed = 0, renders = 0;
    if (!f->truth) {
        print_message("skipped: no %s/truth/truth.json; set KILN_SHARED\n", f->shared);
        skip();
    }
    json_object_foreach(json_object_get(f->truth, "renders"), name, render)
    {
        failed += !check(f, name, render);
        renders++;
    }
    assert_int_equal(renders, 48);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_profile_meets_its_renderer)};
    return cmocka_run_group_tests_name("truth", tests, setup, teardown);
}
