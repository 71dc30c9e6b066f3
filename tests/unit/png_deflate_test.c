/* png_deflate_test -- a block's bytes depend on its rows alone: not on the address of the state, on
 * what memory held before, on what stands behind the rows, nor on how anything is aligned. And they
 * inflate to the rows. */
#include "stages/image/image_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <zlib.h>

/* Most: a row of 8 bytes a pixel that is longer than a block of 64 KiB, and than ISA-L's buffer. */
enum { MOST = 200001, CAPACITY = MOST + MOST / 64 + 1000, SLACK = 300, SHIFTS = 64 };

static uint32_t seed;
static uint32_t next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static void make_dirty(void *memory, size_t bytes)
{
    unsigned char *p = memory;
    for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)next();
}

/* Small noise with runs, as filtered rows are. What stands in front, which is what the tests are
 * about, comes again, at an odd place and beside other bytes, as long as there is room. */
static void make_rows(unsigned char *rows, size_t n)
{
    seed = (uint32_t)n;
    for (size_t i = 0, run = 0; i < n; i++) {
        if (run)
            run--;
        else if (next() % 50 == 0)
            run = next() % 300;
        rows[i] = run ? 0 : (unsigned char)(next() % 9 - 4);
    }
    static const unsigned char front[6] = {4, 77, 99, 55, 33, 11};
    for (size_t i = 0; i < sizeof front && i < n; i++) rows[i] = front[i];
    if (n >= 120) {
        memcpy(rows + 41, front, 4);
        memcpy(rows + 61, front + 2, 4);
        memcpy(rows + 101, front, sizeof front);
    }
}

static size_t deflate_ok(void *state, const unsigned char *rows, size_t plain, bool last,
                         unsigned char *out)
{
    const kiln_png_block b = {
        .rows = rows, .plain = plain, .last = last, .out = out, .capacity = CAPACITY};
    size_t bytes = 0;
    assert_true(kiln_png_deflate(state, &b, &bytes));
    return bytes;
}

/* Of the address ISA-L's fault uses what is above its 64 KiB, hashed to one of 8,192 lines of a
 * table, fewer for a short last block: so many places meet every line. Blocks around the border
 * between one call and two, and one that fills the state's own buffer. */
static void bytes_do_not_depend_on_the_address_of_the_state(void **state)
{
    enum { STEP = 1 << 16, PLACES = 1 << 14 };
    static const struct {
        size_t plain;
        bool last;
        unsigned places;
    } blocks[] = {{120, true, 4096}, {288, true, 4096},    {289, true, 4096}, {290, true, 4096},
                  {400, true, 4096}, {400, false, PLACES}, {65536, false, 64}};
    const size_t bytes = (size_t)PLACES * STEP + kiln_png_deflate_state_bytes();
    unsigned char *rows = malloc(MOST), *first = malloc(CAPACITY), *out = malloc(CAPACITY);
    unsigned char *const area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)state;
    assert_true(rows && first && out && area != MAP_FAILED);
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        make_rows(rows, blocks[k].plain);
        size_t n = 0;
        for (unsigned i = 0; i < blocks[k].places; i++) {
            void *const place = area + (size_t)i * (PLACES / blocks[k].places) * STEP;
            const size_t packed =
                deflate_ok(place, rows, blocks[k].plain, blocks[k].last, i ? out : first);
            if (i == 0) n = packed;
            if (packed != n || (i && memcmp(out, first, n) != 0))
                fail_msg("block %zu has other bytes with the state at %p than at %p", k, place,
                         (void *)area);
            (void)madvise(place, kiln_png_deflate_state_bytes(), MADV_DONTNEED);
        }
    }
    (void)munmap(area, bytes);
    free(out);
    free(first);
    free(rows);
}

