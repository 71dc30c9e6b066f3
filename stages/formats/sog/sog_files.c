/* sog_files -- see the header. */
#include "stages/formats/sog/sog_files.h"

#include "base/file.h"
#include "base/minmax.h"
#include "stages/engine/json_text.h"
#include "stages/formats/sog/sog_encode.h"
#include "stages/formats/sog/sog_scratch.h"
#include "stages/formats/sog/zip_writer.h"
#include "stages/image/webp_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- images ---------------------------------------------------------------------------------- */

enum { PIECE = 1 << 16 }; /* pixels whose codes are read at once */

uint64_t kiln_sog_images(const kiln_export *e) { return kiln_sog_n_pictures(kiln_sog_degree(e)); }

uint64_t kiln_sog_image_ram(const kiln_export *e, uint64_t image)
{
    uint64_t width, height;
    kiln_sog_picture_size(e, (uint32_t)image, &width, &height);
    return 4 * width * height + kiln_webp_encode_ram(width, height) + 8 * PIECE +
           (image == KILN_SOG_PALETTE ? (uint64_t)kiln_sog_d(e) * kiln_sog_p(e) : 0);
}

/* Returns about how many hundredths of a microsecond libwebp takes for a pixel of this image,
 * measured on one thread. Only the ratios between images matter. */
uint64_t kiln_sog_image_cost(const kiln_export *e, uint64_t image)
{
    static const uint64_t costs[KILN_SOG_IMAGES] = {
        [KILN_SOG_MEANS_L] = 33, [KILN_SOG_MEANS_U] = 28, [KILN_SOG_SCALES] = 53,
        [KILN_SOG_QUATS] = 19,   [KILN_SOG_SH0] = 32,     [KILN_SOG_LABELS] = 20,
        [KILN_SOG_PALETTE] = 18,
    };
    uint64_t width, height;
    kiln_sog_picture_size(e, (uint32_t)image, &width, &height);
    return costs[image] * width * height;
}

/* The codes of rows [first, first + n), planes [channels][n]. */
static kiln_status read_codes(kiln_export_worker *x, uint32_t image, uint64_t first, uint64_t n,
                              uint8_t *codes, kiln_error *err)
{
    const kiln_sog_picture *pic = &kiln_sog_pictures[image];
    if (image == KILN_SOG_LABELS) {
        uint8_t *labels = codes + 2 * n; /* little-endian, as everything here */
        KILN_TRY(kiln_export_scratch_read(x, labels, 2 * n,
                                          kiln_sog_at(x->e, KILN_SOG_AT_LABELS) + 2 * first, err));
        for (uint64_t i = 0; i < n; i++) {
            codes[i] = labels[2 * i];
            codes[n + i] = labels[2 * i + 1];
        }
        return KILN_OK;
    }
    for (uint64_t c = 0; c < pic->n; c++)
        KILN_TRY(kiln_export_scratch_read(
            x, codes + c * n, n,
            kiln_sog_at(x->e, KILN_SOG_AT_CODES) + (pic->first + c) * x->e->n_rows + first, err));
    return KILN_OK;
}

static kiln_status fill_rows(kiln_export_worker *x, uint32_t image, uint32_t *argb, uint64_t pixels,
                             kiln_error *err)
{
    const uint32_t channels = kiln_sog_pictures[image].n;
    const uint64_t n = x->e->n_rows;
    uint8_t *codes = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&codes, 4 * PIECE, "codes", err));
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t m = kiln_min_u64(PIECE, n - at);
        KILN_GO(read_codes(x, image, at, m, codes, err));
        kiln_sog_fill(channels, codes, m, argb + at);
    }
    for (uint64_t i = n; i < pixels; i++) argb[i] = channels > 3 ? 0 : 0xff000000u;
done:
    free(codes);
    return st;
}

static kiln_status fill_palette(kiln_export_worker *x, uint32_t *argb, kiln_error *err)
{
    const uint32_t p = kiln_sog_plan_of(x->e)->text.palette, d = kiln_sog_d(x->e);
    uint8_t *codes = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&codes, (uint64_t)p * d, "a palette", err));
    const kiln_status st = kiln_export_scratch_read(x, codes, (uint64_t)p * d,
                                                    kiln_sog_at(x->e, KILN_SOG_AT_PALETTE), err);
    if (st == KILN_OK) kiln_sog_fill_palette(p, kiln_sog_degree(x->e), codes, argb);
    free(codes);
    return st;
}

kiln_status kiln_sog_image_encode(kiln_export_worker *x, uint64_t image, kiln_error *err)
{
    uint64_t width, height;
    uint32_t *argb = NULL;
    kiln_buffer webp = {0};
    kiln_status st = KILN_OK;
    if (image == KILN_SOG_PALETTE)
        kiln_sog_palette_size(kiln_sog_plan_of(x->e)->text.palette, kiln_sog_degree(x->e), &width,
                              &height);
    else
        kiln_sog_image_size(x->e->n_rows, &width, &height);
    KILN_GO(KILN_ALLOC_UNSET(&argb, width * height, "an image", err));
    KILN_GO(image == KILN_SOG_PALETTE ? fill_palette(x, argb, err)
                                      : fill_rows(x, (uint32_t)image, argb, width * height, err));
    KILN_GO(kiln_webp_encode(argb, width, height, &webp, err));
    KILN_GO(kiln_export_scratch_result(x, "an image", &webp, kiln_webp_bytes_max(width, height),
                                       kiln_sog_picture_at(x->e, (uint32_t)image), err));
done:
    kiln_buffer_release(&webp);
    free(argb);
    return st;
}

