/* truth_test -- every picture of shared/truth, drawn by our kernels, is what the renderer itself
 * drew (truth/README.md).
 *
 * For each render: at least 85 dB over the stored rectangle, RGBA; means of the whole unclamped
 * picture within 2e-6; mean expected depth within 1e-5; `visible` within 2; pairs within 0.05 % of
 * exact_pairs, at least 3. A line is printed for each that fails, or for all with
 * KILN_TRUTH_VERBOSE set. KILN_TEST_DEVICES=cuda: drawn by a GPU (test_runner.h).
 *
 * starts first */
#include "stages/image/image.h"
#include "tests/unit/truth_draw.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct {
    char shared[3072];
    json_t *truth; /* NULL: shared/ is absent */
    truth_scene scenes[3];
} fixture;

/* ---- truth.json ------------------------------------------------------------------------------ */

static double number(const json_t *v)
{
    return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
}
static double field(const json_t *o, const char *key) { return number(json_object_get(o, key)); }

static void camera_view(const json_t *camera, float near_m, kiln_profile_id profile,
                        kiln_view *view)
{
    double r[9], t[3];
    const double origin[3] = {0, 0, 0};
    for (size_t i = 0; i < 9; i++) r[i] = number(json_array_get(json_object_get(camera, "R"), i));
    for (size_t i = 0; i < 3; i++) t[i] = number(json_array_get(json_object_get(camera, "t"), i));
    const double intrinsics[4] = {field(camera, "fx"), field(camera, "fy"), field(camera, "cx"),
                                  field(camera, "cy")};
    kiln_view_init(view, r, t, origin, intrinsics, (uint32_t)field(camera, "width"),
                   (uint32_t)field(camera, "height"), near_m, kiln_profiles[profile].far_m);
}

/* What the name of a render, such as "chair/cam0/gsplat-1.6_aa", stands for. */
typedef struct {
    const truth_scene *scene;
    const json_t *camera;
    kiln_profile_id profile;
    bool aa;
} subject;

static bool find_subject(const fixture *f, const char *name, subject *out)
{
    char scene[32], rest[32];
    unsigned camera;
    if (sscanf(name, "%31[^/]/cam%u/%31s", scene, &camera, rest) != 3) return false;
    char *suffix = strstr(rest, "_aa");
    if (suffix) *suffix = '\0';
    *out = (subject){.profile = kiln_profile_find(rest),
                     .aa = suffix != NULL,
                     .camera = json_array_get(
                         json_object_get(json_object_get(f->truth, "cameras"), scene), camera)};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(f->scenes[i].name, scene) == 0) out->scene = &f->scenes[i];
    return out->scene && out->camera && out->profile != KILN_PROFILE_COUNT;
}

static kiln_status draw_subject(const subject *s, float near_m, float background, picture *p,
                                kiln_error *err)
{
    kiln_view view;
    camera_view(s->camera, near_m, s->profile, &view);
    return draw(s->scene, &view, s->profile, s->aa, background, p, err);
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
    const size_t x0 = (size_t)number(json_array_get(rect, 0)),
                 y0 = (size_t)number(json_array_get(rect, 1));
    double sum = 0.0;
    if (stored.channels != 4 || x0 + stored.width > p->view.width ||
        y0 + stored.height > p->view.height) {
        kiln_picture_release(&stored);
        return NAN;
    }
    for (size_t y = 0; y < stored.height; y++)
        for (size_t i = 0; i < (size_t)stored.width * 4; i++) {
            const double ours = clamp01(p->rgba[((y0 + y) * p->view.width + x0) * 4 + i]);
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
    const size_t pixels = (size_t)p->view.width * p->view.height;
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < 4; c++) mean[c] += p->rgba[4 * i + c];
    for (size_t c = 0; c < 4; c++) {
        const double want = c < 3 ? number(json_array_get(json_object_get(render, "mean_rgb"), c))
                                  : field(render, "mean_alpha");
        const double off = fabs(mean[c] / (double)pixels - want);
        worst = off > worst ? off : worst;
    }
    return worst;
}

static bool close_to(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance;
}

/* Relative difference of the mean expected depth; 0 where none is given. */
static double depth_off(const json_t *render, const picture *p)
{
    const json_t *want = json_object_get(render, "mean_expected_depth");
    const size_t pixels = (size_t)p->view.width * p->view.height;
    double mean = 0.0;
    if (!want) return 0.0;
    for (size_t i = 0; i < pixels; i++) mean += p->depth[i];
    return fabs(mean / (double)pixels / number(want) - 1.0);
}

