/* Readers and the files of the tests: no file is claimed by two readers with one score, a reader's
 * own seeds are its own, packed too, and what it says of itself is there; a writer names the reader
 * of its suffix. Loops over readers.def, writers.def and everything in tests/data. */
#include "stages/files/packing.h"
#include "stages/formats/reader.h"
#include "stages/formats/writer.h"

#include "tests/unit/manifest_fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

enum { READERS_MAX = 64 };
static unsigned n_files, n_claimed, won[READERS_MAX];

/* Index of the reader that wins; READERS_MAX: none. */
static unsigned winner(const char *path)
{
    unsigned char head[KILN_PROBE_BYTES];
    unsigned best = READERS_MAX, tied = READERS_MAX;
    int best_score = 0;
    kiln_peek peek;
    kiln_error err = {0};
    if (kiln_peek_open(path, &peek, &err) != KILN_OK) return READERS_MAX; /* a damaged packing */
    const int fd = open(peek.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, head, sizeof head);
    assert_int_equal(close(fd), 0);
    kiln_peek_close(&peek);
    for (unsigned r = 0; kiln_readers[r]; r++) {
        const int score = kiln_readers[r]->probe(head, n > 0 ? (size_t)n : 0, path);
        assert_in_range(score, 0, 100);
        if (score > best_score) {
            best = r;
            tied = READERS_MAX;
        } else if (score && score == best_score) {
            tied = r;
        }
        best_score = score > best_score ? score : best_score;
    }
    if (tied != READERS_MAX)
        fail_msg("'%s' is claimed by %s and %s with the score %d", path, kiln_readers[best]->name,
                 kiln_readers[tied]->name, best_score);
    return best;
}

/* A reader that goes by the name has to look at it without the suffix of a packing
 * (kiln_packing_stem). */
static void takes_packed(const kiln_reader *f, const char *path)
{
    unsigned char head[KILN_PROBE_BYTES];
    char packed[1200];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, head, sizeof head);
    assert_int_equal(close(fd), 0);
    snprintf(packed, sizeof packed, "%s.gz", path);
    const size_t len = n > 0 ? (size_t)n : 0;
    if (f->probe(head, len, packed) != f->probe(head, len, path))
        fail_msg("the reader %s takes '%s' and not what is in '%s': probe has to leave out the "
                 "packing's suffix (kiln_packing_stem), "
                 "or .packed is KILN_PACKED_NEVER",
                 f->name, path, packed);
}

static int look(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    char seeds[64];
    (void)s, (void)at;
    if (kind != FTW_F) return 0;
    const unsigned best = winner(path);
    n_files++;
    if (best == READERS_MAX) return 0;
    n_claimed++;
    snprintf(seeds, sizeof seeds, "/reader-%s/", kiln_readers[best]->name);
    if (!strstr(path, seeds)) return 0;
    won[best]++;
    if (kiln_readers[best]->packed != KILN_PACKED_NEVER) takes_packed(kiln_readers[best], path);
    return 0;
}

static void no_ties(void **state)
{
    (void)state;
    assert_int_equal(nftw("tests/data", look, 16, FTW_PHYS), 0);
    assert_true(n_files > 200 && n_claimed > 20);
    for (unsigned r = 0; kiln_readers[r]; r++)
        if (!won[r])
            fail_msg("of the seeds in tests/data/fuzz/reader-%s the reader takes none",
                     kiln_readers[r]->name);
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (unsigned r = 0; kiln_readers[r]; r++) {
        const kiln_reader *f = kiln_readers[r];
        assert_true(r < READERS_MAX && f->name[0] && f->suffixes[0] && f->summary[0]);
        assert_true(f->probe && f->open && f->read && f->close);
        assert_ptr_equal(kiln_reader_named(f->name), f); /* no other has the name */
        if (!f->packed)
            fail_msg("the reader %s does not say whether its files are read packed (.packed)",
                     f->name);
        if (f->spool && !f->ram)
            fail_msg("the reader %s has a spool and does not say what that takes (.ram)", f->name);
    }
}

/* Is a word of one comma-separated list in the other? */
static bool have_common(const char *a, const char *b)
{
    for (size_t n; *a; a += n + (a[n] == ',')) {
        n = strcspn(a, ",");
        for (const char *at = b; *at; at += strcspn(at, ","), at += *at == ',')
            if (n > 0 && strcspn(at, ",") == n && strncmp(a, at, n) == 0) return true;
    }
    return false;
}

static void writers_name_their_readers(void **state)
{
    (void)state;
    for (const kiln_writer *w = kiln_writers; w->name; w++) {
        const char *reader = w->functions->reader;
        if (reader && strcmp(reader, KILN_READER_RAD) != 0 && !kiln_reader_named(reader))
            fail_msg("the writer %s names the reader %s, and there is none", w->name, reader);
        for (unsigned r = 0; kiln_readers[r] && !reader; r++)
            if (have_common(w->suffixes, kiln_readers[r]->suffixes))
                fail_msg("%s reads what the writer %s writes: without .reader --report-loss leaves "
                         "the format out",
                         kiln_readers[r]->name, w->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_whole), cmocka_unit_test(no_ties),
                                       cmocka_unit_test(writers_name_their_readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
