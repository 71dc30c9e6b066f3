/* lod_write -- streamed SOG of PlayCanvas: lod-meta.json and a folder of SOG for each file of a
 * level (lod_plan.h).
 *
 *   0  chunks of leaves    boxes of leaves
 *   1  chunks of the others: which leaf their rows belong to; then the parent knows all files
 *   2  files               one a unit, whole in memory
 *
 * Memory is that of a file: KILN_LOD_FILE_ROWS rows and a chunk. */
#include "stages/formats/float_places.h"
#include "stages/formats/lod/lod.h"
#include "stages/formats/lod/lod_leaves.h"
#include "stages/formats/lod/lod_meta.h"
#include "stages/formats/lod/lod_plan.h"
#include "stages/formats/lod/lod_set.h"
#include "stages/formats/rows.h"
#include "stages/formats/sog/sog_layout.h"
#include "stages/image/webp_encode.h"

#include "base/file.h"
#include "base/minmax.h"
#include "stages/engine/json_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { META_MAX = 1 << 30 };
static const kiln_export_count counts[] = {
    {"coefficient was clamped to 32 times its usual size",
     "coefficients were clamped to 32 times their usual size"},
    {NULL, NULL}};

static const kiln_lod_head *head_of(const kiln_export *e) { return e->plan; }

static uint64_t read_max(const kiln_export *e)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < e->n_chunks; i++)
        most = kiln_max_u64(most, kiln_export_rows_ram(e, i, KILN_ROWS_SPLAT));
    return most;
}

static uint64_t rows_max(const kiln_export *e)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < e->n_chunks; i++) most = kiln_max_u64(most, e->chunks[i].n);
    return most;
}

static uint64_t foresee_lod(const kiln_export *e)
{
    kiln_buffer plan = {0};
    uint64_t ram = kiln_lod_set_ram(e, kiln_lod_file_rows_max(e), rows_max(e), read_max(e));
    if (kiln_lod_plan_begin(e, &plan, NULL) == KILN_OK)
        ram += kiln_export_shared_ram(e, plan.size + e->n_chunks * sizeof(kiln_lod_file));
    kiln_buffer_release(&plan);
    return ram;
}

static kiln_status plan_lod(kiln_export_parent *p, kiln_error *err)
{
    if (p->e->sh_degree > KILN_SOG_DEGREE_MAX)
        KILN_TRY(kiln_export_note(p, err, "SOG holds no spherical harmonics above degree 3"));
    KILN_TRY(kiln_float_places_note(p, err));
    return kiln_lod_plan_begin(p->e, p->plan, err);
}

/* ---- rounds 0 and 1: leaves ------------------------------------------------------------------ */

static uint64_t own_chunks(const kiln_export *e) { return head_of(e)->n_own; }
static uint64_t inner_chunks(const kiln_export *e) { return head_of(e)->n_inner; }
static uint32_t own_at(const kiln_export *e, uint64_t unit)
{
    return KILN_LOD_AT(e->plan, uint32_t, head_of(e)->own)[unit];
}
static uint32_t inner_at(const kiln_export *e, uint64_t unit)
{
    return KILN_LOD_AT(e->plan, uint32_t, head_of(e)->inner)[unit];
}

static uint64_t tally_ram(const kiln_export *e, uint32_t chunk)
{
    uint32_t first, end;
    kiln_lod_leaves_of(e->tree, e->chunks[chunk].node, &first, &end);
    return kiln_export_rows_ram(e, chunk, KILN_LOD_PLANES) + 4 * e->chunks[chunk].n +
           2 * (end - first) * sizeof(kiln_lod_tally);
}

static uint64_t own_ram(const kiln_export *e, uint64_t unit)
{
    return tally_ram(e, own_at(e, unit));
}
static uint64_t inner_ram(const kiln_export *e, uint64_t unit)
{
    return tally_ram(e, inner_at(e, unit));
}

