/* sog_set -- see the header. */
#include "stages/formats/sog/sog_set.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/files/json_file.h"
#include "stages/formats/sog/sog_meta.h"
#include "stages/formats/sog/webp_pixels.h"
#include "stages/formats/sog/zip_archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Of all images together: bytes decoded for each byte stored, and what is let pass anyhow. Real
 * scenes need about 3; a picture of one colour needs no byte a pixel. */
enum { RATIO_MAX = 1024, RATIO_FREE = 64 << 20 };

typedef struct {
    uint64_t bytes; /* as stored in its file or, unpacked, in its entry */
    uint32_t width, height;
    const kiln_zip_entry *entry; /* NULL: a file */
} image;

struct kiln_sog_set {
    char name[KILN_PATH_MAX]; /* the user's file: meta.json or the archive */
    char folder[KILN_PATH_MAX];
    bool is_archive;
    kiln_zip zip;
    kiln_sog_meta meta;
    image images[KILN_SOG_IMAGES];
};

void kiln_sog_set_free(kiln_sog_set *s)
{
    if (!s) return;
    if (s->is_archive) kiln_zip_close(&s->zip);
    kiln_sog_meta_release(&s->meta);
    free(s);
}

const kiln_sog_codes *kiln_sog_set_codes(const kiln_sog_set *s) { return &s->meta.codes; }

static uint64_t palette_bytes(const kiln_sog_codes *c)
{
    return (uint64_t)kiln_sh_components(c->degree) * c->palette;
}

uint64_t kiln_sog_set_image_ram(const kiln_sog_set *s)
{
    uint64_t most = 0;
    for (int i = 0; i < KILN_SOG_IMAGES; i++) {
        const image *m = &s->images[i];
        const uint64_t pixels = 4 * (uint64_t)m->width * m->height;
        if (s->meta.files[i])
            most =
                kiln_max_u64(most, m->bytes + pixels + kiln_webp_decode_ram(m->width, m->height));
    }
    return most + palette_bytes(&s->meta.codes) + KILN_ZIP_READ_RAM;
}

/* meta.json as text, and as the tree that jansson makes of the three codebooks; the directory of an
 * archive. */
uint64_t kiln_sog_set_ram(void) { return sizeof(kiln_sog_set) + (4 << 20); }

/* ---- the files ------------------------------------------------------------------------------- */

static kiln_status image_path(const kiln_sog_set *s, const char *file, char path[KILN_PATH_MAX],
                              kiln_error *err)
{
    return kiln_path_join(path, KILN_PATH_MAX, s->folder, file, err);
}

static kiln_status real_image_path(const kiln_sog_set *s, const char *file,
                                   char real[KILN_PATH_MAX], kiln_error *err)
{
    char path[KILN_PATH_MAX];
    const char *why;
    KILN_TRY(image_path(s, file, path, err));
    if (kiln_member_find(s->folder, path, real, &why)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the image '%s' of '%s' %s", path, s->name, why);
}

static kiln_status find_image(const kiln_sog_set *s, const char *file, image *out, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_file_info info;
    if (s->is_archive) {
        out->entry = kiln_zip_find(&s->zip, file);
        if (!out->entry)
            return kiln_fail(err, KILN_E_INPUT, "the image '%s' is missing in '%s'", file, s->name);
        out->bytes = out->entry->size;
        return KILN_OK;
    }
    KILN_TRY(real_image_path(s, file, path, err));
    KILN_TRY(kiln_file_stat(path, &info, err));
    out->bytes = info.size;
    return KILN_OK;
}

/* The first `bytes` of an image. */
static kiln_status read_sog_image(const kiln_sog_set *s, const char *file, const image *m,
                                  void *dst, uint64_t bytes, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    int fd;
    if (m->entry) return kiln_zip_read(&s->zip, m->entry, dst, bytes, err);
    KILN_TRY(real_image_path(s, file, path, err));
    KILN_TRY(kiln_file_open(path, &fd, err));
    const kiln_status st = kiln_file_read_at(fd, path, 0, dst, bytes, err);
    close(fd);
    return st;
}

static kiln_status refuse_image(const kiln_sog_set *s, const char *file, const char *why,
                                kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "the image '%s' of '%s' is %s", file, s->name, why);
}

/* ---- open ------------------------------------------------------------------------------------ */

