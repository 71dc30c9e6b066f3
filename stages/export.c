/* kiln-export -- writes the bake, or a part of it, for other renderers.
 *
 * A file is made beside its place and renamed when it is whole. With its default place it is kept
 * like any output: the next run looks whether it still lies there as it was written (size, time,
 * inode) and has nothing to do. Each format is a unit of its own: one that is added to the list is
 * written, and those that are there stay. With -o files are written once and nothing is
 * remembered. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "schema/level_sites.h"
#include "stages/engine/engine.h"
#include "stages/export/bakes.h"
#include "stages/export/export_options.h"
#include "stages/export/export_records.h"
#include "stages/export/export_rounds.h"
#include "stages/export/export_targets.h"
#include "stages/export/export_told.h"
#include "stages/export/export_shared.h"
#include "stages/export/level_chunks.h"
#include "stages/export/level_cut.h"
#include "stages/formats/export_views.h"
#include "stages/formats/writer.h"
#include "stages/select/chunk_choice.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is chosen -------------------------------------------------------------------------- */

static bool names_folder(void)
{
    const char *const output = kiln_export_given.output;
    return output && output[0] && (!kiln_path_base(output)[0] || kiln_is_dir(output));
}

static bool names_file(void) { return kiln_export_given.output && !names_folder(); }

static kiln_status list_formats(const kiln_writer *list[KILN_WRITERS_MAX], uint32_t *n,
                                kiln_error *err)
{
    const bool given = kiln_opt_given(&kiln_export_cli, "format");
    KILN_TRY(kiln_writers_parse(kiln_export_given.format, list, n, err));
    if (kiln_export_given.output && strcmp(kiln_export_given.output, "-") == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "-o takes a file or a folder, not '-'; kiln convert IN - writes a scene's "
                         "file to standard output");
    if (names_file()) {
        if (*n > 1 && (given || !kiln_path_has_suffix(kiln_export_given.output)))
            return kiln_fail(err, KILN_E_USAGE,
                             "-o '%s' is one file, but there are several formats (%s); give a "
                             "folder, such as '%s/', or name one of them",
                             kiln_export_given.output, kiln_export_given.format,
                             kiln_export_given.output);
        KILN_TRY(kiln_writer_for(kiln_export_given.output, list[0], given, KILN_ASKS_EXPORT,
                                 &list[0], err));
        *n = 1;
    }
    return kiln_export_spz_version(list, n, err);
}

/* A name that -o gives says the format itself; a version of SPZ is for SPZ. */
static bool ignores_option(const char *name)
{
    const kiln_writer *stored[KILN_WRITERS_MAX], *list[KILN_WRITERS_MAX];
    uint32_t n_stored, n;
    bool any = false;
    if (kiln_writers_parse(kiln_export_given.format, stored, &n_stored, NULL) != KILN_OK ||
        list_formats(list, &n, NULL) != KILN_OK)
        return false;
    if (strcmp(name, "format") == 0) return names_file() && list[0] != stored[0];
    for (uint32_t i = 0; i < n; i++) any = any || kiln_writer_is_spz(list[i]);
    return strcmp(name, "spz-version") == 0 && !any;
}

static kiln_status choose_formats(kiln_export_job *j, kiln_error *err)
{
    const kiln_writer *list[KILN_WRITERS_MAX];
    KILN_TRY(list_formats(list, &j->n_files, err));
    KILN_TRY(KILN_ALLOC(&j->files, j->n_files, "formats", err));
    for (uint32_t i = 0; i < j->n_files; i++) j->files[i].to.writer = list[i];
    return KILN_OK;
}

/* Bakes that are joined to it are no place for an export either. */
static kiln_status check_bakes(const kiln_export_job *j, const char *target, kiln_error *err)
{
    for (uint32_t i = 1; i < j->e.n_bakes; i++)
        if (kiln_manifest_owns(j->e.bakes[i].path, target))
            return kiln_fail(err, KILN_E_USAGE,
                             "'%s' is one of the exported bakes; choose another place with -o",
                             target);
    return KILN_OK;
}

