/* ply_again -- import and export are inverse: the rows of a PLY are written by kiln-export's
 * encoder in the file's own columns, and that file gives the same rows, bit for bit. The layer of
 * one chunk lies in memory, as kiln-import would make it with every extra column kept. */
#include "tests/fuzz/fuzz.h"

#include "stages/engine/json_text.h"
#include "stages/formats/clean_rows.h"
#include "stages/formats/ply/ply_table.h"
#include "stages/formats/reader.h"
#include "stages/formats/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 4096 }; /* a row of one byte in each of 4 KiB */

/* What one file gives. */
typedef struct {
    kiln_source_info info;
    kiln_rows rows;
    kiln_clean clean;
} import;

static void *array(uint64_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    HOLDS(p);
    return p;
}

static uint64_t harmonics(const kiln_source_info *info)
{
    return 3 * ((info->sh_degree + 1) * (info->sh_degree + 1) - 1);
}

static void free_capacity(import *i)
{
    const uint64_t n = i->info.n_rows;
    i->rows.means = array(3 * n, sizeof(double));
    if (i->info.kind == KILN_SCENE_SPLATS) {
        i->rows.log_scales = array(3 * n, sizeof(float));
        i->rows.quats = array(4 * n, sizeof(float));
        i->rows.opacity_logits = array(n, sizeof(float));
        i->rows.sh0 = array(3 * n, sizeof(float));
        i->rows.shN = array(harmonics(&i->info) * n, sizeof(float));
    } else {
        i->rows.rgb = array(3 * n, sizeof(float));
    }
    for (uint32_t e = 0; e < i->info.n_extras; e++)
        i->rows.extras[e] = array(n, kiln_type_size(i->info.extras[e].type));
    i->clean = (kiln_clean){.means = array(3 * n, sizeof(float)),
                            .source_row = array(n, sizeof(uint32_t)),
                            .reason = array(n, sizeof(unsigned char))};
}

static void release(import *i)
{
    kiln_rows_release(&i->rows);
    kiln_clean_release(&i->clean);
    free(i);
}

/* False when it is refused, or holds no row that stays. */
static bool read_file(const char *path, import *i, kiln_error *err)
{
    const double origin[3] = {0, 0, 0};
    kiln_source *s = NULL;
    uint64_t next;
    kiln_row_counts counts = {0};
    const kiln_read_options options = {0};
    const kiln_source_at at = {.path = path, .name = path, .options = &options};
    if (kiln_reader_ply.open(&at, &s, &i->info, err) != KILN_OK) return false;
    kiln_status st = KILN_OK;
    const bool fits = i->info.n_rows > 0 && i->info.n_rows <= ROWS_MAX;
    if (fits) free_capacity(i);
    if (fits) st = kiln_reader_ply.read(s, 0, i->info.n_rows, UINT64_MAX, &i->rows, &next, err);
    if (fits && st == KILN_OK) st = kiln_reader_ply.finish(s, &i->info, err);
    if (fits && st == KILN_OK) kiln_rows_clean(&i->rows, &i->info, origin, 0, &i->clean, &counts);
    kiln_reader_ply.close(s);
    return fits && st == KILN_OK && i->clean.n > 0;
}

/* ---- the layer ------------------------------------------------------------------------------- */

typedef struct {
    kiln_scene scene;
    kiln_layer layer;
    kiln_chunk chunk;
    kiln_plane planes[16 + KILN_EXTRAS_MAX];
    kiln_export_rows rows;
} bake;

/* data: of an extra; the others are in b->rows. */
static void add_plane(bake *b, const char *name, kiln_type type, uint32_t components, void *data)
{
    kiln_plane *p = &b->planes[b->chunk.n_planes++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->type = type;
    p->components = components;
    if (strncmp(name, "extra/", 6) != 0) return;
    kiln_export_plane *extra = &b->rows.extras[b->rows.n_extras++];
    *extra = (kiln_export_plane){.type = type, .components = components, .data = data};
    snprintf(extra->name, sizeof extra->name, "%s", name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_plane *)a)->name, ((const kiln_plane *)b)->name);
}

static void add_planes(bake *b, import *i)
{
    char name[96];
    b->rows = (kiln_export_rows){.n = i->clean.n,
                                 .means = i->clean.means,
                                 .log_scales = i->rows.log_scales,
                                 .quats = i->rows.quats,
                                 .opacity_logits = i->rows.opacity_logits,
                                 .sh0 = i->rows.sh0,
                                 .shN = i->rows.shN,
                                 .rgb = i->rows.rgb,
                                 .extras = array(KILN_EXTRAS_MAX, sizeof *b->rows.extras)};
    add_plane(b, "means", KILN_TYPE_F32, 3, NULL);
    if (i->info.kind == KILN_SCENE_SPLATS) {
        add_plane(b, "log_scales", KILN_TYPE_F32, 3, NULL);
        add_plane(b, "quats", KILN_TYPE_F32, 4, NULL);
        add_plane(b, "opacity_logits", KILN_TYPE_F32, 1, NULL);
        add_plane(b, "sh0", KILN_TYPE_F32, 3, NULL);
        if (harmonics(&i->info))
            add_plane(b, "shN", KILN_TYPE_F32, (uint32_t)harmonics(&i->info), NULL);
    } else if (i->info.has_rgb) {
        add_plane(b, "rgb", KILN_TYPE_F32, 3, NULL);
    }
    for (uint32_t e = 0; e < i->info.n_extras; e++) {
        snprintf(name, sizeof name, "extra/%s", i->info.extras[e].name);
        add_plane(b, name, i->info.extras[e].type, 1, i->rows.extras[e]);
    }
    qsort(b->planes, b->chunk.n_planes, sizeof *b->planes, by_name);
}

