#include "stages/formats/sog/sog_meta.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/files/foreign.h"
#include "stages/files/json_file.h"
#include "stages/formats/codes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kiln_sog_meta_release(kiln_sog_meta *m)
{
    for (int i = 0; i < KILN_SOG_IMAGES; i++) {
        free(m->files[i]);
        m->files[i] = NULL;
    }
}

static kiln_status take_entry(const json_t *json, const char *name, const char *label,
                              const json_t **out, kiln_error *err)
{
    *out = json_object_get(json, name);
    if (json_is_object(*out)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "'%s' has no \"%s\" entry; is it a SOG file?", label, name);
}

static kiln_status copy_name(const json_t *file, const char *label, char **out, kiln_error *err)
{
    const char *why = "it is no text", *name = json_string_value(file);
    if (!name || strlen(name) != json_string_length(file) || !kiln_name_is_safe(name, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s' names an image that is refused: %s", label, why);
    KILN_TRY(KILN_ALLOC(out, strlen(name) + 1, "the name of an image", err));
    memcpy(*out, name, strlen(name));
    return KILN_OK;
}

/* Exactly n names. */
static kiln_status take_files(const json_t *entry, const char *name, const char *label, uint32_t n,
                              char *files[], kiln_error *err)
{
    const json_t *list = json_object_get(entry, KILN_SOG_KEY_FILES);
    if (!json_is_array(list) || json_array_size(list) != n)
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s.files must name %u image%s", label, name, n,
                         n == 1 ? "" : "s");
    for (uint32_t i = 0; i < n; i++)
        KILN_TRY(copy_name(json_array_get(list, i), label, &files[i], err));
    return KILN_OK;
}

static bool is_float(double v) { return isfinite((float)v); }

/* 256 numbers; the first may be null, as old writers had it, and is then what PlayCanvas' engine
 * makes of it. */
static kiln_status take_codebook(const json_t *entry, const char *name, const char *label,
                                 kiln_sog_meta *m, float out[256], kiln_error *err)
{
    const json_t *list = json_object_get(entry, KILN_SOG_KEY_CODEBOOK);
    if (!json_is_array(list) || json_array_size(list) != 256)
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s.codebook must hold 256 numbers", label, name);
    const bool null_first = json_is_null(json_array_get(list, 0));
    for (size_t i = null_first; i < 256; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_number(v) || !is_float(json_number_value(v)))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s': value %zu of %s.codebook is no number that float32 can hold",
                             label, i, name);
        out[i] = (float)json_number_value(v);
    }
    if (null_first) {
        const double first = json_number_value(json_array_get(list, 1)),
                     last = json_number_value(json_array_get(list, 255));
        out[0] = (float)(first + (first - last) / 255.0);
        m->codes.codebook_began_null = true;
    }
    return KILN_OK;
}

static kiln_status take_means(const json_t *json, const char *label, kiln_sog_meta *m,
                              kiln_error *err)
{
    const json_t *entry;
    KILN_TRY(take_entry(json, KILN_SOG_KEY_MEANS, label, &entry, err));
    KILN_TRY(take_files(entry, KILN_SOG_KEY_MEANS, label, 2, &m->files[KILN_SOG_MEANS_L], err));
    if (!kiln_json_vector(json_object_get(entry, KILN_SOG_KEY_MINS), 3, m->codes.mins) ||
        !kiln_json_vector(json_object_get(entry, KILN_SOG_KEY_MAXS), 3, m->codes.maxs))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': means.mins and means.maxs must be three numbers each", label);
    for (int a = 0; a < 3; a++)
        if (fabs(m->codes.mins[a]) > KILN_SOG_POSITION_LOG_MAX ||
            fabs(m->codes.maxs[a]) > KILN_SOG_POSITION_LOG_MAX)
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s': means.mins and means.maxs are logarithms, at most %g: these are %g and %g",
                label, KILN_SOG_POSITION_LOG_MAX, m->codes.mins[a], m->codes.maxs[a]);
    return KILN_OK;
}

static kiln_status take_quats(const json_t *json, const char *label, kiln_sog_meta *m,
                              kiln_error *err)
{
    const json_t *entry;
    KILN_TRY(take_entry(json, KILN_SOG_KEY_QUATS, label, &entry, err));
    const char *encoding = json_string_value(json_object_get(entry, "encoding"));
    if (encoding && strcmp(encoding, "quaternion_packed") != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': quats.encoding is '%.40s'; only quaternion_packed is read", label,
                         encoding);
    return take_files(entry, KILN_SOG_KEY_QUATS, label, 1, &m->files[KILN_SOG_QUATS], err);
}

