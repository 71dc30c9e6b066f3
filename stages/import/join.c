/* join -- see the header. */
#include "stages/import/join.h"

#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const kiln_move nothing = {.scale = 1};

static bool move_is_given(const kiln_move *m) { return memcmp(m, &nothing, sizeof nothing) != 0; }

static void fill_part(kiln_join_part *p, const char *path, const kiln_reader *reader,
                      const kiln_path *members, uint32_t n_members, const kiln_move *own,
                      const kiln_move *all)
{
    kiln_similarity first, then;
    *p = (kiln_join_part){
        .path = path, .reader = reader, .members = members, .n_members = n_members};
    p->own = own->scale == 0 ? nothing : *own;
    p->prepared.unpacked_fd = p->prepared.spool_fd = KILN_PREPARED_NONE;
    kiln_similarity_of_move(&p->own, &first);
    kiln_similarity_of_move(all, &then);
    kiln_similarity_compose(&then, &first, &p->move);
}

kiln_status kiln_parts_make(const kiln_dataset *d, const kiln_move *all, kiln_join_part **out,
                            uint32_t *n, kiln_error *err)
{
    *n = d->reader ? 1 + d->n_more : 0;
    *out = NULL;
    if (*n == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(out, *n, "files of rows", err));
    fill_part(*out, d->rows_path, d->reader, d->members, d->n_members, &d->rows_move, all);
    for (uint32_t k = 0; k < d->n_more; k++) {
        const kiln_rows_file *f = &d->more[k];
        fill_part(*out + 1 + k, f->path, f->reader, f->members, f->n_members, &f->move, all);
    }
    return KILN_OK;
}

const kiln_join_part *kiln_part_of_block(const kiln_join_part *parts, uint32_t n, uint64_t block)
{
    /* the last part that begins at it or before; of those without blocks the last */
    uint32_t lo = 0, hi = n;
    while (hi - lo > 1) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (parts[middle].first_block <= block)
            lo = middle;
        else
            hi = middle;
    }
    return &parts[lo];
}

/* ---- what the files have in common ----------------------------------------------------------- */

static const char *kind_name(kiln_scene_kind kind)
{
    return kind == KILN_SCENE_SPLATS ? "Gaussians" : "points";
}

static kiln_status check_together(const kiln_join_part *a, const kiln_join_part *b, kiln_error *err)
{
    const kiln_source_info *x = &a->scan.info, *y = &b->scan.info;
    if (x->kind != y->kind)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%.1500s' holds %s and '%.1500s' holds %s; they cannot be joined",
                         a->path, kind_name(x->kind), b->path, kind_name(y->kind));
    if (x->antialiased != y->antialiased)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%.1500s' was trained %s antialiasing and '%.1500s' %s it; one picture "
                         "cannot be right for both",
                         a->path, x->antialiased ? "with" : "without", b->path,
                         y->antialiased ? "with" : "without");
    return KILN_OK;
}

static const kiln_extra *find_extra(const kiln_source_info *info, const char *name)
{
    for (uint32_t e = 0; e < info->n_extras; e++)
        if (strcmp(info->extras[e].name, name) == 0) return &info->extras[e];
    return NULL;
}

/* Leaves out what would be stale. */
static void drop_raw(kiln_join_part *p)
{
    for (uint32_t e = 0; e < p->scan.info.n_extras; e++)
        if (p->scan.info.extras[e].raw) p->scan.keep[e] = 0;
}

/* Adds the columns of a part that are kept to those of all. */
static kiln_status unite_extras(const kiln_join_part *p, kiln_source_info *all,
                                const kiln_join_part *first, kiln_error *err)
{
    for (uint32_t e = 0; e < p->scan.info.n_extras; e++) {
        const kiln_extra *x = &p->scan.info.extras[e], *there = find_extra(all, x->name);
        if (!p->scan.keep[e]) continue;
        if (there && there->type != x->type)
            return kiln_fail(err, KILN_E_INPUT,
                             "column '%s' of '%.1500s' is of another type than in the files before "
                             "it, of which '%.1500s' is the "
                             "first; they cannot be joined",
                             x->name, p->path, first->path);
        if (there) continue;
        if (all->n_extras == KILN_EXTRAS_MAX)
            return kiln_fail(err, KILN_E_INPUT,
                             "the joined files have more than %d different extra columns",
                             KILN_EXTRAS_MAX);
        all->extras[all->n_extras++] = *x;
    }
    return KILN_OK;
}