/* What is written lies beside the folder until it takes its place: beside "." is inside of it. */
static kiln_status resolve_folder(char target[KILN_PATH_MAX], kiln_error *err)
{
    char *path = realpath(target, NULL);
    if (!path) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", target, strerror(errno));
    const bool fits = snprintf(target, KILN_PATH_MAX, "%s", path) < KILN_PATH_MAX;
    free(path);
    return fits ? KILN_OK : kiln_fail(err, KILN_E_USAGE, "the path of the folder is too long");
}

/* One folder format takes a folder of -o itself; other formats and lists go into it. */
static kiln_status choose_target(kiln_run *r, const kiln_export_job *j, kiln_export_file *f,
                                 kiln_error *err)
{
    char folder[KILN_PATH_MAX], name[64];
    const char *manifest = kiln_manifest_path(kiln_run_manifest(r));
    const bool one_file = f->to.writer->functions->place == KILN_PLACE_FILE;
    if (kiln_export_given.output) {
        if (names_folder() && (one_file || j->n_files > 1))
            KILN_TRY(kiln_path_join(f->to.path, sizeof f->to.path, kiln_export_given.output,
                                    f->to.writer->default_name, err));
        else
            (void)snprintf(f->to.path, sizeof f->to.path, "%s", kiln_export_given.output);
        for (size_t n = strlen(f->to.path); n > 1 && f->to.path[n - 1] == '/';)
            f->to.path[--n] = '\0';
        if (f->to.writer->functions->place == KILN_PLACE_FOLDER && kiln_is_dir(f->to.path))
            KILN_TRY(resolve_folder(f->to.path, err));
    } else {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(kiln_path_base(manifest) - manifest),
                       manifest);
        (void)snprintf(name, sizeof name, "export/%s", f->to.writer->default_name);
        KILN_TRY(kiln_path_inside(f->to.path, sizeof f->to.path, folder[0] ? folder : ".", name,
                                  "-o", err));
        kiln_export_target_name(&f->to);
    }
    return check_bakes(j, f->to.path, err);
}

static const kiln_opt *option_named(const char *name)
{
    const kiln_opt *row = kiln_export_cli.options;
    while (strcmp(row->name, name) != 0) row++;
    return row;
}

/* --geo where no format takes it. Given now, it would be lost without the user seeing it; a stored
 * one belongs to the tileset that was written before, and is no reason to refuse a PLY. */
static kiln_status check_place(const kiln_writer *const list[], uint32_t n, kiln_error *err)
{
    bool used = strcmp(kiln_export_given.geo, "none") == 0;
    for (uint32_t i = 0; i < n; i++) used = used || list[i]->functions->geo;
    if (used) return KILN_OK;
    if (kiln_opt_given(&kiln_export_cli, "geo"))
        return kiln_fail(err, KILN_E_USAGE,
                         "--geo only applies to the format 3dtiles, but --format is %s; add "
                         "3dtiles to it, or leave out --geo",
                         n > 1 ? kiln_export_given.format : list[0]->name);
    kiln_warn(
        "the stored --geo has no effect, because 3dtiles is not written; --geo none removes it");
    return KILN_OK;
}

static kiln_status choose_rows(kiln_run *r, kiln_export_job *j, kiln_error *err)
{
    const kiln_layer_kind kind =
        kiln_layer_kind_chosen(kiln_drawable_names, kiln_export_given.layer);
    if (kiln_opt_given(&kiln_export_cli, "add"))
        KILN_TRY(kiln_export_absolute(option_named("add"), err));
    KILN_TRY(kiln_export_wishes(&j->e, err));
    KILN_TRY(
        kiln_export_bakes_open(r, kiln_export_given.add, kind, &j->e.bakes, &j->e.n_bakes, err));
    KILN_TRY(kiln_export_choose(&j->e, kiln_export_given.chunks, err));
    if (j->e.n_chunks) return KILN_OK;
    return kiln_export_fail_empty(&j->e, err);
}

/* ---- whose file is there --------------------------------------------------------------------- */

/* Those that are to be written. A bake that passes is one of kiln convert, and has exported nothing
 * before: what is there now has come since its OUT was looked at. */
