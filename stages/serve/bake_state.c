/* bake_state -- see the header. */
#include "stages/serve/bake_state.h"

#include "base/memory.h"
#include "schema/level_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what is kept ---------------------------------------------------------------------------- */
static void forget_tree(kiln_bake_state *s)
{
    kiln_level_tree_release(&s->tree);
    s->tree = (kiln_level_tree){0};
    s->tree_known = false;
}

/* Layers are named by their content: they stay as long as the manifest names the same ones. */
static void forget_rows(kiln_bake_state *s)
{
    free(s->scene);
    if (s->views) kiln_bake_views_release(s->views);
    free(s->views);
    free(s->sources);
    s->scene = NULL;
    s->views = NULL;
    s->sources = NULL;
    s->n_sources = 0;
    s->layers_known = false;
}

static void forget_all(kiln_bake_state *s)
{
    forget_rows(s);
    forget_tree(s);
    kiln_layer_free(s->drawn);
    kiln_layer_free(s->levels);
    s->drawn = s->levels = NULL;
}

kiln_status kiln_bake_state_init(kiln_bake_state *s, const char *path, bool allow_network,
                                 kiln_error *err)
{
    *s = (kiln_bake_state){.allow_network = allow_network};
    return kiln_path_join(s->path, sizeof s->path, "", path, err);
}

void kiln_bake_state_release(kiln_bake_state *s)
{
    forget_all(s);
    kiln_manifest_close(s->m);
    s->m = NULL;
}

/* ---- a request ------------------------------------------------------------------------------- */
static kiln_status refuse_former_log(const kiln_bake_state *s, kiln_error *err)
{
    if (!kiln_log_is_former(s->path, &s->log)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "another file has replaced '%s', but '%s-wal' holds changes of the old one, "
                     "which SQLite would write into it; "
                     "end any stage that still runs, then remove '%s-wal' and '%s-shm'",
                     s->path, s->path, s->path, s->path);
}

