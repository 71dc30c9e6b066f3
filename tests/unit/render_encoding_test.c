/* How many pictures are written beside the next ones: by threads, by pictures, by memory. */
#include "stages/render/encoding.h"

#include "stages/engine/engine.h"
#include "stages/frame/canvas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MIB = 1 << 20 };

static void many_pictures_have_about_a_thread_each(void **state)
{
    (void)state;
    assert_int_equal(kiln_render_encoding_most(1, 300), 1);
    assert_int_equal(kiln_render_encoding_most(16, 300), 12);
    assert_int_equal(kiln_render_encoding_most(0, 300), 1);
    assert_int_equal(kiln_render_encoding_most(64, 300), KILN_RENDER_ENCODING_MAX);
}

static void few_pictures_share_the_threads(void **state)
{
    (void)state;
    assert_int_equal(kiln_render_encoding_most(16, 12), 3);
    assert_int_equal(kiln_render_encoding_most(16, 1), 2);
    assert_int_equal(kiln_render_encoding_most(16, 0), 2);
    assert_int_equal(kiln_render_encoding_most(1, 1), 1);
}

/* What so many take, by the header's words. */
static uint64_t bytes_beside(const kiln_render_encoding *t, uint32_t n)
{
    return n * (t->writing + 2 * kiln_deferred_ram(n));
}

static uint64_t bytes_of(const kiln_render_encoding *t, uint32_t n)
{
    return bytes_beside(t, n) + (n + 1) * kiln_canvas_bytes(t->pixels);
}

static void as_many_as_there_is_room_for(void **state)
{
    (void)state;
    const kiln_render_encoding t = {
        .most = 16, .drawing = 500 * MIB, .writing = 30 * MIB, .pixels = 1920 * 1080};
    uint64_t beside;
    for (uint32_t n = 1; n <= t.most; n++) {
        const uint64_t least = t.drawing + (n > 2 ? 2 : 1) * bytes_of(&t, n);
        assert_int_equal(kiln_render_encoding_in(&t, least, &beside), n);
        assert_int_equal(beside, t.drawing + bytes_beside(&t, n));
        assert_true(least - beside >= (n + 1) * kiln_canvas_bytes(t.pixels));
        assert_int_equal(kiln_render_encoding_in(&t, least - 1, &beside), n - 1);
    }
    assert_int_equal(kiln_render_encoding_in(&t, UINT64_MAX, &beside), t.most);
    assert_int_equal(kiln_render_encoding_in(&t, 0, &beside), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_pictures_have_about_a_thread_each),
        cmocka_unit_test(few_pictures_share_the_threads),
        cmocka_unit_test(as_many_as_there_is_room_for),
    };
    kiln_common_values.threads = 16;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
