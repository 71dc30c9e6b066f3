/* How many threads decode ahead: as many as there is room for, with what they decode, and none
 * where planes would have to go. */
#include "stages/frame/ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 65536, FLOATS = 59 + 1, HARMONICS = 45 };
static const uint64_t MIB = 1 << 20;

/* So many chunks of ROWS rows, of degree 3. */
static kiln_layer layer_of(uint32_t n_chunks)
{
    kiln_layer l = {.sh_degree = 3, .n_chunks = n_chunks, .count = (uint64_t)n_chunks * ROWS};
    l.chunks = calloc(n_chunks, sizeof *l.chunks);
    assert_non_null(l.chunks);
    for (uint32_t i = 0; i < n_chunks; i++) l.chunks[i].count = ROWS;
    return l;
}

static uint64_t planes_bytes(uint64_t rows) { return 4 * FLOATS * rows; }

static void threads_are_as_many_as_there_is_room_for(void **state)
{
    kiln_layer l = layer_of(1000);
    const uint64_t reader = kiln_ahead_reader_bytes(&l, true), each = reader + planes_bytes(ROWS);
    (void)state;
    assert_int_equal(reader, KILN_CONNECTION_RAM + 2 * 4 * (uint64_t)HARMONICS * ROWS);
    for (uint64_t spare = 0; spare < 2000 * MIB; spare += 10 * MIB) {
        const unsigned n = kiln_ahead_count(&l, true, 16, spare);
        assert_true(n * each <= spare);
        assert_true(n <= 16 && n != 1);
        if (n < 16 && spare > 100 * MIB) assert_true((n + 1) * (each + MIB) > spare);
    }
    /* what a gibibyte leaves beside a picture on a GPU */
    assert_in_range(kiln_ahead_count(&l, true, 16, 390 * MIB), 8, 9);
    assert_int_equal(kiln_ahead_count(&l, true, 16, 2000 * MIB), 16);
    assert_int_equal(kiln_ahead_count(&l, true, 64, UINT64_MAX), KILN_AHEAD_THREADS);
    assert_int_equal(kiln_ahead_count(&l, true, 1, UINT64_MAX), 0);
    free(l.chunks);
}

static void geometry_takes_less(void **state)
{
    kiln_layer l = layer_of(1000);
    (void)state;
    assert_true(kiln_ahead_reader_bytes(&l, false) < kiln_ahead_reader_bytes(&l, true) / 3);
    assert_int_equal(kiln_ahead_count(&l, false, 16, 200 * MIB), 16);
    assert_true(kiln_ahead_count(&l, true, 16, 200 * MIB) < 8);
    free(l.chunks);
}

/* A layer that fits is decoded once: more threads for that are not worth decoding a part of it
 * again for each camera. */
static void planes_that_fit_keep_their_room(void **state)
{
    kiln_layer l = layer_of(40);
    const uint64_t reader = kiln_ahead_reader_bytes(&l, true),
                   all = planes_bytes(l.count) + 4 * MIB;
    unsigned fewer = 0;
    (void)state;
    for (uint64_t more = 0; more < 600 * MIB; more += 10 * MIB) {
        const unsigned n = kiln_ahead_count(&l, true, 16, all + more);
        assert_true(planes_bytes(l.count) + n * reader <= all + more);
        fewer += n < 16;
    }
    assert_in_range(fewer, 10, 59);
    free(l.chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_as_many_as_there_is_room_for),
        cmocka_unit_test(geometry_takes_less),
        cmocka_unit_test(planes_that_fit_keep_their_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
