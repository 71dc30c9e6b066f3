/* The cache of decoded planes: right bytes whatever the budget, and nothing of the chunk in hand
 * thrown out. */
#include "stages/engine/engine.h"
#include "stages/engine/memory/plane_cache.h"
#include "tests/unit/test_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHUNKS = 6, ROWS = 1000, PLANES = 3 };
static const char *const names[PLANES] = {"means", "source_row", "spacing2"};
static const uint32_t components[PLANES] = {3, 1, 1};

static char folder[TEST_FOLDER_MAX], db[TEST_PATH_MAX];
static kiln_manifest *m;
static kiln_layer *layer;

static uint32_t element(uint32_t chunk, uint32_t plane, uint32_t i)
{
    return chunk * 1000003u + plane * 10007u + i;
}

static int make_layer(void **state)
{
    (void)state;
    static uint32_t data[3 * ROWS];
    static kiln_plane planes[CHUNKS][PLANES];
    static kiln_hash hashes[CHUNKS][PLANES];
    static kiln_chunk chunks[CHUNKS];
    kiln_layer l = {.kind = "source", .count = CHUNKS * ROWS, .n_chunks = CHUNKS, .chunks = chunks};
    if (test_folder_new(folder, "cache") != 0) return -1;
    (void)snprintf(db, sizeof db, "%s/m.db", folder);
    if (kiln_manifest_open(db, KILN_OPEN_CREATE, "test", false, &m, NULL) != KILN_OK ||
        kiln_manifest_begin(m, NULL) != KILN_OK)
        return -1;
    for (uint32_t c = 0; c < CHUNKS; c++) {
        (void)snprintf(chunks[c].name, sizeof chunks[c].name, "%08u", c);
        chunks[c].count = ROWS;
        chunks[c].n_planes = PLANES;
        chunks[c].planes = planes[c];
        for (uint32_t p = 0; p < PLANES; p++) {
            kiln_blob blob;
            for (uint32_t i = 0; i < components[p] * ROWS; i++) data[i] = element(c, p, i);
            if (kiln_blob_pack(data, components[p] * ROWS * 4, 4, &blob, NULL) != KILN_OK)
                return -1;
            if (kiln_manifest_put_blob(m, &blob, NULL) != KILN_OK) return -1;
            hashes[c][p] = blob.hash;
            free(blob.packed);
            /* whose elements are small numbers too */
            planes[c][p] = (kiln_plane){
                .type = p == 1 ? KILN_TYPE_U32 : KILN_TYPE_F32,
                .components = components[p],
                .data = {.raw_bytes = blob.raw_bytes, .n_segments = 1, .segments = &hashes[c][p]}};
            (void)snprintf(planes[c][p].name, sizeof planes[c][p].name, "%s", names[p]);
        }
    }
    if (kiln_layer_put(m, &l, NULL) != KILN_OK || kiln_manifest_commit(m, NULL) != KILN_OK)
        return -1;
    return kiln_layer_get_digest(m, "source", l.digest, &layer, NULL) == KILN_OK ? 0 : -1;
}

static int remove_layer(void **state)
{
    (void)state;
    kiln_layer_free(layer);
    kiln_manifest_close(m);
    (void)unlink(db);
    return rmdir(folder);
}

static const uint32_t *get(kiln_plane_cache *cache, uint32_t chunk, uint32_t plane)
{
    const void *data;
    assert_int_equal(
        kiln_plane_cache_get(cache, m, &layer->chunks[chunk], names[plane], &data, NULL), KILN_OK);
    return data;
}

static void check(const uint32_t *data, uint32_t chunk, uint32_t plane)
{
    for (uint32_t i = 0; i < components[plane] * ROWS; i++)
        assert_int_equal(data[i], element(chunk, plane, i));
}

static void planes_are_right_with_any_budget(void **state)
{
    (void)state;
    static const uint64_t budgets[] = {0, 1, 4 * ROWS, 13 * ROWS, 1 << 20};
    for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
        kiln_plane_cache *cache;
        assert_int_equal(kiln_plane_cache_new(budgets[b], &cache, NULL), KILN_OK);
        for (uint32_t k = 0; k < 200; k++) {
            uint32_t chunk = k * 7 % CHUNKS, plane = k * 5 % PLANES;
            check(get(cache, chunk, plane), chunk, plane);
        }
        kiln_plane_cache_free(cache);
    }
}