static kiln_status guard_files(kiln_run *r, kiln_export_job *j, kiln_error *err)
{
    kiln_product_guard *g;
    kiln_status st = KILN_OK;
    kiln_manifest *const m = kiln_run_manifest(r);
    KILN_TRY(kiln_product_guard_open(m, kiln_export_given.overwrite, &g, err));
    if (kiln_run_is_passing(r))
        kiln_product_guard_keep_ours(g);
    else
        kiln_product_guard_export(g, kiln_manifest_path(m));
    for (uint32_t i = 0; i < j->n_files && st == KILN_OK; i++)
        if (!j->files[i].intact)
            st = kiln_export_target_check(g, &j->files[i].to, kiln_export_given.overwrite, err);
    if (st == KILN_OK && names_folder() && !kiln_run_is_passing(r))
        st = kiln_export_refuse_scene(g, kiln_manifest_path(m), kiln_export_given.output,
                                      j->files[0].to.writer, j->n_files, err);
    kiln_product_guard_close(g);
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* e: a copy of j->e for this format; end_file, also after a failure. */
static kiln_status begin_file(kiln_run *r, const kiln_export_job *j, const kiln_export_file *f,
                              char temporary[KILN_PATH_MAX], kiln_export *e, kiln_level_tree *tree,
                              kiln_error *err)
{
    *e = (kiln_export){0};
    *tree = (kiln_level_tree){0};
    KILN_TRY(kiln_temporary_path(f->to.path, temporary, err));
    *e = j->e;
    e->chunks = NULL;
    KILN_TRY(KILN_ALLOC(&e->chunks, e->n_chunks, "chunks", err)); /* selection shortens the list */
    memcpy(e->chunks, j->e.chunks, e->n_chunks * sizeof *e->chunks);
    e->target = f->to.path;
    e->replace = f->to.replace;
    e->seen = f->to.seen;
    e->temporary = temporary;
    e->views = f->to.writer->functions->views ? &j->views : NULL;
    if (!f->levels) return KILN_OK;
    KILN_TRY(kiln_export_add_levels(e, tree, err));
    /* a file's errors are those of where the rows are */
    return kiln_level_tree_read_sites(kiln_run_manifest(r), tree, err);
}

static void end_file(kiln_export *e, kiln_level_tree *tree)
{
    kiln_level_tree_release(tree);
    free(e->chunks);
}

/* How many cameras --report-loss draws of this format: none of one that nothing here reads
 * again. */
static uint32_t loss_cameras(const kiln_export_file *f)
{
    return f->to.writer->functions->reader ? kiln_export_given.report_loss : 0;
}

/* Formats that can be measured are, beside others that cannot. */
static kiln_status check_measurable(const kiln_export_job *j, kiln_error *err)
{
    kiln_buffer names = {0};
    kiln_status st = KILN_OK;
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->n_files; i++) {
        if (loss_cameras(&j->files[i])) continue;
        n++;
        KILN_GO(kiln_buffer_printf(&names, err, "%s%s", names.size ? ", " : "",
                                   j->files[i].to.writer->name));
    }
    if (n == j->n_files)
        st = kiln_fail(err, KILN_E_USAGE,
                       "--report-loss reads and draws the written files, but SplatKiln cannot read "
                       "%s; leave out --report-loss, or "
                       "add another format, such as ply",
                       (const char *)names.data);
    else if (n)
        kiln_warn("--report-loss leaves out %s, which SplatKiln cannot read",
                  (const char *)names.data);
done:
    kiln_buffer_release(&names);
    return st;
}

static kiln_status foresee_file(kiln_run *r, const kiln_export_job *j, const kiln_export_file *f,
                                kiln_error *err)
{
    char temporary[KILN_PATH_MAX];
    kiln_export e;
    kiln_level_tree tree;
    const kiln_loss loss = {.most = loss_cameras(f), .min_psnr = kiln_export_given.min_psnr};
    kiln_status st = begin_file(r, j, f, temporary, &e, &tree, err);
    if (st == KILN_OK) st = kiln_export_foresee(r, f->to.writer, &e, &loss, err);
    end_file(&e, &tree);
    return st;
}

static kiln_status check_file(kiln_run *r, const kiln_export_job *j, const kiln_export_file *f,
                              kiln_error *err)
{
    char temporary[KILN_PATH_MAX];
    kiln_export e;
    kiln_level_tree tree;
    const kiln_loss loss = {.most = loss_cameras(f), .min_psnr = kiln_export_given.min_psnr};
    kiln_status st = begin_file(r, j, f, temporary, &e, &tree, err);
    if (st == KILN_OK) st = kiln_export_check(r, f->to.writer, &e, &loss, err);
    end_file(&e, &tree);
    return st;
}

