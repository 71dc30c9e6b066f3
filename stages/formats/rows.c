/* rows -- see rows.h. Planes are read one after the other, so that no more than one of them is in
 * work beside what is kept. */
#include "stages/formats/rows.h"

#include "base/harmonics.h"
#include "base/memory.h"
#include "base/minmax.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    unsigned bit;
    uint32_t components; /* 0: of spherical harmonics */
    kiln_type type;
    size_t where;  /* in kiln_export_rows */
    bool optional; /* chunks of levels alone have it */
} known_plane;

#define AT(field) offsetof(kiln_export_rows, field)
static const known_plane known[] = {
    {"means", KILN_ROWS_MEANS, 3, KILN_TYPE_F32, AT(means), false},
    {"log_scales", KILN_ROWS_LOG_SCALES, 3, KILN_TYPE_F32, AT(log_scales), false},
    {"quats", KILN_ROWS_QUATS, 4, KILN_TYPE_F32, AT(quats), false},
    {"opacity_logits", KILN_ROWS_OPACITY, 1, KILN_TYPE_F32, AT(opacity_logits), false},
    {"sh0", KILN_ROWS_SH0, 3, KILN_TYPE_F32, AT(sh0), false},
    {"shN", KILN_ROWS_SHN, 0, KILN_TYPE_F32, AT(shN), false},
    {"source_row", KILN_ROWS_SOURCE_ROW, 1, KILN_TYPE_U32, AT(source_row), false},
    {"rgb", KILN_ROWS_RGB, 3, KILN_TYPE_F32, AT(rgb), false},
    {"source_last", KILN_ROWS_ANCESTRY, 1, KILN_TYPE_U32, AT(source_last), true},
    {"source_count", KILN_ROWS_ANCESTRY, 1, KILN_TYPE_U32, AT(source_count), true},
    {"weights", KILN_ROWS_WEIGHTS, 1, KILN_TYPE_F32, AT(weights), true},
};
enum { N_KNOWN = sizeof known / sizeof *known };
_Static_assert(N_KNOWN == KILN_KEPT_ORDER - KILN_KEPT_PLANES,
               "a worker keeps an array for each plane");

static void **array_of(kiln_export_rows *rows, const known_plane *k)
{
    return (void **)(void *)((char *)rows + k->where);
}

/* As they are written. */
static uint32_t components_of(const kiln_export *e, const known_plane *k)
{
    return k->components ? k->components : kiln_sh_components(e->sh_degree);
}

static const known_plane *find_known(const char *name)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (strcmp(known[i].name, name) == 0) return &known[i];
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Where the planes of a chunk are. */
typedef struct {
    kiln_manifest *m; /* NULL: of the worker's own planes, or in the file of what was made */
    kiln_export_worker *x;
    const kiln_chunk *made; /* of kiln_export.made; NULL: it is none of them */
} plane_home;

static bool is_made(const kiln_export *e, const kiln_chunk *c)
{
    return e->made.n && c >= e->made.chunks && c < e->made.chunks + e->made.n;
}

static kiln_status open_made(kiln_export_worker *x, kiln_error *err)
{
    if (x->made < 0) x->made = open(x->e->made_path, O_RDONLY | O_CLOEXEC);
    return x->made >= 0 ? KILN_OK
                        : kiln_fail(err, KILN_E_IO, "cannot open the merged rows in scratch: %s",
                                    strerror(errno));
}

static kiln_status open_bake(kiln_export_worker *x, const kiln_export_chunk *c, plane_home *out,
                             kiln_error *err)
{
    const uint32_t bake = c->bake;
    *out = (plane_home){.x = x};
    if (is_made(x->e, c->chunk)) {
        out->made = c->chunk;
        return open_made(x, err);
    }
    if (x->planes) return KILN_OK;
    if (bake == 0) return kiln_worker_manifest(x->w, &out->m, err);
    if (!x->others[bake])
        KILN_TRY(kiln_manifest_open(x->e->bakes[bake].path, KILN_OPEN_READ, "export", true,
                                    &x->others[bake], err));
    out->m = x->others[bake];
    return KILN_OK;
}

