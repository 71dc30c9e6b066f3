/* fuzz_part -- what comes from other hosts: parts, and the claim beside a manifest.
 *
 *   part    edits of a small whole part: two bytes of place among those that are not zero, one of length, the new bytes. The last
 *           byte of the input says whether it gets a right seal then, as a stranger gives it. What is gathered leaves a sound
 * manifest claim   a claim's text; what is read is written and read again to the same */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "schema/claim.h"
#include "schema/part_internal.h"
#include "tests/unit/manifest_fixture.h"

#include <fcntl.h>

enum { UNITS = 3, FLOATS = 300, EDIT_HEAD = 3 };

static struct {
    char path[400];
    size_t size, n_places, seal; /* seal: where its bytes are */
    unsigned char *whole, *edited;
    size_t *places; /* of bytes that are not zero */
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
    HOLDS(kiln_unit_store(m, kiln_hash_of(&u, sizeof u), "knn", name, &r, blobs, 77, &err) == KILN_OK);
    for (int i = 0; i < 2; i++) free(blobs[i].packed);
}

static void make_part(void)
{
    char private_path[400], name[KILN_PART_NAME_MAX];
    kiln_error err = {0};
    kiln_manifest *m;
    const kiln_part_info info = {.stage = "knn", .plan = kiln_hash_of("plan", 4), .shard = 1, .shards = 2, .host = "node7"};
    const kiln_quarantine_row row = {.key = kiln_hash_of("bad", 3),
                                     .stage = "knn",
                                     .name = "range 9",
                                     .attempts = 3,
                                     .device = "cpu",
                                     .reason = "no",
                                     .failed_ns = 5};
    const kiln_run_row run = {.stage = "knn", .counters = (char[]){"{\"host\": \"node7\"}"}, .start_ns = 1, .stop_ns = 2};
    snprintf(private_path, sizeof private_path, "%s/private", kiln_fuzz_folder());
    HOLDS(kiln_part_create(private_path, &info, NULL, &m, &err) == KILN_OK);
    for (uint32_t u = 0; u < UNITS; u++) store_unit(m, u);
    HOLDS(kiln_quarantine_put(m, &row, &err) == KILN_OK && kiln_run_row_put(m, &run, &err) == KILN_OK);
    HOLDS(kiln_part_finish(m, kiln_fuzz_folder(), 0, &err) == KILN_OK && kiln_part_name(&info, name, &err) == KILN_OK);
    snprintf(base.path, sizeof base.path, "%s/%s", kiln_fuzz_folder(), name);
    HOLDS(kiln_file_read(base.path, 64 << 20, &base.whole, &base.size, &err) == KILN_OK);
}

static void find_seal(void)
{
    kiln_error err = {0};
    kiln_manifest *m;
    kiln_part_info info;
    kiln_hash seal;
    HOLDS(kiln_part_connect(base.path, false, NULL, &m, &err) == KILN_OK);
    HOLDS(kiln_part_read_info(m, &info, &seal, &err) == KILN_OK);
    kiln_manifest_close(m);
    const unsigned char *at = memmem(base.whole, base.size, seal.bytes, sizeof seal.bytes);
    HOLDS(at);
    base.seal = (size_t)(at - base.whole);
}

static void make_base(void)
{
    char into[400];
    if (base.size) return;
    make_part();
    find_seal();
    base.edited = malloc(base.size);
    base.places = malloc(base.size * sizeof *base.places);
    HOLDS(base.edited && base.places);
    for (size_t i = 0; i < base.size; i++)
        if (base.whole[i]) base.places[base.n_places++] = i;
    snprintf(into, sizeof into, "%s/into.db", kiln_fuzz_folder());
    base.into = open_manifest(into, KILN_OPEN_CREATE);
}

