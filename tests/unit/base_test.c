/* base -- status, memory, files, paths, checked arithmetic, the log's counters. */
#include "base/carve.h"
#include "base/checked.h"
#include "base/count.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/vec3.h"
#include "tests/unit/test_folder.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[TEST_FOLDER_MAX];

static int make_folder(void **state)
{
    (void)state;
    return test_folder_new(folder, "base");
}

static int remove_folder(void **state)
{
    (void)state;
    return test_folder_remove(folder);
}

static const char *in_folder(const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* How many names a folder holds. */
static int files_in(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static void fail_returns_its_status_and_note_puts_context_in_front(void **state)
{
    (void)state;
    kiln_error err = {0};
    assert_int_equal(kiln_fail(&err, KILN_E_CAP, "needs %d MiB", 12), KILN_E_CAP);
    kiln_note(&err, "chunk %s", "r07");
    kiln_note(&err, "tiles");
    assert_string_equal(err.msg, "tiles: chunk r07: needs 12 MiB");
    assert_int_equal(err.status, KILN_E_CAP);
    /* an argument from the message itself */
    assert_int_equal(kiln_fail(&err, KILN_E_IO, "again: %s", err.msg), KILN_E_IO);
    assert_string_equal(err.msg, "again: tiles: chunk r07: needs 12 MiB");
    assert_int_equal(kiln_fail(NULL, KILN_E_INPUT, "x"), KILN_E_INPUT);
}

static void a_sentence_too_long_is_cut_and_stays_a_string(void **state)
{
    (void)state;
    kiln_error err = {0};
    char text[3000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    kiln_fail(&err, KILN_E_INPUT, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    kiln_note(&err, "where");
    assert_memory_equal(err.msg, "where: aaa", 10);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    kiln_note(&err, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void exit_codes_are_those_of_the_contract(void **state)
{
    (void)state;
    assert_int_equal(kiln_exit_code(KILN_OK), 0);
    assert_int_equal(kiln_exit_code(KILN_E_USAGE), 2);
    assert_int_equal(kiln_exit_code(KILN_E_NOMEM), 5);
    assert_int_equal(kiln_exit_code(KILN_E_BUG), 70);
    assert_int_equal(kiln_exit_code(KILN_E_BUSY), 75);
    assert_int_equal(kiln_exit_code(KILN_E_TERMINATED), 143);
    assert_int_equal(kiln_exit_code(KILN_E_HANGUP), 129);
    assert_string_equal(kiln_status_name(KILN_E_STALE), "E_STALE");
}

static void alloc_gives_zeroed_aligned_memory_and_refuses_overflow(void **state)
{
    (void)state;
    kiln_error err = {0};
    double *v = NULL;
    assert_int_equal(KILN_ALLOC(&v, 1000, "numbers", &err), KILN_OK);
    assert_int_equal((uintptr_t)v % 64, 0);
    for (int i = 0; i < 1000; i++) assert_true(v[i] == 0);
    free(v);
    assert_int_equal(KILN_ALLOC(&v, 0, "nothing", &err), KILN_OK);
    assert_non_null(v);
    free(v);
    assert_int_equal(KILN_ALLOC(&v, UINT64_MAX / 4, "pairs", &err), KILN_E_NOMEM);
    assert_null(v);
    assert_non_null(strstr(err.msg, "pairs"));
    assert_int_equal(KILN_ALLOC(&v, UINT64_C(1) << 58, "pairs", &err), KILN_E_NOMEM);
}

/* Pages that reach out of the array belong to others as well, and stay as they are. */
static void a_populated_array_has_its_pages(void **state)
{
    enum { PAGE = 4096, PAGES = 64 };
    unsigned char there[PAGES], *at;
    (void)state;
    at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
#ifdef MADV_POPULATE_WRITE
    if (madvise(at, PAGE, MADV_POPULATE_WRITE) != 0) skip(); /* before Linux 5.14 */
    errno = 7;
    kiln_memory_populate(at + PAGE + 1, (PAGES - 2) * PAGE);
    assert_int_equal(errno, 7);
    assert_int_equal(mincore(at, PAGES * PAGE, there), 0);
    for (int i = 0; i < PAGES; i++) assert_int_equal(there[i] & 1, i != 1 && i != PAGES - 1);
#else
    (void)there;
#endif
    assert_int_equal(munmap(at, PAGES * PAGE), 0);
}

/* mremap moves no range of which a part alone has asked for large pages; realloc copies then. */
static void a_large_array_grows_without_being_copied(void **state)
{
    enum { BYTES = 64 << 20, FAULTS_MOST = BYTES / 4096 / 4 };
    struct rusage before, after;
    unsigned char *data, *more;
    kiln_error err;
    (void)state;
    assert_int_equal(KILN_ALLOC_UNSET(&data, BYTES, "a large array", &err), KILN_OK);
    memset(data, 1, BYTES);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    more = realloc(data, BYTES + BYTES / 2);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_non_null(more);
    assert_true(more[0] == 1 && more[BYTES - 1] == 1);
#if defined(__GLIBC__) && !defined(KILN_ADDRESS_SANITIZER)
    assert_true(after.ru_minflt - before.ru_minflt < FAULTS_MOST);
#endif
    free(more);
}

static void a_buffer_keeps_what_was_put_across_growth(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_buffer b = {0};
    assert_int_equal(kiln_buffer_put(&b, NULL, 0, &err), KILN_OK);
    assert_null(b.data);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(kiln_buffer_printf(&b, &err, "%04d", i), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, NULL, 3, &err), KILN_OK);
    assert_int_equal(b.size, 4003);
    assert_memory_equal(b.data + 4 * 777, "0777", 4);
    assert_memory_equal(b.data + 4000, "\0\0", 3);
    kiln_buffer_release(&b);
    assert_null(b.data);
    assert_int_equal(b.size, 0);
}

static void texts_stay_where_they_are(void **state)
{
    enum { N = 20000, LONG = 100000 };
    static const char *kept[N];
    kiln_error err = {0};
    kiln_texts t = {0};
    const char *out;
    char text[32];
    (void)state;
    for (int i = 0; i < N; i++) {
        (void)snprintf(text, sizeof text, "/photos/%d.png", i);
        assert_int_equal(kiln_texts_add(&t, text, &kept[i], &err), KILN_OK);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(text, sizeof text, "/photos/%d.png", i);
        assert_string_equal(kept[i], text);
    }
    char *large = malloc(LONG + 1);
    assert_non_null(large);
    memset(large, 'x', LONG);
    large[LONG] = '\0';
    assert_int_equal(kiln_texts_add(&t, large, &out, &err), KILN_OK);
    assert_string_equal(out, large);
    free(large);
    assert_int_equal(kiln_texts_add(&t, NULL, &out, &err), KILN_OK);
    assert_string_equal(out, "");
    kiln_texts_clear(&t);
    assert_int_equal(kiln_texts_add(&t, "again", &out, &err), KILN_OK);
    assert_string_equal(out, "again");
    kiln_texts_release(&t);
    kiln_texts_release(&t);
}

static void checked_arithmetic_says_when_it_does_not_fit(void **state)
{
    (void)state;
    uint64_t v;
    uint32_t small;
    assert_true(kiln_mul(UINT32_MAX, UINT32_MAX, &v));
    assert_false(kiln_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &v));
    assert_true(kiln_add(UINT64_MAX, 0, &v));
    assert_false(kiln_add(UINT64_MAX, 1, &v));
    assert_true(kiln_to_u32(UINT32_MAX, &small));
    assert_false(kiln_to_u32(UINT64_C(1) << 32, &small));
    assert_true(kiln_div_up(UINT64_MAX, 2) == UINT64_C(1) << 63);
    assert_true(kiln_div_up(0, 7) == 0);
}

static void carving_measures_what_it_lays_out(void **state)
{
    (void)state;
    kiln_carve c = {0};
    assert_null(kiln_take(&c, 3, 4));
    assert_null(kiln_take(&c, 1, 8));
    assert_int_equal(c.used, KILN_RED_ZONE ? 776 : 264);
    kiln_take(&c, SIZE_MAX / 4, 8);
    assert_true(c.used == SIZE_MAX);
    kiln_take(&c, 1, 1);
    assert_true(c.used == SIZE_MAX);
    c.used = SIZE_MAX - 400; /* the next piece's place would wrap round */
    assert_null(kiln_take(&c, 1000, 1));
    assert_true(c.used == SIZE_MAX);
}

/* Under AddressSanitizer alone: elsewhere pieces have no zones. */
static void what_lies_behind_a_piece_is_poisoned(void **state)
{
    (void)state;
#ifdef KILN_ADDRESS_SANITIZER
    static char block[4096];
    /* the second time other pieces, over the zones of before */
    for (unsigned again = 0; again < 2; again++) {
        kiln_carve c = {block, 0};
        const char *first = kiln_take(&c, 300 + 300 * again, 1), *second = kiln_take(&c, 8, 1);
        assert_int_equal(__asan_region_is_poisoned((void *)(uintptr_t)first, 300 + 300 * again), 0);
        assert_int_equal(__asan_region_is_poisoned((void *)(uintptr_t)second, 8), 0);
        assert_true(__asan_address_is_poisoned(first + 300 + 300 * again));
        assert_true(__asan_address_is_poisoned(second + 8));
    }
    __asan_unpoison_memory_region(block, sizeof block);
#else
    assert_int_equal(KILN_RED_ZONE, 0);
#endif
}

static void a_written_file_reads_back_and_leaves_no_temporary(void **state)
{
    (void)state;
    kiln_error err = {0};
    unsigned char *data;
    size_t size;
    char path[600];
    (void)snprintf(path, sizeof path, "%s", in_folder("a/b/c.bin"));
    assert_int_equal(kiln_file_write(path, "one", 3, &err), KILN_OK);
    assert_int_equal(kiln_file_write(path, "second\0", 7, &err), KILN_OK);
    assert_int_equal(kiln_file_read(path, 7, &data, &size, &err), KILN_OK);
    assert_int_equal(size, 7);
    assert_memory_equal(data, "second\0", 8); /* and the NUL behind */
    free(data);
    assert_int_equal(kiln_file_read(path, 6, &data, &size, &err), KILN_E_INPUT);
    assert_null(data);
    assert_int_equal(files_in(in_folder("a/b")), 1);
}

static void a_failed_write_keeps_the_old_file(void **state)
{
    (void)state;
    kiln_error err = {0};
    char path[600];
    (void)snprintf(path, sizeof path, "%s", in_folder("d/taken"));
    assert_int_equal(kiln_file_write(in_folder("d/taken/x"), "x", 1, &err), KILN_OK);
    assert_int_equal(kiln_file_write(path, "y", 1, &err), KILN_E_IO); /* a folder is there */
    assert_true(kiln_is_dir(path));
    assert_int_equal(files_in(in_folder("d")), 1);
    /* a file is where a folder must be */
    assert_int_equal(kiln_file_write(in_folder("d/taken/x/y"), "z", 1, &err), KILN_E_IO);
}

/* A killed writer whose parent is slow to ask stays in the table of processes, with nothing left to
 * write. */
static void a_process_that_nobody_asked_for_has_ended(void **state)
{
    (void)state;
    siginfo_t how;
    const pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_false(kiln_process_ended(getpid()));
    assert_false(kiln_process_ended(pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT), 0);
    assert_int_equal(kill(pid, 0), 0);
    assert_true(kiln_process_ended(pid));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(kiln_process_ended(pid));
}

static void reading_past_the_end_names_the_byte(void **state)
{
    (void)state;
    kiln_error err = {0};
    int fd;
    char got[8];
    assert_int_equal(kiln_file_write(in_folder("short"), "12345", 5, &err), KILN_OK);
    assert_int_equal(kiln_file_open(in_folder("short"), &fd, &err), KILN_OK);
    assert_int_equal(kiln_file_read_at(fd, "short", 2, got, 3, &err), KILN_OK);
    assert_memory_equal(got, "345", 3);
    assert_int_equal(kiln_file_read_at(fd, "short", 2, got, 4, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "ends at byte 5"));
    assert_int_equal(kiln_file_read_at(fd, "short", UINT64_MAX, got, 1, &err), KILN_E_INPUT);
    close(fd);
}

static void what_is_no_regular_file_is_bad_input(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_file_info info;
    int fd;
    assert_int_equal(kiln_file_open(in_folder("missing"), &fd, &err), KILN_E_INPUT);
    assert_int_equal(kiln_file_open(folder, &fd, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "is a directory"));
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(kiln_file_open(in_folder("pipe"), &fd, &err), KILN_E_INPUT);
    assert_int_equal(fd, -1);
    assert_int_equal(kiln_file_stat(in_folder("missing"), &info, &err), KILN_E_IO);
    assert_int_equal(kiln_file_stat(folder, &info, &err), KILN_OK);
    assert_true(info.is_dir && !info.is_file);
}

static void a_file_that_was_replaced_or_written_to_is_another(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_file_info then;
    assert_int_equal(kiln_file_write(in_folder("watched"), "one", 3, &err), KILN_OK);
    assert_int_equal(kiln_file_stat(in_folder("watched"), &then, &err), KILN_OK);
    assert_int_equal(kiln_file_unchanged(in_folder("watched"), &then, &err), KILN_OK);
    then.mtime_ns--;
    assert_int_equal(kiln_file_unchanged(in_folder("watched"), &then, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "watched' has changed"));
    then.mtime_ns++;
    then.inode++;
    assert_int_equal(kiln_file_unchanged(in_folder("watched"), &then, &err), KILN_E_INPUT);
    then.inode--;
    then.size++;
    assert_int_equal(kiln_file_unchanged(in_folder("watched"), &then, &err), KILN_E_INPUT);
    assert_int_equal(kiln_file_unchanged(in_folder("missing"), &then, &err), KILN_E_IO);
}

static void joined_paths_have_one_slash_and_fit(void **state)
{
    (void)state;
    kiln_error err = {0};
    char out[16];
    assert_int_equal(kiln_path_join(out, sizeof out, "a", "b", &err), KILN_OK);
    assert_string_equal(out, "a/b");
    assert_int_equal(kiln_path_join(out, sizeof out, "a/", "b", &err), KILN_OK);
    assert_string_equal(out, "a/b");
    assert_int_equal(kiln_path_join(out, sizeof out, "a", "/b", &err), KILN_OK);
    assert_string_equal(out, "/b");
    assert_int_equal(kiln_path_join(out, sizeof out, "", "b", &err), KILN_OK);
    assert_string_equal(out, "b");
    assert_int_equal(kiln_path_join(out, sizeof out, "1234567", "12345678", &err), KILN_E_INPUT);
    assert_int_equal(kiln_path_join(out, sizeof out, "1234567", "1234567", &err), KILN_OK);
}

static void base_and_suffix_look_behind_the_last_slash(void **state)
{
    (void)state;
    assert_string_equal(kiln_path_base("a.b/c.ply"), "c.ply");
    assert_string_equal(kiln_path_suffix("a.b/c.tar.gz"), "gz");
    assert_string_equal(kiln_path_suffix("a.b/c"), "");
    assert_string_equal(kiln_path_base("c"), "c");
}

static void names_from_inside_files_stay_in_their_folder(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a.png", "train/r_0", "..a", "a../b", "a..b", ".hidden", "\xc3\xa9t\xc3\xa9.jpg"};
    static const char *const bad[] = {
        "",     "/etc/passwd",  "..",       "../a",     "a/../b",           "a/..",
        "a\\b", "a\nb",         "a\x7f",    "\xc0\xaf", "\xed\xa0\x80.png", "\xf4\x90\x80\x80",
        "\xc3", "\xe0\x80\x80", "\xf8\x88", "a\x80"};
    const char *why;
    char longest[1026];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(kiln_name_is_safe(good[i], &why));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(kiln_name_is_safe(bad[i], &why));
        assert_non_null(why);
    }
    memset(longest, 'a', 1025);
    longest[1025] = '\0';
    assert_false(kiln_name_is_safe(longest, &why));
    assert_true(kiln_name_is_safe(longest + 1, &why));
}

static void clocks_run_and_memory_is_seen(void **state)
{
    (void)state;
    uint64_t a = kiln_now_ns(), b = kiln_now_ns();
    assert_true(b >= a && a > 0);
    assert_true(kiln_wall_ns() > INT64_C(1600000000) * 1000000000);
    assert_true(kiln_peak_rss() > 100000);
}

static void vectors_without_a_length_are_left_alone(void **state)
{
    static const double none[][3] = {
        {0, 0, 0}, {1e-301, 0, 0}, {0, 1e200, 0}, {INFINITY, 0, 0}, {1, NAN, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double v[3];
        memcpy(v, none[i], sizeof v);
        assert_false(kiln_vec3_normalise(v));
        assert_memory_equal(v, none[i], sizeof v);
    }
    double v[3] = {2, -3, 6}, across[3];
    assert_true(kiln_vec3_length(v) == 7 && kiln_vec3_distance(v, none[0]) == 7);
    kiln_vec3_cross(v, (const double[3]){1, 0, 0}, across);
    assert_true(across[0] == 0 && across[1] == 6 && across[2] == 3);
    assert_true(kiln_vec3_normalise(v) && v[0] == 2 / 7.0 && v[1] == -3 / 7.0 && v[2] == 6 / 7.0);
}

/* A camera at (1, 2, 3) that looks along x, z up: its right is -y, its down -z. */
static void a_pose_says_where_a_camera_stands(void **state)
{
    static const double r[9] = {0, -1, 0, 0, 0, -1, 1, 0, 0}, place[3] = {1, 2, 3},
                        ahead[3] = {6, 1, 5};
    double t[3], back[3], seen[3];
    (void)state;
    kiln_pose_translation(r, place, t);
    kiln_pose_centre(r, t, back);
    assert_memory_equal(back, place, sizeof back);
    kiln_pose_apply(r, t, ahead, seen);
    assert_true(seen[0] == 1 && seen[1] == -2 && seen[2] == 5);
}

static void one_thing_is_not_counted_in_the_plural(void **state)
{
    (void)state;
    char text[KILN_COUNT_TEXT];
    assert_string_equal(kiln_count_text(0, "camera", text), "0 cameras");
    assert_string_equal(kiln_count_text(1, "camera", text), "1 camera");
    assert_string_equal(kiln_count_text(2, "camera", text), "2 cameras");
    assert_string_equal(kiln_count_text(1, "photo is|photos are", text), "1 photo is");
    assert_string_equal(kiln_count_text(21, "photo is|photos are", text), "21 photos are");
    assert_string_equal(kiln_count_text(UINT64_MAX, "row", text), "18446744073709551615 rows");
    assert_string_equal(KILN_COUNT(1, "pair"), "1 pair");
    char words[2 * KILN_COUNT_TEXT];
    memset(words, 'x', sizeof words);
    words[sizeof words - 1] = '\0';
    assert_int_equal(strlen(kiln_count_text(3, words, text)), KILN_COUNT_TEXT - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_returns_its_status_and_note_puts_context_in_front),
        cmocka_unit_test(a_sentence_too_long_is_cut_and_stays_a_string),
        cmocka_unit_test(exit_codes_are_those_of_the_contract),
        cmocka_unit_test(alloc_gives_zeroed_aligned_memory_and_refuses_overflow),
        cmocka_unit_test(a_populated_array_has_its_pages),
        cmocka_unit_test(a_large_array_grows_without_being_copied),
        cmocka_unit_test(a_buffer_keeps_what_was_put_across_growth),
        cmocka_unit_test(texts_stay_where_they_are),
        cmocka_unit_test(checked_arithmetic_says_when_it_does_not_fit),
        cmocka_unit_test(carving_measures_what_it_lays_out),
        cmocka_unit_test(what_lies_behind_a_piece_is_poisoned),
        cmocka_unit_test(a_written_file_reads_back_and_leaves_no_temporary),
        cmocka_unit_test(a_failed_write_keeps_the_old_file),
        cmocka_unit_test(a_process_that_nobody_asked_for_has_ended),
        cmocka_unit_test(reading_past_the_end_names_the_byte),
        cmocka_unit_test(what_is_no_regular_file_is_bad_input),
        cmocka_unit_test(a_file_that_was_replaced_or_written_to_is_another),
        cmocka_unit_test(joined_paths_have_one_slash_and_fit),
        cmocka_unit_test(base_and_suffix_look_behind_the_last_slash),
        cmocka_unit_test(names_from_inside_files_stay_in_their_folder),
        cmocka_unit_test(clocks_run_and_memory_is_seen),
        cmocka_unit_test(vectors_without_a_length_are_left_alone),
        cmocka_unit_test(a_pose_says_where_a_camera_stands),
        cmocka_unit_test(one_thing_is_not_counted_in_the_plural),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
