/* export_targets -- see the header. */
#include "stages/export/export_targets.h"

#include "stages/formats/folder_owner.h"
#include "stages/products/product_records.h"
#include "stages/products/scene_folder.h"

#include <stdio.h>

static const char stage[] = "export";

kiln_status kiln_export_target_last(const kiln_export_target *t, char out[KILN_PATH_MAX],
                                    kiln_error *err)
{
    const char *last = t->writer->functions->last_file;
    if (last) return kiln_path_join(out, KILN_PATH_MAX, t->path, last, err);
    (void)snprintf(out, KILN_PATH_MAX, "%s", t->path);
    return KILN_OK;
}

/* By its own file where a folder holds others', too. */
void kiln_export_target_name(kiln_export_target *t)
{
    const kiln_writer_functions *w = t->writer->functions;
    (void)snprintf(t->relative, sizeof t->relative, "export/%s%s%s", t->writer->default_name,
                   w->place == KILN_PLACE_FILE ? "" : "/",
                   w->place == KILN_PLACE_SHARED ? w->last_file : "");
}

/* What older bakes remember of it, which have no list. path: of a file. */
static kiln_status check_remembered(kiln_product_guard *g, const kiln_export_target *t,
                                    const char *path, bool overwrite, kiln_error *err)
{
    if (t->own) kiln_product_guard_own(g, path);
    if (!t->known || t->own || overwrite || !kiln_is_file(path)) return KILN_OK;
    return kiln_product_guard_listed(g, path) == KILN_LISTED_NOT
               ? kiln_product_refuse_changed(path, err)
               : KILN_OK;
}

static kiln_status check_folder(kiln_product_guard *g, kiln_export_target *t, bool overwrite,
                                kiln_error *err)
{
    const kiln_listed says = kiln_product_guard_listed(g, t->path);
    if (says == KILN_LISTED_CHANGED && !overwrite) return kiln_product_refuse_changed(t->path, err);
    t->replace =
        overwrite || says == KILN_LISTED_UNCHANGED || (says == KILN_LISTED_NOT && t->known);
    KILN_TRY(kiln_folder_check(t->writer->functions, t->path, t->replace, err));
    return kiln_product_guard_folder_mark(g, t->path, t->replace, &t->seen, err);
}

kiln_status kiln_export_target_check(kiln_product_guard *g, kiln_export_target *t, bool overwrite,
                                     kiln_error *err)
{
    char path[KILN_PATH_MAX];
    const kiln_export_place place = t->writer->functions->place;
    KILN_TRY(kiln_export_target_last(t, path, err));
    if (place != KILN_PLACE_FILE)
        KILN_TRY(kiln_product_guard_folder(g, t->path, place == KILN_PLACE_FOLDER, err));
    if (place == KILN_PLACE_FOLDER) return check_folder(g, t, overwrite, err);
    t->replace = overwrite;
    KILN_TRY(check_remembered(g, t, path, overwrite, err));
    return kiln_product_guard_check(g, path, &t->seen, err);
}

kiln_status kiln_export_refuse_scene(kiln_product_guard *g, const char *manifest,
                                     const char *folder, const kiln_writer *w, uint32_t n,
                                     kiln_error *err)
{
    char found[KILN_SCENE_FOUND], name[64], give[KILN_PATH_MAX];
    const bool one_file = n == 1 && w->functions->place == KILN_PLACE_FILE;
    KILN_TRY(kiln_product_guard_into(g, folder, err));
    if (!kiln_folder_holds_scene(folder, manifest, found)) return KILN_OK;
    /* in a folder of its own no import of the scene finds it */
    (void)snprintf(name, sizeof name, "export/%s", n == 1 ? w->default_name : "");
    KILN_TRY(kiln_path_join(give, sizeof give, folder, name, err));
    return kiln_refuse_scene_folder(folder, found, one_file ? "file" : "folder", give, err);
}

kiln_status kiln_export_target_begin(const kiln_export_target *t, kiln_hash of,
                                     kiln_product_list *list, kiln_error *err)
{
    return kiln_product_begin(list, t->relative, stage, of, &t->seen, err);
}

/* Describes it as it lies there, unless it is described so. */
kiln_status kiln_export_target_put(const kiln_export_target *t, kiln_hash of,
                                   kiln_product_list *list, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_product *p;
    KILN_TRY(kiln_product_current(list, t->relative, stage, of, &p, err));
    (void)snprintf(path, sizeof path, "%s", t->path);
    if (t->writer->functions->place == KILN_PLACE_SHARED)
        KILN_TRY(kiln_export_target_last(t, path, err));
    return kiln_product_is_unchanged(p, path) ? KILN_OK : kiln_product_describe_path(p, path, err);
}
