/* lod_set -- see lod_set.h. The steps are those of sog_write.c, which has room for scenes of any
 * size in scratch; a file of a set of levels is small, so all its codes fit in memory and one unit
 * makes it. */
#include "stages/formats/lod/lod_set.h"

#include "stages/formats/lod/lod_leaves.h"
#include "stages/formats/sog/sog_encode.h"
#include "stages/formats/sog/sog_numbers.h"
#include "stages/image/webp_encode.h"

#include "base/harmonics.h"
#include "base/minmax.h"
#include "kernels/ops.h"
#include "kernels/palette/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUES = KILN_ROWS_MEANS | KILN_ROWS_LOG_SCALES | KILN_ROWS_SH0 | KILN_ROWS_SHN };

typedef struct {
    kiln_export_worker *x;
    const kiln_lod_head *head;
    const kiln_lod_file *file;
    const uint32_t *members; /* of e->chunks */
    kiln_sog_plan k;
    uint64_t n;
    uint32_t d;
    kiln_codebook_counts *books; /* [KILN_SOG_BOOKS] */
    void *book_work;
    uint8_t *codes;   /* [KILN_SOG_CODES][n] */
    int16_t *numbers; /* [n][d] */
    int16_t *centroids;
    uint32_t *index, *distances;
    uint16_t *labels;
    uint8_t *entries; /* [d][palette] */
    uint64_t n_entries;
} set;

void kiln_lod_set_name(const kiln_lod_file *f, const char *name, char out[64])
{
    (void)snprintf(out, 64, "%u_%u/%s", f->level, f->number, name);
}

