/* scene -- the one scene row, and the list of source files that freshness is judged by. */
#include "base/memory.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"none", "points", "splats"}; /* by kiln_scene_kind */

static void bind_optional(kiln_query *q, bool has, double v)
{
    if (has)
        kiln_bind_f64(q, v);
    else
        kiln_bind_null(q);
}

kiln_status kiln_scene_put(kiln_manifest *m, const kiln_scene *s, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_row_check_scene(s, err)); /* what could not be read again */
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT OR REPLACE INTO scene (id, name, kind, source_path, source_format, rows_read, "
        "rows_dropped, sh_degree,"
        " antialiased, frame, up_axis, unit, origin_x, origin_y, origin_z, transforms, root_x, "
        "root_y, root_z,"
        " root_half, background_r, background_g, background_b, notes)"
        " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err));
    kiln_bind_text(&q, s->name);
    kiln_bind_text(&q, kinds[s->kind]);
    kiln_bind_text(&q, s->source_path);
    kiln_bind_text(&q, s->source_format);
    kiln_bind_u64(&q, s->rows_read);
    kiln_bind_u64(&q, s->rows_dropped);
    kiln_bind_i64(&q, s->sh_degree);
    kiln_bind_i64(&q, s->antialiased);
    kiln_bind_text(&q, s->frame);
    kiln_bind_text(&q, s->up_axis);
    kiln_bind_text(&q, s->unit);
    for (int i = 0; i < 3; i++) kiln_bind_f64(&q, s->origin[i]);
    kiln_bind_text(&q, s->transforms[0] ? s->transforms : "[]");
    for (int i = 0; i < 3; i++) bind_optional(&q, s->has_root, s->root_centre[i]);
    bind_optional(&q, s->has_root, s->root_half);
    for (int i = 0; i < 3; i++) bind_optional(&q, s->has_background, s->background[i]);
    kiln_bind_text(&q, s->notes[0] ? s->notes : "{}");
    return kiln_query_run(&q, err);
}

/* NULL, that is NaN, in the first of several optional columns means that there are none. */
static bool read_optional(kiln_query *q, double *out, int n)
{
    for (int i = 0; i < n; i++) out[i] = kiln_column_f64(q);
    if (!isnan(out[0])) return true;
    memset(out, 0, (size_t)n * sizeof *out);
    return false;
}

static bool find_kind(const char *kind, kiln_scene_kind *out)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(kind, kinds[i]) != 0) continue;
        *out = (kiln_scene_kind)i;
        return true;
    }
    return false;
}

static kiln_status read_scene(kiln_query *q, kiln_scene *s, kiln_error *err)
{
    char kind[16];
    double root[4];
    kiln_column_text(q, s->name, sizeof s->name);
    kiln_column_text(q, kind, sizeof kind);
    const bool is_kind = find_kind(kind, &s->kind);
    kiln_column_text(q, s->source_path, sizeof s->source_path);
    kiln_column_text(q, s->source_format, sizeof s->source_format);
    s->rows_read = kiln_column_u64(q);
    s->rows_dropped = kiln_column_u64(q);
    s->sh_degree = kiln_column_u32(q);
    s->antialiased = kiln_column_bool(q);
    kiln_column_text(q, s->frame, sizeof s->frame);
    kiln_column_text(q, s->up_axis, sizeof s->up_axis);
    kiln_column_text(q, s->unit, sizeof s->unit);
    for (int i = 0; i < 3; i++) s->origin[i] = kiln_column_f64(q);
    kiln_column_text(q, s->transforms, sizeof s->transforms);
    s->has_root = read_optional(q, root, 4);
    memcpy(s->root_centre, root, sizeof s->root_centre);
    s->root_half = root[3];
    s->has_background = read_optional(q, s->background, 3);
    kiln_column_text(q, s->notes, sizeof s->notes);
    const bool is_json = kiln_column_bool(q), is_first = kiln_column_i64(q) == 1;
    KILN_TRY(kiln_query_check(q, err));
    if (!is_kind)
        return kiln_fail(err, KILN_E_INPUT, "the scene is of an unknown kind: '%s'", kind);
    if (!is_json)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the scene's notes are not a JSON object, or its transforms are not a JSON array");
    if (!is_first) return kiln_fail(err, KILN_E_INPUT, "the scene's row has another number than 1");
    return kiln_row_check_scene(s, err);
}

