/* SOG: golden scenes decode to their truth, archives are refused for the right reason, levels of
 * detail are chosen and said. The samples' hostile files are driven by samples_test.c; here are
 * those that it has none for. */
#include "import_source.h"

#include "base/file.h"
#include "stages/files/json_file.h"
#include "stages/formats/sog/zip_archive.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#define DATA "tests/data/sog/"
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

static int make_folder(void **state)
{
    static char folder[TEST_FOLDER_MAX];
    *state = folder;
    return test_folder_new(folder, "sog");
}

static int remove_folder(void **state) { return test_folder_remove(*state); }

static const char *in(void **state, const char *name)
{
    static char path[16][TEST_PATH_MAX + 64];
    static int next;
    next = (next + 1) % 16;
    (void)snprintf(path[next], sizeof path[next], "%s/%s", (const char *)*state, name);
    return path[next];
}

static void run(const char *fmt, ...)
{
    char command[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    assert_int_equal(system(command), 0);
}

static void *load(const char *path, size_t *size)
{
    unsigned char *data = NULL;
    kiln_error err = {0};
    if (kiln_file_read(path, 1 << 24, &data, size, &err) != KILN_OK) fail_msg("%s", err.msg);
    return data;
}

static void put_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void must_refuse(const char *path, const char *words)
{
    import_source s;
    kiln_error err = {0};
    assert_int_equal(import_source_read(path, &s, &err), KILN_E_INPUT);
    if (!strstr(err.msg, words)) fail_msg("no '%s' in: %s", words, err.msg);
    import_source_free(&s);
}

/* ---- truth ----------------------------------------------------------------------------------- */

typedef struct {
    double position, rotation, log_scale, alpha, sh;
} deviation;

static double worse(double a, double b) { return a > b ? a : b; }

static void add_row(deviation *d, const float *ours, const float *truth, uint32_t sh)
{
    double dot = 0, length = 0, alpha = (double)truth[10];
    for (int i = 0; i < 3; i++) {
        d->position = worse(d->position, fabs((double)ours[i] - (double)truth[i]));
        d->log_scale = worse(d->log_scale, fabs((double)ours[7 + i] - (double)truth[7 + i]));
    }
    for (int i = 3; i < 7; i++) {
        dot += (double)ours[i] * (double)truth[i];
        length += (double)ours[i] * (double)ours[i];
    }
    d->rotation = worse(d->rotation, 1 - fabs(dot) / sqrt(length));
    alpha = alpha == 0 ? 0.25 / 255 : alpha == 1 ? 254.75 / 255 : alpha; /* clean_rows.h */
    d->alpha = worse(d->alpha, fabs(1 / (1 + exp(-(double)ours[10])) - alpha));
    for (uint32_t i = 0; i < sh; i++)
        d->sh = worse(d->sh, fabs((double)ours[11 + i] - (double)truth[11 + i]));
}

/* rows[i] of ours is row at[i] of the truth. */
static void compare(const char *name, const import_source *s, const char *truth_path,
                    const uint32_t *at, uint64_t n)
{
    size_t size;
    float *truth = load(truth_path, &size);
    deviation d = {0};
    assert_int_equal(s->n, n);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t row = at ? at[s->source_row[i]] : s->source_row[i];
        assert_true((row + 1) * s->floats * sizeof *truth <= size);
        add_row(&d, s->rows + i * s->floats, truth + row * s->floats, s->floats - 11);
    }
    print_message("%s: position %.1e, rotation %.1e, log scale %.1e, alpha %.1e, sh %.1e\n", name,
                  d.position, d.rotation, d.log_scale, d.alpha, d.sh);
    assert_true(d.position <= 2e-6 && d.rotation <= 1e-6 && d.log_scale <= 2e-6 &&
                d.alpha <= 1e-6 && d.sh <= 2e-6);
    free(truth);
}