static kiln_status tally_leaves(kiln_export_worker *x, uint32_t chunk, bool divides,
                                kiln_error *err)
{
    const kiln_lod_head *h = head_of(x->e);
    kiln_export_rows rows;
    kiln_lod_tally *tallies = NULL;
    uint32_t first, end, *leaf = NULL;
    kiln_status st = KILN_OK;
    kiln_lod_leaves_of(x->e->tree, x->e->chunks[chunk].node, &first, &end);
    KILN_TRY(kiln_export_rows_read(x, chunk, KILN_LOD_PLANES, &rows, err));
    KILN_GO(KILN_ALLOC(&tallies, end - first, "boxes of leaves", err));
    if (divides) {
        KILN_GO(KILN_ALLOC_UNSET(&leaf, rows.n, "leaves", err));
        kiln_lod_leaf_of_rows(KILN_LOD_AT(h, kiln_lod_leaf, h->leaves), first, end, rows.n,
                              rows.means, leaf);
    }
    kiln_lod_tally_rows(&rows, leaf, first, end, tallies);
    KILN_GO(kiln_export_result(x, tallies, (end - first) * sizeof *tallies, err));
done:
    free(leaf);
    free(tallies);
    kiln_export_rows_release(&rows);
    return st;
}

static kiln_status tally_own(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    return tally_leaves(x, own_at(x->e, unit), false, err);
}
static kiln_status tally_inner(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    return tally_leaves(x, inner_at(x->e, unit), true, err);
}

static void take_tally(kiln_lod_leaf *leaf, const kiln_lod_tally *t, bool finest)
{
    for (int c = 0; c < 3; c++) {
        if (t->lo[c] < leaf->lo[c]) leaf->lo[c] = t->lo[c];
        if (t->hi[c] > leaf->hi[c]) leaf->hi[c] = t->hi[c];
        if (!finest) continue;
        leaf->mean_lo[c] = t->mean_lo[c];
        leaf->mean_hi[c] = t->mean_hi[c];
    }
}

static kiln_status take_leaf_tallies(kiln_export_parent *p, uint32_t chunk, const void *result,
                                     size_t bytes, kiln_error *err)
{
    void *data = p->plan->data;
    const kiln_lod_head *h = data;
    const kiln_export_chunk *c = &p->e->chunks[chunk];
    const kiln_lod_tally *tallies = result;
    uint32_t first, end;
    kiln_lod_leaves_of(p->e->tree, c->node, &first, &end);
    if (bytes != (end - first) * sizeof *tallies)
        return kiln_fail(err, KILN_E_BUG, "boxes of leaves as %zu bytes", bytes);
    for (uint32_t i = first; i < end; i++) {
        KILN_LOD_AT(data, kiln_lod_part, h->parts)
        [(uint64_t)i * h->n_levels + c->level].n = tallies[i - first].n;
        if (tallies[i - first].n)
            take_tally(&KILN_LOD_AT(data, kiln_lod_leaf, h->leaves)[i], &tallies[i - first],
                       c->level == 0);
    }
    return KILN_OK;
}

static kiln_status take_own(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes,
                            kiln_error *err)
{
    return take_leaf_tallies(p, own_at(p->e, unit), result, bytes, err);
}
static kiln_status take_inner(kiln_export_parent *p, uint64_t unit, const void *result,
                              size_t bytes, kiln_error *err)
{
    return take_leaf_tallies(p, inner_at(p->e, unit), result, bytes, err);
}

/* ---- round 2: files -------------------------------------------------------------------------- */

