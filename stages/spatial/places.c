/* Reading the files of a partition. */
#include "stages/spatial/spatial_merge.h"
#include "stages/spatial/partition.h"

bool kiln_spatial_is_complete(const char *folder, uint64_t n, bool with_means)
{
    return kiln_scratch_is_whole(folder, "codes", n * sizeof(uint64_t)) &&
           kiln_scratch_is_whole(folder, "rows", n * sizeof(uint32_t)) &&
           (!with_means || kiln_scratch_is_whole(folder, "means", n * KILN_MEAN_BYTES));
}

/* Each is looked at, so that each damaged one is named and gone. */
kiln_status kiln_spatial_keep_sound(const char *folder, uint64_t n, bool with_means, bool *kept,
                                    kiln_error *err)
{
    bool codes, rows, means = true;
    KILN_TRY(kiln_scratch_keep_sound(folder, "codes", n * sizeof(uint64_t), &codes, err));
    KILN_TRY(kiln_scratch_keep_sound(folder, "rows", n * sizeof(uint32_t), &rows, err));
    if (with_means)
        KILN_TRY(kiln_scratch_keep_sound(folder, "means", n * KILN_MEAN_BYTES, &means, err));
    *kept = codes && rows && means;
    return KILN_OK;
}

kiln_status kiln_spatial_open(const char *folder, uint64_t n, bool with_means,
                              kiln_spatial_file *out, kiln_error *err)
{
    *out = (kiln_spatial_file){.n = n};
    kiln_status st = kiln_scratch_open(folder, "rows", n * sizeof(uint32_t), &out->rows, err);
    if (st == KILN_OK)
        st = kiln_scratch_open(folder, "codes", n * sizeof(uint64_t), &out->codes, err);
    if (st == KILN_OK && with_means)
        st = kiln_scratch_open(folder, "means", n * KILN_MEAN_BYTES, &out->means, err);
    if (st != KILN_OK) kiln_spatial_close(out);
    return st;
}

void kiln_spatial_close(kiln_spatial_file *f)
{
    kiln_scratch_drop(&f->rows);
    kiln_scratch_drop(&f->codes);
    kiln_scratch_drop(&f->means);
    *f = (kiln_spatial_file){0};
}

static kiln_status read_places(const kiln_spatial_file *f, const kiln_scratch_file *file,
                               uint64_t first, uint64_t count, size_t elem, void *out,
                               kiln_error *err)
{
    if (first > f->n || count > f->n - first)
        return kiln_fail(
            err, KILN_E_BUG, "the order has %llu places, but %llu were asked for from %llu on",
            (unsigned long long)f->n, (unsigned long long)count, (unsigned long long)first);
    return count ? kiln_scratch_read(file, first * elem, out, count * elem, err) : KILN_OK;
}

kiln_status kiln_spatial_rows(const kiln_spatial_file *f, uint64_t first, uint64_t count,
                              uint32_t *out, kiln_error *err)
{
    return read_places(f, &f->rows, first, count, sizeof *out, out, err);
}

kiln_status kiln_spatial_codes(const kiln_spatial_file *f, uint64_t first, uint64_t count,
                               uint64_t *out, kiln_error *err)
{
    return read_places(f, &f->codes, first, count, sizeof *out, out, err);
}

kiln_status kiln_spatial_means(const kiln_spatial_file *f, uint64_t first, uint64_t count,
                               float *out, kiln_error *err)
{
    return read_places(f, &f->means, first, count, KILN_MEAN_BYTES, out, err);
}