/* Inflates packed[n] behind what `z` has inflated, and compares. */
static void assert_inflates(z_stream *z, const unsigned char *packed, size_t n,
                            const unsigned char *rows, size_t plain, bool last)
{
    unsigned char *back = malloc(plain + 1);
    assert_non_null(back);
    /* zlib's struct lacks const here; it only reads */
    z->next_in = (unsigned char *)(uintptr_t)packed;
    z->avail_in = (uInt)n;
    z->next_out = back;
    z->avail_out = (uInt)plain + 1;
    const int done = inflate(z, Z_SYNC_FLUSH);
    assert_int_equal(done, last ? Z_STREAM_END : Z_OK);
    assert_int_equal(z->avail_in, 0);
    assert_int_equal(z->avail_out, 1);
    assert_memory_equal(back, rows, plain);
    free(back);
}

/* Each block packed twice: in clean memory by a new state, and in dirty memory by a state that has
 * packed others. */
static void bytes_do_not_depend_on_what_memory_held(void **state)
{
    static const size_t longer[] = {701,   4000,  5761,  65249, 65535, 65536,
                                    65537, 65824, 65825, 98304, MOST};
    enum { SHORT = 700, N = SHORT + sizeof longer / sizeof *longer };
    const size_t state_bytes = kiln_png_deflate_state_bytes();
    unsigned char *rows = calloc(1, MOST + SLACK), *first = calloc(1, CAPACITY),
                  *in = malloc(MOST + SLACK + SHIFTS), *out = malloc(CAPACITY + SHIFTS),
                  *used = malloc(state_bytes);
    z_stream z = {0};
    (void)state;
    assert_true(rows && first && in && out && used);
    assert_int_equal(inflateInit2(&z, -MAX_WBITS), Z_OK);
    make_dirty(used, state_bytes);
    for (size_t k = 1; k <= N; k++) {
        const size_t plain = k <= SHORT ? k : longer[k - SHORT - 1];
        const bool last = k % 7 == 0 || k == N;
        void *fresh = calloc(1, state_bytes);
        assert_non_null(fresh);
        memset(rows, 0, MOST + SLACK);
        make_rows(rows, plain);
        const size_t n = deflate_ok(fresh, rows, plain, last, first);
        free(fresh);

        unsigned char *const in_at = in + next() % SHIFTS, *const out_at = out + next() % SHIFTS;
        make_dirty(in_at, plain + SLACK);
        make_dirty(out_at, plain);
        memcpy(in_at, rows, plain);
        assert_int_equal(deflate_ok(used, in_at, plain, last, out_at), n);
        assert_memory_equal(out_at, first, n);
        assert_memory_equal(in_at, rows, plain);

        assert_inflates(&z, first, n, rows, plain, last);
        if (last) assert_int_equal(inflateReset(&z), Z_OK);
        if (k % 50 == 0) make_dirty(used, state_bytes);
    }
    assert_int_equal(inflateEnd(&z), Z_OK);
    free(used);
    free(out);
    free(in);
    free(first);
    free(rows);
}

/* Noise takes the most, and as much room as image_internal.h asks for is enough. */
static void noise_has_capacity(void **state)
{
    static const size_t sizes[] = {1, 2, 17, 288, 289, 290, 300, 5000, 65536, MOST};
    unsigned char *rows = malloc(MOST), *out = malloc(CAPACITY);
    void *deflater = malloc(kiln_png_deflate_state_bytes());
    (void)state;
    assert_true(rows && out && deflater);
    make_dirty(rows, MOST);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (unsigned last = 0; last < 2; last++) {
            const size_t plain = sizes[k];
            const kiln_png_block b = {.rows = rows,
                                      .plain = plain,
                                      .last = last,
                                      .out = out,
                                      .capacity = plain + plain / 64 + 1000};
            size_t bytes;
            z_stream z = {0};
            assert_true(kiln_png_deflate(deflater, &b, &bytes));
            assert_int_equal(inflateInit2(&z, -MAX_WBITS), Z_OK);
            assert_inflates(&z, out, bytes, rows, plain, last);
            assert_int_equal(inflateEnd(&z), Z_OK);
        }
    free(deflater);
    free(out);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_do_not_depend_on_the_address_of_the_state),
        cmocka_unit_test(bytes_do_not_depend_on_what_memory_held),
        cmocka_unit_test(noise_has_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
