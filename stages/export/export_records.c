/* export_records -- see export_records.h. */
#include "stages/export/export_records.h"
#include "stages/export/export_options.h"

#include "base/file.h"
#include "stages/engine/engine.h"
#include "stages/products/product_records.h"

#include <stdio.h>
#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

/* What a writer reads of the bake. */
static void key_inputs(kiln_hasher *h, const kiln_export_job *j)
{
    KILN_KEY_LISTS(kiln_scene, 14904);
    for (uint32_t p = 0; p < j->e.n_bakes; p++) {
        const kiln_scene *s = &j->e.bakes[p].scene;
        kiln_key_hash(h, "layer", j->e.bakes[p].layer->digest);
        kiln_key_text(h, "notes", s->notes); /* columns and comments of the source */
        kiln_key_text(h, "name", s->name);
        kiln_key_text(h, "up_axis", s->up_axis);
        kiln_key_u64(h, "antialiased", s->antialiased);
        kiln_key_bytes(h, "origin", s->origin, sizeof s->origin);
        kiln_key_text(h, "source_format", s->source_format); /* codes of some formats are kept */
        kiln_key_text(h, "unit", s->unit);
        kiln_key_u64(h, "rows_read", s->rows_read);
        kiln_key_u64(h, "has_root", s->has_root);
        if (s->has_root) kiln_key_bytes(h, "root_centre", s->root_centre, sizeof s->root_centre);
        if (s->has_root) kiln_key_bytes(h, "root_half", &s->root_half, sizeof s->root_half);
        kiln_key_u64(h, "has_background", s->has_background);
        if (s->has_background) kiln_key_bytes(h, "background", s->background, sizeof s->background);
    }
}

/* Nothing where a format gets none, so that what was written before there were levels is known. */
static void key_levels(kiln_hasher *h, const kiln_export_job *j, bool gets)
{
    kiln_cut_key(h, &j->e, j->cut);
    if (gets) kiln_key_hash(h, "levels", j->e.bakes[0].levels->digest);
}

kiln_hash kiln_export_input_key(kiln_run *r, const kiln_export_job *j)
{
    kiln_hasher *h = kiln_run_key(r);
    bool gets = false;
    for (uint32_t i = 0; i < j->n_files; i++) gets = gets || j->files[i].levels;
    key_inputs(h, j);
    key_levels(h, j, gets);
    return kiln_key_end(h);
}

/* Chosen formats are in the key by their names. */
static bool chooses_format(const kiln_opt *row)
{
    return row->where == &kiln_export_given.format || row->where == &kiln_export_given.spz_version;
}

/* What a file looked like when we had written it: the counters of a unit without outputs. The other
 * formats do not count. */
kiln_status kiln_export_record_key(kiln_run *r, const kiln_export_job *j, kiln_export_file *f,
                                   kiln_error *err)
{
    const kiln_writer *w = f->to.writer;
    char text[KILN_OPT_TEXT_MAX];
    kiln_hasher *h = kiln_run_key_bare(r, "written file");
    kiln_key_text(h, "format", w->name);
    for (const kiln_opt *row = kiln_export_cli.options; row->name; row++) {
        if (!(row->flags & KILN_KEYED) || chooses_format(row)) continue;
        (void)kiln_opt_text(row, text, sizeof text);
        /* files written before are known */
        if (row->flags & KILN_LATER && strcmp(text, row->def ? row->def : "") == 0) continue;
        kiln_key_text(h, row->name, text);
    }
    key_inputs(h, j);
    key_levels(h, j, f->levels);
    kiln_status st = w->functions->views ? kiln_export_views_key(h, &j->views, err) : KILN_OK;
    if (st == KILN_OK && w->functions->key) st = w->functions->key(h, err);
    f->record = kiln_key_end(h);
    return st;
}

/* What all formats have in common: products of another hash are of another output. */
static kiln_hash output_key(kiln_run *r, const kiln_export_job *j)
{
    char text[KILN_OPT_TEXT_MAX];
    kiln_hasher *h = kiln_run_key_bare(r, "exported files");
    for (const kiln_opt *row = kiln_export_cli.options; row->name; row++)
        if (row->flags & KILN_KEYED && !chooses_format(row))
            kiln_key_text(h, row->name, kiln_opt_text(row, text, sizeof text));
    key_inputs(h, j);
    return kiln_key_end(h);
}

/* ---- what a file looked like ----------------------------------------------------------------- */