static void all_planes_of_one_chunk_may_be_held(void **state)
{
    (void)state;
    const uint32_t *data[PLANES];
    kiln_plane_cache *cache;
    assert_int_equal(kiln_plane_cache_new(1, &cache, NULL), KILN_OK);
    for (uint32_t c = 0; c < CHUNKS; c++) {
        for (uint32_t p = 0; p < PLANES; p++) data[p] = get(cache, c, p);
        /* the sanitizer sees one that was freed */
        for (uint32_t p = 0; p < PLANES; p++) check(data[p], c, p);
    }
    kiln_plane_cache_free(cache);
}

static void what_was_used_last_stays(void **state)
{
    (void)state;
    kiln_plane_cache *cache;
    /* two planes of one component */
    assert_int_equal(kiln_plane_cache_new(8 * ROWS, &cache, NULL), KILN_OK);
    const uint32_t *first = get(cache, 0, 1);
    (void)get(cache, 1, 1);
    assert_ptr_equal(get(cache, 0, 1), first);
    (void)get(cache, 2, 1); /* throws out chunk 1 */
    assert_ptr_equal(get(cache, 0, 1), first);
    kiln_plane_cache_free(cache);
}

static void planes_decoded_ahead_are_right_and_stay_within(void **state)
{
    static const uint64_t budgets[] = {0, 12 * ROWS, 60 * ROWS, 1 << 20};
    static const bool all[] = {false, false, false, true};
    const kiln_chunk *chunks[CHUNKS];
    kiln_manifest *readers[2] = {m, NULL};
    (void)state;
    assert_int_equal(kiln_manifest_open(db, KILN_OPEN_READ, "test", false, &readers[1], NULL),
                     KILN_OK);
    for (uint32_t c = 0; c < CHUNKS; c++) chunks[c] = &layer->chunks[c];
    for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
        kiln_plane_cache *cache;
        uint32_t there = 0;
        assert_int_equal(kiln_plane_cache_new(budgets[b], &cache, NULL), KILN_OK);
        for (uint32_t turn = 0; turn < 2; turn++) /* again: what is there is left alone */
            assert_int_equal(kiln_plane_cache_ahead(
                                 cache, readers, 2,
                                 &(kiln_planes_of_chunks){chunks, names, CHUNKS, PLANES}, NULL),
                             KILN_OK);
        for (uint32_t c = 0; c < CHUNKS; c++)
            there += kiln_plane_cache_has(cache, chunks[c], names, PLANES);
        /* 20 bytes a row, up to the budget */
        assert_int_equal(there, all[b] ? CHUNKS : b == 2 ? 3 : 0);
        for (uint32_t c = 0; c < CHUNKS; c++)
            for (uint32_t p = 0; p < PLANES; p++) check(get(cache, c, p), c, p);
        kiln_plane_cache_free(cache);
    }
    kiln_manifest_close(readers[1]);
}

/* One plane's hash is none that there is: that failure is told, and nothing half decoded is found
 * later. */
static void a_plane_that_cannot_be_decoded_ahead_is_told(void **state)
{
    kiln_hash wrong = {{1, 2, 3}};
    kiln_plane planes[PLANES];
    kiln_chunk broken = layer->chunks[1];
    const kiln_chunk *chunks[] = {&layer->chunks[0], &broken};
    kiln_plane_cache *cache;
    kiln_error err = {0};
    (void)state;
    memcpy(planes, broken.planes, sizeof planes);
    broken.planes = planes;
    planes[1].data.segments = &wrong;
    assert_int_equal(kiln_plane_cache_new(1 << 20, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_plane_cache_ahead(
                         cache, &m, 1, &(kiln_planes_of_chunks){chunks, names, 2, PLANES}, &err),
                     KILN_E_IO);
    assert_non_null(strstr(err.msg, "is missing"));
    assert_false(kiln_plane_cache_has(cache, &layer->chunks[0], names, PLANES));
    check(get(cache, 0, 0), 0, 0);
    kiln_plane_cache_free(cache);
}

static void a_plane_that_is_not_there_is_refused(void **state)
{
    (void)state;
    const void *data;
    kiln_plane_cache *cache;
    assert_int_equal(kiln_plane_cache_new(1, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_plane_cache_get(cache, m, &layer->chunks[0], "quats", &data, NULL),
                     KILN_E_INPUT);
    kiln_plane_cache_free(cache);
    kiln_plane_cache_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_are_right_with_any_budget),
        cmocka_unit_test(all_planes_of_one_chunk_may_be_held),
        cmocka_unit_test(what_was_used_last_stays),
        cmocka_unit_test(planes_decoded_ahead_are_right_and_stay_within),
        cmocka_unit_test(a_plane_that_cannot_be_decoded_ahead_is_told),
        cmocka_unit_test(a_plane_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, make_layer, remove_layer);
}