static kiln_status read_archive_meta(kiln_sog_set *s, json_t **out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char *text = NULL, label[KILN_PATH_MAX + 16];
    const kiln_zip_entry *e = kiln_zip_find(&s->zip, KILN_SOG_META);
    if (!e)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is a ZIP archive that holds no meta.json, so it is no SOG file",
                         s->name);
    if (e->size > KILN_SOG_META_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "meta.json in '%s' has %llu bytes; more than a MiB is no meta.json of SOG",
                         s->name, (unsigned long long)e->size);
    snprintf(label, sizeof label, "%s: meta.json", s->name);
    KILN_GO(KILN_ALLOC(&text, e->size + 1, "meta.json", err));
    KILN_GO(kiln_zip_read(&s->zip, e, text, e->size, err));
    KILN_GO(kiln_json_text_read(label, (unsigned char *)text, e->size, KILN_SOG_META_TREE_MAX, out,
                                err));
done:
    free(text);
    return st;
}

static kiln_status read_file_meta(const kiln_sog_set *s, const char *path, json_t **out,
                                  kiln_error *err)
{
    unsigned char *text;
    size_t size;
    kiln_file_info info;
    KILN_TRY(kiln_file_stat(path, &info, err));
    if (info.size > KILN_SOG_META_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %llu bytes; more than a MiB is no meta.json of SOG", s->name,
                         (unsigned long long)info.size);
    KILN_TRY(kiln_file_read(path, KILN_SOG_META_MAX, &text, &size, err));
    const kiln_status st = kiln_json_text_read(path, text, size, KILN_SOG_META_TREE_MAX, out, err);
    free(text);
    return st;
}

static kiln_status read_meta(kiln_sog_set *s, const char *path, kiln_error *err)
{
    json_t *json = NULL;
    if (s->is_archive) {
        KILN_TRY(kiln_zip_open(path, s->name, &s->zip, err));
        KILN_TRY(read_archive_meta(s, &json, err));
    } else {
        KILN_TRY(read_file_meta(s, path, &json, err));
    }
    const kiln_status st = kiln_sog_meta_take(json, s->name, &s->meta, err);
    json_decref(json);
    return st;
}

static kiln_status look_at_image(kiln_sog_set *s, kiln_sog_image which, kiln_error *err)
{
    unsigned char head[KILN_WEBP_HEAD];
    const char *file = s->meta.files[which];
    image *m = &s->images[which];
    KILN_TRY(find_image(s, file, m, err));
    const size_t n = m->bytes < sizeof head ? (size_t)m->bytes : sizeof head;
    KILN_TRY(read_sog_image(s, file, m, head, n, err));
    const char *wrong = kiln_webp_size(head, n, m->bytes, &m->width, &m->height);
    if (wrong) return refuse_image(s, file, wrong, err);
    /* a pixel takes 60 bits at most (four prefix codes of 15), the codes themselves some more */
    if (m->bytes / 8 > (uint64_t)m->width * m->height + (1 << 20))
        return refuse_image(s, file, "larger than its pixels can be", err);
    return KILN_OK;
}

static kiln_status check_palette(kiln_sog_set *s, kiln_error *err)
{
    const image *m = &s->images[KILN_SOG_PALETTE];
    const char *file = s->meta.files[KILN_SOG_PALETTE];
    kiln_sog_codes *c = &s->meta.codes;
    uint64_t width, height;
    if (c->degree == UINT32_MAX) {
        c->degree = KILN_SOG_DEGREE_MAX;
        while (c->degree && m->width != KILN_SOG_ENTRIES_A_ROW * kiln_sh_coefficients(c->degree))
            c->degree--;
        c->palette = (uint32_t)kiln_min_u64(KILN_SOG_ENTRIES_A_ROW * (uint64_t)m->height,
                                            KILN_SOG_PALETTE_MAX);
        if (c->degree == 0)
            return refuse_image(s, file,
                                "of another width than 192, 512 or 960 pixels, so no palette", err);
    }
    kiln_sog_palette_size(c->palette, c->degree, &width, &height);
    if (m->width == width && m->height >= height) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "the palette '%s' of '%s' has %u x %u pixels; %u entries of degree %u take %llu x %llu",
        file, s->name, m->width, m->height, c->palette, c->degree, (unsigned long long)width,
        (unsigned long long)height);
}