static kiln_status write_file(kiln_run *r, const kiln_export_job *j, const kiln_export_file *f,
                              kiln_error *err)
{
    char temporary[KILN_PATH_MAX];
    kiln_export_said said = {
        .loss = {.most = loss_cameras(f), .min_psnr = kiln_export_given.min_psnr}};
    kiln_export e;
    kiln_level_tree tree;
    kiln_status st = begin_file(r, j, f, temporary, &e, &tree, err);
    if (st == KILN_OK) st = kiln_export_run(r, f->to.writer, &e, &said, err);
    if (st == KILN_OK) {
        kiln_export_tell(&f->to, &e, &said);
        st = kiln_export_report(r, &f->to, &e, &said, err);
    }
    kiln_buffer_release(&said.notes);
    kiln_buffer_release(&said.remarks);
    kiln_loss_release(&said.loss);
    end_file(&e, &tree);
    return st;
}

/* Of several formats none is written where one is refused. */
static kiln_status check_files(kiln_run *r, const kiln_export_job *j, kiln_error *err)
{
    uint32_t due = 0;
    for (uint32_t i = 0; i < j->n_files; i++) due += !j->files[i].intact;
    for (uint32_t i = 0; i < j->n_files && due > 1; i++)
        if (!j->files[i].intact) KILN_TRY(check_file(r, j, &j->files[i], err));
    return KILN_OK;
}

static kiln_status load_views(kiln_run *r, kiln_export_job *j, kiln_error *err)
{
    bool asked = false;
    for (uint32_t i = 0; i < j->n_files; i++)
        asked = asked || j->files[i].to.writer->functions->views;
    return asked ? kiln_export_views_load(kiln_run_manifest(r), &j->views, err) : KILN_OK;
}

/* Takes the levels where the format is made of them, or holds them and there are some for all that
 * is written. */
static kiln_status choose_levels(kiln_run *r, kiln_export_job *j, kiln_export_file *f,
                                 kiln_error *err)
{
    const unsigned holds = f->to.writer->holds;
    if (holds & KILN_NEEDS_LEVELS) {
        KILN_TRY(kiln_export_check_levels(&j->e, f->to.writer->name, err));
        KILN_TRY(kiln_run_need(r, kiln_layer_kinds[KILN_LAYER_levels].stage, err));
    } else if (!(holds & KILN_TAKES_LEVELS) ||
               kiln_export_check_levels(&j->e, f->to.writer->name, NULL) != KILN_OK) {
        return KILN_OK;
    }
    kiln_error none;
    const kiln_status st = kiln_export_load_levels(kiln_run_manifest(r), &j->e.bakes[0],
                                                   holds & KILN_NEEDS_LEVELS ? err : &none);
    f->levels = st == KILN_OK;
    if (st == KILN_OK || holds & KILN_NEEDS_LEVELS) return st;
    return st == KILN_E_STALE ? KILN_OK
                              : kiln_export_load_levels(kiln_run_manifest(r), &j->e.bakes[0], err);
}

static kiln_status prepare_export(kiln_run *r, kiln_export_job *j, kiln_error *err)
{
    KILN_TRY(choose_formats(j, err));
    KILN_TRY(choose_rows(r, j, err));
    KILN_TRY(kiln_export_geo(kiln_export_given.geo, j->e.geo, &j->e.placed, err));
    if (kiln_cut_is_asked(&kiln_export_given)) KILN_TRY(kiln_cut_open(r, &j->e, &j->cut, err));
    if (kiln_export_given.report_loss && !j->e.splats)
        return kiln_fail(err, KILN_E_USAGE,
                         "--report-loss draws Gaussians, but the layer '%s' holds points",
                         j->e.bakes[0].layer->kind);
    if (kiln_export_given.report_loss) KILN_TRY(check_measurable(j, err));
    KILN_TRY(load_views(r, j, err));
    for (uint32_t i = 0; i < j->n_files; i++) {
        KILN_TRY(choose_target(r, j, &j->files[i], err));
        KILN_TRY(kiln_writer_check_kind(j->files[i].to.writer, j->e.splats, err));
        KILN_TRY(choose_levels(r, j, &j->files[i], err));
        KILN_TRY(kiln_export_record_key(r, j, &j->files[i], err));
        const bool again =
            /* a loss is measured on what is written */
            kiln_run_is_once(r) || kiln_run_force(r) || loss_cameras(&j->files[i]) > 0;
        if (!kiln_export_given.output) KILN_TRY(kiln_export_record_look(r, &j->files[i], err));
        j->files[i].intact = j->files[i].unchanged && !again;
    }
    return guard_files(r, j, err);
}

