/* check_rows -- reads every row by the functions that stages read it by, which tell what is wrong
 * with it. Layers and tile tables with their rows are read by check_layers.c and check_tables.c. */
#include "schema/check.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef kiln_status check_fn(kiln_check *c, kiln_error *err);
typedef kiln_status named_fn(kiln_check *c, const char *name, kiln_error *err);

static kiln_status check_scene(kiln_check *c, kiln_error *err)
{
    kiln_scene *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "the scene", err));
    const kiln_status st = kiln_scene_get(c->m, s, err);
    free(s);
    return st == KILN_E_STALE ? KILN_OK : st; /* a rule of check.c says whether there must be one */
}

static kiln_status check_sources(kiln_check *c, kiln_error *err)
{
    kiln_source_file *files;
    uint32_t n;
    KILN_TRY(kiln_sources_get(c->m, &files, &n, err));
    free(files);
    return KILN_OK;
}

/* Reading is the check. One row is in memory at a time: there may be many. */
static kiln_status look_at_camera(void *context, const kiln_camera *camera, kiln_error *err)
{
    (void)context, (void)camera, (void)err;
    return KILN_OK;
}

static kiln_status look_at_image(void *context, const kiln_image *image, kiln_error *err)
{
    (void)context, (void)image, (void)err;
    return KILN_OK;
}

static kiln_status check_mask(kiln_query *q, kiln_error *err)
{
    char name[KILN_CAMERA_NAME];
    kiln_column_text(q, name, sizeof name);
    (void)kiln_column_u32(q);
    (void)kiln_column_u32(q);
    const bool there = kiln_column_bool(q);
    KILN_TRY(kiln_query_check(q, err));
    return there ? KILN_OK
                 : kiln_fail(err, KILN_E_INPUT,
                             "a mask names camera '%.300s', which does not exist", name);
}

/* Cameras are read with theirs: one of no camera is read with none, and a column of theirs is none
 * of the table's. */
static kiln_status check_masks(kiln_check *c, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_has_table(c->m, "photo_mask", &row, err));
    if (!row) return KILN_OK;
    KILN_TRY(kiln_query_open(
        c->m, &q,
        "SELECT camera, width, height, camera IN (SELECT name FROM camera) FROM photo_mask", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(c->m, &q, check_mask(&q, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status check_cameras(kiln_check *c, kiln_error *err)
{
    KILN_TRY(kiln_cameras_each(c->m, look_at_camera, NULL, err));
    return check_masks(c, err);
}

static kiln_status check_images(kiln_check *c, kiln_error *err)
{
    return kiln_images_each(c->m, look_at_image, NULL, err);
}

/* ---- rows of stages -------------------------------------------------------------------------- */
static kiln_status check_stage(kiln_check *c, const char *name, kiln_error *err)
{
    kiln_stage_row row;
    return kiln_stage_get(c->m, name, &row, err);
}

static kiln_status check_parameters(kiln_check *c, const char *stage, kiln_error *err)
{
    kiln_parameter *p;
    uint32_t n;
    KILN_TRY(kiln_parameters_get(c->m, stage, &p, &n, err));
    kiln_parameters_free(p, n);
    return KILN_OK;
}

static kiln_status check_quarantine(kiln_check *c, const char *stage, kiln_error *err)
{
    kiln_quarantine_row *rows;
    uint32_t n;
    KILN_TRY(kiln_quarantine_get(c->m, stage, &rows, &n, err));
    free(rows);
    return KILN_OK;
}

static kiln_status check_run(kiln_check *c, const char *stage, kiln_error *err)
{
    kiln_run_row run;
    bool found;
    KILN_TRY(kiln_run_row_last(c->m, stage, &found, &run, err));
    kiln_run_row_release(&run);
    return KILN_OK;
}

/* Names first: the query must be closed before others are asked. */
static kiln_status list_names(kiln_check *c, const char *sql, kiln_buffer *names, kiln_error *err)
{
    kiln_query q;
    bool row;
    char name[64];
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(c->m, &q, sql, err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_column_text(&q, name, sizeof name);
        const kiln_status read = kiln_query_check(&q, err);
        KILN_GO(kiln_row_take(c->m, &q, read, err));
        if (read == KILN_OK) KILN_GO(kiln_buffer_put(names, name, sizeof name, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status check_named(kiln_check *c, const char *sql, named_fn *fn, kiln_error *err)
{
    kiln_buffer names = {0};
    kiln_status st = list_names(c, sql, &names, err);
    for (size_t at = 0; at < names.size && st == KILN_OK; at += 64)
        st = kiln_check_take(c, fn(c, (const char *)names.data + at, err), err);
    kiln_buffer_release(&names);
    return st;
}

static kiln_status check_stages(kiln_check *c, kiln_error *err)
{
    KILN_TRY(kiln_check_take(c, check_named(c, "SELECT DISTINCT name FROM stage", check_stage, err),
                             err));
    KILN_TRY(kiln_check_take(
        c, check_named(c, "SELECT DISTINCT stage FROM parameter", check_parameters, err), err));
    KILN_TRY(kiln_check_take(
        c, check_named(c, "SELECT DISTINCT stage FROM quarantine", check_quarantine, err), err));
    return check_named(c, "SELECT DISTINCT stage FROM run", check_run, err);
}

/* ---- units ----------------------------------------------------------------------------------- */
static kiln_status list_keys(kiln_check *c, kiln_buffer *keys, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(c->m, &q, "SELECT key FROM unit", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        const kiln_hash key = kiln_column_hash(&q);
        const kiln_status read = kiln_query_check(&q, err);
        KILN_GO(kiln_row_take(c->m, &q, read, err));
        if (read == KILN_OK) KILN_GO(kiln_buffer_put(keys, key.bytes, sizeof key.bytes, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status check_unit(kiln_check *c, kiln_hash key, kiln_error *err)
{
    kiln_unit_result r;
    bool found;
    KILN_TRY(kiln_unit_find(c->m, key, &found, &r, err));
    kiln_unit_result_release(&r);
    return KILN_OK;
}

static kiln_status check_units(kiln_check *c, kiln_error *err)
{
    kiln_buffer keys = {0};
    kiln_hash key;
    kiln_status st = list_keys(c, &keys, err);
    for (size_t at = 0; at < keys.size && st == KILN_OK; at += sizeof key) {
        memcpy(key.bytes, keys.data + at, sizeof key.bytes);
        st = kiln_check_take(c, check_unit(c, key, err), err);
    }
    kiln_buffer_release(&keys);
    return st;
}

kiln_status kiln_check_rows(kiln_check *c, kiln_error *err)
{
    static check_fn *const parts[] = {check_scene,  check_sources, check_cameras,
                                      check_images, check_stages,  check_units};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        KILN_TRY(kiln_check_take(c, parts[i](c, err), err));
    return KILN_OK;
}
