/* bake_targets -- see the header. */
#include "stages/front/bake_targets.h"

#include "stages/export/export_targets.h"
#include "stages/formats/writer.h"
#include "stages/front/chosen_stages.h"
#include "stages/products/product_guard.h"
#include "stages/products/product_mark.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const kiln_bake *b;
    kiln_manifest *m; /* NULL: there is none, or none that can be read */
    kiln_product_guard *guard;
    bool overwrite;
} targets;

/* ---- what was given, now or before ----------------------------------------------------------- */
/* An option as this bake gives it to the stage, or as the manifest has stored it; "" where neither
 * has. */
static kiln_status option_text(const targets *t, const char *stage, const char *name,
                               char out[KILN_PATH_MAX], kiln_error *err)
{
    kiln_parameter *stored = NULL;
    uint32_t n = 0;
    const char *const given = kiln_bake_option(t->b, stage, name, out, KILN_PATH_MAX);
    if (given || !t->m) {
        if (!given) out[0] = '\0';
        return KILN_OK;
    }
    out[0] = '\0';
    KILN_TRY(kiln_parameters_get(t->m, stage, &stored, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(stored[i].name, name) == 0)
            (void)snprintf(out, KILN_PATH_MAX, "%s", stored[i].value);
    kiln_parameters_free(stored, n);
    return KILN_OK;
}

/* ---- exports --------------------------------------------------------------------------------- */
static kiln_status check_folder(const targets *t, const char *path, kiln_error *err)
{
    KILN_TRY(kiln_product_guard_folder(t->guard, path, true, err));
    if (t->overwrite || !kiln_folder_holds_any(path)) return KILN_OK;
    const kiln_listed says = kiln_product_guard_listed(t->guard, path);
    if (says == KILN_LISTED_CHANGED) return kiln_product_refuse_changed(path, err);
    if (says == KILN_LISTED_UNCHANGED || kiln_product_folder_mark(path) != KILN_MARK_NONE)
        return kiln_product_guard_folder_mark(t->guard, path, says == KILN_LISTED_UNCHANGED, NULL,
                                              err);
    return kiln_fail(err, KILN_E_USAGE,
                     "the folder '%s' exists, but SplatKiln did not write it, as far as it knows; "
                     "choose another place, or replace it with -w, "
                     "--overwrite",
                     path);
}

/* One format that is a folder takes the folder of -o itself, as kiln-export does. */
static void place_folder(const char *output, char out[KILN_PATH_MAX])
{
    char *const real = realpath(output, NULL);
    (void)snprintf(out, KILN_PATH_MAX, "%s", real ? real : output);
    free(real);
    for (size_t n = strlen(out); n > 1 && out[n - 1] == '/';) out[--n] = '\0';
}

static kiln_status check_format(const targets *t, const kiln_writer *w, const char *path,
                                kiln_error *err)
{
    char file[KILN_PATH_MAX];
    switch (w->functions->place) {
    case KILN_PLACE_FILE:
        return kiln_product_guard_check(t->guard, path, NULL, err);
    case KILN_PLACE_FOLDER:
        return check_folder(t, path, err);
    case KILN_PLACE_SHARED:
        break;
    }
    KILN_TRY(kiln_product_guard_folder(t->guard, path, false, err));
    KILN_TRY(kiln_path_join(file, sizeof file, path, w->functions->last_file, err));
    return kiln_product_guard_check(t->guard, file, NULL, err);
}

/* A bake without a list remembers its exports otherwise, and kiln-export knows how. */
static bool may_be_remembered(const targets *t)
{
    return t->m && !kiln_product_guard_lists(t->guard, "export");
}

static kiln_status check_exports(const targets *t, kiln_error *err)
{
    char output[KILN_PATH_MAX], format[KILN_PATH_MAX], version[KILN_PATH_MAX],
        folder[KILN_PATH_MAX], path[KILN_PATH_MAX];
    const kiln_writer *writers[KILN_WRITERS_MAX];
    uint32_t n;
    if (!kiln_bake_runs(t->b, "export")) return KILN_OK;
    KILN_TRY(option_text(t, "export", "format", format, err));
    KILN_TRY(option_text(t, "export", "output", output, err));
    if (output[0] && kiln_path_base(output)[0] && !kiln_is_dir(output))
        return kiln_path_has_suffix(output) ? kiln_product_guard_check(t->guard, output, NULL, err)
                                            : KILN_OK;
    if (!output[0] && may_be_remembered(t)) return KILN_OK;
    /* the stage says why */
    if (kiln_writers_parse(format[0] ? format : "ply", writers, &n, NULL) != KILN_OK)
        return KILN_OK;
    KILN_TRY(kiln_path_join(folder, sizeof folder, output[0] ? "" : t->b->out,
                            output[0] ? output : "export", err));
    KILN_TRY(option_text(t, "export", "spz-version", version, err));
    for (uint32_t i = 0; i < n; i++) {
        const bool as_4 = strcmp(version, "4") == 0 && strcmp(writers[i]->name, "spz") == 0;
        const kiln_writer *const w = as_4 ? kiln_writer_named("spz4") : writers[i];
        if (output[0] && n == 1 && w->functions->place != KILN_PLACE_FILE)
            place_folder(output, path);
        else
            KILN_TRY(kiln_path_join(path, sizeof path, folder, w->default_name, err));
        KILN_TRY(check_format(t, w, path, err));
    }
    return output[0]
               ? kiln_export_refuse_scene(t->guard, t->b->manifest, output, writers[0], n, err)
               : KILN_OK;
}

/* ---- pictures -------------------------------------------------------------------------------- */
/* nftw has no context. */
static struct {
    const targets *t;
    size_t skip; /* of a path, before the name of a camera */
    kiln_status st;
    kiln_error *err;
} walk;

/* Without a manifest any name may be that of a camera. */
static bool is_of_camera(const targets *t, const char *name)
{
    static const char depth[] = ".depth";
    char camera[KILN_PATH_MAX];
    bool has = true;
    if (!t->m) return true;
    (void)snprintf(camera, sizeof camera, "%.*s",
                   (int)(strlen(name) - strlen(kiln_path_suffix(name)) - 1), name);
    if (kiln_camera_exists(t->m, camera, &has, NULL) != KILN_OK || has) return true;
    const size_t n = strlen(camera);
    if (n <= sizeof depth - 1 || strcmp(camera + n - (sizeof depth - 1), depth) != 0) return false;
    camera[n - (sizeof depth - 1)] = '\0';
    return kiln_camera_exists(t->m, camera, &has, NULL) != KILN_OK || has;
}

static int check_picture(const char *path, const struct stat *s, int type, struct FTW *where)
{
    (void)s, (void)where;
    const char *const suffix = kiln_path_suffix(path);
    if (type == FTW_D || (strcasecmp(suffix, "png") != 0 && strcasecmp(suffix, "npy") != 0))
        return 0;
    if (!is_of_camera(walk.t, path + walk.skip)) return 0;
    walk.st = kiln_product_guard_check(walk.t->guard, path, NULL, walk.err);
    return walk.st != KILN_OK;
}

static kiln_status check_pictures(const targets *t, kiln_error *err)
{
    enum { DESCRIPTORS = 16 };
    char video[KILN_PATH_MAX], output[KILN_PATH_MAX], folder[KILN_PATH_MAX];
    if (!kiln_bake_runs(t->b, "render")) return KILN_OK;
    KILN_TRY(option_text(t, "render", "video", video, err));
    KILN_TRY(option_text(t, "render", "output", output, err));
    if (video[0]) return kiln_product_guard_check(t->guard, video, NULL, err);
    if (output[0] && !kiln_is_dir(output))
        return kiln_path_has_suffix(output) ? kiln_product_guard_check(t->guard, output, NULL, err)
                                            : KILN_OK;
    KILN_TRY(kiln_path_join(folder, sizeof folder, output[0] ? "" : t->b->out,
                            output[0] ? output : "renders", err));
    walk.t = t;
    walk.skip = strlen(folder) + 1;
    walk.st = KILN_OK;
    walk.err = err;
    (void)nftw(folder, check_picture, DESCRIPTORS, FTW_PHYS); /* not there: nothing to replace */
    return walk.st;
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* A page that cannot be written, because a folder or a pipe has its name, is no failure of the
 * bake. */
static kiln_status check_report(const targets *t, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    if (!t->b->asked->report || t->b->asked->stages) return KILN_OK;
    KILN_TRY(kiln_path_join(path, sizeof path, t->b->out, "report.html", err));
    const kiln_status st = kiln_product_guard_check(t->guard, path, NULL, err);
    return st == KILN_E_IO ? KILN_OK : st;
}

static kiln_status check_all(const targets *t, kiln_error *err)
{
    if (!t->m && t->b->scene) kiln_product_guard_scene(t->guard, t->b->scene, t->b->out);
    KILN_TRY(check_pictures(t, err));
    kiln_product_guard_export(t->guard, t->b->manifest);
    KILN_TRY(check_exports(t, err));
    kiln_product_guard_export(t->guard, NULL);
    return check_report(t, err);
}

kiln_status kiln_bake_targets_check(const kiln_bake *b, bool overwrite, kiln_error *err)
{
    targets t = {.b = b, .overwrite = overwrite};
    /* a manifest that cannot be read is for the first stage to complain of */
    if (kiln_is_file(b->manifest) &&
        kiln_manifest_open(b->manifest, KILN_OPEN_READ, "pipeline", true, &t.m, NULL) != KILN_OK)
        return KILN_OK;
    kiln_status st = kiln_product_guard_open(t.m, overwrite, &t.guard, err);
    if (st == KILN_OK) st = check_all(&t, err);
    kiln_product_guard_close(t.guard);
    kiln_manifest_close(t.m);
    return st;
}
