/* Packed files: streams behind each other, pieces that end where a buffer ends, limits, damage, and
 * what a reader is shown. */
#include "stages/files/packing.h"
#include "stages/formats/reader.h"

#include "tests/unit/manifest_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

enum { MIB = 1 << 20 };

static const char *put(void **state, const char *name, const void *data, size_t n, char path[600])
{
    const int fd =
        open(in_scratch(state, name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    assert_int_equal(close(fd), 0);
    return path;
}

static size_t gzip_of(const void *data, size_t n, unsigned char *out, size_t capacity)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)data,
                  .avail_in = (unsigned)n,
                  .next_out = out,
                  .avail_out = (unsigned)capacity};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return z.total_out;
}

static size_t zstd_of(const void *data, size_t n, unsigned char *out, size_t capacity)
{
    const size_t bytes = ZSTD_compress(out, capacity, data, n, 3);
    assert_false(ZSTD_isError(bytes));
    return bytes;
}

static kiln_status unpack(const char *path, uint64_t limit, unsigned char *out, uint64_t *n,
                          kiln_error *err)
{
    const kiln_packing *p;
    const int fd = memfd_create("unpacked", MFD_CLOEXEC);
    assert_int_equal(kiln_packing_find(path, &p, err), KILN_OK);
    assert_non_null(p);
    const kiln_status st = kiln_unpack(p, path, fd, limit, n, err);
    if (st == KILN_OK) assert_int_equal(pread(fd, out, 4 * MIB, 0), *n);
    assert_int_equal(close(fd), 0);
    return st;
}

typedef size_t pack_fn(const void *data, size_t n, unsigned char *out, size_t capacity);

/* Sizes at the borders of the buffers of 1 MiB; constant bytes, of which all input is taken before
 * the first MiB is given. */
static void comes_back(void **state)
{
    static unsigned char data[3 * MIB], packed[6 * MIB], back[4 * MIB];
    static const size_t sizes[] = {0, 1, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB};
    static pack_fn *const packs[] = {gzip_of, zstd_of};
    kiln_error err = {0};
    char path[600];
    uint64_t n;
    for (int noise = 0; noise < 2; noise++) {
        for (size_t i = 0; i < sizeof data && noise; i++)
            data[i] = (unsigned char)(i * 2654435761u >> 13);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int k = 0; k < 2; k++) {
                const size_t one = packs[k](data, sizes[s], packed, sizeof packed);
                put(state, "f", packed, one, path);
                OK(unpack(path, UINT64_MAX, back, &n, &err));
                assert_int_equal(n, sizes[s]);
                assert_memory_equal(back, data, n);
                OK(unpack(path, 1000, back, &n, &err)); /* a limit */
                assert_int_equal(n, sizes[s] < 1000 ? sizes[s] : 1000);
                assert_memory_equal(back, data, n);
            }
    }
}

static void streams_follow(void **state)
{
    static unsigned char packed[4096], back[4 * MIB];
    kiln_error err = {0};
    char path[600];
    uint64_t n;
    size_t at = gzip_of("first ", 6, packed, 1000);
    at += gzip_of("second", 6, packed + at, 1000);
    OK(unpack(put(state, "two.gz", packed, at, path), UINT64_MAX, back, &n, &err));
    assert_int_equal(n, 12);
    assert_memory_equal(back, "first second", 12);
    packed[at] = 0;
    assert_int_equal(
        unpack(put(state, "tail.gz", packed, at + 1, path), UINT64_MAX, back, &n, &err),
        KILN_E_INPUT);
    assert_says(&err, "other bytes after its gzip stream, from byte");

    at = zstd_of("first ", 6, packed, 1000);
    memcpy(packed + at, "\x50\x2a\x4d\x18\x04\0\0\0note", 12); /* a frame of somebody's own */
    at += 12;
    at += zstd_of("second", 6, packed + at, 1000);
    OK(unpack(put(state, "two.zst", packed, at, path), UINT64_MAX, back, &n, &err));
    assert_int_equal(n, 12);
    assert_memory_equal(back, "first second", 12);
    for (size_t cut = at - 1; cut > at - 4; cut--) {
        assert_int_equal(
            unpack(put(state, "cut.zst", packed, cut, path), UINT64_MAX, back, &n, &err),
            KILN_E_INPUT);
        assert_says(&err, "inside its zstd stream");
    }
}