/* None before there is a plan: a file is not known by then. */
static uint64_t lod_file_units(const kiln_export *e) { return e->plan ? head_of(e)->n_files : 0; }
static uint64_t file_rows(const kiln_export *e, uint64_t unit)
{
    return KILN_LOD_AT(e->plan, kiln_lod_file, head_of(e)->files)[unit].rows;
}
static uint64_t file_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_lod_set_ram(e, file_rows(e, unit), rows_max(e), read_max(e));
}
static uint64_t file_ram_thread(const kiln_export *e, uint64_t unit)
{
    return kiln_lod_set_ram_thread(e, file_rows(e, unit));
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Behind the last round without inner nodes there is no end of round 1, so files are planned where
 * round 2 begins. */
static kiln_status plan_files(kiln_export_parent *p, kiln_error *err)
{
    const kiln_lod_head *h = (const kiln_lod_head *)(const void *)p->plan->data;
    return h->n_files ? KILN_OK : kiln_lod_plan_files(p->e, p->plan, err);
}

static kiln_status end_own(kiln_export_parent *p, kiln_error *err)
{
    const kiln_lod_head *h = (const kiln_lod_head *)(const void *)p->plan->data;
    return h->n_inner ? KILN_OK : plan_files(p, err);
}

static kiln_status finish_lod(kiln_export_parent *p, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_buffer text = {0};
    int fd = -1;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_path_join(path, sizeof path, p->e->temporary, KILN_LOD_META, err));
    KILN_GO(kiln_lod_meta_put(p->e, p->plan->data, &text, err));
    KILN_GO(kiln_file_create(path, &fd, err));
    st = kiln_file_write_at(fd, path, 0, text.data, text.size, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
done:
    kiln_buffer_release(&text);
    return st;
}

/* "1_0/meta.json" and what it names. */
static bool lod_set_is_there(const char *target, const char *name)
{
    char path[KILN_PATH_MAX];
    const char *why, *slash = name ? strchr(name, '/') : NULL;
    if (!slash || !kiln_name_is_safe(name, &why) ||
        kiln_path_join(path, sizeof path, target, name, NULL) != KILN_OK)
        return false;
    path[strlen(path) - strlen(slash)] = '\0';
    return kiln_sog_complete(path);
}

static bool lod_is_complete(const char *target)
{
    char path[KILN_PATH_MAX];
    unsigned char *text;
    size_t size, i;
    json_t *meta = NULL, *name;
    if (kiln_path_join(path, sizeof path, target, KILN_LOD_META, NULL) != KILN_OK) return false;
    if (kiln_file_read(path, META_MAX, &text, &size, NULL) != KILN_OK) return false;
    bool all =
        kiln_json_parse((const char *)text, size, 0, path, &meta, NULL, NULL) == KILN_OK && meta;
    free(text);
    json_array_foreach(json_object_get(meta, KILN_LOD_KEY_FILES), i, name) all =
        all && lod_set_is_there(target, json_string_value(name));
    json_decref(meta);
    return all;
}

/* lod-meta.json, or LEVEL_NUMBER/ and a file of SOG. */
static bool is_lod_file(const char *name)
{
    static const char digits[] = "0123456789";
    if (strcmp(name, KILN_LOD_META) == 0) return true;
    const size_t level = strspn(name, digits);
    if (level == 0 || name[level] != '_') return false;
    const size_t number = strspn(name + level + 1, digits);
    const char *file = name + level + 1 + number;
    if (number == 0 || *file++ != '/') return false;
    bool found = strcmp(file, KILN_SOG_META) == 0;
    for (int i = 0; i < KILN_SOG_IMAGES; i++)
        found = found || strcmp(file, kiln_sog_pictures[i].file) == 0;
    return found;
}

static const kiln_export_round rounds[] = {
    {.what = "leaf",
     .units = own_chunks,
     .ram = own_ram,
     .run = tally_own,
     .gather = take_own,
     .end = end_own},
    {.what = "inner node",
     .units = inner_chunks,
     .ram = inner_ram,
     .run = tally_inner,
     .gather = take_inner,
     .end = plan_files},
    {.what = "file",
     .units = lod_file_units,
     .ram = file_ram,
     .ram_thread = file_ram_thread,
     .run = kiln_lod_set_write,
     .computes = true},
};

const kiln_writer_functions kiln_writer_lod = {.place = KILN_PLACE_FOLDER,
                                               .reader = "lod",
                                               .counts = counts,
                                               .foresee = foresee_lod,
                                               .plan = plan_lod,
                                               .rounds = rounds,
                                               .n_rounds = sizeof rounds / sizeof *rounds,
                                               .finish = finish_lod,
                                               .is_ours = is_lod_file,
                                               .last_file = KILN_LOD_META,
                                               .complete = lod_is_complete};