static kiln_status check_count(const json_t *count, const char *what, const char *label,
                               double *out, kiln_error *err)
{
    *out = json_number_value(count);
    if (!json_is_number(count))
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s, how many Gaussians there are, is no number",
                         label, what);
    if (*out == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s' holds no Gaussians: %s is 0", label, what);
    if (*out < 0 || *out != floor(*out))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': %s is %g; a positive whole number must stand there", label, what,
                         *out);
    return KILN_OK;
}

/* ---- version 2 ------------------------------------------------------------------------------- */

static kiln_status take_bands(const json_t *json, const char *label, kiln_sog_meta *m,
                              kiln_error *err)
{
    const json_t *entry = json_object_get(json, KILN_SOG_KEY_SHN);
    if (!entry || json_is_null(entry)) return KILN_OK;
    KILN_TRY(take_entry(json, KILN_SOG_KEY_SHN, label, &entry, err));
    const json_t *bands = json_object_get(entry, KILN_SOG_KEY_BANDS),
                 *count = json_object_get(entry, KILN_SOG_KEY_COUNT);
    const double b = json_number_value(bands), p = json_number_value(count);
    if (!json_is_number(bands) || !(b == 1 || b == 2 || b == 3))
        return kiln_fail(err, KILN_E_INPUT, "'%s': shN.bands must be 1, 2 or 3", label);
    if (!json_is_number(count) || !(p >= 1 && p <= KILN_SOG_PALETTE_MAX) || p != floor(p))
        return kiln_fail(err, KILN_E_INPUT, "'%s': shN.count must be 1 to %d", label,
                         KILN_SOG_PALETTE_MAX);
    m->codes.degree = (uint32_t)b;
    m->codes.palette = (uint32_t)p;
    KILN_TRY(take_codebook(entry, KILN_SOG_KEY_SHN, label, m, m->codes.shN, err));
    char *files[2] = {NULL, NULL};
    const kiln_status st = take_files(entry, KILN_SOG_KEY_SHN, label, 2, files, err);
    m->files[KILN_SOG_PALETTE] = files[0];
    m->files[KILN_SOG_LABELS] = files[1];
    return st;
}

static kiln_status take_version_2(const json_t *json, const char *label, kiln_sog_meta *m,
                                  kiln_error *err)
{
    const json_t *scales, *sh0;
    KILN_TRY(check_count(json_object_get(json, KILN_SOG_KEY_COUNT), KILN_SOG_KEY_COUNT, label,
                         &m->count, err));
    KILN_TRY(take_entry(json, KILN_SOG_KEY_SCALES, label, &scales, err));
    KILN_TRY(take_codebook(scales, KILN_SOG_KEY_SCALES, label, m, m->codes.log_scales[0], err));
    KILN_TRY(take_files(scales, KILN_SOG_KEY_SCALES, label, 1, &m->files[KILN_SOG_SCALES], err));
    KILN_TRY(take_entry(json, KILN_SOG_KEY_SH0, label, &sh0, err));
    KILN_TRY(take_codebook(sh0, KILN_SOG_KEY_SH0, label, m, m->codes.sh0[0], err));
    KILN_TRY(take_files(sh0, KILN_SOG_KEY_SH0, label, 1, &m->files[KILN_SOG_SH0], err));
    for (int a = 1; a < 3; a++) {
        memcpy(m->codes.log_scales[a], m->codes.log_scales[0], sizeof m->codes.log_scales[0]);
        memcpy(m->codes.sh0[a], m->codes.sh0[0], sizeof m->codes.sh0[0]);
    }
    kiln_code_logits(m->codes.opacity_logits);
    return take_bands(json, label, m, err);
}

/* ---- version 1: ranges in place of codebooks ------------------------------------------------- */

static void fill_range(double min, double max, float out[256])
{
    for (int b = 0; b < 256; b++) out[b] = (float)(min + (max - min) * b / 255.0);
}

