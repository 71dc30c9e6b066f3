/* What the SOG writer is made of: a plain ZIP archive, and codes that are the nearest ones. */
#include "base/file.h"
#include "kernels/ops.h"
#include "kernels/palette/palette.h"
#include "stages/formats/sog/sog_encode.h"
#include "stages/formats/sog/sog_layout.h"
#include "stages/formats/sog/sog_scratch.h"
#include "stages/formats/sog/zip_archive.h"
#include "stages/formats/sog/zip_writer.h"
#include "test_folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void an_archive_is_read_back_and_ends_with_its_record(void **state)
{
    char folder[TEST_FOLDER_MAX], path[TEST_PATH_MAX + 64];
    kiln_zip_writer w;
    kiln_zip z;
    int fd;
    (void)state;
    assert_int_equal(test_folder_new(folder, "zip"), 0);
    (void)snprintf(path, sizeof path, "%s/a.zip", folder);
    assert_int_equal(kiln_file_create(path, &fd, NULL), KILN_OK);
    kiln_zip_writer_init(&w, fd, path);
    assert_int_equal(kiln_zip_writer_add(&w, "meta.json", "{}", 2, NULL), KILN_OK);
    assert_int_equal(kiln_zip_writer_add(&w, "b.webp", "12345", 5, NULL), KILN_OK);
    assert_int_equal(kiln_zip_writer_end(&w, NULL), KILN_OK);
    assert_int_equal(w.at, 2 * (30 + 46) + 2 * (9 + 6) + 7 + 22);
    assert_int_equal(lseek(fd, 0, SEEK_END), (off_t)w.at);
    close(fd);
    assert_int_equal(kiln_zip_open(path, path, &z, NULL), KILN_OK);
    assert_int_equal(z.n, 2);
    char text[6] = "";
    const kiln_zip_entry *e = kiln_zip_find(&z, "b.webp");
    assert_true(e && e->size == 5 && e->method == 0);
    assert_int_equal(kiln_zip_read(&z, e, text, 5, NULL), KILN_OK);
    assert_string_equal(text, "12345");
    kiln_zip_close(&z);
    assert_int_equal(test_folder_remove(folder), 0);
}

static void four_gibibytes_are_refused(void **state)
{
    kiln_zip_writer w;
    kiln_error err = {0};
    (void)state;
    kiln_zip_writer_init(&w, -1, "x");
    w.at = UINT32_MAX - 100;
    assert_int_equal(kiln_zip_writer_add(&w, "a", "", 100, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "4 GiB"));
}

/* What the palette's operations say that they take is within what their rounds are given, for any
 * number of threads. */
static void rounds_are_given_what_the_palette_takes(void **state)
{
    static const uint64_t sizes[] = {256, 4096, 65536};
    static int16_t values[1];
    static uint32_t index[1];
    static uint16_t labels[1];
    uint64_t n_entries;
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        kiln_sog_plan plan = {.text = {.n = sizes[k], .degree = 3}};
        kiln_export_chunk chunk = {.n = sizes[k]};
        const kiln_export e = {.chunks = &chunk,
                               .n_chunks = 1,
                               .n_rows = sizes[k],
                               .sh_degree = 3,
                               .plan = &plan,
                               .plan_bytes = sizeof plan};
        const uint32_t d = kiln_sog_d(&e), p = kiln_sog_p(&e);
        const kiln_palette_assign_args assign = {.n = chunk.n,
                                                 .d = d,
                                                 .p = p,
                                                 .rows = values,
                                                 .centroids = values,
                                                 .index = index,
                                                 .labels = labels};
        const kiln_palette_index_args make = {.d = d, .p = p, .centroids = values, .index = index};
        const kiln_palette_train_args train = {.n = sizes[k],
                                               .d = d,
                                               .p = p,
                                               .rows = values,
                                               .centroids = values,
                                               .n_entries = &n_entries};
        int found = 0;
        for (uint32_t r = 0; r < kiln_writer_sog.n_rounds; r++) {
            const kiln_export_round *round = &kiln_writer_sog.rounds[r];
            const bool is_label = strcmp(round->what, "labels") == 0;
            if (!is_label && strcmp(round->what, "palette") != 0) continue;
            found++;
            const uint64_t arrays = 2ull * p * d + 4 * kiln_palette_index_words(p, d) +
                                    (is_label ? chunk.n * (2 * d + 2) : 0);
            for (unsigned threads = 1; threads <= 64; threads *= 4) {
                const kiln_exec cpu = {.device = -1, .threads = threads};
                const uint64_t given =
                    round->ram(&e, 0) +
                    (round->ram_thread ? round->ram_thread(&e, 0) : 0) * (threads - 1);
                size_t bytes = 0;
                if (is_label)
                    assert_int_equal(
                        kiln_ops_cpu()->palette_assign(&cpu, &assign, NULL, &bytes, NULL), KILN_OK);
                else {
                    size_t of_index = 0;
                    assert_int_equal(
                        kiln_ops_cpu()->palette_train(&cpu, &train, NULL, &bytes, NULL), KILN_OK);
                    assert_int_equal(
                        kiln_ops_cpu()->palette_index(&cpu, &make, NULL, &of_index, NULL), KILN_OK);
                    bytes = of_index > bytes ? of_index : bytes;
                }
                if (given < arrays + bytes)
                    fail_msg("%s of %llu rows by %u threads: given %llu, taken %llu", round->what,
                             (unsigned long long)chunk.n, threads, (unsigned long long)given,
                             (unsigned long long)(arrays + bytes));
                if (is_label) assert_true(given < arrays + bytes + (1 << 20)); /* nor much more */
            }
        }
        assert_int_equal(found, 2);
    }
}

