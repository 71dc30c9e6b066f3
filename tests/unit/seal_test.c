/* Seals of scratch files: whatever becomes of a byte, of the length, of the name or of the folder,
 * the file is no longer taken. */
#include "stages/spatial/scratch_file.h"

#include "base/file.h"
#include "tests/unit/manifest_fixture.h"

#include <fcntl.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 700, PIECE = 64 };

static unsigned char bytes_of[BYTES];

static void fill_bytes(void)
{
    for (size_t i = 0; i < BYTES; i++) bytes_of[i] = (unsigned char)(i * 7 + i / 256);
}

/* Writes the file in pieces, the last one first. */
static void put_sealed(const char *folder, const char *name)
{
    kiln_error err = {0};
    kiln_scratch_file f;
    OK(kiln_scratch_create(folder, name, BYTES, &f, &err));
    for (size_t n = (BYTES + PIECE - 1) / PIECE; n-- > 0;) {
        const size_t at = n * PIECE, some = BYTES - at < PIECE ? BYTES - at : PIECE;
        OK(kiln_scratch_write(&f, at, bytes_of + at, some, &err));
    }
    OK(kiln_scratch_finish(&f, &err));
}

static bool is_kept(const char *folder, const char *name, uint64_t bytes)
{
    kiln_error err = {0};
    bool kept;
    OK(kiln_scratch_keep_sound(folder, name, bytes, &kept, &err));
    return kept;
}

static const char *path_of(const char *folder, const char *name, char out[700])
{
    (void)snprintf(out, 700, "%s/%s", folder, name);
    return out;
}

static bool exists(const char *folder, const char *name)
{
    char path[700];
    struct stat s;
    return lstat(path_of(folder, name, path), &s) == 0;
}