static bake *make_bake(import *i)
{
    bake *b = array(1, sizeof *b);
    b->chunk.count = b->layer.count = i->clean.n;
    b->chunk.planes = b->planes;
    b->layer.chunks = &b->chunk;
    b->layer.n_chunks = 1;
    b->layer.sh_degree = i->info.sh_degree;
    strcpy(b->layer.kind, "source");
    strcpy(b->scene.source_format, "ply");
    memcpy(b->scene.up_axis, i->info.up_axis, sizeof b->scene.up_axis);
    b->scene.antialiased = i->info.antialiased;
    b->scene.kind = i->info.kind;
    snprintf(b->scene.notes, sizeof b->scene.notes, "{\"layout\":%.8000s}",
             i->info.layout[0] ? i->info.layout : "null");
    add_planes(b, i);
    return b;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_file(bake *b, const import *i, kiln_buffer *out)
{
    kiln_export_bake *exported = array(1, sizeof *exported);
    kiln_export_chunk chunk = {.chunk = &b->chunk, .n = i->clean.n};
    exported->scene = b->scene;
    exported->layer = &b->layer;
    const kiln_export e = {.bakes = exported,
                           .n_bakes = 1,
                           .chunks = &chunk,
                           .n_chunks = 1,
                           .n_rows = i->clean.n,
                           .sh_degree = b->layer.sh_degree,
                           .splats = b->scene.kind == KILN_SCENE_SPLATS,
                           .target = "",
                           .temporary = ""};
    b->rows.chunk = &chunk;
    kiln_error err = {0};
    kiln_ply_table table;
    if (kiln_ply_table_plan(&e, &table, NULL, &err) != KILN_OK) fprintf(stderr, "%s\n", err.msg);
    HOLDS(!err.msg[0]);
    unsigned char *rows = array(i->clean.n, table.row_bytes);
    HOLDS(kiln_ply_encode(&table, &b->rows, 0, i->clean.n, rows, &err) == KILN_OK);
    HOLDS(kiln_buffer_put(out, table.header.data, table.header.size, &err) == KILN_OK);
    HOLDS(kiln_buffer_put(out, rows, i->clean.n * table.row_bytes, &err) == KILN_OK);
    kiln_ply_table_release(&table);
    free(rows);
    free(exported);
}

static void same_floats(const float *a, const float *b, uint64_t n)
{
    HOLDS(n == 0 || !a || memcmp(a, b, n * sizeof *a) == 0);
}

static void check_same(const import *a, const import *b)
{
    const uint64_t n = a->clean.n;
    HOLDS(b->clean.n == n && b->info.n_rows == n && b->info.kind == a->info.kind &&
          b->info.sh_degree == a->info.sh_degree);
    HOLDS(b->info.antialiased == a->info.antialiased && b->info.has_rgb == a->info.has_rgb);
    same_floats(a->clean.means, b->clean.means, 3 * n);
    same_floats(a->rows.log_scales, b->rows.log_scales, 3 * n);
    same_floats(a->rows.quats, b->rows.quats, 4 * n);
    same_floats(a->rows.opacity_logits, b->rows.opacity_logits, n);
    same_floats(a->rows.sh0, b->rows.sh0, 3 * n);
    same_floats(a->rows.shN, b->rows.shN, harmonics(&a->info) * n);
    same_floats(a->rows.rgb, b->rows.rgb, 3 * n);
}

void kiln_fuzz_ply_again(const void *argument, const uint8_t *data, size_t size)
{
    import *first = array(1, sizeof *first), *second = array(1, sizeof *second);
    kiln_error err = {0};
    (void)argument;
    if (read_file(kiln_fuzz_path(data, size), first, &err)) {
        kiln_buffer file = {0};
        bake *b = make_bake(first);
        write_file(b, first, &file);
        const bool read = read_file(kiln_fuzz_path(file.data, file.size), second, &err);
        if (!read) fprintf(stderr, "what was written is refused: %s\n", err.msg);
        HOLDS(read);
        check_same(first, second);
        kiln_buffer_release(&file);
        free(b->rows.extras);
        free(b);
    }
    release(first);
    release(second);
}
