/* colours -- points without colour get the mean of what the photos show at their keypoints.
 *
 * COLMAP stores (0, 0, 0) for a point whose colour was never extracted. As in its own extraction
 * (Reconstruction::ExtractColorsForAllImages) a photo is sampled bilinearly at the keypoint and all
 * samples of a point weigh the same; ours are not rounded to 8 bits. A keypoint counts when it lies
 * in its photo, borders included; within half a pixel of them the outermost pixel centres are
 * taken.
 *
 * Sums are fixed-point, so that the order of images in the file (it differs between binary and
 * text) does not show. Memory: 40 bytes a colourless point and one photo. */
#include "stages/knn/tracks.h"
#include "stages/knn/knn_units.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/cameras/colmap/colmap_visit.h"
#include "stages/engine/json_text.h"
#include "stages/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t id;
    uint64_t sum[3]; /* of samples times 2^32 */
    uint32_t row, n; /* in layer order; samples */
} colourless;
static const double one = 0x1p32; /* of the sums: 2^32 - 1 samples fit */
#define NO_POINT UINT64_MAX       /* as in the files */

typedef struct {
    const kiln_tracks *tracks;
    colourless *points; /* sorted by id */
    uint64_t n_points, n_photos;
    /* the image in hand */
    const kiln_camera *camera;
    double width, height; /* that its keypoints are of */
    uint64_t capacity;    /* for a photo and its mask */
    kiln_picture photo;   /* read at the first keypoint that needs it */
    uint8_t *mask;        /* of it; NULL: none */
    bool damaged;         /* and could not be */
    uint64_t n_damaged;
    char damage[256]; /* of the first of them */
} walk;

/* ---- which points ---------------------------------------------------------------------------- */
static kiln_status gather_chunk(kiln_manifest *m, const kiln_chunk *c, uint32_t first,
                                kiln_buffer *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    float *rgb = NULL;
    double *id = NULL;
    const uint64_t n = c->count;
    const kiln_plane *ids = kiln_chunk_plane(c, "extra/point_id");
    if (n == 0 || !kiln_chunk_plane(c, "rgb") || !ids || ids->type != KILN_TYPE_F64) return KILN_OK;
    KILN_GO(KILN_ALLOC(&rgb, 3 * n, "colours of a block", err));
    KILN_GO(KILN_ALLOC(&id, n, "point ids of a block", err));
    KILN_GO(kiln_plane_read(m, c, "rgb", rgb, 3 * n * sizeof *rgb, err));
    KILN_GO(kiln_plane_read(m, c, "extra/point_id", id, n * sizeof *id, err));
    for (uint64_t i = 0; i < n; i++) {
        if (rgb[i] != 0 || rgb[n + i] != 0 || rgb[2 * n + i] != 0) continue;
        /* the plane is double: a larger id may be another point's */
        const bool exact = id[i] >= 0 && id[i] < 0x1p53;
        const colourless p = {.id = exact ? (uint64_t)id[i] : NO_POINT, .row = first + (uint32_t)i};
        KILN_GO(kiln_buffer_put(out, &p, sizeof p, err));
    }
done:
    free(id);
    free(rgb);
    return st;
}

static int colourless_by_id(const void *a, const void *b)
{
    const colourless *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
                          : (x->row > y->row) - (x->row < y->row);
}

static int by_row(const void *a, const void *b)
{
    const colourless *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

/* ---- along the tracks ------------------------------------------------------------------------ */
static void forget_photo(walk *w)
{
    kiln_picture_release(&w->photo);
    free(w->mask);
    w->mask = NULL;
}

static kiln_status begin_image(void *context, const char *camera, uint32_t width, uint32_t height,
                               bool *wanted, kiln_error *err)
{
    walk *w = context;
    (void)err;
    forget_photo(w);
    w->damaged = false;
    w->camera = kiln_tracks_camera(w->tracks, camera);
    w->width = width;
    w->height = height;
    *wanted = w->camera && w->camera->photo[0];
    return KILN_OK;
}

uint64_t kiln_knn_photo_ram(const kiln_camera *c)
{
    enum { DECODED = 16, BESIDE = 16 }; /* the floats, and what decodes or turns them */
    const uint64_t photo = (uint64_t)c->photo_width * c->photo_height,
                   mask = (uint64_t)c->mask_width * c->mask_height;
    return (DECODED + BESIDE) * kiln_max_u64(photo, mask) + (mask ? (DECODED + 1) * photo : 0);
}

/* The unit's memory is for a photo and a mask of the sizes that import found. */
static kiln_status check_sizes(const kiln_camera *c, kiln_error *err)
{
    uint32_t width, height;
    KILN_TRY(kiln_picture_size(c->photo, &width, &height, err));
    const bool same = (uint64_t)width * height == (uint64_t)c->photo_width * c->photo_height;
    if (same && c->mask[0]) KILN_TRY(kiln_picture_size(c->mask, &width, &height, err));
    if (same && (!c->mask[0] || (width == c->mask_width && height == c->mask_height)))
        return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%.1000s' has changed its size since it was imported; import again",
                     same ? c->mask : c->photo);
}

