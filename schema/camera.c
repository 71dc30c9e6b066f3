/* camera -- the list of cameras with their photos and masks. Written whole, read whole, in bytewise
 * order of names. */
#include "base/memory.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- put ------------------------------------------------------------------------------------- */
/* Parameters as little-endian float64: exact, and one column for every model. x86-64 is
 * little-endian. */
static kiln_status insert_camera(kiln_manifest *m, const kiln_camera *c, kiln_error *err)
{
    kiln_query q;
    if (c->n_params > KILN_CAMERA_PARAMS)
        return kiln_fail(err, KILN_E_BUG,
                         "camera '%s' has %" PRIu32 " parameters; at most %d are possible", c->name,
                         c->n_params, KILN_CAMERA_PARAMS);
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT INTO camera (name, r00, r01, r02, r10, r11, r12, r20, r21, r22, t0, t1, t2, width, "
        "height, fx, fy,"
        " cx, cy, model, params, distorted, synthetic, split)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err));
    kiln_bind_text(&q, c->name);
    for (int i = 0; i < 9; i++) kiln_bind_f64(&q, c->r[i]);
    for (int i = 0; i < 3; i++) kiln_bind_f64(&q, c->t[i]);
    kiln_bind_i64(&q, c->width);
    kiln_bind_i64(&q, c->height);
    kiln_bind_f64(&q, c->fx);
    kiln_bind_f64(&q, c->fy);
    kiln_bind_f64(&q, c->cx);
    kiln_bind_f64(&q, c->cy);
    kiln_bind_text(&q, c->model);
    kiln_bind_bytes(&q, c->params, c->n_params * sizeof *c->params);
    kiln_bind_i64(&q, c->distorted);
    kiln_bind_i64(&q, c->synthetic);
    kiln_bind_text(&q, c->split);
    return kiln_query_run(&q, err);
}

static kiln_status insert_photo(kiln_manifest *m, const kiln_camera *c, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO photo (camera, path, width, height) VALUES (?, ?, ?, ?)", err));
    kiln_bind_text(&q, c->name);
    kiln_bind_text(&q, c->photo);
    kiln_bind_i64(&q, c->photo_width);
    kiln_bind_i64(&q, c->photo_height);
    return kiln_query_run(&q, err);
}

static kiln_status insert_mask(kiln_manifest *m, const kiln_camera *c, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO photo_mask (camera, path, width, height) VALUES (?, ?, ?, ?)", err));
    kiln_bind_text(&q, c->name);
    kiln_bind_text(&q, c->mask);
    kiln_bind_i64(&q, c->mask_width);
    kiln_bind_i64(&q, c->mask_height);
    return kiln_query_run(&q, err);
}

kiln_status kiln_cameras_put(kiln_manifest *m, const kiln_camera *cameras, uint32_t n,
                             kiln_error *err)
{
    bool own;
    kiln_status st = KILN_OK;
    /* what could not be read again */
    for (uint32_t i = 0; i < n; i++) KILN_TRY(kiln_row_check_camera(&cameras[i], err));
    KILN_TRY(kiln_group_begin(m, &own, err));
    KILN_GO(kiln_sql(m, "DELETE FROM camera", err)); /* photos and masks go with them */
    for (uint32_t i = 0; i < n; i++) {
        KILN_GO(insert_camera(m, &cameras[i], err));
        if (cameras[i].photo[0]) KILN_GO(insert_photo(m, &cameras[i], err));
        if (cameras[i].mask[0]) KILN_GO(insert_mask(m, &cameras[i], err));
    }
done:
    return kiln_group_end(m, own, st, err);
}

/* ---- get ------------------------------------------------------------------------------------- */
static kiln_status read_params(kiln_query *q, kiln_camera *c, kiln_error *err)
{
    size_t bytes;
    const void *params = kiln_column_bytes(q, &bytes);
    if (bytes > sizeof c->params || bytes % sizeof *c->params != 0)
        return kiln_fail(err, KILN_E_IO, "camera '%.300s' has %zu bytes of parameters", c->name,
                         bytes);
    if (bytes) memcpy(c->params, params, bytes);
    c->n_params = (uint32_t)(bytes / sizeof *c->params);
    return KILN_OK;
}

enum { PATH_BYTES = 4096 };

static kiln_status read_camera(kiln_query *q, kiln_texts *texts, kiln_camera *c, kiln_error *err)
{
    c->photo = c->mask = ""; /* a row that cannot be read further stays as it is */
    c->name = kiln_column_text_kept(q, KILN_CAMERA_NAME, texts);
    for (int i = 0; i < 9; i++) c->r[i] = kiln_column_f64(q);
    for (int i = 0; i < 3; i++) c->t[i] = kiln_column_f64(q);
    c->width = kiln_column_u32(q);
    c->height = kiln_column_u32(q);
    c->fx = kiln_column_f64(q);
    c->fy = kiln_column_f64(q);
    c->cx = kiln_column_f64(q);
    c->cy = kiln_column_f64(q);
    kiln_column_text(q, c->model, sizeof c->model);
    KILN_TRY(read_params(q, c, err));
    c->distorted = kiln_column_bool(q);
    c->synthetic = kiln_column_bool(q);
    kiln_column_text(q, c->split, sizeof c->split);
    c->photo = kiln_column_text_kept(q, PATH_BYTES, texts);
    c->photo_width = kiln_column_u32(q);
    c->photo_height = kiln_column_u32(q);
    return kiln_query_check(q, err);
}

/* Rows come in the order of their names: one that does not follow is there twice, which only a
 * damaged index can give. */
static kiln_status check_row(const kiln_camera *cameras, uint32_t i, kiln_error *err)
{
    KILN_TRY(kiln_row_check_camera(&cameras[i], err));
    if (i == 0 || strcmp(cameras[i - 1].name, cameras[i].name) < 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "camera '%.300s' occurs twice or is out of order",
                     cameras[i].name);
}

static kiln_status read_cameras(kiln_manifest *m, kiln_texts *texts, kiln_camera **cameras,
                                uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT name, r00, r01, r02, r10, r11, r12, r20, r21, r22, t0, t1, "
                             "t2, camera.width, camera.height, fx, fy,"
                             " cx, cy, model, params, distorted, synthetic, split, coalesce(path, "
                             "''), coalesce(photo.width, 0),"
                             " coalesce(photo.height, 0) FROM camera LEFT JOIN photo ON "
                             "photo.camera = camera.name ORDER BY name",
                             err));
    for (;; ++*n) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_reserve((void **)cameras, *n, sizeof **cameras, "cameras", err));
        st = read_camera(&q, texts, &(*cameras)[*n], err);
        if (st == KILN_OK) st = check_row(*cameras, *n, err);
        KILN_GO(kiln_row_take(m, &q, st, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static int cameras_by_name(const void *a, const void *b)
{
    return strcmp(a, ((const kiln_camera *)b)->name);
}

static kiln_status read_mask(kiln_query *q, kiln_texts *texts, kiln_camera *cameras, uint32_t n,
                             kiln_error *err)
{
    char name[KILN_CAMERA_NAME];
    kiln_column_text(q, name, sizeof name);
    /* cameras: NULL if there are none */
    kiln_camera *c = n ? bsearch(name, cameras, n, sizeof *cameras, cameras_by_name) : NULL;
    kiln_camera *const to = c && !c->mask[0] ? c : &(kiln_camera){0};
    to->mask = kiln_column_text_kept(q, PATH_BYTES, texts);
    to->mask_width = kiln_column_u32(q);
    to->mask_height = kiln_column_u32(q);
    KILN_TRY(kiln_query_check(q, err));
    if (to == c) return kiln_row_check_camera(c, err);
    return kiln_fail(err, KILN_E_INPUT,
                     c ? "camera '%.300s' has two masks"
                       : "a mask names camera '%.300s', which does not exist",
                     name);
}

static kiln_status read_masks(kiln_manifest *m, kiln_texts *texts, kiln_camera *cameras, uint32_t n,
                              kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_has_table(m, "photo_mask", &row, err));
    if (!row) return KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, "SELECT camera, path, width, height FROM photo_mask", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, read_mask(&q, texts, cameras, n, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

/* A reader's in one transaction, so that masks are of these cameras. */
static kiln_status read_cameras_and_masks(kiln_manifest *m, kiln_texts *texts, kiln_camera **out,
                                          uint32_t *n, kiln_error *err)
{
    bool own = false;
    if (!m->writer) KILN_TRY(kiln_group_begin(m, &own, err));
    kiln_status st = read_cameras(m, texts, out, n, err);
    if (st == KILN_OK) st = read_masks(m, texts, *out, *n, err);
    return kiln_group_end(m, own, st, err);
}

kiln_status kiln_cameras_get(kiln_manifest *m, kiln_camera **out, uint32_t *n, kiln_error *err)
{
    *out = NULL;
    *n = 0;
    static const size_t fields[] = {offsetof(kiln_camera, name), offsetof(kiln_camera, photo),
                                    offsetof(kiln_camera, mask)};
    kiln_texts texts = {0};
    kiln_status st = read_cameras_and_masks(m, &texts, out, n, err);
    if (st == KILN_OK && *n)
        st = kiln_rows_own_texts((void **)out, *n, sizeof **out, fields, 3, err);
    kiln_texts_release(&texts);
    if (st == KILN_OK && *n == 0) st = KILN_ALLOC(out, 0, "cameras", err); /* never NULL */
    if (st == KILN_OK) return st;
    free(*out);
    *out = NULL;
    *n = 0;
    return st;
}

kiln_status kiln_scene_size_get(kiln_manifest *m, kiln_scene_size *out, kiln_error *err)
{
    kiln_query q;
    bool row;
    *out = (kiln_scene_size){0};
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT (SELECT 1.0 * coalesce(max(count), 0) FROM layer), total(1), "
                             "total(1.0 * width * height)"
                             " FROM camera",
                             err));
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row) {
        out->rows = kiln_column_f64(&q);
        out->cameras = kiln_column_f64(&q);
        out->pixels = kiln_column_f64(&q);
        st = kiln_query_check(&q, err);
    }
    kiln_query_close(&q);
    return st;
}