static kiln_status read_made_plane(const plane_home *h, const char *name, void *dst, size_t bytes,
                                   kiln_error *err)
{
    const kiln_made_chunks *made = &h->x->e->made;
    uint64_t at = made->at[h->made - made->chunks];
    for (uint32_t i = 0; i < h->made->n_planes && strcmp(h->made->planes[i].name, name) != 0; i++)
        at += h->made->planes[i].data.raw_bytes;
    return kiln_file_read_at(h->x->made, "scratch", at, dst, bytes, err);
}

static kiln_status read_plane_of(const plane_home *h, const kiln_chunk *chunk, const char *name,
                                 void *dst, size_t bytes, kiln_error *err)
{
    if (h->m) return kiln_plane_read(h->m, chunk, name, dst, bytes, err);
    if (h->made) return read_made_plane(h, name, dst, bytes, err);
    return h->x->planes->plane(h->x->planes_own, chunk, name, dst, bytes, err);
}

static kiln_status check_plane(const kiln_chunk *chunk, const char *name, uint64_t components,
                               kiln_type type, kiln_error *err)
{
    const kiln_plane *plane = kiln_chunk_plane(chunk, name);
    if (!plane)
        return kiln_fail(err, KILN_E_INPUT,
                         "chunk '%s' has no plane '%s', which others of its layer have",
                         chunk->name, name);
    if (plane->components != components || plane->type != type)
        return kiln_fail(err, KILN_E_INPUT,
                         "the plane '%s' of chunk '%s' has another shape than it must have", name,
                         chunk->name);
    return KILN_OK;
}

/* Into an array of the caller's own. */
static kiln_status read_own_plane(const plane_home *h, const kiln_chunk *chunk, const char *name,
                                  uint64_t components, kiln_type type, void **out, kiln_error *err)
{
    const uint64_t bytes = chunk->count * components * kiln_type_size(type);
    KILN_TRY(check_plane(chunk, name, components, type, err));
    KILN_TRY(kiln_alloc_unset(out, bytes, 1, "planes of a chunk", err));
    return read_plane_of(h, chunk, name, *out, bytes, err);
}

/* Into the kept array. The layer's own degree may be above or, with several bakes, below the one
 * that is written. Coefficients of higher degrees follow those of lower ones, so they are cut off
 * the end, or 0. */
static kiln_status read_known(kiln_export_worker *x, const plane_home *h, const known_plane *k,
                              kiln_export_rows *rows, kiln_error *err)
{
    const kiln_chunk *chunk = rows->chunk->chunk;
    const uint32_t degree = x->e->bakes[rows->chunk->bake].layer->sh_degree;
    const uint32_t components = k->components ? k->components : kiln_sh_components(degree);
    const uint32_t wanted = components_of(x->e, k);
    const uint64_t row = chunk->count * kiln_type_size(k->type), bytes = components * row;
    void **array = array_of(rows, k);
    if (wanted == 0 || (k->optional && !kiln_chunk_plane(chunk, k->name))) return KILN_OK;
    if (components) KILN_TRY(check_plane(chunk, k->name, components, k->type, err));
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_PLANES + (unsigned)(k - known),
                              wanted > components ? wanted * row : bytes, "planes of a chunk",
                              array, err));
    if (components) KILN_TRY(read_plane_of(h, chunk, k->name, *array, bytes, err));
    if (wanted > components) memset((char *)*array + bytes, 0, wanted * row - bytes);
    return KILN_OK;
}

static kiln_status read_extras(const plane_home *h, kiln_export_rows *rows, kiln_error *err)
{
    const kiln_chunk *chunk = rows->chunk->chunk;
    KILN_TRY(KILN_ALLOC(&rows->extras, chunk->n_planes, "planes of a chunk", err));
    for (uint32_t i = 0; i < chunk->n_planes; i++) {
        const kiln_plane *p = &chunk->planes[i];
        if (find_known(p->name)) continue;
        kiln_export_plane *out = &rows->extras[rows->n_extras++];
        (void)snprintf(out->name, sizeof out->name, "%s", p->name);
        out->type = p->type;
        out->components = p->components;
        KILN_TRY(read_own_plane(h, chunk, p->name, p->components, p->type, &out->data, err));
    }
    return KILN_OK;
}