static void golden_scenes_decode_to_their_truth(void **state)
{
    static const struct {
        const char *file, *truth;
    } scenes[] = {{"golden_sog_v2_sh3.sog", "golden_sog_v2_sh3.f32"},
                  {"golden_sog_v1_sh3/meta.json", "golden_sog_v1_sh3.f32"}};
    (void)state;
    for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
        char path[256], truth[256];
        import_source s;
        kiln_error err = {0};
        (void)snprintf(path, sizeof path, DATA "%s", scenes[k].file);
        (void)snprintf(truth, sizeof truth, DATA "%s", scenes[k].truth);
        if (import_source_read(path, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
        assert_int_equal(s.scan.info.sh_degree, 3);
        compare(scenes[k].file, &s, truth, NULL, 48);
        import_source_free(&s);
    }
}

static void unknown_codes_are_read_as_the_format_says_and_counted(void **state)
{
    import_source s;
    (void)state;
    assert_int_equal(import_source_read(DATA "bad_sog_label_range.sog", &s, NULL), KILN_OK);
    assert_int_equal(s.n, 20);
    for (uint64_t i = 0; i < s.n; i++)
        for (uint32_t k = 14; k < s.floats; k++) assert_true(s.rows[i * s.floats + k] == 0);
    assert_non_null(strstr(s.scan.info.notes, "20 Gaussians name colours outside of the palette"));
    import_source_free(&s);
    assert_int_equal(import_source_read(DATA "bad_sog_quat_tag.sog", &s, NULL), KILN_OK);
    assert_int_equal(s.n, 20);
    for (uint64_t i = 0; i < s.n; i++)
        for (uint32_t k = 0; k < 4; k++) assert_true(s.rows[i * s.floats + 3 + k] == (k == 0));
    assert_non_null(strstr(s.scan.info.notes, "20 rotations have no valid tag"));
    import_source_free(&s);
}

/* ---- meta.json ------------------------------------------------------------------------------- */

/* A copy of a set of version 2 in the folder `set`, with the first `from` of its meta.json made
 * `to`. */
static const char *edited(void **state, const char *from, const char *to)
{
    size_t size;
    const char *path = in(state, "set/meta.json");
    run("rm -rf '%s/set' && cp -r " DATA "golden_lod/0_0 '%s/set'", (char *)*state, (char *)*state);
    char *text = load(path, &size), *at = strstr(text, from), *out = malloc(size + strlen(to) + 1);
    assert_true(at && out);
    const int n = sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    put_file(path, out, (size_t)n);
    free(out);
    free(text);
    return path;
}

static void what_meta_says_is_taken(void **state)
{
    import_source s;
    const char *path = edited(state, "\"count\":32", "\"count\":32,\"model\":\"antialiased\"");
    assert_int_equal(import_source_read(path, &s, NULL), KILN_OK);
    assert_true(s.scan.info.antialiased && s.n == 32);
    assert_string_equal(s.scan.info.writer, "make_samples");
    import_source_free(&s);
    path = edited(state, "\"count\":32", "\"count\":31");
    assert_int_equal(import_source_read(path, &s, NULL), KILN_OK);
    assert_true(!s.scan.info.antialiased && s.n == 31);
    import_source_free(&s);
}

/* c[0] = c[1] + (c[1] - c[255]) / 255, and nothing else that is null. */
static void a_codebook_that_begins_with_null_is_extrapolated(void **state)
{
    import_source s;
    const char *path = edited(state, "\"codebook\":[-12.0,", "\"codebook\":[null,");
    kiln_error err = {0};
    json_t *json;
    assert_int_equal(kiln_json_file_read(path, &json, &err), KILN_OK);
    const json_t *codes = json_object_get(json_object_get(json, "scales"), "codebook");
    const double first = json_number_value(json_array_get(codes, 1)),
                 last = json_number_value(json_array_get(codes, 255));
    assert_int_equal(import_source_read(path, &s, &err), KILN_OK);
    assert_non_null(strstr(s.scan.info.notes, "begins with null"));
    float least = 0;
    for (uint64_t i = 0; i < s.n; i++)
        for (int a = 0; a < 3; a++) least = fminf(least, s.rows[i * s.floats + 7 + (uint32_t)a]);
    assert_true(least == (float)(first + (first - last) / 255));
    import_source_free(&s);
    json_decref(json);
    must_refuse(edited(state, "\"codebook\":[-12.0,-11.9274511,", "\"codebook\":[-12.0,null,"),
                "value 1 of scales.codebook");
}

static void damage_is_named(void **state)
{
    must_refuse(edited(state, "\"version\":2", "\"version\":1"), "version that is not known");
    must_refuse(edited(state, "\"version\":2", "\"version\":null"), "version that is not known");
    must_refuse(edited(state, "\"count\":32", "\"count\":33"), "too few for its 33");
    must_refuse(edited(state, "scales.webp", "absent.webp"), "is missing");
    must_refuse(edited(state, "scales.webp", "..\\\\scales.webp"), "refused: it has a backslash");
    must_refuse(edited(state, "quats.webp", "meta.json"), "is no WebP");
    must_refuse(edited(state, "\"count\":32", "\"count\":32,\"shN\":{\"count\":64,\"bands\":1}"),
                "shN.codebook");
    const char *path = edited(state, "\"count\":32", "\"count\":32");
    run("head -c 120 '%s' > '%s'", in(state, "set/quats.webp"), in(state, "cut"));
    run("mv '%s' '%s'", in(state, "cut"), in(state, "set/quats.webp"));
    must_refuse(path, "'quats.webp' of ");
    /* whole by its size, and damaged inside: only decoding tells, so that it is the spool that
     * refuses */
    size_t size;
    path = edited(state, "\"count\":32", "\"count\":32");
    unsigned char *image = load(DATA "golden_lod/0_0/sh0.webp", &size);
    memset(image + 30, 0xff, 16);
    put_file(in(state, "set/sh0.webp"), image, size);
    free(image);
    must_refuse(path, "'sh0.webp' of ");
}

/* Of images beside meta.json, and of the scenes that a lod-meta.json names. */
static void members_behind_links_that_lead_out_are_refused(void **state)
{
    static const char *const outside[] = {
        "mv set/quats.webp out && ln -s ../out/quats.webp set/quats.webp",
        "mv set/quats.webp out && ln -s \"$PWD/out/quats.webp\" set/quats.webp",
    };
    static const char *const irregular[] = {"mkfifo set/quats.webp", "mkdir set/quats.webp",
                                            "ln -s /dev/null set/quats.webp"};
    import_source s;
    kiln_error err = {0};
    run("mkdir '%s/out'", (char *)*state);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        const char *path = edited(state, "\"count\":32", "\"count\":32");
        run("cd '%s' && %s", (char *)*state, outside[i]);
        must_refuse(path, "leads out of the folder through a link");
    }
    for (size_t i = 0; i < sizeof irregular / sizeof *irregular; i++) {
        const char *path = edited(state, "\"count\":32", "\"count\":32");
        run("cd '%s' && rm set/quats.webp && %s", (char *)*state, irregular[i]);
        must_refuse(path,
                    i < 2 ? "is not a regular file" : "leads out of the folder through a link");
    }
    const char *path = edited(state, "\"count\":32", "\"count\":32");
    run("cd '%s/set' && mv quats.webp q && ln -s q quats.webp", (char *)*state);
    if (import_source_read(path, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(s.n, 32);
    import_source_free(&s);
    run("cp -r " DATA
        "golden_lod '%s/lod' && cd '%s' && mv lod/0_1 out && ln -s ../out/0_1 lod/0_1",
        (char *)*state, (char *)*state);
    must_refuse(in(state, "lod/lod-meta.json"), "leads out of the folder through a link");
}

static kiln_status count_member(void *context, const char *path, kiln_error *err)
{
    (void)err;
    assert_true(kiln_is_file(path));
    ++*(unsigned *)context;
    return KILN_OK;
}

static void files_besides_are_named(void **state)
{
    const kiln_read_options finest = {.lod = 0}, coarse = {.lod = 1};
    unsigned n = 0;
    (void)state;
    assert_int_equal(
        kiln_source_members(DATA "golden_sog_v1_sh3/meta.json", &finest, count_member, &n, NULL),
        KILN_OK);
    assert_int_equal(n, 7);
    assert_int_equal(
        kiln_source_members(DATA "golden_sog_v2_sh3.sog", &finest, count_member, &n, NULL),
        KILN_OK);
    assert_int_equal(n, 7);
    n = 0; /* three scenes of five images and their meta.json */
    assert_int_equal(
        kiln_source_members(DATA "golden_lod/lod-meta.json", &finest, count_member, &n, NULL),
        KILN_OK);
    assert_int_equal(n, 18);
    n = 0;
    assert_int_equal(
        kiln_source_members(DATA "golden_lod/lod-meta.json", &coarse, count_member, &n, NULL),
        KILN_OK);
    assert_int_equal(n, 12);
}

/* ---- archives -------------------------------------------------------------------------------- */

/* What a ZIP says of an entry, and what is wrong about it. */
typedef struct {
    const char *name;
    const void *data;
    size_t size;
    bool deflate, descriptor; /* sizes and checksum behind the data, none in the local header */
    uint16_t bits;
    uint32_t size_more, shift; /* added to the size and to the offset that the directory says */
} entry;

static void put(kiln_buffer *b, uint64_t v, size_t bytes)
{
    unsigned char le[8];
    for (size_t i = 0; i < 8; i++) le[i] = (unsigned char)(v >> 8 * i);
    assert_int_equal(kiln_buffer_put(b, le, bytes, NULL), KILN_OK);
}

static void put_bytes(kiln_buffer *b, const void *data, size_t n)
{
    assert_int_equal(kiln_buffer_put(b, data, n, NULL), KILN_OK);
}

static size_t pack(const entry *e, unsigned char **out)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)e->data, .avail_in = (unsigned)e->size};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    *out = malloc(e->size + 100);
    z.next_out = *out;
    z.avail_out = (unsigned)e->size + 100;
    if (e->deflate) {
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    } else {
        memcpy(*out, e->data, e->size);
        z.avail_out -= (unsigned)e->size;
    }
    (void)deflateEnd(&z);
    return e->size + 100 - z.avail_out;
}