/* A photo that was damaged when it was imported is left out. One that changed since is not: the key
 * names the one of before. */
static kiln_status read_photo(walk *w, kiln_error *err)
{
    if (w->photo.data || w->damaged) return KILN_OK;
    const uint64_t needs = kiln_knn_photo_ram(w->camera);
    if (needs > w->capacity)
        return kiln_fail(err, KILN_E_CAP,
                         "the photo '%s' of %u x %u pixels takes %llu MiB to read; give more --ram",
                         w->camera->photo, w->camera->photo_width, w->camera->photo_height,
                         (unsigned long long)(needs >> 20));
    kiln_error why = {0};
    const char *mask = w->camera->mask;
    kiln_status st = check_sizes(w->camera, &why);
    if (st == KILN_OK) st = kiln_picture_read(w->camera->photo, &w->photo, &why);
    KILN_TRY(kiln_tracks_check(w->tracks, w->camera->photo, err));
    if (st == KILN_OK)
        KILN_TRY(
            kiln_picture_turn_to(&w->photo, w->camera->photo_width, w->camera->photo_height, err));
    if (st == KILN_OK && mask[0]) {
        st = kiln_mask_read(mask, w->photo.width, w->photo.height, &w->mask, &why);
        KILN_TRY(kiln_tracks_check(w->tracks, mask, err));
    }
    w->damaged = st == KILN_E_INPUT;
    if (st != KILN_OK && !w->damaged) return kiln_fail(err, st, "%s", why.msg);
    w->n_photos += !w->damaged;
    if (w->damaged && w->n_damaged++ == 0) snprintf(w->damage, sizeof w->damage, "%.255s", why.msg);
    return KILN_OK;
}

/* at: along an axis of n pixels whose first has its centre at 0.5. Weight of the second of two
 * neighbours. */
static double neighbours(double at, uint32_t n, uint32_t *first, uint32_t *second)
{
    const double last = (double)n - 1;
    at = at < 0.5 ? 0 : at - 0.5 > last ? last : at - 0.5;
    *first = (uint32_t)at;
    *second = *first + 1 < n ? *first + 1 : *first;
    return at - (double)*first;
}

/* The pixel that a keypoint lies in: neighbours that the mask leaves out may still tint it. */
static bool left_out(const walk *w, double x, double y)
{
    if (!w->mask) return false;
    const uint32_t column = x < (double)w->photo.width ? (uint32_t)x : w->photo.width - 1;
    const uint32_t row = y < (double)w->photo.height ? (uint32_t)y : w->photo.height - 1;
    return w->mask[(uint64_t)row * w->photo.width + column] == 0;
}

static void add_sample(const kiln_picture *p, double x, double y, colourless *to)
{
    uint32_t x0, x1, y0, y1;
    const double u = neighbours(x, p->width, &x0, &x1), v = neighbours(y, p->height, &y0, &y1);
    const float *top = p->data + (uint64_t)y0 * p->width * p->channels,
                *bottom = p->data + (uint64_t)y1 * p->width * p->channels;
    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t from = p->channels >= 3 ? c : 0; /* grey is all three */
        const uint64_t left = (uint64_t)x0 * p->channels + from,
                       right = (uint64_t)x1 * p->channels + from;
        const double above = (1 - u) * (double)top[left] + u * (double)top[right];
        const double below = (1 - u) * (double)bottom[left] + u * (double)bottom[right];
        const double value = (1 - v) * above + v * below;
        to->sum[c] += value > 0 ? (uint64_t)((value < 1 ? value : 1) * one + 0.5) : 0;
    }
    to->n++;
}

static colourless *find_point(const walk *w, uint64_t id)
{
    for (uint64_t lo = 0, hi = w->n_points; lo < hi;) {
        const uint64_t middle = lo + (hi - lo) / 2;
        if (w->points[middle].id == id) return &w->points[middle];
        if (w->points[middle].id < id)
            lo = middle + 1;
        else
            hi = middle;
    }
    return NULL;
}

static kiln_status add_keypoint(void *context, double x, double y, uint64_t point, kiln_error *err)
{
    walk *w = context;
    colourless *p = point == NO_POINT ? NULL : find_point(w, point);
    if (!p || p->n == UINT32_MAX || !(x >= 0 && x <= w->width && y >= 0 && y <= w->height))
        return KILN_OK;
    KILN_TRY(read_photo(w, err));
    if (w->damaged) return KILN_OK;
    x *= (double)w->photo.width / w->width;
    y *= (double)w->photo.height / w->height;
    if (!left_out(w, x, y)) add_sample(&w->photo, x, y, p);
    return KILN_OK;
}