static void apply_edits(const uint8_t *data, size_t size)
{
    memcpy(base.edited, base.whole, base.size);
    for (size_t at = 0; at + EDIT_HEAD + 1 < size;) {
        const size_t place = base.places[((size_t)data[at] << 8 | data[at + 1]) % base.n_places];
        size_t n = 1 + data[at + 2] % 32;
        at += EDIT_HEAD;
        if (n > size - 1 - at) n = size - 1 - at;
        if (n > base.size - place) n = base.size - place;
        memcpy(base.edited + place, data + at, n);
        at += n;
    }
}

static void put_file(void)
{
    const int fd = open(base.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HOLDS(fd >= 0 && pwrite(fd, base.edited, base.size, 0) == (ssize_t)base.size);
    HOLDS(close(fd) == 0);
}

/* Where its rows can be read at all. */
static void put_seal(void)
{
    kiln_manifest *m;
    kiln_hash seal;
    put_file();
    if (kiln_part_connect(base.path, false, NULL, &m, NULL) != KILN_OK) return;
    if (kiln_part_seal(m, &seal, NULL) == KILN_OK) memcpy(base.edited + base.seal, seal.bytes, sizeof seal.bytes);
    kiln_manifest_close(m);
}

static void judge(kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) kiln_fuzz_refusal(st, err);
}

static void check_into(const kiln_part_report *r)
{
    kiln_error err = {0};
    uint64_t bytes;
    if (kiln_manifest_verify(base.into, NULL, NULL, &bytes, &err) != KILN_OK) kiln_fuzz_fail(__FILE__, __LINE__, err.msg);
    HOLDS(number_of(base.into, "SELECT count(*) FROM unit") == (int64_t)r->inserted);
    run_sql(base.into, "DELETE FROM unit_output; DELETE FROM unit; DELETE FROM blob; DELETE FROM quarantine; DELETE FROM run");
}

void kiln_fuzz_part(const void *argument, const uint8_t *data, size_t size)
{
    kiln_error err = {0};
    kiln_part *p = NULL;
    kiln_part_report r;
    bool m_failed;
    (void)argument;
    make_base();
    apply_edits(data, size);
    if (kiln_fuzz_tail(data, size, 0, 1) & 1) put_seal();
    put_file();
    const kiln_status st = kiln_part_open(base.path, &p, NULL, &err);
    judge(st, &err);
    HOLDS((p != NULL) == (st == KILN_OK));
    if (!p) return;
    judge(kiln_part_gather(base.into, p, NULL, 0, &r, &m_failed, &err), &err);
    HOLDS(!m_failed);
    kiln_part_close(p);
    check_into(&r);
}

/* ---- claims -------------------------------------------------------------------------------------------------------- */
static void check_equal(const kiln_claim *a, const kiln_claim *b)
{
    HOLDS(!strcmp(a->stage, b->stage) && kiln_hash_equal(a->plan, b->plan) && a->tasks == b->tasks && a->n_units == b->n_units);
    HOLDS(!strcmp(a->what, b->what) && a->n_due == b->n_due && a->n_decisions == b->n_decisions);
    HOLDS(memcmp(a->due, b->due, a->n_due * sizeof *a->due) == 0);
    for (uint32_t i = 0; i < a->n_decisions; i++)
        HOLDS(!strcmp(a->decisions[i].name, b->decisions[i].name) && a->decisions[i].value == b->decisions[i].value);
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
    for (uint64_t i = 0; i < c.n_due; i++) HOLDS(kiln_claim_has_due(&c, c.due[i].first) && kiln_claim_has_due(&c, c.due[i].last));
    HOLDS(!kiln_claim_has_due(&c, c.n_units) && kiln_claim_refuse(manifest, &err) == KILN_E_BUSY);
    HOLDS(kiln_claim_write(manifest, &c, &err) == KILN_OK);
    if (kiln_claim_read(manifest, &there, &again, &err) != KILN_OK) kiln_fuzz_fail(__FILE__, __LINE__, err.msg);
    check_equal(&c, &again);
    kiln_claim_release(&again);
    kiln_claim_release(&c);
}