static void put_entry(kiln_buffer *zip, kiln_buffer *directory, const entry *e)
{
    unsigned char *packed;
    const size_t n = pack(e, &packed), at = zip->size, name = strlen(e->name);
    const uint32_t crc = (uint32_t)crc32_z(0, e->data, e->size),
                   bits = e->bits | (e->descriptor ? 8u : 0);
    put(zip, 0x04034b50, 4);
    put(zip, 20 | (uint64_t)bits << 16 | (uint64_t)(e->deflate ? 8 : 0) << 32, 6);
    put(zip, 0, 4);
    put(zip, e->descriptor ? 0 : crc, 4);
    put(zip, e->descriptor ? 0 : n, 4);
    put(zip, e->descriptor ? 0 : e->size, 4);
    put(zip, name, 4);
    put_bytes(zip, e->name, name);
    put_bytes(zip, packed, n);
    if (e->descriptor) {
        put(zip, 0x08074b50, 4);
        put(zip, crc, 4);
        put(zip, n, 4);
        put(zip, e->size, 4);
    }
    put(directory, 0x02014b50, 4);
    put(directory, 20 | 20 << 16, 4);
    put(directory, bits | (uint64_t)(e->deflate ? 8 : 0) << 16, 4);
    put(directory, 0, 4);
    put(directory, crc, 4);
    put(directory, n, 4);
    put(directory, (uint32_t)(e->size + e->size_more), 4);
    put(directory, name, 2);
    put(directory, 0, 8); /* extra field, comment, disk, internal attributes */
    put(directory, 0, 4);
    put(directory, at + e->shift, 4);
    put_bytes(directory, e->name, name);
    free(packed);
}