static kiln_status check_sizes(kiln_sog_set *s, kiln_error *err)
{
    const image *first = &s->images[KILN_SOG_MEANS_L];
    const uint64_t pixels = (uint64_t)first->width * first->height;
    uint64_t stored = 0, decoded = 0;
    for (int i = 0; i < KILN_SOG_IMAGES; i++) {
        const image *m = &s->images[i];
        if (!s->meta.files[i]) continue;
        stored += m->bytes;
        decoded += 4 * (uint64_t)m->width * m->height;
        if (i != KILN_SOG_PALETTE && (m->width != first->width || m->height != first->height))
            return kiln_fail(err, KILN_E_INPUT,
                             "the image '%s' of '%s' has %u x %u pixels, and '%s' %u x %u",
                             s->meta.files[i], s->name, m->width, m->height,
                             s->meta.files[KILN_SOG_MEANS_L], first->width, first->height);
    }
    if (s->meta.count > (double)pixels)
        return kiln_fail(err, KILN_E_INPUT,
                         "the images of '%s' have %u x %u pixels, too few for its %.0f Gaussians",
                         s->name, first->width, first->height, s->meta.count);
    if (decoded > RATIO_FREE && (decoded - RATIO_FREE) / RATIO_MAX > stored)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the images of '%s' would decode to %llu bytes from %llu, which no scene does", s->name,
            (unsigned long long)decoded, (unsigned long long)stored);
    s->meta.codes.n = (uint64_t)s->meta.count;
    return KILN_OK;
}

static kiln_status begins_archive(const char *path, bool *out, kiln_error *err)
{
    unsigned char head[2];
    kiln_file_info info;
    int fd;
    *out = false;
    KILN_TRY(kiln_file_open(path, &fd, err));
    kiln_status st = kiln_file_stat(path, &info, err);
    if (st == KILN_OK && info.size == 0) st = kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    if (st == KILN_OK && info.size >= sizeof head) {
        st = kiln_file_read_at(fd, path, 0, head, sizeof head, err);
        *out = st == KILN_OK && head[0] == 'P' && head[1] == 'K';
    }
    close(fd);
    return st;
}

static kiln_status set_names(kiln_sog_set *s, const char *path, const char *name, kiln_error *err)
{
    const size_t folder = (size_t)(kiln_path_base(name) - name);
    if (strlen(name) >= sizeof s->name)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.200s...' is too long", name);
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->folder, sizeof s->folder, "%.*s", folder ? (int)folder : 1, folder ? name : ".");
    s->zip.fd = -1;
    KILN_TRY(begins_archive(path, &s->is_archive, err));
    /* the suffix says what the user means: not "no valid JSON", but "no archive" */
    s->is_archive |= strcasecmp(kiln_path_suffix(name), "sog") == 0;
    return KILN_OK;
}

kiln_status kiln_sog_set_open(const char *path, const char *name, kiln_sog_set **out,
                              kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_sog_set *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "SOG reader", err));
    KILN_GO(set_names(s, path, name, err));
    KILN_GO(read_meta(s, path, err));
    for (int i = 0; i < KILN_SOG_IMAGES; i++)
        if (s->meta.files[i]) KILN_GO(look_at_image(s, (kiln_sog_image)i, err));
    if (s->meta.files[KILN_SOG_PALETTE]) KILN_GO(check_palette(s, err));
    KILN_GO(check_sizes(s, err));
    *out = s;
    return KILN_OK;
done:
    kiln_sog_set_free(s);
    return st;
}

bool kiln_sog_set_is_archive(const kiln_sog_set *s) { return s->is_archive; }

kiln_status kiln_sog_set_members(const kiln_sog_set *s, kiln_member_fn *add, void *context,
                                 kiln_error *err)
{
    char path[KILN_PATH_MAX];
    for (int i = 0; i < KILN_SOG_IMAGES && !s->is_archive; i++) {
        if (!s->meta.files[i]) continue;
        KILN_TRY(image_path(s, s->meta.files[i], path, err));
        KILN_TRY(add(context, path, err));
    }
    return KILN_OK;
}

/* ---- spool ----------------------------------------------------------------------------------- */

