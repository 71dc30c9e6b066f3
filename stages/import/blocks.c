/* blocks -- the block unit. The reader stays open from block to block in the worker's state. */
#include "stages/import/blocks.h"

#include "base/harmonics.h"
#include "base/memory.h"
#include "stages/formats/clean_rows.h"
#include "stages/import/random_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DROPPED_ROWS_LISTED = 100 };

struct kiln_block_reader {
    kiln_place place;
    char reader_name[32];
    const kiln_reader *reader; /* NULL: random points */
    kiln_source *source;
    kiln_source_info info; /* of the rows as they are stored */
    uint32_t file_degree;  /* of SH, in the file */
    uint64_t file_rows;
    kiln_rows rows;
    kiln_clean clean;
};

void kiln_block_reader_free(kiln_block_reader *s)
{
    if (!s) return;
    if (s->reader && s->source) s->reader->close(s->source);
    kiln_rows_release(&s->rows);
    kiln_clean_release(&s->clean);
    free(s);
}

static void free_state(void *state) { kiln_block_reader_free(state); }

/* What a file of several lacks: the highest degrees of SH, colours, columns. Nothing writes there
 * but where it is cleared. */
static kiln_status widen_block_shape(kiln_block_reader *s, const kiln_block_request *q,
                                     kiln_error *err)
{
    kiln_source_info *info = &s->info;
    s->file_degree = info->sh_degree;
    s->file_rows = info->n_rows;
    if (q->sh_degree < info->sh_degree || q->n_zeros > KILN_ZEROS_MAX ||
        info->n_extras + q->n_zeros > KILN_EXTRAS_MAX)
        return kiln_fail(err, KILN_E_BUG, "'%s' does not have the planned shape", q->place.path);
    info->sh_degree = q->sh_degree;
    info->has_rgb |= q->has_rgb;
    for (uint32_t z = 0; z < q->n_zeros; z++) {
        kiln_extra *e = &info->extras[info->n_extras++];
        *e = (kiln_extra){.type = q->zeros[z].type, .axis = -1};
        memcpy(e->name, q->zeros[z].name, sizeof e->name);
    }
    return KILN_OK;
}

static void clear_degrees(kiln_block_reader *s)
{
    const uint64_t from = kiln_sh_components(s->file_degree);
    const uint64_t to = kiln_sh_components(s->info.sh_degree);
    if (to > from)
        memset(s->rows.shN + from * s->rows.n, 0, (to - from) * s->rows.n * sizeof *s->rows.shN);
}

static kiln_status fill_state(kiln_block_reader *s, const kiln_block_request *q, kiln_error *err)
{
    s->place = q->place;
    memcpy(s->reader_name, q->reader, sizeof s->reader_name);
    if (strcmp(q->reader, KILN_RANDOM_READER) == 0) {
        s->info.kind = KILN_SCENE_POINTS;
    } else {
        s->reader = kiln_reader_named(q->reader);
        if (!s->reader) return kiln_fail(err, KILN_E_BUG, "no reader is called '%s'", q->reader);
        const kiln_source_at at = kiln_place_at(&s->place);
        KILN_TRY(s->reader->open(&at, &s->source, &s->info, err));
    }
    KILN_TRY(widen_block_shape(s, q, err));
    KILN_TRY(kiln_rows_alloc(&s->rows, &s->info, err));
    return kiln_clean_alloc(&s->clean, err);
}

bool kiln_block_reader_is_of(const kiln_block_reader *s, const kiln_block_request *q)
{
    return s && strcmp(s->place.path, q->place.path) == 0 && strcmp(s->reader_name, q->reader) == 0;
}

kiln_status kiln_block_reader_open(const kiln_block_request *q, kiln_block_reader **out,
                                   kiln_error *err)
{
    kiln_block_reader *s;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "block reader", err));
    kiln_status st = fill_state(s, q, err);
    if (st == KILN_OK)
        *out = s;
    else
        kiln_block_reader_free(s);
    return st;
}

kiln_status kiln_block_reader_of(kiln_worker *w, const kiln_block_request *q,
                                 kiln_block_reader **out, kiln_error *err)
{
    *out = kiln_worker_state(w);
    if (kiln_block_reader_is_of(*out, q)) return KILN_OK;
    KILN_TRY(kiln_block_reader_open(q, out, err));
    kiln_worker_set_state(w, *out, free_state);
    return KILN_OK;
}