static void write_zip(const char *path, const entry *entries, size_t n, const char *before,
                      const char *comment)
{
    kiln_buffer zip = {0}, directory = {0};
    for (size_t i = 0; i < n; i++) put_entry(&zip, &directory, &entries[i]);
    const size_t at = zip.size;
    put_bytes(&zip, directory.data, directory.size);
    put(&zip, 0x06054b50, 4);
    put(&zip, 0, 4);
    put(&zip, n | n << 16, 4);
    put(&zip, directory.size, 4);
    put(&zip, at, 4);
    put(&zip, strlen(comment), 2);
    put_bytes(&zip, comment, strlen(comment));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(before, f) >= 0 && fwrite(zip.data, 1, zip.size, f) == zip.size);
    assert_int_equal(fclose(f), 0);
    kiln_buffer_release(&zip);
    kiln_buffer_release(&directory);
}

/* The files of a folder as entries; freed by the caller. */
enum { FILES = 6 };
static void load_set(entry out[FILES])
{
    static const char *const names[FILES] = {"meta.json",   "means_l.webp", "means_u.webp",
                                             "scales.webp", "quats.webp",   "sh0.webp"};
    for (int i = 0; i < FILES; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, DATA "golden_lod/0_0/%s", names[i]);
        out[i] = (entry){.name = names[i]};
        out[i].data = load(path, &out[i].size);
    }
}