/* mins and maxs of n channels, or where n is 0 two plain numbers, into one table each. */
static kiln_status take_ranges(const json_t *entry, const char *name, const char *label, uint32_t n,
                               float *tables[], kiln_error *err)
{
    double mins[4], maxs[4];
    const json_t *lo = json_object_get(entry, KILN_SOG_KEY_MINS),
                 *hi = json_object_get(entry, KILN_SOG_KEY_MAXS);
    mins[0] = json_number_value(lo);
    maxs[0] = json_number_value(hi);
    bool good = n ? kiln_json_vector(lo, n, mins) && kiln_json_vector(hi, n, maxs)
                  : json_is_number(lo) && json_is_number(hi);
    for (uint32_t c = 0; good && c < (n ? n : 1); c++) {
        good = is_float(mins[c]) && is_float(maxs[c]);
        if (good) fill_range(mins[c], maxs[c], tables[c]);
    }
    if (good) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s': %s.mins and %s.maxs must be %u number%s each that float32 can hold",
                     label, name, name, n ? n : 1, n ? "s" : "");
}

static kiln_status take_version_1(const json_t *json, const char *label, kiln_sog_meta *m,
                                  kiln_error *err)
{
    const json_t *entry,
        *shape = json_object_get(json_object_get(json, KILN_SOG_KEY_MEANS), "shape");
    float *scales[] = {m->codes.log_scales[0], m->codes.log_scales[1], m->codes.log_scales[2]};
    float *sh0[] = {m->codes.sh0[0], m->codes.sh0[1], m->codes.sh0[2], m->codes.opacity_logits},
          *shN[] = {m->codes.shN};
    KILN_TRY(check_count(json_array_get(shape, 0), "means.shape[0]", label, &m->count, err));
    KILN_TRY(take_entry(json, KILN_SOG_KEY_SCALES, label, &entry, err));
    KILN_TRY(take_ranges(entry, KILN_SOG_KEY_SCALES, label, 3, scales, err));
    KILN_TRY(take_files(entry, KILN_SOG_KEY_SCALES, label, 1, &m->files[KILN_SOG_SCALES], err));
    KILN_TRY(take_entry(json, KILN_SOG_KEY_SH0, label, &entry, err));
    KILN_TRY(take_ranges(entry, KILN_SOG_KEY_SH0, label, 4, sh0, err));
    KILN_TRY(take_files(entry, KILN_SOG_KEY_SH0, label, 1, &m->files[KILN_SOG_SH0], err));
    if (!json_is_object(json_object_get(json, KILN_SOG_KEY_SHN))) return KILN_OK;
    KILN_TRY(take_entry(json, KILN_SOG_KEY_SHN, label, &entry, err));
    KILN_TRY(take_ranges(entry, KILN_SOG_KEY_SHN, label, 0, shN, err));
    m->codes.degree = m->codes.palette = UINT32_MAX;
    char *files[2] = {NULL, NULL};
    const kiln_status st = take_files(entry, KILN_SOG_KEY_SHN, label, 2, files, err);
    m->files[KILN_SOG_PALETTE] = files[0];
    m->files[KILN_SOG_LABELS] = files[1];
    return st;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void take_words(const json_t *json, kiln_sog_meta *m)
{
    const char *model = json_string_value(json_object_get(json, KILN_SOG_KEY_MODEL));
    const char *writer = json_string_value(
        json_object_get(json_object_get(json, KILN_SOG_KEY_ASSET), KILN_SOG_KEY_GENERATOR));
    m->codes.antialiased = (model && strcmp(model, KILN_SOG_ANTIALIASED) == 0) ||
                           json_is_true(json_object_get(json, KILN_SOG_KEY_ANTIALIAS));
    m->codes.is_2dgs = model && strcmp(model, KILN_SOG_2DGS) == 0;
    snprintf(m->codes.writer, sizeof m->codes.writer, "%s", writer ? writer : "");
}

kiln_status kiln_sog_meta_take(const json_t *json, const char *label, kiln_sog_meta *out,
                               kiln_error *err)
{
    const json_t *version = json_object_get(json, KILN_SOG_KEY_VERSION);
    memset(out, 0, sizeof *out);
    if (!json_is_object(json))
        return kiln_fail(err, KILN_E_INPUT, "'%s' is no JSON object, so it is no SOG file", label);
    if (json_number_value(version) == 3) return kiln_foreign_refuse_named(label, "sog-3", err);
    if (version && json_number_value(version) != KILN_SOG_VERSION)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is of a SOG version that is not known; version 2 is read, and 1, "
                         "which names none",
                         label);
    out->version = version ? KILN_SOG_VERSION : 1;
    KILN_TRY(take_means(json, label, out, err));
    KILN_TRY(take_quats(json, label, out, err));
    KILN_TRY(version ? take_version_2(json, label, out, err)
                     : take_version_1(json, label, out, err));
    take_words(json, out);
    return KILN_OK;
}