static kiln_status describe_file(const kiln_export_file *f, char out[256], kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_file_info info;
    KILN_TRY(kiln_export_target_last(&f->to, path, err));
    KILN_TRY(kiln_file_stat(path, &info, err));
    (void)snprintf(out, 256, "{\"size\":%llu,\"mtime_ns\":%lld,\"inode\":%llu}",
                   (unsigned long long)info.size, (long long)info.mtime_ns,
                   (unsigned long long)info.inode);
    return KILN_OK;
}

/* The inode comes last, and is another one in a copy of the bake. */
static bool same_but_inode(const char *before, const char *now)
{
    const char *const inode = strstr(now, "\"inode\"");
    return inode && strncmp(before, now, (size_t)(inode - now)) == 0;
}

typedef struct {
    const char *now; /* as describe_file has it */
    bool found;
} file_search;

static kiln_status compare_description(void *context, const char *counters, kiln_error *err)
{
    file_search *s = context;
    (void)err;
    s->found = s->found || (counters && same_but_inode(counters, s->now));
    return KILN_OK;
}

/* Bakes of earlier versions have no list of products. Of each file that they wrote a unit tells
 * size and time, under the key of what was in it: after an option has changed, it is found by
 * these. */
static kiln_status find_written(kiln_run *r, const char *now, bool *found, kiln_error *err)
{
    file_search s = {.now = now};
    KILN_TRY(kiln_unit_counters_visit(kiln_run_manifest(r), "export", "written file",
                                      compare_description, &s, err));
    *found = s.found;
    return KILN_OK;
}

kiln_status kiln_export_record_look(kiln_run *r, kiln_export_file *f, kiln_error *err)
{
    char path[KILN_PATH_MAX], now[256];
    kiln_unit_result record = {0};
    KILN_TRY(kiln_export_target_last(&f->to, path, err));
    KILN_TRY(kiln_unit_find(kiln_run_manifest(r), f->record, &f->to.known, &record, err));
    const bool there = kiln_is_file(path);
    kiln_status st = there ? describe_file(f, now, err) : KILN_OK;
    if (there && st == KILN_OK) st = find_written(r, now, &f->to.own, err);
    f->unchanged =
        there && st == KILN_OK && f->to.known && strcmp(record.counters, now) == 0 &&
        (!f->to.writer->functions->complete || f->to.writer->functions->complete(f->to.path));
    kiln_unit_result_release(&record);
    return st;
}

kiln_status kiln_export_record_put(kiln_run *r, const kiln_export_file *f, kiln_error *err)
{
    char now[256];
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_unit_result record = {.counters = now};
    const kiln_unit_done unit = {.key = f->record, .stage = "export", .name = "written file"};
    KILN_TRY(describe_file(f, now, err));
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = kiln_unit_forget(m, f->record, err);
    if (st == KILN_OK) st = kiln_unit_store(m, &unit, &record, NULL, err);
    if (st == KILN_OK) return kiln_manifest_commit(m, err);
    kiln_manifest_rollback(m);
    return st;
}

/* ---- the list of products -------------------------------------------------------------------- */

kiln_status kiln_export_records_begin(kiln_run *r, const kiln_export_job *j, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_product_list list;
    const kiln_hash of = output_key(r, j);
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = kiln_product_records_get(m, &list, err);
    for (uint32_t i = 0; i < j->n_files && st == KILN_OK; i++)
        if (!j->files[i].intact) st = kiln_export_target_begin(&j->files[i].to, of, &list, err);
    if (st == KILN_OK) st = kiln_product_list_put(m, &list, err);
    kiln_product_list_release(&list);
    if (st == KILN_OK) return kiln_manifest_commit(m, err);
    kiln_manifest_rollback(m);
    return st;
}

static kiln_status list_current(kiln_run *r, kiln_manifest *m, const kiln_export_job *j,
                                kiln_error *err)
{
    kiln_product_list list;
    const kiln_hash of = output_key(r, j);
    kiln_status st = kiln_product_records_get(m, &list, err);
    for (uint32_t i = 0; i < j->n_files && st == KILN_OK; i++)
        st = kiln_export_target_put(&j->files[i].to, of, &list, err);
    if (st == KILN_OK) {
        kiln_products_supersede(&list, "export", of);
        st = kiln_product_list_put(m, &list, err);
    }
    kiln_product_list_release(&list);
    return st;
}

kiln_status kiln_export_records_commit(kiln_run *r, kiln_manifest *m, void *context,
                                       kiln_error *err)
{
    const kiln_export_job *j = context;
    KILN_TRY(list_current(r, m, j, err));
    for (uint32_t i = 0; i < j->n_files; i++) KILN_TRY(kiln_run_uses(r, j->files[i].record, err));
    return KILN_OK;
}
