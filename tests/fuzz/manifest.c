/* manifest -- a stranger's manifest. A real one is megabytes of which hardly a byte matters, so the
 * input is a list of edits of a small whole one with pages of 512 bytes: three bytes of place, one
 * of length, the new bytes. An input that begins as an SQLite file does is the file itself. The
 * last byte chooses what is read. Two harnesses:
 *
 *   manifest       opens the file anew each time
 *   manifest-rows  edits it under an open connection, ten times as fast: what rows, blobs and
 *                  tables say
 *
 * Whatever the file says: every read ends with an answer or a refusal, and nobody writes into
 * it. */
#include "tests/fuzz/fuzz.h"

#include "schema/manifest.h"
#include "tests/unit/levels_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[] = "SQLite format 3";

static struct {
    char path[400];
    int fd;
    size_t size;
    unsigned char *whole, *edited; /* [size] */
} base;

/* ---- the file -------------------------------------------------------------------------------- */

/* Of that name; the first of a process, or the first after the other harness's. */
static void make_base(const char *name)
{
    struct stat s;
    if (base.size && strcmp(strrchr(base.path, '/') + 1, name) == 0) return;
    /* faster; refused where SQLite is in use already, as in a replay */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    free(base.whole);
    free(base.edited);
    snprintf(base.path, sizeof base.path, "%s/%s", kiln_fuzz_folder(), name);
    kiln_manifest *m = open_manifest(base.path, KILN_OPEN_CREATE);
    fixture_fill(m, false);
    put_levels(m);
    kiln_manifest_close(m);
    kiln_fuzz_small_pages(base.path);
    base.fd = open(base.path, O_RDWR | O_CLOEXEC);
    HOLDS(base.fd >= 0 && fstat(base.fd, &s) == 0);
    base.size = (size_t)s.st_size;
    base.whole = malloc(base.size);
    base.edited = malloc(base.size);
    HOLDS(base.whole && base.edited &&
          pread(base.fd, base.whole, base.size, 0) == (ssize_t)base.size);
}

/* Place in 24 bits, modulo the file's size; length; bytes. */
static void apply_edits(const uint8_t *data, size_t size)
{
    memcpy(base.edited, base.whole, base.size);
    for (size_t at = 0; at + 4 < size;) {
        const size_t place =
            ((size_t)data[at] << 16 | (size_t)data[at + 1] << 8 | data[at + 2]) % base.size;
        size_t n = data[at + 3];
        at += 4;
        if (n > size - at) n = size - at;
        if (n > base.size - place) n = base.size - place;
        memcpy(base.edited + place, data + at, n);
        at += n;
    }
}

static void put_file(const void *data, size_t size)
{
    HOLDS(ftruncate(base.fd, (off_t)size) == 0);
    HOLDS(pwrite(base.fd, data, size, 0) == (ssize_t)size);
}

/* Nobody writes into a manifest that is only read. */
static void check_untouched(const void *data, size_t size)
{
    struct stat s;
    unsigned char *now = malloc(size + 1);
    HOLDS(now && fstat(base.fd, &s) == 0 && (size_t)s.st_size == size);
    HOLDS(pread(base.fd, now, size, 0) == (ssize_t)size && memcmp(now, data, size) == 0);
    free(now);
}

/* ---- all that programs read ------------------------------------------------------------------ */

static void judge(kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) kiln_fuzz_refusal(st, err);
}

static void read_rows(kiln_manifest *m)
{
    kiln_error err = {0};
    uint32_t n = 0;
    kiln_scene *scene = calloc(1, sizeof *scene);
    kiln_source_file *files = NULL;
    kiln_camera *cameras = NULL;
    kiln_image *images = NULL;
    HOLDS(scene);
    judge(kiln_scene_get(m, scene, &err), &err);
    judge(kiln_sources_get(m, &files, &n, &err), &err);
    judge(kiln_cameras_get(m, &cameras, &n, &err), &err);
    judge(kiln_images_get(m, &images, &n, &err), &err);
    free(scene);
    free(files);
    free(cameras);
    free(images);
}

static void read_stages(kiln_manifest *m)
{
    static const char *const stages[] = {"import", "chunk", "tiles"};
    kiln_error err = {0};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        kiln_stage_row row;
        kiln_parameter *p = NULL;
        kiln_quarantine_row *q = NULL;
        kiln_run_row run = {0};
        uint32_t n = 0;
        bool found = false;
        judge(kiln_stage_get(m, stages[i], &row, &err), &err);
        judge(kiln_parameters_get(m, stages[i], &p, &n, &err), &err);
        kiln_parameters_free(p, n);
        judge(kiln_quarantine_get(m, stages[i], &q, &n, &err), &err);
        free(q);
        judge(kiln_run_row_last(m, stages[i], &found, &run, &err), &err);
        if (found) {
            kiln_run_row *tasks = NULL;
            judge(kiln_run_rows_of_tasks(m, &run, &tasks, &n, &err), &err);
            kiln_run_rows_free(tasks, n);
        }
        kiln_run_row_release(&run);
    }
}