/* Ranges of positions, and with them the codes of several formats, come from the boxes, which no
 * digest covers. */
static kiln_status check_box(const kiln_export_rows *rows, kiln_error *err)
{
    const kiln_chunk *chunk = rows->chunk->chunk;
    for (uint64_t axis = 0; rows->means && chunk->count && axis < 3; axis++) {
        const float *v = rows->means + axis * chunk->count;
        float low = v[0], high = v[0];
        for (uint64_t i = 1; i < chunk->count; i++) {
            low = v[i] < low ? v[i] : low;
            high = v[i] > high ? v[i] : high;
        }
        if (low == chunk->box_min[axis] && high == chunk->box_max[axis]) continue;
        return kiln_fail(err, KILN_E_INPUT,
                         "the box of chunk '%s' says %g..%g along %c, its means span %g..%g",
                         chunk->name, (double)chunk->box_min[axis], (double)chunk->box_max[axis],
                         "xyz"[axis], (double)low, (double)high);
    }
    return KILN_OK;
}

/* ---- selection ------------------------------------------------------------------------------- */

/* The planes of the filters: those that were read, else copies for the time of this. */
typedef struct {
    kiln_filters filters;
    const void *planes[KILN_FILTERS_MAX];
    void *own[KILN_FILTERS_MAX];
} look;

static kiln_status read_filtered(const plane_home *h, const kiln_export_rows *rows, look *l,
                                 kiln_error *err)
{
    const kiln_chunk *chunk = rows->chunk->chunk;
    for (uint32_t k = 0; k < l->filters.n_planes; k++) {
        const char *name = l->filters.planes[k].name;
        const kiln_plane *p = kiln_chunk_plane(chunk, name);
        /* that one is cut */
        l->planes[k] = strcmp(name, "shN") ? kiln_export_rows_plane(rows, name) : NULL;
        if (l->planes[k] || !p) continue;
        KILN_TRY(read_own_plane(h, chunk, name, p->components, p->type, &l->own[k], err));
        l->planes[k] = l->own[k];
    }
    return KILN_OK;
}

static void compact_export_rows(const kiln_export *e, kiln_export_rows *rows, uint64_t count,
                                const uint8_t *keep, uint64_t kept)
{
    for (size_t i = 0; i < N_KNOWN; i++) {
        void *array = *array_of(rows, &known[i]);
        if (array)
            kiln_filters_compact(array, known[i].type, components_of(e, &known[i]), count, keep,
                                 kept);
    }
    for (uint32_t i = 0; i < rows->n_extras; i++)
        kiln_filters_compact(rows->extras[i].data, rows->extras[i].type, rows->extras[i].components,
                             count, keep, kept);
    rows->n = kept;
}

static kiln_status select_rows(const kiln_export *e, const plane_home *h, kiln_export_rows *rows,
                               kiln_error *err)
{
    const kiln_export_bake *bake = &e->bakes[rows->chunk->bake];
    const kiln_chunk *chunk = rows->chunk->chunk;
    uint8_t *keep = NULL;
    look *l = NULL;
    kiln_status st = KILN_OK;
    rows->n = chunk->count;
    /* what levels stand for was filtered */
    if (e->filters.n == 0 || rows->chunk->level > 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&l, 1, "filters", err));
    l->filters = e->filters;
    KILN_GO(kiln_filters_bind(&l->filters, chunk, bake->layer->sh_degree, err));
    if (kiln_filters_chunk(&l->filters, chunk, bake->scene.origin) == KILN_CHUNK_ALL) goto done;
    KILN_GO(KILN_ALLOC_UNSET(&keep, chunk->count, "the choice of rows", err));
    KILN_GO(read_filtered(h, rows, l, err));
    compact_export_rows(
        e, rows, chunk->count, keep,
        kiln_filters_keep(&l->filters, chunk->count, bake->scene.origin, l->planes, keep));