kiln_status kiln_sog_image_take(kiln_export_parent *p, uint64_t image, const void *result,
                                size_t bytes, kiln_error *err)
{
    uint64_t webp_bytes;
    if (bytes != sizeof webp_bytes || image >= KILN_SOG_IMAGES)
        return kiln_fail(err, KILN_E_BUG, "the size of an image as %zu bytes", bytes);
    memcpy(&webp_bytes, result, sizeof webp_bytes);
    kiln_sog_plan_to_fill(p)->bytes[image] = webp_bytes;
    return KILN_OK;
}

/* ---- the files ------------------------------------------------------------------------------- */

uint64_t kiln_sog_files_ram(const kiln_export *e, uint64_t unit)
{
    uint64_t most = 0;
    (void)unit;
    for (uint32_t i = 0; i < KILN_SOG_IMAGES; i++)
        most = kiln_max_u64(most, kiln_sog_plan_of(e)->bytes[i]);
    return most + 2 * KILN_SOG_META_BYTES;
}

/* A file of the target. */
typedef kiln_status put_fn(void *to, const char *name, const void *data, uint64_t bytes,
                           kiln_error *err);

/* meta.json, and the images out of scratch. */
static kiln_status put_files(kiln_export_worker *x, put_fn *put, void *to, kiln_error *err)
{
    const kiln_sog_plan *k = kiln_sog_plan_of(x->e);
    kiln_buffer text = {0};
    unsigned char *image = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_sog_meta_put(&k->text, &text, err));
    KILN_GO(put(to, KILN_SOG_META, text.data, text.size, err));
    for (uint32_t i = 0; i < kiln_sog_images(x->e); i++) {
        free(image);
        image = NULL;
        KILN_GO(KILN_ALLOC_UNSET(&image, k->bytes[i], "an image", err));
        KILN_GO(kiln_export_scratch_read(x, image, k->bytes[i], kiln_sog_picture_at(x->e, i), err));
        KILN_GO(put(to, kiln_sog_pictures[i].file, image, k->bytes[i], err));
    }
done:
    free(image);
    kiln_buffer_release(&text);
    return st;
}

static kiln_status put_entry(void *to, const char *name, const void *data, uint64_t bytes,
                             kiln_error *err)
{
    return kiln_zip_writer_add(to, name, data, bytes, err);
}

static kiln_status put_sog_file(void *to, const char *name, const void *data, uint64_t bytes,
                                kiln_error *err)
{
    const kiln_export_worker *x = to;
    char path[KILN_PATH_MAX];
    int fd = -1;
    KILN_TRY(kiln_path_join(path, sizeof path, x->e->temporary, name, err));
    KILN_TRY(kiln_file_create(path, &fd, err));
    kiln_status st = kiln_file_write_at(fd, path, 0, data, bytes, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

kiln_status kiln_sog_files_write(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_zip_writer z;
    (void)unit;
    if (x->fd < 0) return put_files(x, put_sog_file, x, err); /* a folder */
    kiln_zip_writer_init(&z, x->fd, x->e->temporary);
    KILN_TRY(put_files(x, put_entry, &z, err));
    return kiln_zip_writer_end(&z, err);
}

bool kiln_sog_complete(const char *target)
{
    static const char *const members[] = {KILN_SOG_KEY_MEANS, KILN_SOG_KEY_SCALES,
                                          KILN_SOG_KEY_QUATS, KILN_SOG_KEY_SH0, KILN_SOG_KEY_SHN};
    char path[KILN_PATH_MAX];
    unsigned char *text;
    size_t size, i;
    json_t *meta = NULL, *file;
    const char *why;
    if (kiln_path_join(path, sizeof path, target, KILN_SOG_META, NULL) != KILN_OK) return false;
    if (kiln_file_read(path, KILN_SOG_META_BYTES, &text, &size, NULL) != KILN_OK) return false;
    bool all =
        kiln_json_parse((const char *)text, size, 0, path, &meta, NULL, NULL) == KILN_OK && meta;
    free(text);
    for (size_t m = 0; all && m < sizeof members / sizeof *members; m++) {
        json_array_foreach(json_object_get(json_object_get(meta, members[m]), KILN_SOG_KEY_FILES),
                           i, file)
        {
            const char *name = json_string_value(file);
            kiln_file_info info;
            all = all && name && kiln_name_is_safe(name, &why) &&
                  kiln_path_join(path, sizeof path, target, name, NULL) == KILN_OK &&
                  kiln_is_file(path) && kiln_file_stat(path, &info, NULL) == KILN_OK &&
                  info.size > 0;
        }
    }
    json_decref(meta);
    return all;
}

bool kiln_sog_is_ours(const char *name)
{
    bool found = strcmp(name, KILN_SOG_META) == 0;
    for (int i = 0; i < KILN_SOG_IMAGES; i++)
        found = found || strcmp(name, kiln_sog_pictures[i].file) == 0;
    return found;
}
