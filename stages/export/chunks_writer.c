/* chunks_writer -- a folder of raw planes for renderers that want no SQLite: each blob is one file named by the hash of
 * its content, little-endian, component after component; index.json says what is where. The same plane is one file
 * however many chunks share it, and a second export writes only what changed.
 *
 *   index.json   {"format": "splatkiln-chunks", "version": 1, "scene": {...}, "layer": {...}, "chunks": [
 *                  {"name": "/0/3", "count": 1200, "box_min": [...], ..., "planes": {"means":
 *                    {"type": "f32", "components": 3, "file": "9f....bin", "bytes": 14400}, ...}}]}
 */
#include "stages/export/writer.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/engine/run_layers.h"
#include "stages/engine/json_text.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX "index.json"
enum { INDEX_MAX = 1 << 30 };

/* Name of a plane's file: the blob's own hash, or of all its blobs' hashes where it has several. */
static void file_name(const kiln_plane *p, char out[40])
{
    char hex[33];
    kiln_hash h = p->data.n_segments == 1 ? p->data.segments[0]
                                          : kiln_hash_of(p->data.segments, p->data.n_segments * sizeof *p->data.segments);
    snprintf(out, 40, "%s.bin", kiln_hash_hex(h, hex));
}

/* A worker that was killed in the midst of a file leaves NAME.tmp.PID. Files of processes that run stay. */
static void drop_half_written(const kiln_export *e)
{
    char inside[KILN_PATH_MAX];
    if (kiln_path_join(inside, sizeof inside, e->target, "x.bin", NULL) == KILN_OK) kiln_leftovers_drop(inside);
    if (kiln_path_join(inside, sizeof inside, e->target, INDEX, NULL) == KILN_OK) kiln_leftovers_drop(inside);
}

static kiln_status plan(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    if (!kiln_export_is_as_stored(e))
        return kiln_fail(err, KILN_E_INPUT,
                         "the format chunks gives the chunks of one bake as they are stored; leave out what changes them: filters, "
                         "--sh-degree, moves, --add");
    if (kiln_is_file(e->target))
        return kiln_fail(err, KILN_E_USAGE, "'%s' is a file; the format chunks writes a folder", e->target);
    return KILN_OK;
}

static kiln_status begin(kiln_export_parent *p, kiln_error *err)
{
    char inside[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(inside, sizeof inside, p->e->target, INDEX, err));
    drop_half_written(p->e);
    return kiln_make_parents(inside, err);
}

/* A plane, and the file that is there compared with it. */
static uint64_t ram(const kiln_export *e, uint64_t unit)
{
    const kiln_layer_size size = kiln_layer_size_of(e->parts[e->chunks[unit].part].layer);
    return 2 * size.plane + kiln_read_ram(size.plane);
}

static bool has_size(const char *path, uint64_t bytes)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && (uint64_t)s.st_size == bytes;
}

/* Is this file there with these bytes? Then it is left alone. */
static bool same_content(const char *path, const void *data, size_t bytes)
{
    unsigned char *there = NULL;
    size_t size = 0;
    if (!has_size(path, bytes) || kiln_file_read(path, bytes, &there, &size, NULL) != KILN_OK) return false;
    bool same = size == bytes && memcmp(there, data, bytes) == 0;
    free(there);
    return same;
}

static kiln_status write_plane(const kiln_export *e, kiln_manifest *m, const kiln_chunk *chunk, const kiln_plane *p,
                               kiln_error *err)
{
    kiln_status st = KILN_OK;
    char name[40], path[KILN_PATH_MAX];
    void *data = NULL;
    file_name(p, name);
    KILN_TRY(kiln_path_join(path, sizeof path, e->target, name, err));
    KILN_GO(kiln_alloc(&data, p->data.raw_bytes, 1, "a plane", err));
    KILN_GO(kiln_plane_read(m, chunk, p->name, data, p->data.raw_bytes, err));
    if (!same_content(path, data, p->data.raw_bytes)) KILN_GO(kiln_file_write(path, data, p->data.raw_bytes, err));
done:
    free(data);
    return st;
}