done:
    for (uint32_t k = 0; k < KILN_FILTERS_MAX; k++) free(l->own[k]);
    free(l);
    free(keep);
    return st;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static float *normal_of(const kiln_export_rows *rows, const char *name)
{
    for (uint32_t i = 0; i < rows->n_extras; i++)
        if (strcmp(rows->extras[i].name, name) == 0 && rows->extras[i].type == KILN_TYPE_F32 &&
            rows->extras[i].components == 1)
            return rows->extras[i].data;
    return NULL;
}

/* Also bakes with another origin than the one that is written. */
static kiln_status edit_rows(const kiln_export *e, kiln_export_rows *rows, kiln_error *err)
{
    const double *from = e->bakes[rows->chunk->bake].scene.origin;
    const kiln_edit_rows what = {.n = rows->n,
                                 .means = rows->means,
                                 .log_scales = rows->log_scales,
                                 .quats = rows->quats,
                                 .shN = rows->shN,
                                 .normals = {normal_of(rows, "extra/nx"),
                                             normal_of(rows, "extra/ny"),
                                             normal_of(rows, "extra/nz")},
                                 .sh_degree = e->sh_degree};
    double *work = NULL;
    uint64_t bad = rows->n;
    if (!e->edits.moves && memcmp(from, e->base, sizeof e->base) == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&work, 3 * rows->n, "moved coordinates", err));
    kiln_edits_rows(&e->edits, from, e->base, &what, work, &bad);
    free(work);
    if (bad == rows->n) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "chunk '%s': what --translate, --rotate and --scale make of a Gaussian is beyond float32",
        rows->chunk->chunk->name);
}

/* What a plane is read by comes and goes with each plane. Its pages stay if a small part of the
 * worker's memory has room for them; kiln_export_rows_ram counts them. */
static void keep_read_pages(const kiln_export_worker *x, uint64_t index, unsigned planes)
{
    enum { PART = 16 };
    const kiln_chunk *chunk = x->e->chunks[index].chunk;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < chunk->n_planes; i++)
        if (planes & kiln_export_plane_bit(chunk->planes[i].name))
            largest = kiln_max_u64(largest, chunk->planes[i].data.raw_bytes);
    const uint64_t taken = kiln_read_ram(largest);
    if (taken <= kiln_worker_ram(x->w) / PART) kiln_memory_keep(taken);
}

kiln_status kiln_export_rows_read(kiln_export_worker *x, uint64_t index, unsigned planes,
                                  kiln_export_rows *rows, kiln_error *err)
{
    plane_home h;
    kiln_status st = KILN_OK;
    *rows = (kiln_export_rows){.chunk = &x->e->chunks[index]};
    rows->first = rows->chunk->first;
    KILN_TRY(open_bake(x, rows->chunk, &h, err));
    keep_read_pages(x, index, planes);
    for (size_t i = 0; i < N_KNOWN && st == KILN_OK; i++)
        if (planes & known[i].bit) st = read_known(x, &h, &known[i], rows, err);
    if (st == KILN_OK) st = check_box(rows, err);
    if (st == KILN_OK && planes & KILN_ROWS_EXTRAS) st = read_extras(&h, rows, err);
    if (st == KILN_OK) st = select_rows(x->e, &h, rows, err);
    if (st == KILN_OK) st = edit_rows(x->e, rows, err);
    if (st != KILN_OK) kiln_export_rows_release(rows);
    return st;
}

unsigned kiln_export_plane_bit(const char *name)
{
    const known_plane *k = find_known(name);
    return k ? k->bit : (unsigned)KILN_ROWS_EXTRAS;
}

const void *kiln_export_rows_plane(const kiln_export_rows *rows, const char *name)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (strcmp(known[i].name, name) == 0)
            return *(void *const *)((const void *)((const char *)rows + known[i].where));
    for (uint32_t i = 0; i < rows->n_extras; i++)
        if (strcmp(rows->extras[i].name, name) == 0) return rows->extras[i].data;
    return NULL;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* always_inline: compiled anew for each size. */