static void free_set(const entry files[FILES])
{
    for (int i = 0; i < FILES; i++) free((void *)(uintptr_t)files[i].data);
}

static void archives_of_every_kind_give_the_rows_of_the_folder(void **state)
{
    import_source folder, archive;
    entry files[FILES];
    load_set(files);
    assert_int_equal(import_source_read(DATA "golden_lod/0_0/meta.json", &folder, NULL), KILN_OK);
    for (int kind = 0; kind < 8; kind++) {
        kiln_error err = {0};
        for (int i = 0; i < FILES; i++) {
            files[i].deflate = kind & 1;
            files[i].descriptor = kind & 2;
        }
        write_zip(in(state, "a.sog"), files, FILES, "", kind & 4 ? "a comment PK\005\006" : "");
        if (import_source_read(in(state, "a.sog"), &archive, &err) != KILN_OK)
            fail_msg("kind %d: %s", kind, err.msg);
        assert_int_equal(archive.n, folder.n);
        assert_memory_equal(archive.rows, folder.rows, folder.n * folder.floats * sizeof(float));
        import_source_free(&archive);
    }
    import_source_free(&folder);
    free_set(files);
}

static void archives_that_are_none_are_refused(void **state)
{
    entry files[FILES + 1];
    const char *path = in(state, "b.sog");
    load_set(files);
    write_zip(path, files, FILES, "a virus", "");
    must_refuse(path, "something is missing or was added");
    files[1].bits = 1;
    write_zip(path, files, FILES, "", "");
    must_refuse(path, "is encrypted");
    files[1].bits = 0;
    files[1].shift = 3;
    write_zip(path, files, FILES, "", "");
    must_refuse(path, "where the directory has it");
    files[1].shift = 0;
    files[1].size_more = 1;
    write_zip(path, files, FILES, "", "");
    must_refuse(path, "cannot hold");
    files[1].deflate = true;
    write_zip(path, files, FILES, "", "");
    must_refuse(path, "unpacks to less than it says");
    files[1].size_more = 0;
    files[0].deflate = true;
    files[0].size_more = UINT32_MAX; /* one byte less: what unpacks is another content */
    write_zip(path, files, FILES, "", "");
    must_refuse(path, "checksum");
    files[0].size_more = 0;
    files[FILES] = (entry){.name = "evil/../../x", .data = "", .size = 0};
    write_zip(path, files, FILES + 1, "", "");
    must_refuse(path, "leaves its folder");
    files[FILES].name = "sub/";
    write_zip(path, files, FILES + 1, "", "");
    import_source s;
    assert_int_equal(import_source_read(path, &s, NULL), KILN_OK);
    import_source_free(&s);
    free_set(files);
}