static void flip_bit(const char *path, off_t at, unsigned bit)
{
    unsigned char byte;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= (unsigned char)(1u << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

static off_t size_of(const char *path)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    return s.st_size;
}

static void what_was_written_is_kept(void **state)
{
    const char *folder = *state;
    kiln_error err = {0};
    kiln_scratch_file f;
    unsigned char again[BYTES];
    fill_bytes();
    assert_false(is_kept(folder, "file", BYTES));
    put_sealed(folder, "file");
    assert_true(kiln_scratch_is_whole(folder, "file", BYTES));
    assert_true(is_kept(folder, "file", BYTES));
    OK(kiln_scratch_open(folder, "file", BYTES, &f, &err));
    OK(kiln_scratch_read(&f, 0, again, BYTES, &err));
    assert_memory_equal(again, bytes_of, BYTES);
    kiln_scratch_drop(&f);
    OK(kiln_scratch_create(folder, "nothing", 0, &f, &err));
    OK(kiln_scratch_finish(&f, &err));
    assert_true(is_kept(folder, "nothing", 0));
}

/* Of the bytes and of the seal. */
static void every_bit_counts(void **state)
{
    const char *folder = *state;
    char path[700];
    fill_bytes();
    put_sealed(folder, "file");
    const off_t size = size_of(path_of(folder, "file", path));
    assert_true(size > BYTES);
    for (off_t at = 0; at < size; at++) {
        put_sealed(folder, "file");
        flip_bit(path, at, (unsigned)at % 8);
        assert_false(is_kept(folder, "file", BYTES));
        assert_false(exists(folder, "file"));
    }
}

static void every_length_counts(void **state)
{
    const char *folder = *state;
    char path[700];
    fill_bytes();
    put_sealed(folder, "file");
    const off_t size = size_of(path_of(folder, "file", path));
    for (off_t to = 0; to < size + 70; to++) {
        if (to == size) continue;
        put_sealed(folder, "file");
        assert_int_equal(truncate(path, to), 0); /* shorter, or with zeros behind the end */
        assert_false(kiln_scratch_is_whole(folder, "file", BYTES));
        assert_false(is_kept(folder, "file", BYTES));
    }
    put_sealed(folder, "file");
    assert_false(is_kept(folder, "file", BYTES - 1)); /* another layer's */
}

static void a_file_is_of_its_name_and_folder(void **state)
{
    const char *folder = *state;
    char other[600], from[700], to[700], moved[600];
    fill_bytes();
    put_sealed(folder, "codes");
    assert_int_equal(rename(path_of(folder, "codes", from), path_of(folder, "rows", to)), 0);
    assert_false(is_kept(folder, "rows", BYTES));
    assert_int_equal(mkdir(in_scratch(state, "chunk-1", other), 0777), 0);
    put_sealed(other, "codes");
    assert_int_equal(mkdir(in_scratch(state, "chunk-2", moved), 0777), 0);
    assert_int_equal(rename(path_of(other, "codes", from), path_of(moved, "codes", to)), 0);
    assert_false(is_kept(moved, "codes", BYTES)); /* of another plan */
    put_sealed(other, "codes");
    assert_int_equal(mkdir(in_scratch(state, "moved", from), 0777), 0);
    assert_int_equal(rename(other, in_scratch(state, "moved/chunk-1", moved)), 0);
    assert_true(is_kept(moved, "codes", BYTES)); /* the bake was moved */
}

/* What is no file at all is not read: a link of a stranger, a pipe that nobody writes to. */
static void what_is_no_file_goes(void **state)
{
    const char *folder = *state;
    char path[700];
    fill_bytes();
    put_sealed(folder, "real");
    assert_int_equal(symlink("real", path_of(folder, "link", path)), 0);
    assert_false(kiln_scratch_is_whole(folder, "link", BYTES));
    assert_false(is_kept(folder, "link", BYTES));
    assert_false(exists(folder, "link"));
    assert_true(is_kept(folder, "real", BYTES));
    assert_int_equal(mkfifo(path_of(folder, "pipe", path), 0666), 0);
    assert_false(is_kept(folder, "pipe", BYTES));
    assert_false(exists(folder, "pipe"));
}

static void what_cannot_be_removed_is_named(void **state)
{
    const char *folder = *state;
    char path[700];
    kiln_error err = {0};
    bool kept;
    assert_int_equal(mkdir(path_of(folder, "codes", path), 0777), 0);
    assert_int_equal(kiln_scratch_keep_sound(folder, "codes", BYTES, &kept, &err), KILN_E_IO);
    assert_says(&err, path);
    assert_says(&err, "remove it");
}

/* A stage that forgets a piece, or writes one twice, has a bug. */
static void each_byte_is_written_once(void **state)
{
    const char *folder = *state;
    kiln_error err = {0};
    kiln_scratch_file f;
    fill_bytes();
    for (int twice = 0; twice < 2; twice++) {
        OK(kiln_scratch_create(folder, "file", BYTES, &f, &err));
        OK(kiln_scratch_write(&f, 0, bytes_of, PIECE, &err));
        OK(kiln_scratch_write(&f, twice ? PIECE - 1 : PIECE + 1, bytes_of, BYTES - PIECE - 1,
                              &err));
        assert_int_equal(kiln_scratch_finish(&f, &err), KILN_E_BUG);
        assert_false(exists(folder, "file"));
        assert_false(exists(folder, "file.part"));
    }
}

static void threads_write_at_once(void **state)
{
    enum { THREADS = 8, EACH = 1000, SOME = 100 };
    static unsigned char data[THREADS * EACH * SOME];
    const char *folder = *state;
    kiln_error err = {0};
    kiln_scratch_file f;
    int failed = 0;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i ^ i >> 9);
    OK(kiln_scratch_create(folder, "file", sizeof data, &f, &err));
#pragma omp parallel for num_threads(THREADS) schedule(static, 1) reduction(+ : failed)
    for (int i = 0; i < THREADS * EACH; i++)
        failed += kiln_scratch_write(&f, (uint64_t)i * SOME, data + (size_t)i * SOME, SOME, NULL) !=
                  KILN_OK;
    assert_int_equal(failed, 0);
    OK(kiln_scratch_finish(&f, &err));
    assert_true(is_kept(folder, "file", sizeof data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_kept, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(every_bit_counts, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(every_length_counts, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_file_is_of_its_name_and_folder, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(what_is_no_file_goes, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(what_cannot_be_removed_is_named, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(each_byte_is_written_once, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(threads_write_at_once, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