static inline __attribute__((always_inline)) void order_elements(unsigned char *data, size_t size,
                                                                 const uint32_t *order, uint64_t n,
                                                                 unsigned char *work)
{
    enum { LINE = 64 };
    const uint64_t step = LINE / size;
    for (uint64_t first = 0; first < n; first += step) {
        __builtin_prefetch(data + (n + first) * size);
        const uint64_t end = kiln_min_u64(first + step, n);
        for (uint64_t i = first; i < end; i++)
            memcpy(work + i * size, data + order[i] * size, size);
    }
    memcpy(data, work, n * size);
}

/* Component after component, so that what is read at random stays in a core's cache. */
static void order_components(unsigned char *data, kiln_type type, uint64_t components,
                             const uint32_t *order, uint64_t n, unsigned char *work)
{
    const size_t size = kiln_type_size(type);
    for (uint64_t c = 0; c < components; c++, data += n * size) {
        if (size == 4)
            order_elements(data, 4, order, n, work);
        else
            order_elements(data, size, order, n, work);
    }
}

void kiln_export_rows_order(const kiln_export *e, kiln_export_rows *rows, const uint32_t *order,
                            void *work)
{
    for (size_t i = 0; i < N_KNOWN; i++) {
        void *array = *array_of(rows, &known[i]);
        if (array)
            order_components(array, known[i].type, components_of(e, &known[i]), order, rows->n,
                             work);
    }
    for (uint32_t i = 0; i < rows->n_extras; i++)
        order_components(rows->extras[i].data, rows->extras[i].type, rows->extras[i].components,
                         order, rows->n, work);
}

/* The known planes are the worker's. */
void kiln_export_rows_release(kiln_export_rows *rows)
{
    for (uint32_t i = 0; i < rows->n_extras; i++) free(rows->extras[i].data);
    free(rows->extras);
    *rows = (kiln_export_rows){0};
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* At most: the planes of the filters, none of which may be there already. */
static uint64_t select_ram(const kiln_export *e, uint64_t index, uint64_t *largest)
{
    const kiln_chunk *chunk = e->chunks[index].chunk;
    kiln_filters f = e->filters;
    if (f.n == 0 || e->chunks[index].level > 0) return 0;
    uint64_t all = chunk->count + sizeof(look);
    if (kiln_filters_bind(&f, chunk, e->bakes[e->chunks[index].bake].layer->sh_degree, NULL) !=
        KILN_OK)
        f.n_planes = 0; /* reading says what is wrong */
    for (uint32_t k = 0; k < f.n_planes; k++) {
        const kiln_plane *p = kiln_chunk_plane(chunk, f.planes[k].name);
        if (!p) continue;
        all += p->data.raw_bytes;
        if (p->data.raw_bytes > *largest) *largest = p->data.raw_bytes;
    }
    return all;
}

uint64_t kiln_export_rows_ram(const kiln_export *e, uint64_t index, unsigned planes)
{
    const kiln_chunk *chunk = e->chunks[index].chunk;
    uint64_t all = 0, largest = 0;
    for (uint32_t i = 0; i < chunk->n_planes; i++) {
        const kiln_plane *p = &chunk->planes[i];
        const known_plane *k = find_known(p->name);
        if (!(planes & (k ? k->bit : (unsigned)KILN_ROWS_EXTRAS))) continue;
        all += p->data.raw_bytes;
        if (p->data.raw_bytes > largest) largest = p->data.raw_bytes;
    }
    if (planes & KILN_ROWS_SHN && e->n_bakes > 1)
        all += chunk->count * kiln_sh_components(e->sh_degree) * sizeof(float);
    if (e->edits.moves || e->n_bakes > 1) all += chunk->count * 3 * sizeof(double);
    all += select_ram(e, index, &largest);
    return all + kiln_read_ram(largest);
}