static kiln_status write_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_chunk *chunk = x->e->chunks[unit].chunk;
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(x->w, &m, err));
    for (uint32_t i = 0; i < chunk->n_planes; i++) KILN_TRY(write_plane(x->e, m, chunk, &chunk->planes[i], err));
    return KILN_OK;
}

/* ---- index --------------------------------------------------------------------------------------------------------------------
 */

/* 63 bits: more than the numbers of JavaScript hold, so text. */
static json_t *code(uint64_t v) { return json_sprintf("%016llx", (unsigned long long)v); }
static json_t *vector_of(double x, double y, double z)
{
    return json_pack("[o, o, o]", kiln_json_real(x), kiln_json_real(y), kiln_json_real(z));
}
static json_t *vector(const float *v) { return vector_of((double)v[0], (double)v[1], (double)v[2]); }

static json_t *plane_json(const kiln_plane *p)
{
    char name[40];
    file_name(p, name);
    return json_pack("{s:s, s:I, s:s, s:I}", "type", kiln_type_name(p->type), "components", (json_int_t)p->components, "file", name,
                     "bytes", (json_int_t)p->data.raw_bytes);
}

static json_t *chunk_json(const kiln_chunk *c)
{
    json_t *planes = json_object();
    for (uint32_t i = 0; i < c->n_planes && planes; i++)
        if (json_object_set_new(planes, c->planes[i].name, plane_json(&c->planes[i])) != 0) {
            json_decref(planes);
            planes = NULL;
        }
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", c->name, "parent", c->parent,
                     "count", (json_int_t)c->count, "level", (json_int_t)c->level, "hilbert_first", code(c->hilbert_lo),
                     "hilbert_last", code(c->hilbert_hi), "box_min", vector(c->box_min), "box_max", vector(c->box_max), "reach_min",
                     vector(c->reach_min), "reach_max", vector(c->reach_max), "max_log_scale",
                     kiln_json_real((double)c->max_log_scale), "max_opacity_logit", kiln_json_real((double)c->max_opacity_logit),
                     "planes", planes);
}

static json_t *index_json(const kiln_export *e)
{
    const kiln_scene *s = kiln_export_scene(e);
    const kiln_layer *layer = e->parts[0].layer;
    char hex[33];
    json_t *chunks = json_array();
    for (uint32_t i = 0; i < e->n_chunks && chunks; i++)
        if (json_array_append_new(chunks, chunk_json(e->chunks[i].chunk)) != 0) {
            json_decref(chunks);
            chunks = NULL;
        }
    return json_pack("{s:s, s:i, s:{s:s, s:i, s:b, s:o, s:o, s:o, s:s}, s:{s:s, s:s, s:I}, s:o}", "format", "splatkiln-chunks",
                     "version", 1, "scene", "name", s->name, "sh_degree", (int)layer->sh_degree, "antialiased", s->antialiased,
                     "origin", vector_of(s->origin[0], s->origin[1], s->origin[2]), "root_centre",
                     vector_of(s->root_centre[0], s->root_centre[1], s->root_centre[2]), "root_half", kiln_json_real(s->root_half),
                     "up_axis", s->up_axis, "layer", "kind", layer->kind, "digest", kiln_hash_hex(layer->digest, hex), "rows",
                     (json_int_t)e->n_rows, "chunks", chunks);
}

static json_t *load_index(const char *folder)
{
    char path[KILN_PATH_MAX];
    unsigned char *text = NULL;
    size_t size = 0;
    if (kiln_path_join(path, sizeof path, folder, INDEX, NULL) != KILN_OK || !kiln_is_file(path) ||
        kiln_file_read(path, INDEX_MAX, &text, &size, NULL) != KILN_OK)
        return NULL;
    json_t *index = NULL;
    if (kiln_json_parse((const char *)text, size, 0, path, &index, NULL, NULL) != KILN_OK)
        index = NULL; /* as if it were not there */
    free(text);
    return index;
}