/* True when the render meets its truth. */
static bool meets_truth(const fixture *f, const char *name, const json_t *render, const subject *s,
                        const picture *p)
{
    kiln_error err = {0};
    const double db = stored_db(f, render, p, &err), means = means_off(render, p),
                 depth = depth_off(render, p);
    const double exact = field(render, "exact_pairs"), visible = field(render, "visible");
    const double capacity = exact * 0.0005 > 3.0 ? exact * 0.0005 : 3.0;
    bool good = db >= 85.0 && means <= 2e-6 && depth <= 1e-5 &&
                close_to((double)p->visible, visible, 2.0) &&
                close_to((double)p->pairs, exact, capacity);
    /* gsplat-1.6 lists ellipses, the others boxes */
    if (s->profile != KILN_PROFILE_GSPLAT_16)
        good = good && close_to((double)p->box_pairs, field(render, "pairs"), 5.0);
    if (!good || getenv("KILN_TRUTH_VERBOSE"))
        print_message("%-36s %6.2f dB  means %.1e  depth %.1e  visible %+.0f of %.0f  pairs %+.0f "
                      "of %.0f  boxes %llu of %.0f\n",
                      name, db, means, depth, (double)p->visible - visible, visible,
                      (double)p->pairs - exact, exact, (unsigned long long)p->box_pairs,
                      field(render, "pairs"));
    if (err.msg[0]) print_message("%s: %s\n", name, err.msg);
    return good;
}

/* PSNR and SSIM ("same") of the float picture against a photo of three channels. */
static kiln_status measure(const picture *p, const kiln_picture *photo, double *psnr, double *ssim,
                           kiln_error *err)
{
    kiln_status st;
    kiln_metrics m = {0};
    kiln_metrics_args a = {.width = p->view.width,
                           .height = p->view.height,
                           .a = p->rgba,
                           .b = photo->data,
                           .a_step = 4,
                           .b_step = 3,
                           .a_row = p->view.width,
                           .b_row = p->view.width,
                           .out = &m};
    RUN(metrics, &a);
    *psnr = m.psnr;
    *ssim = m.ssim_same;
done:
    return st;
}

/* ---- fixture --------------------------------------------------------------------------------- */

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

#define NEED_TRUTH(f)                                                                         \
    do {                                                                                      \
        if (!(f)->truth) {                                                                    \
            print_message("skipped: no %s/truth/truth.json; set KILN_SHARED\n", (f)->shared); \
            skip();                                                                           \
        }                                                                                     \
    } while (0)

static void every_profile_meets_its_renderer(void **state)
{
    const fixture *f = *state;
    const char *name;
    json_t *render;
    unsigned failed = 0, renders = 0;
    NEED_TRUTH(f);
    json_object_foreach(json_object_get(f->truth, "renders"), name, render)
    {
        subject s;
        picture p;
        kiln_error err;
        assert_true(find_subject(f, name, &s));
        assert_int_equal(draw_subject(&s, (float)field(render, "near"), 0.0f, &p, &err), KILN_OK);
        failed += !meets_truth(f, name, render, &s, &p);
        renders++;
        picture_release(&p);
    }
    assert_int_equal(renders, 48);
    assert_int_equal(failed, 0);
}

static void gsplat_meets_itself_at_its_own_near_plane(void **state)
{
    const fixture *f = *state;
    const char *name;
    json_t *render;
    NEED_TRUTH(f);
    json_object_foreach(json_object_get(f->truth, "renders"), name, render)
    {
        const json_t *close = json_object_get(render, "near_0.01");
        subject s;
        picture p;
        kiln_error err;
        if (!close || !strstr(name, "synthetic50k") || !strstr(name, "1.6")) continue;
        assert_true(find_subject(f, name, &s));
        assert_int_equal(draw_subject(&s, kiln_profiles[s.profile].near_m, 0.0f, &p, &err),
                         KILN_OK);
        assert_true(means_off(close, &p) <= 2e-6);
        assert_true(close_to((double)p.visible, field(close, "visible"), 2.0));
        picture_release(&p);
    }
}

static void photographs_are_as_far_away_as_from_the_renderer(void **state)
{
    const fixture *f = *state;
    const char *name;
    json_t *render;
    unsigned measured = 0;
    NEED_TRUTH(f);
    json_object_foreach(json_object_get(f->truth, "renders"), name, render)
    {
        if (!json_object_get(render, "photo_psnr")) continue;
        subject s;
        picture p;
        kiln_picture photo;
        kiln_error err;
        double psnr = NAN, ssim = NAN;
        char path[4096];
        assert_true(find_subject(f, name, &s));
        snprintf(path, sizeof path, "%s/%s", f->shared,
                 json_string_value(json_object_get(s.camera, "photo")));
        assert_int_equal(kiln_picture_read(path, &photo, &err), KILN_OK);
        assert_true(photo.channels == 3 && photo.width == field(s.camera, "width") &&
                    photo.height == field(s.camera, "height"));
        assert_int_equal(draw_subject(&s, (float)field(render, "near"),
                                      (float)field(s.camera, "photo_background"), &p, &err),
                         KILN_OK);
        assert_int_equal(measure(&p, &photo, &psnr, &ssim, &err), KILN_OK);
        assert_true(close_to(psnr, field(render, "photo_psnr"), 0.002));
        assert_true(close_to(ssim, field(render, "photo_ssim"), 0.00005));
        kiln_picture_release(&photo);
        picture_release(&p);
        measured++;
    }
    assert_true(measured >= 6);
}

