/* fuzz_part -- what comes from other hosts: parts, and the claim beside a manifest.
 *
 *   part    edits of a small whole part: two bytes of place, one of length, the new bytes. The
 *           place is a page, each alike, and of it a byte that is not zero. The last byte of the
 *           input says whether it gets a right seal then, as a stranger gives it. What is gathered
 *           leaves a sound manifest
 *   claim   a claim's text; what is read is written and read again to the same
 *
 * Opening a part takes most of an input's time, because SQLite parses the SQL of its tables. All of
 * that is in the first page, so a part whose first page is as it was is read through a connection
 * that stays open, whose pages are dropped. */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "schema/claim.h"
#include "schema/part_internal.h"
#include "tests/unit/manifest_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { UNITS = 3, FLOATS = 300, EDIT_HEAD = 3, PAGE_BYTES = 65536, PAGES_KEPT = 256 };

static struct {
    char path[400];
    size_t size, n_pages, seal;  /* seal: where its bytes are */
    unsigned char *whole, *file; /* [size] file: the part itself, as memory */
    size_t *places;              /* of bytes that are not zero, page by page */
    size_t *first_of_page;       /* [n_pages + 1] into places */
    bool head_edited;            /* an edit has begun in the first page */
    kiln_part stays;             /* over the connection that stays open */
    kiln_part_memory *capacity;
    kiln_manifest *into;
} base;

static void store_unit(kiln_manifest *m, uint32_t u)
{
    float numbers[FLOATS];
    kiln_error err = {0};
    kiln_blob blobs[2];
    char name[32];
    kiln_unit_output outputs[2] = {{.name = "numbers", .elem = 4, .raw_bytes = sizeof numbers},
                                   {.name = "word", .elem = 1, .raw_bytes = 5}};
    for (uint32_t i = 0; i < FLOATS; i++) numbers[i] = (float)(i * (u + 1)) * 0.37f;
    HOLDS(kiln_blob_pack(numbers, sizeof numbers, 4, &blobs[0], &err) == KILN_OK);
    HOLDS(kiln_blob_pack("hello", 5, 1, &blobs[1], &err) == KILN_OK);
    for (int i = 0; i < 2; i++) outputs[i].hash = blobs[i].hash;
    snprintf(name, sizeof name, "range %u", u);
    kiln_unit_result r = {.n = 2, .outputs = outputs, .counters = (char[]){"{\"pairs\": 7}"}};
    HOLDS(kiln_unit_store(m, &(kiln_unit_done){kiln_hash_of(&u, sizeof u), "knn", name, 77}, &r,
                          blobs, &err) == KILN_OK);
    for (int i = 0; i < 2; i++) free(blobs[i].packed);
}

static void make_part(void)
{
    char private_path[400], name[KILN_PART_NAME_MAX];
    kiln_error err = {0};
    kiln_manifest *m;
    const kiln_part_info info = {
        .stage = "knn", .plan = kiln_hash_of("plan", 4), .shard = 1, .shards = 2, .host = "node7"};
    const kiln_quarantine_row row = {.key = kiln_hash_of("bad", 3),
                                     .stage = "knn",
                                     .name = "range 9",
                                     .attempts = 3,
                                     .device = "cpu",
                                     .reason = "no",
                                     .failed_ns = 5};
    const kiln_run_row run = {
        .stage = "knn", .counters = (char[]){"{\"host\": \"node7\"}"}, .start_ns = 1, .stop_ns = 2};
    snprintf(private_path, sizeof private_path, "%s/private", kiln_fuzz_folder());
    HOLDS(kiln_part_create(private_path, &info, NULL, &m, &err) == KILN_OK);
    for (uint32_t u = 0; u < UNITS; u++) store_unit(m, u);
    HOLDS(kiln_quarantine_put(m, &row, &err) == KILN_OK &&
          kiln_run_row_put(m, &run, &err) == KILN_OK);
    run_sql(m, "UPDATE unit SET finished_ns = 78"); /* the same bytes each time */
    HOLDS(kiln_part_finish(m, kiln_fuzz_folder(), 0, &err) == KILN_OK &&
          kiln_part_name(&info, name, &err) == KILN_OK);
    snprintf(base.path, sizeof base.path, "%s/%s", kiln_fuzz_folder(), name);
    HOLDS(kiln_file_read(base.path, 64 << 20, &base.whole, &base.size, &err) == KILN_OK);
}