kiln_hash kiln_camera_hash(const kiln_camera *c)
{
    _Static_assert(sizeof *c == 368, "kiln_camera has another size: add to this hash what a "
                                     "picture depends on, then write the new size");
    /* + 0.0 turns -0 into 0: SQLite does not keep the sign of a zero, and a camera must hash alike
     * before and after */
    kiln_hasher *h = kiln_key_begin("camera", 1);
    for (int i = 0; i < 9; i++) kiln_key_f64(h, "r", c->r[i] + 0.0);
    for (int i = 0; i < 3; i++) kiln_key_f64(h, "t", c->t[i] + 0.0);
    kiln_key_u64(h, "width", c->width);
    kiln_key_u64(h, "height", c->height);
    kiln_key_f64(h, "fx", c->fx + 0.0);
    kiln_key_f64(h, "fy", c->fy + 0.0);
    kiln_key_f64(h, "cx", c->cx + 0.0);
    kiln_key_f64(h, "cy", c->cy + 0.0);
    kiln_key_text(h, "model", c->model);
    for (uint32_t i = 0; i < c->n_params; i++) kiln_key_f64(h, "param", c->params[i] + 0.0);
    return kiln_key_end(h);
}

/* ---- one after the other --------------------------------------------------------------------- */
#define CAMERA_COLUMNS                                                                       \
    "SELECT name, r00, r01, r02, r10, r11, r12, r20, r21, r22, t0, t1, t2, camera.width, "   \
    "camera.height,"                                                                         \
    " fx, fy, cx, cy, model, params, distorted, synthetic, split, coalesce(photo.path, '')," \
    " coalesce(photo.width, 0), coalesce(photo.height, 0)"