static void every_archive_cut_short_is_refused(void **state)
{
    size_t size;
    unsigned char *data = load(DATA "golden_sog_v2_sh3.sog", &size);
    const char *path = in(state, "c.sog");
    for (size_t n = 1; n < size; n += n < size - 600 ? 997 : 1) {
        put_file(path, data, n);
        must_refuse(path, "c.sog");
    }
    free(data);
}

/* ---- spool ----------------------------------------------------------------------------------- */

static void the_spool_does_not_depend_on_threads(void **state)
{
    const kiln_read_options options = {.lod = 0};
    const kiln_source_at at = {.path = DATA "golden_sog_v2_sh3.sog",
                               .name = DATA "golden_sog_v2_sh3.sog",
                               .options = &options};
    unsigned char *bytes[2];
    size_t size[2];
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        char path[64];
        kiln_source *s;
        kiln_source_info *info = calloc(1, sizeof *info);
        const int fd = import_source_scratch(path);
        assert_int_equal(kiln_reader_sog.open(&at, &s, info, NULL), KILN_OK);
        assert_int_equal(kiln_reader_sog.spool(s, fd, k ? 5 : 1, NULL), KILN_OK);
        kiln_reader_sog.close(s);
        bytes[k] = load(path, &size[k]);
        assert_int_equal(size[k], info->spool_bytes);
        assert_int_equal(close(fd), 0);
        free(info);
    }
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* ---- levels of detail ------------------------------------------------------------------------ */

static void read_level(const char *path, uint32_t lod, import_source *s)
{
    const kiln_read_options options = {.lod = lod};
    kiln_error err = {0};
    if (import_source_read_with(path, &options, s, &err) != KILN_OK) fail_msg("%s", err.msg);
}

/* Rows [from, from + n) of the truth behind those that are there. */
static void expect(uint32_t *rows, uint64_t *have, uint32_t from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) rows[(*have)++] = from + i;
}

static void a_level_is_its_files_and_the_environment(void **state)
{
    import_source s;
    uint32_t rows[88];
    uint64_t n = 0;
    (void)state;
    read_level(DATA "golden_lod/lod-meta.json", 0, &s);
    expect(rows, &n, 0, 60);
    expect(rows, &n, 76, 12);
    compare("golden_lod, level 0", &s, DATA "golden_lod.f32", rows, n);
    assert_string_equal(s.scan.info.remarks, "its environment of 12 Gaussians is read with it");
    assert_string_equal(s.scan.info.notes, "");
    import_source_free(&s);
    n = 0;
    read_level(DATA "golden_lod/lod-meta.json", 1, &s);
    expect(rows, &n, 60, 16);
    expect(rows, &n, 76, 12);
    compare("golden_lod, level 1", &s, DATA "golden_lod.f32", rows, n);
    assert_non_null(strstr(s.scan.info.remarks, "level 1 is read, 16 Gaussians"));
    assert_string_equal(s.scan.info.notes, "");
    import_source_free(&s);
}

static void must_refuse_level(const char *path, uint32_t lod, const char *words)
{
    const kiln_read_options options = {.lod = lod};
    import_source s;
    kiln_error err = {0};
    assert_int_equal(import_source_read_with(path, &options, &s, &err), KILN_E_INPUT);
    if (!strstr(err.msg, words)) fail_msg("no '%s' in: %s", words, err.msg);
    import_source_free(&s);
}