/* Of clean values, none of them NaN; of two zeros the later one. */
static float least_value(const float *v, uint64_t n)
{
    float m = HUGE_VALF;
    for (uint64_t i = 0; i < n; i++) m = m < v[i] ? m : v[i];
    return m;
}

static float largest_value(const float *v, uint64_t n)
{
    float m = -HUGE_VALF;
    for (uint64_t i = 0; i < n; i++) m = m > v[i] ? m : v[i];
    return m;
}

void kiln_block_stats_of(const kiln_block_reader *s, kiln_block_stats *out)
{
    const uint64_t n = s->clean.n;
    memset(out, 0, sizeof *out);
    out->n = n;
    for (uint32_t c = 0; c < 3 && n; c++) {
        out->box_min[c] = least_value(s->clean.means + c * n, n);
        out->box_max[c] = largest_value(s->clean.means + c * n, n);
    }
    if (!n || s->info.kind != KILN_SCENE_SPLATS) return;
    out->max_log_scale = largest_value(s->rows.log_scales, 3 * n);
    out->max_opacity_logit = largest_value(s->rows.opacity_logits, n);
}

static kiln_status put_block_counters(kiln_worker *w, const kiln_block_reader *s,
                                      const kiln_block_request *q, const kiln_row_counts *counts,
                                      kiln_error *err)
{
    kiln_status st = KILN_OK;
    json_t *listed = json_array(), *c = NULL;
    for (uint64_t i = 0; i < q->n && listed && json_array_size(listed) < DROPPED_ROWS_LISTED; i++)
        if (s->clean.reason[i] &&
            json_array_append_new(listed, json_integer((json_int_t)(q->row + i))) != 0)
            break;
    c = json_pack("{s:I, s:I, s:o*, s:o*, s:O*}", "rows", (json_int_t)counts->read, "kept",
                  (json_int_t)counts->kept, "dropped", kiln_dropped_json(counts), "clamped",
                  kiln_clamped_json(counts), "dropped_rows", listed);
    if (!c)
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory while counting rows");
    else
        st = kiln_worker_counters(w, c, err);
    json_decref(c);
    json_decref(listed);
    return st;
}

typedef struct {
    kiln_block_plane_fn *each;
    void *context;
} plane_visit;

static kiln_status visit_f32(const plane_visit *v, const char *name, const float *data,
                             uint64_t components, uint64_t n, kiln_error *err)
{
    return components
               ? v->each(v->context, name, data, components * n * sizeof *data, sizeof *data, err)
               : KILN_OK;
}

static kiln_status visit_extras(const plane_visit *v, const kiln_block_reader *s,
                                const kiln_block_request *q, kiln_error *err)
{
    for (uint32_t e = 0; e < s->info.n_extras; e++) {
        char name[96];
        const uint32_t size = kiln_type_size(s->info.extras[e].type);
        if (!q->keep[e]) continue;
        (void)snprintf(name, sizeof name, "extra/%s", s->info.extras[e].name);
        KILN_TRY(v->each(v->context, name, s->rows.extras[e], s->clean.n * size, size, err));
    }
    return KILN_OK;
}

kiln_status kiln_block_planes(const kiln_block_reader *s, const kiln_block_request *q,
                              kiln_block_plane_fn *each, void *context, kiln_error *err)
{
    const plane_visit v = {each, context};
    const uint64_t n = s->clean.n;
    KILN_TRY(visit_f32(&v, "means", s->clean.means, 3, n, err));
    KILN_TRY(each(context, "source_row", s->clean.source_row, n * sizeof *s->clean.source_row,
                  sizeof *s->clean.source_row, err));
    if (s->info.kind == KILN_SCENE_SPLATS) {
        KILN_TRY(visit_f32(&v, "log_scales", s->rows.log_scales, 3, n, err));
        KILN_TRY(visit_f32(&v, "quats", s->rows.quats, 4, n, err));
        KILN_TRY(visit_f32(&v, "opacity_logits", s->rows.opacity_logits, 1, n, err));
        KILN_TRY(visit_f32(&v, "sh0", s->rows.sh0, 3, n, err));
        KILN_TRY(visit_f32(&v, "shN", s->rows.shN, kiln_sh_components(s->info.sh_degree), n, err));
    } else if (s->info.has_rgb || !s->reader) {
        KILN_TRY(visit_f32(&v, "rgb", s->rows.rgb, 3, n, err));
    }
    return visit_extras(&v, s, q, err);
}

