/* tables_used_test -- stored tables are really what pictures are drawn from: with one pair removed
 * (its hashes mended) the picture changes, and without any table it has the bits that it had with
 * them. Runs the programs of KILN_BIN. */
#include "base/file.h"
#include "schema/manifest.h"
#include "stages/tiles/rank_code.h"
#include "tests/unit/test_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[TEST_FOLDER_MAX];

/* Runs "kiln-..." in dir; the program's name and arguments come from the test alone. */
static void kiln(const char *command)
{
    const char *given = getenv("KILN_BIN");
    char *bin = realpath(given ? given : "build/bin", NULL), line[8192];
    assert_non_null(bin);
    snprintf(line, sizeof line, "cd '%s' && '%s'/kiln-%s --quiet >out 2>err", dir, bin, command);
    free(bin);
    if (system(line) != 0) fail_msg("failed: %s", line);
}

static void read_file(const char *name, unsigned char **data, size_t *size)
{
    char path[TEST_PATH_MAX];
    kiln_error err;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (kiln_file_read(path, (uint64_t)1 << 30, data, size, &err) != KILN_OK)
        fail_msg("%s", err.msg);
}

static int same_files(const char *a, const char *b)
{
    unsigned char *x, *y;
    size_t n, m;
    read_file(a, &x, &n);
    read_file(b, &y, &m);
    int same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

#define OK(call)                                        \
    do {                                                \
        if ((call) != KILN_OK) fail_msg("%s", err.msg); \
    } while (0)

static void *read_array(kiln_manifest *m, const kiln_array *a)
{
    kiln_error err;
    void *data = malloc(a->raw_bytes + 1);
    assert_non_null(data);
    OK(kiln_manifest_read_array(m, a, data, &err));
    return data;
}

static void replace(kiln_manifest *m, kiln_array *a, const void *raw, size_t bytes, uint32_t elem)
{
    kiln_error err;
    kiln_blob b;
    OK(kiln_blob_pack(raw, bytes, elem, &b, &err));
    OK(kiln_manifest_put_blob(m, &b, &err));
    a->segments[0] = b.hash;
    a->raw_bytes = bytes;
    free(b.packed);
}

/* Takes the first pair of the first tile that has one out of the table of camera cam0. */
static void remove_one_pair(void)
{
    kiln_error err;
    kiln_manifest *m;
    kiln_tile_table *t;
    char path[TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/m.db", dir);
    OK(kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err));
    OK(kiln_tile_table_get(m, "cam0", "inria", false, 0.2, &t, &err));
    assert_non_null(t);
    kiln_tile_band *b = &t->bands[0];
    uint32_t n_tiles = (b->row1 - b->row0) * t->tiles_x, tile = 0,
             *bytes = read_array(m, &b->tile_bytes), at = 0;
    uint32_t *counts = read_array(m, &b->tile_count), *ranks = malloc(b->pairs * sizeof *ranks);
    unsigned char *code = read_array(m, &b->rank_delta), *again = malloc(5 * b->pairs);
    assert_non_null(ranks);
    assert_non_null(again);
    OK(kiln_ranks_decode(&(kiln_ranks_code){n_tiles, counts, bytes, code, b->rank_delta.raw_bytes},
                         t->visible, ranks, &err));
    while (counts[tile] == 0) tile++;
    for (uint32_t i = 0; i < tile; i++) at += counts[i];
    memmove(ranks + at, ranks + at + 1, (b->pairs - at - 1) * sizeof *ranks);
    counts[tile]--;
    b->pairs--;
    t->pairs--;
    size_t size = kiln_ranks_encode(n_tiles, counts, ranks, again, bytes);
    OK(kiln_manifest_begin(m, &err));
    replace(m, &b->tile_count, counts, n_tiles * sizeof *counts, 4);
    replace(m, &b->tile_bytes, bytes, n_tiles * sizeof *bytes, 4);
    replace(m, &b->rank_delta, again, size, 1);
    OK(kiln_tile_table_put(m, t, &err));
    OK(kiln_manifest_commit(m, &err));
    free(again), free(code), free(ranks), free(counts), free(bytes);
    kiln_tile_tables_free(t, 1);
    kiln_manifest_close(m);
}

static void pictures_are_drawn_from_tables_and_are_the_same_without(void **state)
{
    (void)state;
    assert_int_equal(test_folder_new(dir, "tables"), 0);
    kiln("generate scene s --gaussians 5000 --cameras 2 --size 200x120");
    kiln("import s m.db");
    kiln("knn m.db");
    kiln("prune m.db");
    kiln("chunk m.db");
    kiln("tiles m.db");
    kiln("render m.db --camera cam0 -o with.npy");
    remove_one_pair();
    kiln("verify m.db");
    kiln("render m.db --camera cam0 -o less.npy");
    kiln("tiles m.db --tables none");
    kiln("render m.db --camera cam0 -o without.npy");
    assert_true(same_files("with.npy", "without.npy"));
    assert_false(same_files("with.npy", "less.npy"));
    assert_int_equal(test_folder_remove(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_drawn_from_tables_and_are_the_same_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