/* The columns of all that this part lacks become zeros. */
static kiln_status add_zeros(kiln_join_part *p, const kiln_source_info *all, kiln_error *err)
{
    kiln_source_info *info = &p->scan.info;
    for (uint32_t e = 0; e < all->n_extras; e++) {
        if (find_extra(info, all->extras[e].name)) continue;
        if (p->n_zeros == KILN_ZEROS_MAX || info->n_extras == KILN_EXTRAS_MAX)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%.1500s' lacks more than %d columns that other files have", p->path,
                             KILN_ZEROS_MAX);
        kiln_zeros *z = &p->zeros[p->n_zeros++];
        memcpy(z->name, all->extras[e].name, sizeof z->name);
        z->type = all->extras[e].type;
        p->scan.keep[info->n_extras] = 1;
        info->extras[info->n_extras++] = all->extras[e];
    }
    return KILN_OK;
}

static void unite_info(const kiln_source_info *p, kiln_source_info *all)
{
    const size_t used = strlen(all->notes);
    all->sh_degree = p->sh_degree > all->sh_degree ? p->sh_degree : all->sh_degree;
    all->wide |= p->wide;
    all->has_rgb |= p->has_rgb;
    all->rgb_u8 &= p->rgb_u8;
    all->folded |= p->folded;
    if (p->dialect != all->dialect) all->dialect = KILN_DIALECT_3DGS;
    if (strcmp(p->writer, all->writer) != 0) all->writer[0] = '\0';
    if (!all->up_axis[0]) memcpy(all->up_axis, p->up_axis, sizeof all->up_axis);
    if (p->notes[0])
        snprintf(all->notes + used, sizeof all->notes - used, "%s%s", used ? "; " : "", p->notes);
    const size_t said = strlen(all->remarks);
    if (p->remarks[0])
        snprintf(all->remarks + said, sizeof all->remarks - said, "%s%s", said ? "; " : "",
                 p->remarks);
}

/* Rows are counted in 32 bits. */
static kiln_status count_joined_rows(kiln_join_part *parts, uint32_t n, kiln_scan *out,
                                     kiln_error *err)
{
    uint64_t rows = 0, blocks = 0;
    for (uint32_t k = 0; k < n; k++) {
        parts[k].first_row = rows;
        parts[k].first_block = blocks;
        rows += parts[k].scan.info.n_rows;
        blocks += parts[k].scan.n_blocks;
        if (rows > UINT32_MAX - 1)
            return kiln_fail(err, KILN_E_INPUT,
                             "the joined files have more than 4294967294 rows, up to and with "
                             "'%s'; ids have 32 bits",
                             parts[k].path);
    }
    out->info.n_rows = rows;
    out->n_blocks = blocks;
    return KILN_OK;
}

static void take_offsets(kiln_join_part *parts, uint32_t n, const uint64_t *offsets)
{
    for (uint32_t k = 0; k < n; offsets += parts[k++].scan.n_blocks) parts[k].offsets = offsets;
}

kiln_status kiln_join(kiln_join_part *parts, uint32_t n, const uint64_t *offsets, kiln_scan *out,
                      kiln_error *err)
{
    take_offsets(parts, n, offsets);
    for (uint32_t k = 0; k < n; k++) {
        parts[k].file_degree = parts[k].scan.info.sh_degree;
        parts[k].file_rgb = parts[k].scan.info.has_rgb;
        if (n > 1 || !kiln_similarity_is_identity(&parts[k].move)) drop_raw(&parts[k]);
    }
    *out = parts[0].scan;
    if (n == 1) return KILN_OK;
    for (uint32_t k = 1; k < n; k++) KILN_TRY(check_together(&parts[0], &parts[k], err));
    out->info.n_extras = 0;
    out->info.layout[0] = '\0'; /* of one file */
    for (uint32_t k = 0; k < n; k++) {
        if (k > 0) unite_info(&parts[k].scan.info, &out->info);
        KILN_TRY(unite_extras(&parts[k], &out->info, &parts[0], err));
    }
    memset(out->keep, 1, sizeof out->keep);
    for (uint32_t k = 0; k < n; k++) {
        KILN_TRY(add_zeros(&parts[k], &out->info, err));
        parts[k].scan.info.sh_degree = out->info.sh_degree;
        parts[k].scan.info.has_rgb = out->info.has_rgb;
    }
    return count_joined_rows(parts, n, out, err);
}