static kiln_status follow_file(kiln_bake_state *s, kiln_error *err)
{
    struct stat now;
    if (stat(s->path, &now) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", s->path, strerror(errno));
    if (s->m && now.st_dev == s->device && now.st_ino == s->inode) {
        kiln_log_look(s->path, &s->log);
        return KILN_OK;
    }
    if (s->m) KILN_TRY(refuse_former_log(s, err));
    forget_all(s);
    kiln_manifest_close(s->m);
    s->m = NULL;
    s->version++;
    KILN_TRY(kiln_manifest_open(s->path, KILN_OPEN_READ, "serve", s->allow_network, &s->m, err));
    s->device = now.st_dev;
    s->inode = now.st_ino;
    s->opened = now.st_mtim;
    kiln_log_look(s->path, &s->log);
    return KILN_OK;
}

kiln_status kiln_bake_state_enter(kiln_bake_state *s, kiln_error *err)
{
    int64_t data_version;
    char stage[32];
    KILN_TRY(follow_file(s, err));
    const bool written = kiln_manifest_is_written(s->path, stage);
    KILN_TRY(kiln_manifest_begin_read(s->m, &data_version, err));
    if (data_version != s->data_version || written != s->written ||
        strcmp(stage, s->written_by) != 0)
        s->version++;
    if (data_version != s->data_version) forget_rows(s);
    s->data_version = data_version;
    s->written = written;
    memcpy(s->written_by, stage, sizeof s->written_by);
    return KILN_OK;
}

/* A file that is copied over another one keeps its number: no connection notices, and each goes on
 * with what SQLite keeps in NAME-shm of the former content. */
void kiln_bake_state_explain(const kiln_bake_state *s, kiln_error *err)
{
    struct stat now;
    if ((err->status != KILN_E_INPUT && err->status != KILN_E_IO) || !s->m ||
        stat(s->path, &now) != 0)
        return;
    if (now.st_ino != s->inode ||
        (now.st_mtim.tv_sec == s->opened.tv_sec && now.st_mtim.tv_nsec == s->opened.tv_nsec))
        return;
    const size_t n = strlen(err->msg);
    (void)snprintf(err->msg + n, sizeof err->msg - n,
                   "; if another file was copied over it, end all programs that use it, remove "
                   "'%s-wal' and '%s-shm' if "
                   "they exist, and start kiln-serve again",
                   s->path, s->path);
}

void kiln_bake_state_leave(kiln_bake_state *s) { kiln_manifest_rollback(s->m); }

/* ---- rows ------------------------------------------------------------------------------------ */
kiln_status kiln_bake_state_scene(kiln_bake_state *s, const kiln_scene **out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    if (!s->scene) {
        KILN_TRY(KILN_ALLOC(&s->scene, 1, "a scene", err));
        st = kiln_scene_get(s->m, s->scene, err);
    }
    if (st != KILN_OK) {
        free(s->scene);
        s->scene = NULL;
    }
    *out = s->scene;
    return st;
}

kiln_status kiln_bake_state_views(kiln_bake_state *s, const kiln_bake_views **out, kiln_error *err)
{
    kiln_scene_size size;
    kiln_status st = KILN_OK;
    *out = NULL;
    if (!s->views) {
        KILN_TRY(kiln_scene_size_get(s->m, &size, err));
        if (size.cameras > KILN_SERVE_CAMERAS_MAX)
            return kiln_fail(err, KILN_E_CAP,
                             "the bake has %.0f cameras, more than the %d that are served",
                             size.cameras, KILN_SERVE_CAMERAS_MAX);
        KILN_TRY(KILN_ALLOC(&s->views, 1, "cameras", err));
        st = kiln_bake_views_get(s->m, s->views, err);
    }
    if (st != KILN_OK) {
        kiln_bake_views_release(s->views);
        free(s->views);
        s->views = NULL;
    }
    *out = s->views;
    return st;
}

kiln_status kiln_bake_state_sources(kiln_bake_state *s, const kiln_source_file **out, uint32_t *n,
                                    kiln_error *err)
{
    if (!s->sources) KILN_TRY(kiln_sources_get(s->m, &s->sources, &s->n_sources, err));
    *out = s->sources;
    *n = s->n_sources;
    return KILN_OK;
}

/* ---- layers ---------------------------------------------------------------------------------- */
/* The newest kind that is cut into chunks and is there; a zero digest: none is. */
static kiln_status find_drawn(kiln_bake_state *s, kiln_layer_kind *kind, kiln_hash *digest,
                              kiln_error *err)
{
    *digest = (kiln_hash){0};
    for (int i = KILN_LAYER_KINDS - 1; i >= 0; i--) {
        const kiln_layer_info *info = &kiln_layer_kinds[i];
        if (info->form != KILN_FORM_CHUNKS) continue;
        *kind = (kiln_layer_kind)i;
        KILN_TRY(kiln_stage_output_get(s->m, info->stage, info->name, digest, err));
        if (!kiln_hash_is_zero(*digest)) break;
    }
    return KILN_OK;
}

/* Reads a layer unless *layer is it. */
static kiln_status follow_layer(kiln_bake_state *s, kiln_layer_kind kind, kiln_hash digest,
                                kiln_layer **layer, kiln_error *err)
{
    if (*layer && kiln_hash_equal((*layer)->digest, digest)) return KILN_OK;
    forget_tree(s);
    kiln_layer_free(*layer);
    *layer = NULL;
    if (kiln_hash_is_zero(digest)) return KILN_OK;
    return kiln_layer_get_digest(s->m, kiln_layer_kinds[kind].name, digest, layer, err);
}

kiln_status kiln_bake_state_layers(kiln_bake_state *s, kiln_error *err)
{
    const kiln_layer_info *levels = &kiln_layer_kinds[KILN_LAYER_levels];
    kiln_layer_kind kind = KILN_LAYER_baked;
    kiln_hash digest;
    if (s->layers_known) return KILN_OK;
    KILN_TRY(find_drawn(s, &kind, &digest, err));
    KILN_TRY(follow_layer(s, kind, digest, &s->drawn, err));
    KILN_TRY(kiln_stage_output_get(s->m, levels->stage, levels->name, &digest, err));
    KILN_TRY(follow_layer(s, KILN_LAYER_levels, digest, &s->levels, err));
    if (s->levels && (!s->drawn || !kiln_hash_equal(s->levels->origin, s->drawn->digest)))
        /* of other chunks */
        KILN_TRY(follow_layer(s, KILN_LAYER_levels, (kiln_hash){0}, &s->levels, err));
    s->layers_known = true;
    return KILN_OK;
}

kiln_status kiln_bake_state_tree(kiln_bake_state *s, kiln_error *err)
{
    KILN_TRY(kiln_bake_state_layers(s, err));
    if (s->tree_known || !s->drawn) return KILN_OK;
    if (s->levels)
        KILN_TRY(kiln_level_tree_make(s->drawn, s->levels, &s->tree, err));
    else
        KILN_TRY(kiln_level_tree_plan(s->drawn, &s->tree, err));
    /* as in exported tiles */
    const kiln_status st = s->levels ? kiln_level_tree_read_sites(s->m, &s->tree, err) : KILN_OK;
    if (st != KILN_OK) forget_tree(s);
    s->tree_known = st == KILN_OK;
    return st;
}