static kiln_status follow_tracks(walk *w, kiln_error *err)
{
    const kiln_tracks *t = w->tracks;
    const kiln_colmap_visitor visitor = {
        .context = w, .image = begin_image, .keypoint = add_keypoint};
    KILN_TRY(kiln_colmap_visit(t->folder, t->suffix, &visitor, err));
    KILN_TRY(kiln_tracks_check(t, t->cameras_file->path, err));
    return kiln_tracks_check(t, t->images_file->path, err);
}

/* ---- results --------------------------------------------------------------------------------- */
/* The coloured ones of n points of a block whose first row is `first`. */
static kiln_status put_block(kiln_worker *w, const char *block, uint32_t first,
                             const colourless *points, uint64_t n, kiln_error *err)
{
    char name[96];
    kiln_status st = KILN_OK;
    uint32_t *rows = NULL;
    float *rgb = NULL;
    uint64_t k = 0, coloured = 0;
    for (uint64_t i = 0; i < n; i++) coloured += points[i].n > 0;
    if (coloured == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC(&rows, coloured, "rows of a block", err));
    KILN_GO(KILN_ALLOC(&rgb, 3 * coloured, "colours of a block", err));
    for (uint64_t i = 0; i < n; i++) {
        if (points[i].n == 0) continue;
        rows[k] = points[i].row - first;
        for (int c = 0; c < 3; c++)
            rgb[(uint64_t)c * coloured + k] = (float)((double)points[i].sum[c] / one / points[i].n);
        k++;
    }
    snprintf(name, sizeof name, KILN_KNN_COLOURED_ROWS, block);
    KILN_GO(kiln_worker_put(w, name, rows, coloured * sizeof *rows, sizeof *rows, err));
    snprintf(name, sizeof name, KILN_KNN_COLOURED_RGB, block);
    KILN_GO(kiln_worker_put(w, name, rgb, 3 * coloured * sizeof *rgb, sizeof *rgb, err));
done:
    free(rgb);
    free(rows);
    return st;
}

static kiln_status put_blocks(kiln_worker *w, const kiln_layer *l, const colourless *points,
                              uint64_t n, kiln_error *err)
{
    uint64_t first = 0, begin = 0;
    for (uint32_t b = 0; b < l->n_chunks; b++) {
        uint64_t end = begin;
        while (end < n && points[end].row < first + l->chunks[b].count) end++;
        KILN_TRY(
            put_block(w, l->chunks[b].name, (uint32_t)first, points + begin, end - begin, err));
        begin = end;
        first += l->chunks[b].count;
    }
    return KILN_OK;
}

static kiln_status put_colour_counters(kiln_worker *w, const walk *from, kiln_error *err)
{
    uint64_t coloured = 0;
    for (uint64_t i = 0; i < from->n_points; i++) coloured += from->points[i].n > 0;
    json_t *c = json_pack("{s:I, s:I, s:I}", "points", (json_int_t)from->n_points, "coloured",
                          (json_int_t)coloured, "photos", (json_int_t)from->n_photos);
    if (!c || (from->n_damaged &&
               (json_object_set_new(c, "damaged", json_integer((json_int_t)from->n_damaged)) ||
                json_object_set_new(c, "damage", kiln_json_string(from->damage))))) {
        json_decref(c);
        return kiln_fail(err, KILN_E_NOMEM, "cannot write the counters of the colours");
    }
    kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

/* ---- the unit -------------------------------------------------------------------------------- */
static kiln_status colour(kiln_worker *w, kiln_manifest *m, const kiln_layer *l,
                          const kiln_tracks *t, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer points = {0};
    const uint64_t sums = l->count * KILN_KNN_SUM_RAM, may = kiln_worker_ram(w);
    walk k = {.tracks = t, .capacity = may > sums ? may - sums : 0};
    uint64_t first = 0;
    for (uint32_t b = 0; b < l->n_chunks; b++) {
        KILN_GO(gather_chunk(m, &l->chunks[b], (uint32_t)first, &points, err));
        first += l->chunks[b].count;
    }
    k.points = (colourless *)(void *)points.data;
    k.n_points = points.size / sizeof *k.points;
    if (k.n_points && t->images_file) {
        qsort(k.points, k.n_points, sizeof *k.points, colourless_by_id);
        KILN_GO(follow_tracks(&k, err));
        qsort(k.points, k.n_points, sizeof *k.points, by_row);
    }
    KILN_GO(put_blocks(w, l, k.points, k.n_points, err));
    KILN_GO(put_colour_counters(w, &k, err));
done:
    forget_photo(&k);
    kiln_buffer_release(&points);
    return st;
}

kiln_status kiln_knn_colours(kiln_worker *w, const kiln_layer *l, kiln_error *err)
{
    kiln_scene *scene = NULL;
    kiln_tracks t = {0};
    kiln_manifest *m;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&scene, 1, "the scene", err));
    KILN_GO(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_scene_get(m, scene, err));
    KILN_GO(kiln_tracks_get(m, scene, &t, err));
    KILN_GO(colour(w, m, l, &t, err));
done:
    kiln_tracks_release(&t);
    free(scene);
    return st;
}