static void read_planes(kiln_manifest *m, const kiln_chunk *c)
{
    kiln_error err = {0};
    for (uint32_t p = 0; p < c->n_planes; p++) {
        const kiln_plane *plane = &c->planes[p];
        void *data = NULL;
        uint64_t bytes = 0;
        if (plane->data.n_segments == 0) continue;
        const kiln_status st =
            kiln_manifest_read_blob(m, plane->data.segments[0], &data, &bytes, &err);
        judge(st, &err);
        HOLDS((data != NULL) == (st == KILN_OK));
        free(data);
    }
}

static void read_layer(kiln_manifest *m)
{
    kiln_error err = {0};
    kiln_layer *l = NULL;
    kiln_layer *levels = NULL;
    kiln_level_tree t = {0};
    judge(kiln_layer_get(m, "baked", &l, &err), &err);
    for (uint32_t c = 0; l && c < l->n_chunks; c++) read_planes(m, &l->chunks[c]);
    if (l) judge(kiln_levels_get(m, l, &levels, &err), &err);
    for (uint32_t c = 0; levels && c < levels->n_chunks; c++) read_planes(m, &levels->chunks[c]);
    if (levels) judge(kiln_level_tree_make(l, levels, &t, &err), &err);
    kiln_level_tree_release(&t);
    kiln_layer_free(levels);
    kiln_layer_free(l);
}

static void ignore_problem(void *context, const char *sentence)
{
    HOLDS(sentence[0]);
    ++*(uint64_t *)context;
}

static void ignore_digest(void *context, const char *kind, const char *name, kiln_hash digest)
{
    *(uint64_t *)context += (uint64_t)(kind[0] + name[0] + digest.bytes[0]);
}

static void read_tables(kiln_manifest *m)
{
    kiln_error err = {0};
    uint64_t n = 0;
    kiln_tile_table *tables = NULL;
    uint32_t n_tables = 0;
    judge(kiln_tile_tables_get(m, true, &tables, &n_tables, &err), &err);
    kiln_tile_tables_free(tables, n_tables);
    judge(kiln_manifest_digests(m, ignore_digest, &n, &err), &err);
}

static void verify(kiln_manifest *m)
{
    kiln_error err = {0};
    uint64_t n = 0, bytes = 0;
    const kiln_status st = kiln_manifest_verify(m, ignore_problem, &n, &bytes, &err);
    judge(st, &err);
    /* what was found is what it ends with */
    HOLDS(n == 0 || (st != KILN_OK && strstr(err.msg, "is damaged")));
}

static void read_some(kiln_manifest *m, const uint8_t *data, size_t size)
{
    static void (*const readers[])(kiln_manifest *) = {verify, read_rows, read_stages, read_layer,
                                                       read_tables};
    readers[kiln_fuzz_tail(data, size, 0, 1) % (sizeof readers / sizeof *readers)](m);
}

void kiln_fuzz_manifest(const void *argument, const uint8_t *data, size_t size)
{
    kiln_manifest *m = NULL;
    kiln_error err = {0};
    const bool itself = size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
    (void)argument;
    if (!base.size) kiln_fuzz_plain_sqlite_memory();
    make_base("manifest.db");
    if (!itself) apply_edits(data, size);
    const void *bytes = itself ? (const void *)data : base.edited;
    const size_t n = itself ? size : base.size;
    put_file(bytes, n);
    const kiln_status st = kiln_manifest_open(base.path, KILN_OPEN_READ, "fuzz", true, &m, &err);
    judge(st, &err);
    HOLDS((m != NULL) == (st == KILN_OK));
    if (m) read_some(m, data, size);
    kiln_manifest_close(m);
    check_untouched(bytes, n);
}

/* As a writer would: SQLite throws away what it has cached when the file's change counter is
 * another one (offset 24, and 92 beside the version that wrote it; sqlite.org/fileformat2.html
 * 1.3). */
static void count_change(unsigned char *file)
{
    static uint32_t changes = 1000;
    changes++;
    for (unsigned i = 0; i < 4; i++)
        file[24 + i] = file[92 + i] = (unsigned char)(changes >> (24 - 8 * i));
}

void kiln_fuzz_manifest_rows(const void *argument, const uint8_t *data, size_t size)
{
    static kiln_manifest *m;
    (void)argument;
    if (!m) {
        make_base("rows.db");
        m = open_manifest(base.path, KILN_OPEN_READ);
    }
    apply_edits(data, size);
    count_change(base.edited);
    put_file(base.edited, base.size);
    read_some(m, data, size);
    check_untouched(base.edited, base.size);
}