/* Rows that stand for the chosen ones take their place. Before that, all lists are announced as if
 * all were written. */
static kiln_status cut_levels(kiln_run *r, kiln_export_job *j, kiln_error *err)
{
    const kiln_export_file *due = NULL;
    for (uint32_t i = 0; i < j->n_files && !due; i++)
        if (!j->files[i].intact) due = &j->files[i];
    if (!j->cut || !due) return KILN_OK;
    j->e.target = due->to.path;
    j->e.temporary = "";
    const kiln_status st = kiln_cut_make(r, due->to.writer, &j->e, j->cut, &j->made, err);
    kiln_run_foresee_no_more(r);
    return st;
}

static bool all_intact(const kiln_export_job *j)
{
    for (uint32_t i = 0; i < j->n_files; i++)
        if (!j->files[i].intact) return false;
    return true;
}

static kiln_status export_layer(kiln_run *r, kiln_export_job *j, kiln_error *err)
{
    bool fresh = false;
    KILN_TRY(prepare_export(r, j, err));
    const kiln_hash key = kiln_export_input_key(r, j);
    if (!kiln_run_is_once(r)) KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh && all_intact(j)) return kiln_run_nothing_to_do(r, err);
    for (uint32_t i = 0; i < j->n_files; i++)
        if (!j->files[i].intact) KILN_TRY(foresee_file(r, j, &j->files[i], err));
    KILN_TRY(cut_levels(r, j, err));
    for (uint32_t i = 0; i < j->n_files && j->cut; i++)
        if (!j->files[i].intact) KILN_TRY(foresee_file(r, j, &j->files[i], err));
    KILN_TRY(check_files(r, j, err));
    if (!kiln_run_is_once(r)) KILN_TRY(kiln_export_records_begin(r, j, err));
    for (uint32_t i = 0; i < j->n_files; i++) {
        if (j->files[i].intact) continue;
        KILN_TRY(write_file(r, j, &j->files[i], err));
        if (!kiln_run_is_once(r)) KILN_TRY(kiln_export_record_put(r, &j->files[i], err));
    }
    return kiln_run_is_once(r) ? KILN_OK
                               : kiln_run_commit(r, key, kiln_export_records_commit, j, err);
}

/* Names that the bake lacks, as soon as it has chunks. Of bakes that --add joins each item may be
 * any's. */
static kiln_status check_chunks(kiln_run *r, kiln_error *err)
{
    const kiln_layer_kind kind =
        kiln_layer_kind_chosen(kiln_drawable_names, kiln_export_given.layer);
    kiln_layer *layer = NULL;
    uint8_t *chosen = NULL;
    kiln_error none;
    if (!kiln_export_given.chunks) return KILN_OK;
    if (kind == KILN_LAYER_baked) KILN_TRY(kiln_chunks_check(kiln_export_given.chunks, true, err));
    if (kiln_export_given.add || !kiln_run_manifest(r) ||
        kiln_layer_current(kiln_run_manifest(r), kind, &layer, &none) != KILN_OK)
        return KILN_OK;
    kiln_status st = KILN_ALLOC(&chosen, layer->n_chunks, "chunks", err);
    if (st == KILN_OK)
        st = kiln_chunks_choose((const kiln_layer *const *)&layer, 1, kiln_export_given.chunks,
                                chosen, err);
    free(chosen);
    kiln_layer_free(layer);
    return st;
}