/* The arrays stay as they are until the next block, so they are lent. */
static kiln_status lend_plane(void *context, const char *name, const void *data, uint64_t bytes,
                              uint32_t elem, kiln_error *err)
{
    return kiln_worker_lend(context, name, data, bytes, elem, err);
}

uint64_t kiln_block_ram(const kiln_reader *reader, const kiln_source_info *info,
                        const uint8_t keep[KILN_EXTRAS_MAX])
{
    const uint64_t m = kiln_sh_coefficients(info->sh_degree);
    uint64_t row =
        sizeof(uint32_t) + (info->kind == KILN_SCENE_SPLATS ? 14 + 3 * m : 6) * sizeof(float);
    for (uint32_t e = 0; e < info->n_extras; e++)
        row += keep[e] ? kiln_type_size(info->extras[e].type) : 0;
    return kiln_rows_ram(info) + kiln_reader_ram(reader, info, KILN_PASS_BLOCK) +
           kiln_outputs_lent_ram(row * KILN_BLOCK_ROWS);
}

kiln_status kiln_block_read_raw(kiln_block_reader *s, const kiln_block_request *q, kiln_error *err)
{
    uint64_t next;
    if (s->reader &&
        (q->n > KILN_BLOCK_ROWS || q->first > s->file_rows || q->n > s->file_rows - q->first))
        return kiln_fail(err, KILN_E_INPUT, "'%s' has %llu rows, fewer than were planned",
                         q->place.path,
                         /* the plan may be of another host, and of another file */
                         (unsigned long long)s->file_rows);
    if (s->reader)
        KILN_TRY(s->reader->read(s->source, q->first, q->n, q->offset, &s->rows, &next, err));
    else
        kiln_random_points(q->seed, q->box, q->first, q->n, &s->rows);
    if (s->reader) KILN_TRY(kiln_file_unchanged(q->place.path, &q->file, err));
    if (s->reader) clear_degrees(s);
    return KILN_OK;
}

void kiln_block_raw(const kiln_block_reader *s, const kiln_source_info **info,
                    const kiln_rows **rows)
{
    *info = &s->info;
    *rows = &s->rows;
}

kiln_status kiln_block_read(kiln_block_reader *s, const kiln_block_request *q, unsigned threads,
                            kiln_row_counts *counts, kiln_error *err)
{
    KILN_TRY(kiln_block_read_raw(s, q, err));
    if (!kiln_similarity_is_identity(&q->move))
        kiln_rows_move(&s->rows, &s->info, &q->move, threads);
    kiln_rows_clean(&s->rows, &s->info, q->origin, q->row, &s->clean, counts);
    return KILN_OK;
}

kiln_status kiln_block_unit(kiln_worker *w, const kiln_block_request *q, kiln_error *err)
{
    kiln_block_reader *s;
    kiln_row_counts counts = {0};
    kiln_block_stats stats;
    KILN_TRY(kiln_block_reader_of(w, q, &s, err));
    KILN_TRY(kiln_block_read(s, q, kiln_worker_threads(w), &counts, err));
    kiln_block_stats_of(s, &stats);
    KILN_TRY(kiln_block_planes(s, q, lend_plane, w, err));
    KILN_TRY(kiln_worker_put(w, "stats", &stats, sizeof stats, 1, err));
    return put_block_counters(w, s, q, &counts, err);
}

static kiln_status put_name(void *context, const char *name, const void *data, uint64_t bytes,
                            uint32_t elem, kiln_error *err)
{
    (void)data, (void)bytes, (void)elem;
    return kiln_buffer_put(context, name, strlen(name) + 1, err);
}

kiln_status kiln_block_measure(kiln_worker *w, const kiln_block_request *q, kiln_error *err)
{
    kiln_block_reader *s;
    kiln_row_counts counts = {0};
    kiln_block_stats stats;
    kiln_buffer names = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_block_reader_of(w, q, &s, err));
    KILN_TRY(kiln_block_read(s, q, kiln_worker_threads(w), &counts, err));
    kiln_block_stats_of(s, &stats);
    KILN_GO(kiln_block_planes(s, q, put_name, &names, err));
    KILN_GO(kiln_worker_put(w, KILN_PLANE_NAMES, names.data, names.size, 1, err));
    KILN_GO(kiln_worker_put(w, "stats", &stats, sizeof stats, 1, err));
    KILN_GO(put_block_counters(w, s, q, &counts, err));
done:
    kiln_buffer_release(&names);
    return st;
}
