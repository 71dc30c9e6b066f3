/* A GLB that is put together of its head and its arrays, read by kiln-import's reader: every bit of
 * the numbers comes back. */
#include "import_source.h"

#include "base/harmonics.h"
#include "stages/formats/codes.h"
#include "stages/formats/gltf/glb_layout.h"
#include "stages/formats/gltf/glb_rows.h"
#include "stages/formats/linear.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROWS = 2500, PLANES = 59 }; /* means 3, log scales 3, quats 4, logit, sh0 3, shN 45 */
static float planes[PLANES][ROWS];
static const int luf[3] = {-1, -1, 1};

static float any(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static void fill(void)
{
    unsigned seed = 11;
    for (int p = 0; p < PLANES; p++) /* none is zero, whose sign is lost in a sum */
        for (int i = 0; i < ROWS; i++) planes[p][i] = any(&seed) + 0x1p-30f;
    for (int p = 3; p < 6; p++)
        for (int i = 0; i < ROWS; i++) planes[p][i] = 6 * planes[p][i] - 5;
    for (int i = 0; i < ROWS; i++) planes[10][i] *= 8;
}

static kiln_glb_scene scene_of(uint32_t degree)
{
    kiln_glb_scene s = {.n_rows = ROWS, .sh_degree = degree};
    for (int c = 0; c < 3; c++) {
        s.least[c] = HUGE_VALF;
        s.most[c] = -HUGE_VALF;
        for (int i = 0; i < ROWS; i++) {
            const float v = (float)luf[c] * planes[c][i];
            s.least[c] = v < s.least[c] ? v : s.least[c];
            s.most[c] = v > s.most[c] ? v : s.most[c];
        }
    }
    return s;
}

static void put_arrays(const kiln_glb_scene *s, kiln_buffer *file)
{
    static float scales[3 * ROWS], quats[4 * ROWS], alphas[ROWS], out[4 * ROWS];
    static kiln_glb_tables t;
    kiln_error err;
    kiln_linear_scales(sizeof scales / sizeof *scales, planes[3], scales);
    kiln_unit_quats(ROWS, planes[6], quats);
    (void)kiln_alphas(ROWS, planes[10], alphas);
    const kiln_glb_rows rows = {ROWS, planes[0], scales, quats, alphas, planes[11], planes[14]};
    kiln_glb_tables_make(luf, &t);
    for (uint32_t a = 0; a < kiln_glb_attributes(s->sh_degree); a++) {
        kiln_glb_encode(&t, &rows, a, out);
        assert_int_equal(kiln_buffer_put(file, out, (size_t)ROWS * kiln_glb_element_bytes(a), &err),
                         KILN_OK);
    }
}

static void read_back(const kiln_glb_scene *scene, import_source *s)
{
    kiln_buffer file = {0};
    kiln_error err = {0};
    uint32_t bytes;
    assert_int_equal(kiln_glb_head(scene, &file, &err), KILN_OK);
    assert_int_equal(file.size % 4, 0);
    put_arrays(scene, &file);
    memcpy(&bytes, file.data + 8, sizeof bytes);
    assert_int_equal(bytes, file.size);
    const char *path = import_source_file("x.glb", file.data, file.size);
    const kiln_read_options options = {.frame = KILN_FRAME_RUB};
    if (import_source_read_with(path, &options, s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(remove(path), 0);
    kiln_buffer_release(&file);
}

static void every_degree_comes_back(void **state)
{
    static float logs[3 * ROWS], quats[4 * ROWS], logits[ROWS];
    static double alphas[ROWS];
    (void)state;
    fill();
    kiln_linear_scales(sizeof logs / sizeof *logs, planes[3], logs);
    kiln_log_scales(sizeof logs / sizeof *logs, logs, logs);
    kiln_unit_quats(ROWS, planes[6], quats);
    (void)kiln_alphas(ROWS, planes[10], logits);
    for (int i = 0; i < ROWS; i++) alphas[i] = (double)logits[i];
    kiln_alpha_logits(ROWS, alphas, logits);
    for (uint32_t degree = 0; degree <= KILN_GLB_SH_DEGREE_MAX; degree++) {
        import_source s;
        const kiln_glb_scene scene = scene_of(degree);
        read_back(&scene, &s);
        assert_true(s.n == ROWS && s.scan.info.sh_degree == degree && !s.scan.info.antialiased);
        assert_int_equal(strncmp(s.scan.info.writer, "SplatKiln ", 10), 0);
        for (int i = 0; i < ROWS; i++) {
            const float *row = s.rows + (size_t)i * s.floats;
            for (int c = 0; c < 3; c++)
                assert_true(row[c] == planes[c][i] && row[7 + c] == logs[c * ROWS + i]);
            for (int c = 0; c < 4; c++) assert_true(row[3 + c] == quats[c * ROWS + i]);
            assert_true(row[10] == logits[i]);
            for (uint32_t c = 0; c < 3 * (degree + 1) * (degree + 1); c++)
                assert_true(row[11 + c] == planes[11 + c][i]);
        }
        import_source_free(&s);
    }
}

static void the_node_moves_and_the_flag_is_kept(void **state)
{
    import_source s;
    kiln_glb_scene scene;
    (void)state;
    fill();
    scene = scene_of(0);
    scene.antialiased = true;
    scene.translation[0] = -500000.25; /* of the file's frame: x and y are negative there */
    scene.translation[2] = 0.5;
    read_back(&scene, &s);
    assert_true(s.scan.info.antialiased);
    for (int i = 0; i < ROWS; i++) {
        const double x = (double)s.rows[(size_t)i * s.floats] + s.scan.origin[0],
                     z = (double)s.rows[(size_t)i * s.floats + 2];
        assert_true(fabs(x - (500000.25 + (double)planes[0][i])) < 1e-6);
        assert_true(fabs(z + s.scan.origin[2] - (0.5 + (double)planes[2][i])) < 1e-6);
    }
    import_source_free(&s);
}

static void fallback_colours_are_linear(void **state)
{
    static kiln_glb_tables t;
    uint8_t out[4 * 256];
    float sh0[3 * 256], alphas[256];
    (void)state;
    kiln_glb_tables_make(luf, &t);
    for (int i = 0; i < 256; i++) {
        for (int c = 0; c < 3; c++) sh0[c * 256 + i] = (float)((i / 255.0 - 0.5) / KILN_SH_C0_F64);
        alphas[i] = (float)(i / 255.0);
    }
    sh0[0] = -1e30f;
    sh0[255] = 1e30f;
    kiln_glb_encode(&t, &(kiln_glb_rows){.n = 256, .alphas = alphas, .sh0 = sh0}, KILN_GLB_COLOUR,
                    out);
    for (int i = 0; i < 256; i++) {
        const double v = i / 255.0,
                     linear = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
        for (int c = 0; c < 3; c++) assert_true(fabs(out[4 * i + c] - 255 * linear) < 0.6);
        assert_int_equal(out[4 * i + 3], i);
    }
}

/* Without any row: what is refused is refused before one is read. */
static void four_gib_are_refused(void **state)
{
    kiln_buffer head = {0};
    kiln_error err = {0};
    kiln_glb_scene scene = {.n_rows = 17895423, .sh_degree = 3};
    (void)state;
    assert_int_equal(kiln_glb_place(1, kiln_glb_attributes(3)), 240);
    assert_int_equal(kiln_glb_head(&scene, &head, &err), KILN_OK);
    uint32_t bytes;
    memcpy(&bytes, head.data + 8, sizeof bytes);
    assert_int_equal(bytes, head.size + 240ull * 17895423);
    scene.n_rows++;
    assert_int_equal(kiln_glb_head(&scene, &head, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "17895423 Gaussians of SH degree 3, or 71581695 with "
                                    "--sh-degree 0; the scene has 17895424"));
    kiln_buffer_release(&head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_degree_comes_back),
        cmocka_unit_test(the_node_moves_and_the_flag_is_kept),
        cmocka_unit_test(fallback_colours_are_linear),
        cmocka_unit_test(four_gib_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