static void find_seal(void)
{
    kiln_error err = {0};
    kiln_part_info info;
    kiln_hash seal;
    HOLDS(kiln_part_read_info(base.stays.m, &info, &seal, &err) == KILN_OK);
    const unsigned char *at = memmem(base.whole, base.size, seal.bytes, sizeof seal.bytes);
    HOLDS(at);
    base.seal = (size_t)(at - base.whole);
}

static void list_places(void)
{
    size_t n = 0;
    base.n_pages = base.size / PAGE_BYTES;
    base.places = malloc(base.size * sizeof *base.places);
    base.first_of_page = malloc((base.n_pages + 1) * sizeof *base.first_of_page);
    HOLDS(base.places && base.first_of_page);
    for (size_t page = 0; page < base.n_pages; page++) {
        base.first_of_page[page] = n;
        for (size_t i = page * PAGE_BYTES; i < (page + 1) * PAGE_BYTES; i++)
            if (base.whole[i]) base.places[n++] = i;
        /* two bytes reach each */
        HOLDS(n > base.first_of_page[page] && n - base.first_of_page[page] <= 65536 / base.n_pages);
    }
    base.first_of_page[base.n_pages] = n;
}

static size_t place_of(size_t number)
{
    const size_t page = number % base.n_pages, first = base.first_of_page[page];
    return base.places[first + number / base.n_pages % (base.first_of_page[page + 1] - first)];
}

/* Its transactions cost no sync, no log and a few small pages. */
static void make_into(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/into.db", kiln_fuzz_folder());
    kiln_manifest_close(open_manifest(path, KILN_OPEN_CREATE));
    kiln_fuzz_small_pages(path);
    base.into = open_manifest(path, KILN_OPEN_WRITE);
    run_sql(
        base.into,
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE");
}

static void make_base(void)
{
    kiln_error err = {0};
    if (base.size) return;
    kiln_fuzz_plain_sqlite_memory();
    kiln_fuzz_keep_sqlite_pages(PAGE_BYTES, PAGES_KEPT);
    make_part();
    list_places();
    const int fd = open(base.path, O_RDWR | O_CLOEXEC);
    HOLDS(fd >= 0);
    base.file = mmap(NULL, base.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    HOLDS(base.file != MAP_FAILED && close(fd) == 0);
    HOLDS(kiln_part_connect(base.path, false, NULL, &base.stays.m, &err) == KILN_OK);
    find_seal();
    make_into();
}

/* ---- edits ----------------------------------------------------------------------------------- */
static void edit(size_t place, const uint8_t *bytes, size_t n)
{
    base.head_edited = base.head_edited || place < PAGE_BYTES;
    memcpy(base.file + place, bytes, n);
}

static void undo(size_t place, const uint8_t *bytes, size_t n)
{
    (void)bytes;
    memcpy(base.file + place, base.whole + place, n);
}

static void each_edit(const uint8_t *data, size_t size,
                      void (*each)(size_t place, const uint8_t *bytes, size_t n))
{
    for (size_t at = 0; at + EDIT_HEAD + 1 < size;) {
        const size_t place = place_of((size_t)data[at] << 8 | data[at + 1]);
        size_t n = 1 + data[at + 2] % 32;
        at += EDIT_HEAD;
        if (n > size - 1 - at) n = size - 1 - at;
        if (n > base.size - place) n = base.size - place;
        each(place, data + at, n);
        at += n;
    }
}

/* SQLite keeps the pages of a file that it takes for immutable. What it counts beside them is one
 * spare page. */
static void drop_pages(void)
{
    int bytes = 0, most = 0;
    sqlite3 *const db = base.stays.m->db;
    HOLDS(sqlite3_db_release_memory(db) == SQLITE_OK);
    HOLDS(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &bytes, &most, 0) == SQLITE_OK &&
          bytes < 2 * PAGE_BYTES);
}

/* Where its rows can be read at all. */
static void put_seal(void)
{
    kiln_manifest *m = base.stays.m;
    kiln_hash seal;
    if (base.head_edited && kiln_part_connect(base.path, false, NULL, &m, NULL) != KILN_OK) return;
    if (kiln_part_seal(m, &seal, NULL) == KILN_OK)
        memcpy(base.file + base.seal, seal.bytes, sizeof seal.bytes);
    if (base.head_edited) kiln_manifest_close(m);
    drop_pages();
}

/* ---- parts ----------------------------------------------------------------------------------- */
static void judge(kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) kiln_fuzz_refusal(st, err);
}