/* Does some pixel of the tile reach the threshold? The definition of tile_pairs.h without any
 * shortcut; power_math.h once more, with libm's fmaf. */
static bool tile_is_reached(const kiln_splat2d *g, const kiln_view *v, uint32_t tx, uint32_t ty)
{
    const float half_a = -0.5f * g->conic[0], half_c = -0.5f * g->conic[2];
    for (uint32_t y = ty * KILN_TILE; y < (ty + 1) * KILN_TILE && y < v->height; y++) {
        const float dy = g->y - ((float)y + 0.5f), slope = -(g->conic[1] * dy),
                    base = half_c * dy * dy;
        for (uint32_t x = tx * KILN_TILE; x < (tx + 1) * KILN_TILE && x < v->width; x++) {
            const float dx = g->x - ((float)x + 0.5f);
            if (fmaf(fmaf(half_a, dx, slope), dx, base) >= g->power_min) return true;
        }
    }
    return false;
}

/* Every tile of the profile's bounds, in depth order. That gsplat's bounds lose no pixel is
 * project_bounds_test's claim; with KILN_THOROUGH set (minutes) every tile of the image is looked
 * at instead. */
static void assert_lists_are_brute_force(const picture *p, bool whole_image)
{
    const uint32_t tiles_x = kiln_view_tiles_x(&p->view),
                   tiles = tiles_x * kiln_view_tiles_y(&p->view);
    /* where each list goes on */
    uint64_t *next = calloc(tiles, sizeof *next), begin = 0, total = 0;
    assert_non_null(next);
    for (uint32_t t = 0; t < tiles; t++) {
        next[t] = begin;
        begin += p->tile_counts[t];
    }
    assert_true(begin == p->pairs);
    for (uint32_t rank = 0; rank < p->visible; rank++) {
        const kiln_splat2d *g = &p->splats[rank];
        const int32_t x0 = whole_image ? 0 : g->tile_x0,
                      x1 = whole_image ? (int32_t)tiles_x : g->tile_x1;
        const int32_t y0 = whole_image ? 0 : g->tile_y0,
                      y1 = whole_image ? (int32_t)(tiles / tiles_x) : g->tile_y1;
        for (int32_t ty = y0; ty < y1; ty++)
            for (int32_t tx = x0; tx < x1; tx++) {
                if (!tile_is_reached(g, &p->view, (uint32_t)tx, (uint32_t)ty)) continue;
                const uint32_t tile = (uint32_t)ty * tiles_x + (uint32_t)tx;
                assert_true(next[tile] < p->pairs && p->ranks[next[tile]] == rank);
                next[tile]++;
                total++;
            }
    }
    assert_true(total == p->pairs);
    free(next);
}

static void lists_are_those_of_brute_force(void **state)
{
    const fixture *f = *state;
    const bool thorough = getenv("KILN_THOROUGH") != NULL;
    const char *name;
    json_t *render;
    NEED_TRUTH(f);
    json_object_foreach(json_object_get(f->truth, "renders"), name, render)
    {
        subject s;
        picture p;
        kiln_view view;
        kiln_error err;
        assert_true(find_subject(f, name, &s));
        if (!thorough && !strstr(name, "cam0")) continue;
        camera_view(s.camera, (float)field(render, "near"), s.profile, &view);
        assert_int_equal(list_pairs(s.scene, &view, s.profile, s.aa, &p, &err), KILN_OK);
        assert_lists_are_brute_force(&p, thorough && s.profile != KILN_PROFILE_INRIA);
        if (thorough)
            print_message("%s: %llu pairs, 0 missing, 0 extra\n", name,
                          (unsigned long long)p.pairs);
        picture_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile_meets_its_renderer),
        cmocka_unit_test(gsplat_meets_itself_at_its_own_near_plane),
        cmocka_unit_test(photographs_are_as_far_away_as_from_the_renderer),
        cmocka_unit_test(lists_are_those_of_brute_force),
    };
    return cmocka_run_group_tests_name("truth", tests, setup, teardown);
}