/* The pixels become a plane in their own place: it is never longer. */
static void keep_channels(unsigned char *rgba, uint64_t n, uint32_t channels)
{
    for (uint64_t i = 0; i < n && channels < 4; i++)
        for (uint32_t c = 0; c < channels; c++) rgba[channels * i + c] = rgba[4 * i + c];
}

static kiln_status write_palette(const kiln_sog_set *s, const unsigned char *rgba, int fd,
                                 uint64_t at, kiln_error *err)
{
    const kiln_sog_codes *c = &s->meta.codes;
    const uint32_t k = kiln_sh_coefficients(c->degree), width = s->images[KILN_SOG_PALETTE].width;
    unsigned char *plane = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&plane, palette_bytes(c), "a palette", err));
    for (uint64_t e = 0; e < c->palette; e++) {
        const unsigned char *pixels =
            rgba + 4 * (e / KILN_SOG_ENTRIES_A_ROW * width + e % KILN_SOG_ENTRIES_A_ROW * k);
        for (uint32_t i = 0; i < 3 * k; i++)
            plane[(uint64_t)i * c->palette + e] = pixels[4 * (i / 3) + i % 3];
    }
    const kiln_status st = kiln_sog_spool_write(fd, s->name, at, plane, palette_bytes(c), err);
    free(plane);
    return st;
}

static void count_unknown(kiln_sog_set *s, kiln_sog_image which, const unsigned char *rgba)
{
    kiln_sog_codes *c = &s->meta.codes;
    for (uint64_t i = 0; i < c->n && which == KILN_SOG_QUATS; i++)
        c->unknown_tags += rgba[4 * i + 3] < KILN_SOG_QUAT_TAG;
    for (uint64_t i = 0; i < c->n && which == KILN_SOG_LABELS; i++)
        c->unknown_labels += (uint32_t)rgba[4 * i] + 256u * rgba[4 * i + 1] >= c->palette;
}

static kiln_status write_plane(kiln_sog_set *s, kiln_sog_image which, unsigned char *rgba, int fd,
                               uint64_t base, kiln_error *err)
{
    uint64_t bytes;
    const uint64_t at = base + kiln_sog_plane(&s->meta.codes, which, &bytes);
    if (which == KILN_SOG_PALETTE) return write_palette(s, rgba, fd, at, err);
    count_unknown(s, which, rgba);
    keep_channels(rgba, s->meta.codes.n, kiln_sog_pictures[which].n);
    return kiln_sog_spool_write(fd, s->name, at, rgba, bytes, err);
}

static kiln_status spool_image(kiln_sog_set *s, kiln_sog_image which, int fd, uint64_t base,
                               kiln_error *err)
{
    kiln_status st = KILN_OK;
    unsigned char *data = NULL, *rgba = NULL;
    const image *m = &s->images[which];
    const char *file = s->meta.files[which];
    KILN_GO(KILN_ALLOC_UNSET(&data, m->bytes, "an image", err));
    KILN_GO(read_sog_image(s, file, m, data, m->bytes, err));
    KILN_GO(KILN_ALLOC_UNSET(&rgba, 4 * (uint64_t)m->width * m->height, "pixels", err));
    const char *wrong = kiln_webp_decode(data, m->bytes, m->width, m->height, rgba);
    if (wrong) KILN_GO(refuse_image(s, file, wrong, err));
    free(data);
    data = NULL;
    KILN_GO(write_plane(s, which, rgba, fd, base, err));
done:
    free(rgba);
    free(data);
    return st;
}

kiln_status kiln_sog_set_spool(kiln_sog_set *s, int fd, uint64_t base, unsigned threads,
                               kiln_error *err)
{
    kiln_status st[KILN_SOG_IMAGES] = {KILN_OK};
    kiln_error why[KILN_SOG_IMAGES];
    s->meta.codes.unknown_tags = s->meta.codes.unknown_labels = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int i = 0; i < KILN_SOG_IMAGES; i++)
        if (s->meta.files[i]) st[i] = spool_image(s, (kiln_sog_image)i, fd, base, &why[i]);
    for (int i = 0; i < KILN_SOG_IMAGES; i++) /* the first, however many threads there were */
        if (st[i] != KILN_OK) return kiln_fail(err, st[i], "%s", why[i].msg);
    return kiln_sog_spool_write(fd, s->name, base, &s->meta.codes, sizeof s->meta.codes, err);
}
