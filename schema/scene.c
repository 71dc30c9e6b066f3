/* scene -- the one scene row, and the list of source files that freshness is judged by. */
#include "base/memory.h"
#include "schema/manifest_internal.h"

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
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT OR REPLACE INTO scene (id, name, kind, source_path, source_format, rows_read, rows_dropped, sh_degree,"
        " antialiased, frame, up_axis, unit, origin_x, origin_y, origin_z, transforms, root_x, root_y, root_z,"
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

static void read_scene(kiln_query *q, kiln_scene *s)
{
    char kind[16];
    double root[4];
    kiln_column_text(q, s->name, sizeof s->name);
    kiln_column_text(q, kind, sizeof kind);
    for (int i = 0; i < 3; i++)
        if (strcmp(kind, kinds[i]) == 0) s->kind = (kiln_scene_kind)i;
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
}

kiln_status kiln_scene_get(kiln_manifest *m, kiln_scene *out, kiln_error *err)
{
    kiln_query q;
    bool row;
    *out = (kiln_scene){0};
    KILN_TRY(
        kiln_query_open(m, &q,
                        "SELECT name, kind, source_path, source_format, rows_read, rows_dropped, sh_degree, antialiased, frame,"
                        " up_axis, unit, origin_x, origin_y, origin_z, transforms, root_x, root_y, root_z, root_half,"
                        " background_r, background_g, background_b, notes FROM scene",
                        err));
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && !row) st = kiln_fail(err, KILN_E_STALE, "nothing is imported into '%s'; run kiln-import first", m->path);
    if (st == KILN_OK) {
        read_scene(&q, out);
        st = kiln_query_check(&q, err);
    }
    kiln_query_close(&q);
    return st;
}

/* ---- source files ------------------------------------------------------------------------------------------------ */
static kiln_status insert_source(kiln_manifest *m, const kiln_source_file *f, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(
        kiln_query_open(m, &q, "INSERT INTO source_file (path, role, size, mtime_ns, inode, hash) VALUES (?, ?, ?, ?, ?, ?)", err));
    kiln_bind_text(&q, f->path);
    kiln_bind_text(&q, f->role);
    kiln_bind_u64(&q, f->size);
    kiln_bind_i64(&q, f->mtime_ns);
    kiln_bind_i64(&q, (int64_t)f->inode); /* 64 bits on some file systems: kept by bits */
    kiln_bind_hash(&q, f->hash);
    return kiln_query_run(&q, err);
}

kiln_status kiln_sources_put(kiln_manifest *m, const kiln_source_file *files, uint32_t n, kiln_error *err)
{
    bool own;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_group_begin(m, &own, err));
    KILN_GO(kiln_sql(m, "DELETE FROM source_file", err));
    for (uint32_t i = 0; i < n; i++) KILN_GO(insert_source(m, &files[i], err));
done:
    return kiln_group_end(m, own, st, err);
}

static void read_source(kiln_query *q, kiln_source_file *f)
{
    kiln_column_text(q, f->path, sizeof f->path);
    kiln_column_text(q, f->role, sizeof f->role);
    f->size = kiln_column_u64(q);
    f->mtime_ns = kiln_column_i64(q);
    f->inode = (uint64_t)kiln_column_i64(q);
    f->hash = kiln_column_hash(q);
}

static kiln_status read_sources(kiln_manifest *m, kiln_source_file *files, uint32_t room, uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, "SELECT path, role, size, mtime_ns, inode, hash FROM source_file ORDER BY path", err));
    for (*n = 0; *n < room; ++*n) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        read_source(&q, &files[*n]);
        KILN_GO(kiln_query_check(&q, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_sources_get(kiln_manifest *m, kiln_source_file **out, uint32_t *n, kiln_error *err)
{
    bool own;
    int64_t count;
    kiln_source_file *files = NULL;
    kiln_status st = KILN_OK;
    *out = NULL;
    *n = 0;
    KILN_TRY(kiln_group_begin(m, &own, err)); /* the count and the rows from one state */
    KILN_GO(kiln_query_number(m, "SELECT count(*) FROM source_file", &count, err));
    KILN_GO(KILN_ALLOC(&files, (uint64_t)count, "source files", err));
    KILN_GO(read_sources(m, files, (uint32_t)count, n, err));
    *out = files;
done:
    st = kiln_group_end(m, own, st, err);
    if (st != KILN_OK) {
        free(files);
        *out = NULL;
        *n = 0;
    }
    return st;
}