static uint32_t lod_degree(const kiln_export *e)
{
    return kiln_export_degree(e, KILN_SOG_DEGREE_MAX);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const int16_t no_rows[1]; /* measuring reads no array */
static int16_t no_entries[1];
static uint32_t no_index[1];
static uint16_t no_labels[1];
static uint64_t no_count[1];

/* Work space of the three operations on the CPU; 0 where one is refused, which it says itself when
 * it runs. */
static uint64_t palette_work(uint64_t n, uint32_t d, unsigned threads)
{
    const uint32_t p = (uint32_t)kiln_min_u64(n, KILN_SOG_PALETTE_MAX);
    const kiln_palette_train_args train = {.n = kiln_min_u64(n, KILN_PALETTE_ROWS_MAX),
                                           .seed = KILN_SOG_SEED,
                                           .d = d,
                                           .p = p,
                                           .rows = no_rows,
                                           .centroids = no_entries,
                                           .n_entries = no_count};
    const kiln_palette_index_args index = {
        .d = d, .p = p, .centroids = no_entries, .index = no_index};
    const kiln_palette_assign_args assign = {.n = n,
                                             .d = d,
                                             .p = p,
                                             .rows = no_rows,
                                             .centroids = no_rows,
                                             .index = no_index,
                                             .labels = no_labels};
    const kiln_exec cpu = {.device = -1, .threads = threads};
    size_t of_train = 0, of_index = 0, of_assign = 0;
    if (d == 0 || kiln_ops_cpu()->palette_train(&cpu, &train, NULL, &of_train, NULL) != KILN_OK ||
        kiln_ops_cpu()->palette_index(&cpu, &index, NULL, &of_index, NULL) != KILN_OK ||
        kiln_ops_cpu()->palette_assign(&cpu, &assign, NULL, &of_assign, NULL) != KILN_OK)
        return 0;
    return kiln_max_u64(kiln_max_u64(of_train, of_index), of_assign);
}

static uint64_t picture_ram(uint64_t width, uint64_t height)
{
    return 4 * width * height + kiln_webp_encode_ram(width, height) +
           kiln_webp_bytes_max(width, height);
}

uint64_t kiln_lod_set_ram(const kiln_export *e, uint64_t n, uint64_t chunk_rows, uint64_t read_ram)
{
    const uint64_t d = kiln_sog_d(e), p = kiln_min_u64(n, KILN_SOG_PALETTE_MAX);
    const uint64_t books = (KILN_SOG_BOOKS + 1) * sizeof(kiln_codebook_counts) +
                           kiln_codebook_work_bytes() + sizeof(set);
    const uint64_t codes = n * (KILN_SOG_CODES + 2 * d + 2 + 4);
    const uint64_t palette = d ? 3 * d * p +
                                     4 * kiln_palette_index_words((uint32_t)p, (uint32_t)d) +
                                     palette_work(n, (uint32_t)d, 1)
                               : 0;
    uint64_t width, height, pictures;
    kiln_sog_image_size(n, &width, &height);
    pictures = picture_ram(width, height);
    if (d) {
        kiln_sog_palette_size((uint32_t)p, lod_degree(e), &width, &height);
        pictures = kiln_max_u64(pictures, picture_ram(width, height));
    }
    return books + codes +
           kiln_max_u64(read_ram + chunk_rows * (KILN_SOG_CODES + 2 * d + 12), palette + pictures) +
           2 * KILN_SOG_META_BYTES;
}

uint64_t kiln_lod_set_ram_thread(const kiln_export *e, uint64_t n)
{
    return palette_work(n, kiln_sog_d(e), 2) - palette_work(n, kiln_sog_d(e), 1);
}

/* ---- codebooks ------------------------------------------------------------------------------- */

static void widen_means(const kiln_export_rows *rows, kiln_value_range means[3])
{
    for (uint64_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < rows->n; i++) {
            const float v = rows->means[c * rows->n + i];
            if (v < means[c].lo) means[c].lo = v;
            if (v > means[c].hi) means[c].hi = v;
        }
}

static kiln_status take_bounds(set *s, const kiln_value_range means[3], kiln_error *err)
{
    for (int a = 0; a < 3; a++) {
        const double lo = (double)means[a].lo + s->x->e->origin[a],
                     hi = (double)means[a].hi + s->x->e->origin[a];
        s->k.text.mins[a] = kiln_sog_position_log(lo);
        s->k.text.maxs[a] = kiln_sog_position_log(hi);
        if (s->k.text.mins[a] < -KILN_SOG_POSITION_LOG_MAX ||
            s->k.text.maxs[a] > KILN_SOG_POSITION_LOG_MAX)
            return kiln_fail(err, KILN_E_INPUT,
                             "positions reach from %g to %g along %c; SOG holds them up to 5.5e34",
                             lo, hi, 'x' + a);
    }
    return KILN_OK;
}

static kiln_status make_books(set *s, kiln_error *err)
{
    kiln_sog_counts c = {.books = s->books};
    kiln_value_range means[3] = {
        {INFINITY, -INFINITY}, {INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
    for (uint32_t i = 0; i < s->file->n_chunks; i++) {
        kiln_export_rows rows;
        KILN_TRY(kiln_export_rows_read(s->x, s->members[i], VALUES, &rows, err));
        kiln_sog_count(&rows, s->d, &c);
        widen_means(&rows, means);
        kiln_export_rows_release(&rows);
    }
    kiln_codebook_make(&c.books[KILN_SOG_SCALES_BOOK], KILN_CODEBOOK_RARE, s->book_work,
                       s->k.text.log_scales);
    kiln_codebook_make(&c.books[KILN_SOG_SH0_BOOK], KILN_CODEBOOK_RARE, s->book_work,
                       s->k.text.sh0);
    kiln_codebook_make(&c.books[KILN_SOG_SHN_BOOK], KILN_CODEBOOK_ALL, s->book_work, s->k.text.shN);
    kiln_sog_choose_numbers(&c, &s->k);
    return take_bounds(s, means, err);
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* Of a chunk, in its own order. */
static void encode_rows(set *s, const kiln_export_rows *rows, uint8_t *codes, int16_t *numbers)
{
    const kiln_sog_text *t = &s->k.text;
    const uint64_t n = rows->n;
    uint8_t *of[KILN_SOG_LABELS];
    for (uint32_t i = 0; i < KILN_SOG_LABELS; i++) of[i] = codes + kiln_sog_pictures[i].first * n;
    kiln_sog_encode_means(n, rows->means, s->x->e->origin, t->mins, t->maxs, of[KILN_SOG_MEANS_L],
                          of[KILN_SOG_MEANS_U]);
    kiln_codebook_codes(t->log_scales, rows->log_scales, 3 * n, of[KILN_SOG_SCALES]);
    kiln_sog_encode_quats(n, rows->quats, of[KILN_SOG_QUATS]);
    kiln_codebook_codes(t->sh0, rows->sh0, 3 * n, of[KILN_SOG_SH0]);
    kiln_sog_encode_opacities(n, rows->opacity_logits, of[KILN_SOG_SH0] + 3 * n);
    if (s->d == 0) return;
    if (s->k.few)
        kiln_sog_encode_rows_levels(n, s->d, rows->shN, n, t->shN, s->k.levels, numbers);
    else
        s->x->counts[0] += kiln_sog_encode_rows_scaled(n, s->d, rows->shN, n, s->k.scale, numbers);
}

/* The order of a chunk's rows in the file: by leaf. */
static kiln_status order_rows(const set *s, const kiln_export_rows *rows, uint32_t *order,
                              kiln_error *err)
{
    const kiln_level_tree *t = s->x->e->tree;
    const uint32_t node = rows->chunk->node;
    uint32_t first, end, *leaf = NULL, *next = NULL;
    kiln_status st = KILN_OK;
    for (uint64_t i = 0; i < rows->n; i++) order[i] = (uint32_t)i;
    if (t->nodes[node].chunk) return KILN_OK;
    kiln_lod_leaves_of(t, node, &first, &end);
    KILN_GO(KILN_ALLOC_UNSET(&leaf, rows->n, "leaves", err));
    KILN_GO(KILN_ALLOC_UNSET(&next, end - first, "leaves", err));
    kiln_lod_leaf_of_rows(KILN_LOD_AT(s->head, kiln_lod_leaf, s->head->leaves), first, end, rows->n,
                          rows->means, leaf);
    kiln_lod_sort_rows(rows->n, leaf, first, end, next, order);
done:
    free(leaf);
    free(next);
    return st;
}

static kiln_status put_rows(set *s, const kiln_export_rows *rows, uint64_t at, kiln_error *err)
{
    const uint64_t n = rows->n, d = s->d;
    uint8_t *codes = NULL;
    int16_t *numbers = NULL;
    uint32_t *order = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&codes, KILN_SOG_CODES * n, "codes", err));
    KILN_GO(KILN_ALLOC_UNSET(&numbers, n * d, "coefficients", err));
    KILN_GO(KILN_ALLOC_UNSET(&order, n, "an order of rows", err));
    KILN_GO(order_rows(s, rows, order, err));
    encode_rows(s, rows, codes, numbers);
    for (uint64_t c = 0; c < KILN_SOG_CODES; c++)
        for (uint64_t i = 0; i < n; i++) s->codes[c * s->n + at + i] = codes[c * n + order[i]];
    for (uint64_t i = 0; i < n && d; i++)
        memcpy(s->numbers + (at + i) * d, numbers + order[i] * d, d * sizeof *numbers);
done:
    free(codes);
    free(numbers);
    free(order);
    return st;
}

static kiln_status make_codes(set *s, kiln_error *err)
{
    uint64_t at = 0;
    KILN_TRY(KILN_ALLOC_UNSET(&s->codes, KILN_SOG_CODES * s->n, "codes", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->numbers, s->n * s->d, "coefficients", err));
    for (uint32_t i = 0; i < s->file->n_chunks; i++) {
        kiln_export_rows rows;
        KILN_TRY(kiln_export_rows_read(s->x, s->members[i], KILN_ROWS_SPLAT, &rows, err));
        const kiln_status st = put_rows(s, &rows, at, err);
        at += rows.n;
        kiln_export_rows_release(&rows);
        KILN_TRY(st);
    }
    return KILN_OK;
}

/* ---- the palette ----------------------------------------------------------------------------- */

/* A file has fewer rows than a sample may have, so all of them are one. */
static kiln_status train_palette(set *s, kiln_error *err)
{
    const uint32_t p = kiln_sog_entries(s->n, s->k.few);
    const kiln_palette_train_args args = {.n = kiln_min_u64(s->n, KILN_PALETTE_ROWS_MAX),
                                          .seed = KILN_SOG_SEED,
                                          .d = s->d,
                                          .p = p,
                                          .rows = s->numbers,
                                          .centroids = s->centroids,
                                          .n_entries = &s->n_entries};
    KILN_TRY(KILN_WORK(s->x->w, palette_train, &args, err));
    s->k.text.palette = (uint32_t)s->n_entries;
    if (s->k.few) return KILN_OK;
    memset(&s->books[0], 0, sizeof s->books[0]);
    kiln_sog_book_of_entries(s->centroids, s->n_entries * s->d, &s->books[0], s->book_work, &s->k);
    return KILN_OK;
}

static kiln_status make_palette(set *s, kiln_error *err)
{
    const uint64_t p = kiln_min_u64(s->n, KILN_SOG_PALETTE_MAX);
    if (s->d == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&s->centroids, p * s->d, "a palette", err));
    KILN_TRY(train_palette(s, err));
    const uint32_t n = s->k.text.palette;
    KILN_TRY(KILN_ALLOC_UNSET(&s->entries, (uint64_t)n * s->d, "a palette", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->index, kiln_palette_index_words(n, s->d),
                              "the index of a palette", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->labels, s->n, "labels", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->distances, s->n, "distances", err));
    kiln_sog_encode_palette(n, s->d, s->k.levels, s->centroids, s->entries);
    const kiln_palette_index_args index = {
        .d = s->d, .p = n, .centroids = s->centroids, .index = s->index};
    KILN_TRY(KILN_WORK(s->x->w, palette_index, &index, err));
    const kiln_palette_assign_args assign = {.n = s->n,
                                             .d = s->d,
                                             .p = n,
                                             .rows = s->numbers,
                                             .centroids = s->centroids,
                                             .index = s->index,
                                             .labels = s->labels,
                                             .distances = s->distances};
    return KILN_WORK(s->x->w, palette_assign, &assign, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

static kiln_status put_lod_file(const set *s, const char *name, const void *data, uint64_t bytes,
                                kiln_error *err)
{
    char path[KILN_PATH_MAX], inside[64];
    int fd = -1;
    kiln_lod_set_name(s->file, name, inside);
    KILN_TRY(kiln_path_join(path, sizeof path, s->x->e->temporary, inside, err));
    (void)unlink(path); /* of a worker that was replaced */
    KILN_TRY(kiln_file_create(path, &fd, err));
    kiln_status st = kiln_file_write_at(fd, path, 0, data, bytes, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

static kiln_status make_folder(const set *s, kiln_error *err)
{
    char path[KILN_PATH_MAX], inside[64];
    kiln_lod_set_name(s->file, "", inside);
    KILN_TRY(kiln_path_join(path, sizeof path, s->x->e->temporary, inside, err));
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s", path, strerror(errno));
}

static void fill_labels(const set *s, uint32_t *argb)
{
    for (uint64_t i = 0; i < s->n; i++)
        argb[i] = 0xff000000u | (s->labels[i] & 0xffu) << 16 | (s->labels[i] & 0xff00u);
}

static kiln_status put_picture(const set *s, uint32_t image, kiln_error *err)
{
    uint64_t width, height;
    uint32_t *argb = NULL;
    kiln_buffer webp = {0};
    kiln_status st = KILN_OK;
    if (image == KILN_SOG_PALETTE)
        kiln_sog_palette_size(s->k.text.palette, lod_degree(s->x->e), &width, &height);
    else
        kiln_sog_image_size(s->n, &width, &height);
    KILN_TRY(KILN_ALLOC_UNSET(&argb, width * height, "an image", err));
    const kiln_sog_picture *pic = &kiln_sog_pictures[image];
    for (uint64_t i = 0; i < width * height; i++) argb[i] = pic->n > 3 ? 0 : 0xff000000u;
    if (image == KILN_SOG_PALETTE)
        kiln_sog_fill_palette(s->k.text.palette, lod_degree(s->x->e), s->entries, argb);
    else if (image == KILN_SOG_LABELS)
        fill_labels(s, argb);
    else
        kiln_sog_fill(pic->n, s->codes + pic->first * s->n, s->n, argb);
    KILN_GO(kiln_webp_encode(argb, width, height, &webp, err));
    KILN_GO(put_lod_file(s, pic->file, webp.data, webp.size, err));
done:
    kiln_buffer_release(&webp);
    free(argb);
    return st;
}

static kiln_status put_files(const set *s, kiln_error *err)
{
    kiln_buffer text = {0};
    KILN_TRY(make_folder(s, err));
    for (uint32_t i = 0; i < kiln_sog_n_pictures(lod_degree(s->x->e)); i++)
        KILN_TRY(put_picture(s, i, err));
    kiln_status st = kiln_sog_meta_put(&s->k.text, &text, err);
    if (st == KILN_OK) st = put_lod_file(s, KILN_SOG_META, text.data, text.size, err);
    kiln_buffer_release(&text);
    return st;
}

static void release_lod_set(set *s)
{
    free(s->books);
    free(s->book_work);
    free(s->codes);
    free(s->numbers);
    free(s->centroids);
    free(s->index);
    free(s->distances);
    free(s->labels);
    free(s->entries);
    free(s);
}

static kiln_status make_set(set *s, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&s->books, KILN_SOG_BOOKS, "counts of values", err));
    KILN_TRY(kiln_alloc_unset(&s->book_work, kiln_codebook_work_bytes(), 1, "codebooks", err));
    KILN_TRY(make_books(s, err));
    KILN_TRY(make_codes(s, err));
    KILN_TRY(make_palette(s, err));
    return put_files(s, err);
}

kiln_status kiln_lod_set_write(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_lod_head *h = x->e->plan;
    set *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "a file of levels", err));
    s->x = x;
    s->head = h;
    s->file = &KILN_LOD_AT(h, kiln_lod_file, h->files)[unit];
    s->members = KILN_LOD_AT(h, uint32_t, h->members) + s->file->first;
    s->n = s->file->rows;
    s->d = kiln_sog_d(x->e);
    s->k.text = (kiln_sog_text){
        .n = s->n, .degree = lod_degree(x->e), .antialiased = kiln_export_scene(x->e)->antialiased};
    kiln_status st = kiln_export_is_2dgs(x->e, &s->k.text.is_2dgs, err);
    if (st == KILN_OK) st = make_set(s, err);
    release_lod_set(s);
    return st;
}