/* How far the rotation of these codes is from q; either sign is the same rotation. */
static double quat_distance(const uint8_t codes[4], const float q[4])
{
    double r[4], sum = 0, plus = 0, minus = 0;
    const int left = codes[3] - 252;
    for (int i = 0, k = 0; i < 4; i++) {
        if (i == left) continue;
        r[i] = (codes[k++] / 127.5 - 1) / sqrt(2.0);
        sum += r[i] * r[i];
    }
    r[left] = sqrt(sum < 1 ? 1 - sum : 0);
    for (int i = 0; i < 4; i++) {
        plus += pow(r[i] - (double)q[i], 2);
        minus += pow(r[i] + (double)q[i], 2);
    }
    return sqrt(plus < minus ? plus : minus);
}

static void codes_are_the_nearest_and_come_back(void **state)
{
    int n_codes = 0, n_others = 0;
    (void)state;
    for (int a = 0; a < 256; a += 5)
        for (int b = 0; b < 256; b += 7)
            for (int c = 3; c < 256; c += 11)
                for (int left = 0; left < 4; left++) {
                    const int in[3] = {a, b, c};
                    float q[4];
                    double sum = 0, largest = 0;
                    uint8_t out[4];
                    for (int i = 0, k = 0; i < 4; i++) {
                        if (i == left) continue;
                        const double v = (in[k++] / 127.5 - 1) / sqrt(2.0);
                        q[i] = (float)v;
                        sum += v * v;
                        largest = fmax(largest, fabs(v));
                    }
                    q[left] = (float)sqrt(sum < 1 ? 1 - sum : 0);
                    /* another is by far: no encoder makes these */
                    if (largest > (double)q[left] + 4 / (255 * sqrt(2.0))) continue;
                    kiln_sog_encode_quats(1, q, out);
                    n_codes++;
                    /* only where it is as near with another one left out */
                    if (out[3] != 252 + left) {
                        const uint8_t ours[4] = {(uint8_t)a, (uint8_t)b, (uint8_t)c,
                                                 (uint8_t)(252 + left)};
                        const double far = quat_distance(out, q), as_given = quat_distance(ours, q);
                        if (!(fabs(far - as_given) <= 1e-6))
                            fail_msg("%d %d %d without %d: %g off, another %g", a, b, c, left,
                                     as_given, far);
                        n_others++;
                        continue;
                    }
                    for (int k = 0; k < 3; k++) assert_int_equal(out[k], in[k]);
                }
    assert_true(n_codes > 10000 && n_others < n_codes / 100);
    const float x[] = {-2, 0, 5};
    const double zero[3] = {0}, mins[3] = {kiln_sog_position_log(-2), 0, 0},
                 maxs[3] = {kiln_sog_position_log(2), 0, kiln_sog_position_log(5)};
    uint8_t low[3], high[3];
    kiln_sog_encode_means(1, x, zero, mins, maxs, low, high);
    assert_int_equal(low[0] + 256 * high[0], 0);
    assert_int_equal(low[1] + 256 * high[1], 0); /* equal bounds */
    assert_int_equal(low[2] + 256 * high[2], 65535);
    uint64_t width, height;
    kiln_sog_image_size(1000000, &width, &height);
    assert_true(width == 1000 && height == 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_archive_is_read_back_and_ends_with_its_record),
        cmocka_unit_test(four_gibibytes_are_refused),
        cmocka_unit_test(codes_are_the_nearest_and_come_back),
        cmocka_unit_test(rounds_are_given_what_the_palette_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