static void an_incomplete_set_is_read_at_its_finest_whole_level_and_said(void **state)
{
    import_source s;
    uint32_t rows[88];
    uint64_t n = 0;
    run("cp -r " DATA "golden_lod '%s/set'", (char *)*state);
    const char *path = in(state, "set/lod-meta.json");
    must_refuse_level(path, 2, "has the levels 0 to 1");
    run("rm -r '%s/set/0_1' '%s/set/env'", (char *)*state, (char *)*state);
    read_level(path, 0, &s);
    expect(rows, &n, 60, 16);
    compare("golden_lod without 0_1", &s, DATA "golden_lod.f32", rows, n);
    assert_non_null(strstr(s.scan.info.notes, "level 1 is read, 16 Gaussians"));
    assert_non_null(
        strstr(s.scan.info.notes,
               "without level 0 (60 Gaussians), because 1 file is missing: 0_1/meta.json"));
    assert_non_null(strstr(s.scan.info.notes, "the environment is missing: env/meta.json"));
    import_source_free(&s);
    run("rm -r '%s/set/1_0'", (char *)*state);
    must_refuse_level(path, 0, "no level of '");
    must_refuse_level(path, 1, "is not whole");
}

/* Leaves may take a file in any order and in parts; the rows are in the order of the file. */
static void leaves_may_take_parts_of_a_file(void **state)
{
    static const char tree[] =
        "{\"lodLevels\":1,\"environment\":null,\"filenames\":[\"1_0/meta.json\",\"0_0/"
        "meta.json\"],\"tree\":"
        "{\"children\":[{\"lods\":{\"0\":{\"file\":1,\"offset\":20,\"count\":%u}}},"
        "{\"lods\":{\"0\":{\"file\":0,\"offset\":3,\"count\":4}}},{\"lods\":{}},"
        "{\"children\":[{\"lods\":{\"0\":{\"file\":1,\"offset\":%u,\"count\":7}}}]}]}}";
    char text[1024];
    import_source s;
    uint32_t rows[88];
    uint64_t n = 0;
    run("cp -r " DATA "golden_lod '%s/set'", (char *)*state);
    const char *path = in(state, "set/lod-meta.json");
    put_file(path, text, (size_t)snprintf(text, sizeof text, tree, 12, 2));
    read_level(path, 0, &s);
    expect(rows, &n, 63, 4);
    expect(rows, &n, 2, 7);
    expect(rows, &n, 20, 12);
    compare("leaves", &s, DATA "golden_lod.f32", rows, n);
    import_source_free(&s);
    put_file(path, text, (size_t)snprintf(text, sizeof text, tree, 13, 2));
    must_refuse(path, "which has 32");
    put_file(path, text, (size_t)snprintf(text, sizeof text, tree, 12, 14));
    must_refuse(path, "share row 20");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_scenes_decode_to_their_truth),
        cmocka_unit_test(unknown_codes_are_read_as_the_format_says_and_counted),
        IN_FOLDER(what_meta_says_is_taken),
        IN_FOLDER(a_codebook_that_begins_with_null_is_extrapolated),
        IN_FOLDER(damage_is_named),
        IN_FOLDER(members_behind_links_that_lead_out_are_refused),
        cmocka_unit_test(files_besides_are_named),
        IN_FOLDER(archives_of_every_kind_give_the_rows_of_the_folder),
        IN_FOLDER(archives_that_are_none_are_refused),
        IN_FOLDER(every_archive_cut_short_is_refused),
        cmocka_unit_test(the_spool_does_not_depend_on_threads),
        cmocka_unit_test(a_level_is_its_files_and_the_environment),
        IN_FOLDER(an_incomplete_set_is_read_at_its_finest_whole_level_and_said),
        IN_FOLDER(leaves_may_take_parts_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