kiln_status kiln_scene_get(kiln_manifest *m, kiln_scene *out, kiln_error *err)
{
    kiln_query q;
    bool row;
    *out = (kiln_scene){0};
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT name, kind, source_path, source_format, rows_read, "
                             "rows_dropped, sh_degree, antialiased, frame,"
                             " up_axis, unit, origin_x, origin_y, origin_z, transforms, root_x, "
                             "root_y, root_z, root_half,"
                             " background_r, background_g, background_b, notes,"
                             " iif(json_valid(notes) AND json_valid(transforms), json_type(notes) "
                             "= 'object' AND json_type(transforms) ="
                             " 'array', 0), id FROM scene ORDER BY id",
                             err));
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && !row)
        st = kiln_fail(err, KILN_E_STALE, "nothing is imported into '%s'; run kiln-import first",
                       m->path);
    if (st == KILN_OK) st = kiln_row_take(m, &q, read_scene(&q, out, err), err);
    if (st == KILN_OK) st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row)
        st =
            kiln_row_take(m, &q, kiln_fail(err, KILN_E_INPUT, "there is more than one scene"), err);
    kiln_query_close(&q);
    return st;
}

/* ---- source files ---------------------------------------------------------------------------- */
static kiln_status insert_source(kiln_manifest *m, const kiln_source_file *f, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO source_file (path, role, size, mtime_ns, inode, hash) "
                             "VALUES (?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_text(&q, f->path);
    kiln_bind_text(&q, f->role);
    kiln_bind_u64(&q, f->size);
    kiln_bind_i64(&q, f->mtime_ns);
    kiln_bind_i64(&q, (int64_t)f->inode); /* 64 bits on some file systems: kept by bits */
    kiln_bind_hash(&q, f->hash);
    return kiln_query_run(&q, err);
}

kiln_status kiln_sources_put(kiln_manifest *m, const kiln_source_file *files, uint32_t n,
                             kiln_error *err)
{
    bool own;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_group_begin(m, &own, err));
    /* WHERE true: row by row, whose steps are counted, instead of page by page, where a loop in a
     * b-tree has no end */
    KILN_GO(kiln_sql(m, "DELETE FROM source_file WHERE true", err));
    for (uint32_t i = 0; i < n; i++) KILN_GO(insert_source(m, &files[i], err));
done:
    return kiln_group_end(m, own, st, err);
}

enum { PATH_BYTES = 4096 };

static void read_source(kiln_query *q, kiln_texts *texts, kiln_source_file *f)
{
    f->path = kiln_column_text_kept(q, PATH_BYTES, texts);
    kiln_column_text(q, f->role, sizeof f->role);
    f->size = kiln_column_u64(q);
    f->mtime_ns = kiln_column_i64(q);
    f->inode = (uint64_t)kiln_column_i64(q);
    f->hash = kiln_column_hash(q);
}

static kiln_status check_source(const kiln_source_file *files, uint32_t i, kiln_error *err)
{
    KILN_TRY(kiln_row_check_source(&files[i], err));
    if (i == 0 || strcmp(files[i - 1].path, files[i].path) < 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the source file '%.300s' occurs twice or is out of order",
                     files[i].path);
}

static kiln_status read_sources(kiln_manifest *m, kiln_texts *texts, kiln_source_file **files,
                                uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT path, role, size, mtime_ns, inode, hash FROM source_file ORDER BY path",
        err));
    for (;; ++*n) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_reserve((void **)files, *n, sizeof **files, "source files", err));
        read_source(&q, texts, &(*files)[*n]);
        st = kiln_query_check(&q, err);
        if (st == KILN_OK) st = check_source(*files, *n, err);
        KILN_GO(kiln_row_take(m, &q, st, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_sources_get(kiln_manifest *m, kiln_source_file **out, uint32_t *n, kiln_error *err)
{
    *out = NULL;
    *n = 0;
    static const size_t fields[] = {offsetof(kiln_source_file, path)};
    kiln_texts texts = {0};
    kiln_status st = read_sources(m, &texts, out, n, err);
    if (st == KILN_OK && *n)
        st = kiln_rows_own_texts((void **)out, *n, sizeof **out, fields, 1, err);
    kiln_texts_release(&texts);
    if (st == KILN_OK && *n == 0) st = KILN_ALLOC(out, 0, "source files", err); /* never NULL */
    if (st == KILN_OK) return st;
    free(*out);
    *out = NULL;
    *n = 0;
    return st;
}

/* One row at a time, for callers that keep less of each. */
kiln_status kiln_sources_visit(kiln_manifest *m, kiln_source_visit_fn *visit, void *context,
                               kiln_error *err)
{
    kiln_query q;
    kiln_source_file f;
    kiln_texts texts = {0};
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT path, role, size, mtime_ns, inode, hash FROM source_file ORDER BY path",
        err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_texts_clear(&texts);
        read_source(&q, &texts, &f);
        st = kiln_query_check(&q, err);
        if (st == KILN_OK) st = kiln_row_check_source(&f, err);
        KILN_GO(kiln_row_take(m, &q, st, err));
        KILN_GO(visit(context, &f, err));
    }
done:
    kiln_texts_release(&texts);
    kiln_query_close(&q);
    return st;
}
