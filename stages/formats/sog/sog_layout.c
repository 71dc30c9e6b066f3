/* sog_layout -- see the header. */
#include "stages/formats/sog/sog_layout.h"

#include "base/checked.h"
#include "base/harmonics.h"
#include "base/option.h"

#include <math.h>

const kiln_sog_picture kiln_sog_pictures[KILN_SOG_IMAGES] = {
    [KILN_SOG_MEANS_L] = {"means_l.webp", 0, 3},
    [KILN_SOG_MEANS_U] = {"means_u.webp", 3, 3},
    [KILN_SOG_SCALES] = {"scales.webp", 6, 3},
    [KILN_SOG_QUATS] = {"quats.webp", 9, 4},
    [KILN_SOG_SH0] = {"sh0.webp", 13, 4},
    [KILN_SOG_LABELS] = {"shN_labels.webp", 0, 2},
    [KILN_SOG_PALETTE] = {"shN_centroids.webp", 0, 0},
};

void kiln_sog_image_size(uint64_t n, uint64_t *width, uint64_t *height)
{
    uint64_t root = (uint64_t)sqrt((double)n);
    while (root * root < n) root++;
    *width = 4 * kiln_div_up(root, 4);
    *height = 4 * kiln_div_up(kiln_div_up(n, *width), 4);
}

/* Red, green, blue and alpha. */
static const int shift[4] = {16, 8, 0, 24};

void kiln_sog_fill(uint32_t channels, const uint8_t *codes, uint64_t n, uint32_t *argb)
{
    for (uint64_t i = 0; i < n; i++) argb[i] = channels > 3 ? 0 : 0xff000000u;
    for (uint32_t c = 0; c < channels; c++)
        for (uint64_t i = 0; i < n; i++) argb[i] |= (uint32_t)codes[c * n + i] << shift[c];
}

void kiln_sog_fill_palette(uint32_t entries, uint32_t degree, const uint8_t *codes, uint32_t *argb)
{
    const uint32_t k = kiln_sh_coefficients(degree);
    uint64_t width, height;
    kiln_sog_palette_size(entries, degree, &width, &height);
    for (uint64_t i = 0; i < width * height; i++) argb[i] = 0xff000000u;
    /* entry e begins at pixel e K, because a row has a whole number of entries */
    for (uint32_t d = 0; d < 3 * k; d++)
        for (uint64_t e = 0; e < entries; e++)
            argb[e * k + d / 3] |= (uint32_t)codes[(uint64_t)d * entries + e] << shift[d % 3];
}

/* ---- meta.json ------------------------------------------------------------------------------- */

/* The key and a colon. */
#define KEY(name) "\"" KILN_SOG_KEY_##name "\":"
#define ONE_FILE KEY(FILES) "[\"%s\"]}"
#define TWO_FILES KEY(FILES) "[\"%s\",\"%s\"]}"

static kiln_status put_codebook(const float values[256], kiln_buffer *out, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(out, err, KEY(CODEBOOK) "["));
    for (int k = 0; k < 256; k++)
        KILN_TRY(kiln_buffer_printf(out, err, k ? ",%.9g" : "%.9g", (double)values[k]));
    return kiln_buffer_printf(out, err, "],");
}

static kiln_status put_bounds(const char *key, const double v[3], kiln_buffer *out, kiln_error *err)
{
    return kiln_buffer_printf(out, err, "%s[%.17g,%.17g,%.17g],", key, v[0], v[1], v[2]);
}

static const char *model_of(const kiln_sog_text *t)
{
    if (t->is_2dgs) return KEY(MODEL) "\"" KILN_SOG_2DGS "\",";
    return t->antialiased ? KEY(MODEL) "\"" KILN_SOG_ANTIALIASED "\"," KEY(ANTIALIAS) "true," : "";
}

kiln_status kiln_sog_meta_put(const kiln_sog_text *t, kiln_buffer *out, kiln_error *err)
{
    const kiln_sog_picture *const p = kiln_sog_pictures;
    KILN_TRY(
        kiln_buffer_printf(out, err,
                           "{" KEY(VERSION) "%d," KEY(ASSET) "{" KEY(
                               GENERATOR) "\"SplatKiln %s\"}," KEY(COUNT) "%llu,%s" KEY(MEANS) "{",
                           KILN_SOG_VERSION, kiln_version, (unsigned long long)t->n, model_of(t)));
    KILN_TRY(put_bounds(KEY(MINS), t->mins, out, err));
    KILN_TRY(put_bounds(KEY(MAXS), t->maxs, out, err));
    KILN_TRY(kiln_buffer_printf(out, err, TWO_FILES "," KEY(SCALES) "{", p[KILN_SOG_MEANS_L].file,
                                p[KILN_SOG_MEANS_U].file));
    KILN_TRY(put_codebook(t->log_scales, out, err));
    KILN_TRY(kiln_buffer_printf(out, err, ONE_FILE "," KEY(QUATS) "{" ONE_FILE "," KEY(SH0) "{",
                                p[KILN_SOG_SCALES].file, p[KILN_SOG_QUATS].file));
    KILN_TRY(put_codebook(t->sh0, out, err));
    KILN_TRY(kiln_buffer_printf(out, err, ONE_FILE, p[KILN_SOG_SH0].file));
    if (t->degree) {
        KILN_TRY(kiln_buffer_printf(out, err, "," KEY(SHN) "{" KEY(COUNT) "%u," KEY(BANDS) "%u,",
                                    t->palette, t->degree));
        KILN_TRY(put_codebook(t->shN, out, err));
        KILN_TRY(kiln_buffer_printf(out, err, TWO_FILES, p[KILN_SOG_PALETTE].file,
                                    p[KILN_SOG_LABELS].file));
    }
    return kiln_buffer_printf(out, err, "}");
}