static void large_windows_are_refused(void **state)
{
    static unsigned char data[MIB], packed[2 * MIB], back[4 * MIB];
    kiln_error err = {0};
    char path[600];
    uint64_t n;
    for (int log = KILN_ZSTD_WINDOW_LOG; log <= KILN_ZSTD_WINDOW_LOG + 1; log++) {
        ZSTD_CCtx *c = ZSTD_createCCtx();
        ZSTD_inBuffer in = {data, sizeof data, 0};
        ZSTD_outBuffer out = {packed, sizeof packed, 0};
        assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, log)));
        /* a window, because the size is unknown */
        assert_false(ZSTD_isError(ZSTD_compressStream2(c, &out, &in, ZSTD_e_flush)));
        assert_false(ZSTD_isError(ZSTD_compressStream2(c, &out, &in, ZSTD_e_end)));
        ZSTD_freeCCtx(c);
        const kiln_status st =
            unpack(put(state, "w.zst", packed, out.pos, path), UINT64_MAX, back, &n, &err);
        assert_int_equal(st, log == KILN_ZSTD_WINDOW_LOG ? KILN_OK : KILN_E_INPUT);
    }
    assert_says(&err, "its window is larger");
}

static const kiln_read_options plain;

static kiln_status unpack_whole(const char *path, uint64_t file_bytes, uint64_t max_inflated,
                                uint64_t *n, kiln_error *err)
{
    const kiln_packing *p;
    const int fd = memfd_create("unpacked", MFD_CLOEXEC);
    assert_int_equal(kiln_packing_find(path, &p, err), KILN_OK);
    const kiln_status st = kiln_unpack_whole(p, path, fd, file_bytes, max_inflated, err);
    *n = (uint64_t)lseek(fd, 0, SEEK_END);
    assert_int_equal(close(fd), 0);
    return st;
}

/* 3 MiB of zeros, which take 3 KiB: a header inside that says less by more than a MiB, or a ratio
 * that is above the limit. */
static void bombs_end_at_their_limit(void **state)
{
    static unsigned char data[3 * MIB], packed[MIB];
    static pack_fn *const packs[] = {gzip_of, zstd_of};
    kiln_error err = {0};
    char path[600];
    uint64_t n;
    for (int k = 0; k < 2; k++) {
        put(state, "f", packed, packs[k](data, sizeof data, packed, sizeof packed), path);
        OK(unpack_whole(path, 2 * MIB, 1, &n, &err));
        assert_int_equal(n, sizeof data);
        assert_int_equal(unpack_whole(path, 2 * MIB - 1, UINT64_MAX, &n, &err), KILN_E_INPUT);
        assert_says(&err, "f' unpacks to more than 3145727 bytes: its header states 2097151; the "
                          "file is damaged");
        assert_true(n < sizeof data);
        assert_int_equal(unpack_whole(path, 0, 100, &n, &err), KILN_E_INPUT);
        assert_says(&err, "raise --max-inflated");
        OK(unpack_whole(path, 0, k ? 100000 : 1100, &n, &err));
        OK(unpack_whole(path, 0, UINT64_MAX, &n, &err));
        put(state, "f", packed, packs[k](data, MIB, packed, sizeof packed), path);
        OK(unpack_whole(path, 0, 1, &n, &err)); /* a MiB is always let pass */
    }
}

static void readers_look_inside(void **state)
{
    static const char points[] = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float "
                                 "x\nproperty float y\nproperty float z\n"
                                 "end_header\n0 0 0\n1 1 1\n";
    static unsigned char packed[4096];
    static kiln_source_info info;
    const kiln_reader *r;
    kiln_error err = {0};
    char path[600];
    size_t n = gzip_of(points, sizeof points - 1, packed, sizeof packed);
    OK(kiln_source_look(put(state, "p.ply.gz", packed, n, path), &plain, &r, &info, &err));
    assert_string_equal(r->name, "ply");
    assert_int_equal(info.n_rows, 2);
    n = gzip_of("NGSP\2\0\0\0", 8, packed, sizeof packed);
    assert_int_equal(
        kiln_source_look(put(state, "p.spz", packed, n, path), &plain, &r, &info, &err),
        KILN_E_INPUT);
    assert_says(&err, "p.spz' has only 8 bytes of SPZ, less than a header");
    /* COLMAP's count is looked for in the whole file */
    n = gzip_of("# Number of points: 0\n", 22, packed, sizeof packed);
    assert_int_equal(
        kiln_source_look(put(state, "points3D.txt", packed, n, path), &plain, &r, &info, &err),
        KILN_E_INPUT);
    assert_null(r);
    assert_int_equal(kiln_packing_stem("a.gz/x.ply.GZ"), 10);
    assert_int_equal(kiln_packing_stem("a.gz/.gz"), 8);
    assert_int_equal(kiln_packing_stem("x.ply"), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(comes_back, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(streams_follow, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(large_windows_are_refused, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(bombs_end_at_their_limit, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(readers_look_inside, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