void kiln_join_say(const kiln_join_part *parts, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        char names[KILN_ZEROS_MAX * (sizeof parts->zeros->name + 2) + 1] = "";
        size_t used = 0;
        for (uint32_t z = 0; z < parts[k].n_zeros; z++)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", z ? ", " : "",
                                     parts[k].zeros[z].name);
        if (used)
            kiln_say("'%s' lacks columns that other files have; its rows have 0 there: %s",
                     parts[k].path, names);
    }
}

void kiln_join_say_moves(const kiln_join_part *parts, uint32_t n, const kiln_move *all)
{
    char text[KILN_MOVE_TEXT];
    for (uint32_t k = 0; k < n; k++) {
        kiln_move_text(&parts[k].own, text, sizeof text);
        if (text[0]) kiln_say("only '%.1500s' is moved: %s", parts[k].path, text);
    }
    kiln_move_text(all, text, sizeof text);
    if (text[0]) kiln_say("moved: %s%s", n > 1 ? "all: " : "", text);
}

/* ---- what is written of it ------------------------------------------------------------------- */

/* file < 0: of all. */
static int put_move(json_t *list, const kiln_move *m, json_int_t file)
{
    json_t *o =
        json_pack("{s:o, s:o, s:o}", "translate", kiln_json_reals(m->translate, 3), "rotate",
                  kiln_json_reals(m->rotate, 3), "scale", kiln_json_real(m->scale));
    if (o && file >= 0 && json_object_set_new(o, "file", json_integer(file)) != 0) {
        json_decref(o);
        o = NULL;
    }
    return o ? json_array_append_new(list, o) : -1;
}

kiln_status kiln_join_transforms(const kiln_join_part *parts, uint32_t n, const kiln_move *all,
                                 char *text, size_t capacity, kiln_error *err)
{
    json_t *list = NULL;
    int failed = 0;
    bool any = move_is_given(all);
    for (uint32_t k = 0; k < n; k++) any |= move_is_given(&parts[k].own);
    if (!any) return KILN_OK;
    if (*text)
        KILN_TRY(kiln_json_parse(text, strlen(text), 0, "the transforms of the camera files", &list,
                                 NULL, err));
    else
        list = json_array();
    for (uint32_t k = 0; k < n; k++)
        if (move_is_given(&parts[k].own)) failed |= put_move(list, &parts[k].own, (json_int_t)k);
    if (move_is_given(all)) failed |= put_move(list, all, -1);
    const size_t need =
        failed || !list ? 0
                        : kiln_json_put(list, text, capacity - 1, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(list);
    if (need == 0) return kiln_fail(err, KILN_E_NOMEM, "out of memory while describing the scene");
    if (need > capacity - 1)
        return kiln_fail(err, KILN_E_INPUT,
                         "too many files have moves of their own: the scene would need %zu bytes "
                         "for them, at most %zu are possible",
                         need, capacity - 1);
    text[need] = '\0';
    return KILN_OK;
}

json_t *kiln_join_files(const kiln_join_part *parts, uint32_t n, bool details)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < n; k++) {
        const kiln_join_part *p = &parts[k];
        const json_int_t rows = (json_int_t)p->scan.info.n_rows;
        json_t *o = details ? json_pack("{s:o, s:s, s:s*, s:I, s:I, s:i}", "path",
                                        kiln_json_string(p->path), "format", p->reader->name,
                                        "axes", p->scan.info.axes[0] ? p->scan.info.axes : NULL,
                                        "first_row", (json_int_t)p->first_row, "rows", rows,
                                        "sh_degree", (int)p->file_degree)
                            : json_integer(rows);
        if (json_array_append_new(list, o) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
