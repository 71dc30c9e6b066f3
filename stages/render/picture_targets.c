/* picture_targets -- see the header. */
#include "stages/render/picture_targets.h"

#include "stages/products/product_guard.h"
#include "stages/products/product_records.h"
#include "stages/render/stored_pictures.h"

#include <stdio.h>
#include <string.h>

static const char stage[] = "render";

/* ---- may they be written? -------------------------------------------------------------------- */
static kiln_status check_job(kiln_product_guard *g, kiln_render_job *j, kiln_error *err)
{
    char full[KILN_PATH_MAX];
    const kiln_render_unit *u = kiln_render_unit_of(j);
    if (!u->picture[0]) return KILN_OK;
    KILN_TRY(kiln_product_guard_check(g, u->picture, &j->picture_seen, err));
    if (u->depth[0]) KILN_TRY(kiln_product_guard_check(g, u->depth, &j->depth_seen, err));
    if (!u->against_full) return KILN_OK;
    kiln_render_full_path(u, full);
    return full[0] ? kiln_product_guard_check(g, full, &j->full_seen, err) : KILN_OK;
}

static bool writes_files(const kiln_render_plan *s)
{
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].due && kiln_render_unit_of(&s->jobs[i])->picture[0]) return true;
    return false;
}

kiln_status kiln_picture_targets_check(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    kiln_product_guard *g;
    kiln_status st = KILN_OK;
    if (!writes_files(s)) return KILN_OK;
    KILN_TRY(kiln_product_guard_open(kiln_run_manifest(r), s->o->overwrite, &g, err));
    for (uint32_t i = 0; i < s->n_jobs && st == KILN_OK; i++)
        if (s->jobs[i].due) st = check_job(g, &s->jobs[i], err);
    kiln_product_guard_close(g);
    return st;
}

kiln_status kiln_picture_targets_check_stream(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    kiln_product_guard *g;
    if (strcmp(s->stream.path, "-") == 0) return KILN_OK;
    KILN_TRY(kiln_product_guard_open(kiln_run_manifest(r), s->o->overwrite, &g, err));
    const kiln_status st = kiln_product_guard_check(g, s->stream.path, &s->stream.seen, err);
    kiln_product_guard_close(g);
    return st;
}

/* ---- the list -------------------------------------------------------------------------------- */
/* As the manifest has it: in the folder of the picture, with the name of the depth's file. */
static bool relative_depth(const kiln_render_made *made, char out[KILN_PATH_MAX])
{
    const char *const name = kiln_path_base(made->unit.depth);
    const int folder = (int)(kiln_path_base(made->relative) - made->relative);
    return *name &&
           snprintf(out, KILN_PATH_MAX, "%.*s%s", folder, made->relative, name) < KILN_PATH_MAX;
}

static kiln_status begin_job(kiln_product_list *list, const kiln_render_job *j, kiln_hash of,
                             kiln_error *err)
{
    char depth[KILN_PATH_MAX];
    const kiln_render_made *made = kiln_render_made_of(j);
    if (!made->relative[0]) return KILN_OK;
    KILN_TRY(kiln_product_begin(list, made->relative, stage, of, &j->picture_seen, err));
    return relative_depth(made, depth)
               ? kiln_product_begin(list, depth, stage, of, &j->depth_seen, err)
               : KILN_OK;
}

kiln_status kiln_picture_targets_begin(kiln_run *r, const kiln_render_plan *s, kiln_error *err)
{
    kiln_product_list list;
    if (kiln_run_is_once(r) || kiln_run_is_frozen(r) || !writes_files(s)) return KILN_OK;
    const kiln_hash of = kiln_pictures_key(r, s);
    kiln_status st = kiln_product_records_get(kiln_run_manifest(r), &list, err);
    for (uint32_t i = 0; i < s->n_jobs && st == KILN_OK; i++)
        if (s->jobs[i].due) st = begin_job(&list, &s->jobs[i], of, err);
    if (st == KILN_OK) st = kiln_product_list_put(kiln_run_manifest(r), &list, err);
    kiln_product_list_release(&list);
    return st;
}

static kiln_status put_picture_file(kiln_product_list *list, const char *relative,
                                    const json_t *described, kiln_hash of, kiln_error *err)
{
    kiln_product *p;
    KILN_TRY(kiln_product_current(list, relative, stage, of, &p, err));
    p->described = kiln_product_describe(p, described);
    return KILN_OK;
}

static kiln_status put_job(kiln_run *r, const kiln_render_job *j, const kiln_unit *u, kiln_hash of,
                           kiln_product_list *list, kiln_error *err)
{
    char depth[KILN_PATH_MAX];
    json_t *counters;
    const kiln_render_made *made = kiln_render_made_of(j);
    if (!made->relative[0]) return KILN_OK;
    KILN_TRY(kiln_unit_counters(r, u, &counters, err));
    kiln_status st =
        put_picture_file(list, made->relative, json_object_get(counters, "picture"), of, err);
    if (st == KILN_OK && relative_depth(made, depth))
        st = put_picture_file(list, depth, json_object_get(counters, "depth"), of, err);
    json_decref(counters);
    return st;
}

kiln_status kiln_picture_targets_put(kiln_run *r, kiln_manifest *m, const kiln_render_plan *s,
                                     kiln_error *err)
{
    kiln_product_list list;
    const kiln_hash of = kiln_pictures_key(r, s);
    kiln_status st = kiln_product_records_get(m, &list, err);
    for (uint32_t i = 0; i < s->n_jobs && st == KILN_OK; i++)
        if (!s->units[i].quarantined) st = put_job(r, &s->jobs[i], &s->units[i], of, &list, err);
    if (st == KILN_OK) {
        kiln_products_supersede(&list, stage, of);
        st = kiln_product_list_put(m, &list, err);
    }
    kiln_product_list_release(&list);
    return st;
}