/* A manifest without the table of masks has none. */
static kiln_status open_joined(kiln_manifest *m, kiln_query *q, kiln_error *err)
{
    bool has;
    KILN_TRY(kiln_has_table(m, "photo_mask", &has, err));
    if (has)
        return kiln_query_open(
            m, q,
            CAMERA_COLUMNS ", coalesce(photo_mask.path, ''), coalesce(photo_mask.width, 0), "
                           "coalesce(photo_mask.height, 0)"
                           " FROM camera LEFT JOIN photo ON photo.camera = camera.name"
                           " LEFT JOIN photo_mask ON photo_mask.camera = camera.name ORDER BY name",
            err);
    return kiln_query_open(
        m, q,
        CAMERA_COLUMNS
        ", '', 0, 0 FROM camera LEFT JOIN photo ON photo.camera = camera.name ORDER BY name",
        err);
}

static kiln_status read_joined(kiln_query *q, kiln_texts *texts, kiln_camera *c, kiln_error *err)
{
    KILN_TRY(read_camera(q, texts, c, err));
    c->mask = kiln_column_text_kept(q, PATH_BYTES, texts);
    c->mask_width = kiln_column_u32(q);
    c->mask_height = kiln_column_u32(q);
    return kiln_query_check(q, err);
}

/* The row before, of which its name alone is kept, and the one that is read. */
typedef struct {
    kiln_camera two[2];
    char before[KILN_CAMERA_NAME];
} neighbours;