/* What was gathered leaves the manifest sound; then it is empty again. */
static void check_into(const kiln_part_report *r, int changes)
{
    kiln_error err = {0};
    uint64_t bytes;
    int64_t units;
    if (sqlite3_total_changes(base.into->db) == changes) {
        HOLDS(r->inserted == 0 && r->quarantined == 0 && r->runs == 0 && r->blobs == 0);
        return;
    }
    if (kiln_manifest_verify(base.into, NULL, NULL, &bytes, &err) != KILN_OK)
        kiln_fuzz_fail(__FILE__, __LINE__, err.msg);
    HOLDS(kiln_query_number(base.into, "SELECT count(*) FROM unit", &units, &err) == KILN_OK &&
          units == (int64_t)r->inserted);
    run_sql(base.into, "DELETE FROM unit_output; DELETE FROM unit; DELETE FROM blob; DELETE FROM "
                       "quarantine; DELETE FROM run");
}

static void gather(kiln_part *p)
{
    kiln_error err = {0};
    kiln_part_report r;
    bool m_failed;
    const int before = sqlite3_total_changes(base.into->db);
    kiln_part_use_memory(p, &base.capacity);
    judge(kiln_part_gather(base.into, p, NULL, 0, &r, &m_failed, &err), &err);
    HOLDS(!m_failed);
    check_into(&r, before);
}

static void open_and_gather(void)
{
    kiln_error err = {0};
    kiln_part *p = NULL;
    const kiln_status st = kiln_part_open(base.path, &p, NULL, &err);
    judge(st, &err);
    HOLDS((p != NULL) == (st == KILN_OK));
    if (p) gather(p);
    kiln_part_close(p);
}

static void read_and_gather(void)
{
    kiln_error err = {0};
    const kiln_status st = kiln_part_read_rows(&base.stays, &err);
    judge(st, &err);
    if (st == KILN_OK) gather(&base.stays);
    kiln_part_free_rows(&base.stays);
    drop_pages();
}

void kiln_fuzz_part(const void *argument, const uint8_t *data, size_t size)
{
    (void)argument;
    make_base();
    base.head_edited = false;
    each_edit(data, size, edit);
    if (kiln_fuzz_tail(data, size, 0, 1) & 1) put_seal();
    if (base.head_edited)
        open_and_gather();
    else
        read_and_gather();
    each_edit(data, size, undo);
    memcpy(base.file + base.seal, base.whole + base.seal, sizeof(kiln_hash));
}

/* ---- claims ---------------------------------------------------------------------------------- */
static void check_equal(const kiln_claim *a, const kiln_claim *b)
{
    HOLDS(!strcmp(a->stage, b->stage) && kiln_hash_equal(a->plan, b->plan) &&
          a->tasks == b->tasks && a->n_units == b->n_units);
    HOLDS(!strcmp(a->what, b->what) && a->n_due == b->n_due && a->n_decisions == b->n_decisions);
    HOLDS(memcmp(a->due, b->due, a->n_due * sizeof *a->due) == 0);
    for (uint32_t i = 0; i < a->n_decisions; i++)
        HOLDS(!strcmp(a->decisions[i].name, b->decisions[i].name) &&
              a->decisions[i].value == b->decisions[i].value);
}

void kiln_fuzz_claim(const void *argument, const uint8_t *data, size_t size)
{
    char manifest[400];
    kiln_error err = {0};
    kiln_claim c, again;
    bool there;
    (void)argument;
    snprintf(manifest, sizeof manifest, "%s/claimed", kiln_fuzz_folder());
    (void)kiln_fuzz_file("", "claimed.claim", data, size);
    const kiln_status st = kiln_claim_read(manifest, &there, &c, &err);
    HOLDS(there);
    if (st != KILN_OK) {
        kiln_fuzz_refusal(st, &err);
        HOLDS(!c.due && !c.decisions);
        return;
    }
    for (uint64_t i = 0; i < c.n_due; i++)
        HOLDS(kiln_claim_has_due(&c, c.due[i].first) && kiln_claim_has_due(&c, c.due[i].last));
    HOLDS(!kiln_claim_has_due(&c, c.n_units) && kiln_claim_refuse(manifest, &err) == KILN_E_BUSY);
    HOLDS(kiln_claim_write(manifest, &c, &err) == KILN_OK);
    if (kiln_claim_read(manifest, &there, &again, &err) != KILN_OK)
        kiln_fuzz_fail(__FILE__, __LINE__, err.msg);
    check_equal(&c, &again);
    kiln_claim_release(&again);
    kiln_claim_release(&c);
}