/* Calls fn for every file that an index names; false as soon as fn says so, or the index is not one. */
typedef bool file_fn(void *context, const char *name, uint64_t bytes);
static bool each_file(const json_t *index, file_fn *fn, void *context)
{
    size_t i;
    json_t *chunk, *plane;
    const char *key;
    if (!json_is_array(json_object_get(index, "chunks"))) return false;
    json_array_foreach(json_object_get(index, "chunks"), i, chunk)
    {
        json_object_foreach(json_object_get(chunk, "planes"), key, plane)
        {
            const char *name = json_string_value(json_object_get(plane, "file")), *why;
            if (!name || !kiln_name_is_safe(name, &why)) return false;
            if (!fn(context, name, (uint64_t)json_integer_value(json_object_get(plane, "bytes")))) return false;
        }
    }
    return true;
}

static bool is_there(void *context, const char *name, uint64_t bytes)
{
    char path[KILN_PATH_MAX];
    return kiln_path_join(path, sizeof path, context, name, NULL) == KILN_OK && has_size(path, bytes);
}

static bool complete(const char *target)
{
    char folder[KILN_PATH_MAX];
    json_t *index = load_index(target);
    snprintf(folder, sizeof folder, "%s", target);
    bool all = index && each_file(index, is_there, folder);
    json_decref(index);
    return all;
}

/* ---- what an earlier export left --------------------------------------------------------------------------------------------- */

static bool remember(void *context, const char *name, uint64_t bytes)
{
    (void)bytes;
    return json_object_set_new(context, name, json_true()) == 0;
}

typedef struct {
    int folder;
    const json_t *needed;
} leftovers;

/* A name that we could have given: 32 hexadecimal digits, ".bin". The index of a folder may be a stranger's and name any file. */
static bool is_named_by_hash(const char *name) { return strspn(name, "0123456789abcdef") == 32 && strcmp(name + 32, ".bin") == 0; }

static bool remove_unneeded(void *context, const char *name, uint64_t bytes)
{
    const leftovers *l = context;
    (void)bytes;
    if (is_named_by_hash(name) && !json_object_get(l->needed, name))
        (void)unlinkat(l->folder, name, 0); /* two chunks may share it */
    return true;
}

/* Removes what the index of before names and the new one does not. A folder that is a link may be a stranger's way to another one:
 * there everything stays. */
static void remove_leftovers(const char *folder, json_t *before, const json_t *needed)
{
    leftovers l = {.folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .needed = needed};
    if (l.folder < 0) return;
    (void)each_file(before, remove_unneeded, &l);
    (void)close(l.folder);
}

static kiln_status finish(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const kiln_export *e = p->e;
    char path[KILN_PATH_MAX];
    json_t *before = load_index(e->target), *now = index_json(e), *needed = json_object();
    char *text = kiln_json_text(now, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    if (!text || !needed || !each_file(now, remember, needed)) {
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory while writing the index of '%s'", e->target);
        goto done;
    }
    KILN_GO(kiln_path_join(path, sizeof path, e->target, INDEX, err));
    KILN_GO(kiln_file_write(path, text, strlen(text), err));
    if (before) remove_leftovers(e->target, before, needed);
    drop_half_written(e); /* of a worker that was replaced */
done:
    free(text);
    json_decref(needed);
    json_decref(now);
    json_decref(before);
    return st;
}

/* Whole files stay: they are named by their content, and the next export uses them. No worker runs any more. */
static void abandon(const kiln_export *e) { drop_half_written(e); }

static const kiln_export_round rounds[] = {{.what = "exporting", .ram = ram, .run = write_chunk}};

const kiln_writer_functions kiln_writer_chunks = {
    .place = KILN_PLACE_SHARED,
    .plan = plan,
    .begin = begin,
    .rounds = rounds,
    .n_rounds = 1,
    .finish = finish,
    .abandon = abandon,
    .last_file = INDEX,
    .complete = complete,
};