/* Before kiln-lod makes the levels that are missing: a command that is refused changes no bake. */
static kiln_status check_targets(kiln_run *r, kiln_error *err)
{
    kiln_export_job *j;
    if (!kiln_run_manifest(r) || !kiln_export_given.output ||
        !kiln_cut_is_asked(&kiln_export_given))
        return KILN_OK;
    KILN_TRY(KILN_ALLOC(&j, 1, "export", err));
    kiln_status st = choose_formats(j, err);
    for (uint32_t i = 0; st == KILN_OK && i < j->n_files; i++)
        st = choose_target(r, j, &j->files[i], err);
    if (st == KILN_OK) st = guard_files(r, j, err);
    free(j->files);
    free(j);
    return st;
}

static kiln_status check_export_options(kiln_run *r, kiln_error *err)
{
    const kiln_writer *list[KILN_WRITERS_MAX];
    kiln_filters filters;
    uint32_t n;
    if (!isnan(kiln_export_given.min_psnr) && kiln_export_given.report_loss == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--min-psnr needs --report-loss N, the number of cameras to draw");
    KILN_TRY(list_formats(list, &n, err));
    KILN_TRY(check_place(list, n, err));
    KILN_TRY(kiln_cut_check(&kiln_export_given, list, n, err));
    for (uint32_t i = 0; i < n; i++) KILN_TRY(kiln_writer_check_machine(list[i], err));
    KILN_TRY(kiln_filters_parse(kiln_export_given.filter_boxes, kiln_export_given.filter_spheres,
                                kiln_export_given.filter_values, &filters,
                                err)); /* not too many of them */
    if (kiln_opt_given(&kiln_export_cli, "add"))
        KILN_TRY(kiln_export_absolute(option_named("add"), err));
    KILN_TRY(check_chunks(r, err));
    return check_targets(r, err);
}

/* Viewers hold coordinates as float32: absolute ones of a scene with an origin, in metres of a
 * country's grid, have steps of half a metre there. What is made for any viewer is therefore
 * relative, unless the user has said otherwise, here or once. From now on it is as if --keep-origin
 * had been typed. */
static kiln_status keep_origin_for_viewers(kiln_run *r, kiln_error *err)
{
    kiln_scene *scene;
    static const char option[] = "keep-origin";
    if (!kiln_export_given.for_viewers || kiln_opt_given(&kiln_export_cli, option) ||
        kiln_run_has_stored(r, option))
        return KILN_OK;
    KILN_TRY(KILN_ALLOC(&scene, 1, "a scene", err));
    kiln_status st = kiln_scene_get(kiln_run_manifest(r), scene, err);
    const double x = scene->origin[0], y = scene->origin[1], z = scene->origin[2];
    free(scene);
    /* export says why */
    if (st != KILN_OK || (x == 0 && y == 0 && z == 0)) return st == KILN_E_STALE ? KILN_OK : st;
    st = kiln_opt_give(&kiln_export_cli, option, "yes", err);
    if (st == KILN_OK)
        kiln_say("positions are written relative to the scene's origin, %.17g %.17g %.17g, because "
                 "viewers hold float32 "
                 "(--keep-origin; --no-keep-origin writes absolute positions)",
                 x, y, z);
    return st;
}

static kiln_status run_export(kiln_run *r, kiln_error *err)
{
    kiln_export_job *j = NULL;
    KILN_TRY(keep_origin_for_viewers(r, err));
    KILN_TRY(KILN_ALLOC(&j, 1, "export", err));
    j->made = -1;
    const kiln_status st = export_layer(r, j, err);
    if (j->made >= 0) (void)close(j->made);
    kiln_cut_release(j->cut);
    kiln_made_chunks_release(&j->e.made);
    kiln_export_bakes_release(j->e.bakes, j->e.n_bakes);
    free(j->e.chunks);
    free(j->files);
    free(j);
    return st;
}

const kiln_stage_program kiln_stage_export = {
    .name = "export",
    .cli = &kiln_export_cli,
    .open = KILN_OPEN_WRITE,
    .flags = KILN_PROGRAM_SERIAL | KILN_PROGRAM_UNDIVIDED,
    .instead = "kiln convert IN OUT turns one file of a scene into another, without a bake",
    .lists = &kiln_export_given.list_formats,
    .list = kiln_writers_list,
    .check = check_export_options,
    .ignores = ignores_option,
    .run = run_export,
    .unit = kiln_export_unit};