static kiln_status each_camera(kiln_manifest *m, neighbours *k, kiln_camera_fn *each, void *context,
                               kiln_error *err)
{
    kiln_query q;
    kiln_texts texts = {0};
    bool row;
    kiln_status st = KILN_OK;
    kiln_camera *const c = &k->two[1];
    k->two[0].name = k->before;
    KILN_TRY(open_joined(m, &q, err));
    for (uint32_t n = 0;; n++) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        memset(c, 0, sizeof *c);
        kiln_texts_clear(&texts);
        st = read_joined(&q, &texts, c, err);
        if (st == KILN_OK) st = check_row(n ? k->two : c, n ? 1 : 0, err);
        KILN_GO(kiln_row_take(m, &q, st, err));
        KILN_GO(each(context, c, err));
        strcpy(k->before, c->name);
    }
done:
    kiln_texts_release(&texts);
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_cameras_each(kiln_manifest *m, kiln_camera_fn *each, void *context,
                              kiln_error *err)
{
    bool own = false;
    neighbours *k;
    KILN_TRY(KILN_ALLOC(&k, 1, "a camera", err));
    kiln_status st = m->writer ? KILN_OK : kiln_group_begin(m, &own, err);
    if (st == KILN_OK) st = kiln_group_end(m, own, each_camera(m, k, each, context, err), err);
    free(k);
    return st;
}

kiln_status kiln_photos_visit(kiln_manifest *m, kiln_photo_visit_fn *visit, void *context,
                              kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    char camera[KILN_CAMERA_NAME], path[PATH_BYTES];
    KILN_TRY(kiln_query_open(m, &q, "SELECT camera, path FROM photo", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_column_text(&q, camera, sizeof camera);
        kiln_column_text(&q, path, sizeof path);
        KILN_GO(kiln_row_take(m, &q, kiln_query_check(&q, err), err));
        KILN_GO(visit(context, camera, path, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_camera_exists(kiln_manifest *m, const char *name, bool *exists, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "SELECT 1 FROM camera WHERE name = ?", err));
    kiln_bind_text(&q, name);
    const kiln_status st = kiln_query_step(&q, exists, err);
    kiln_query_close(&q);
    return st;
}
