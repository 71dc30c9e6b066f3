/* gltf_read -- Gaussians of .gltf and .glb files: what gltf_scene.c found, row by row.
 *
 * A glTF has one accessor per attribute and coefficient, so a block comes of 21 places in the file.
 * It is read in tiles of rows: of each accessor one piece that stays in the L2 cache, taken apart
 * into planes. Where attributes are interleaved, one piece holds them all, and it is read once
 * (fetch_elements).
 *
 * What lies in data URIs, in files beside this one or in an SPZ is put into scratch first, once an
 * import.
 */
#include "stages/formats/reader.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/files/packing.h"
#include "stages/formats/codes.h"
#include "stages/formats/gltf/gltf.h"
#include "stages/formats/gltf/gltf_scene.h"
#include "stages/formats/gltf/gltf_values.h"
#include "stages/formats/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 256 << 10, /* what is gathered at once */
    PIECE_CAPACITY = PIECE_BYTES + 512,
    TILE_ROWS = 16384,
    MOVE_ROWS = 8192, /* of rows that are moved, or stand in a block with others */
};

typedef struct {
    char *path;
    int fd, spool; /* spool -1: not there yet */
    bool is_turned;
    kiln_gltf_document document;
    kiln_gltf_scene scene;
    kiln_source_info info;
    unsigned char *piece; /* [PIECE_CAPACITY] */
    kiln_gltf_range held; /* what it holds; bytes 0: nothing */
    double *values;       /* [TILE_ROWS] */
    kiln_rows moved;      /* [MOVE_ROWS], made when first needed */
    kiln_spz_decoder *decoder;
    uint32_t decodes; /* the splats that it is for */
} gltf_source;

static const int from_gltf[3] = {-1, -1, 1}; /* left, up, front to PLY's right, down, front */

/* ---- probe ----------------------------------------------------------------------------------- */

static bool contains_word(const char *text, const char *word) { return strstr(text, word) != NULL; }

/* A .gltf is JSON, as many things are; its members may stand in any order. */
static int probe_text(const char *text, const char *path)
{
    char plain[KILN_PATH_MAX];
    const char *at = text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    at += strspn(at, " \t\r\n");
    /* the latter: a tileset of 3D Tiles */
    if (*at != '{' || contains_word(at, "\"geometricError\"")) return 0;
    (void)snprintf(plain, sizeof plain, "%.*s", (int)kiln_packing_stem(path), path);
    if (strcasecmp(kiln_path_suffix(plain), "gltf") == 0) return 90;
    if (contains_word(at, "\"" KILN_GLTF_EXTENSION)) return 80;
    return (contains_word(at, "\"accessors\"") || contains_word(at, "\"extensionsUsed\"") ||
            contains_word(at, "\"scenes\"")) &&
                   contains_word(at, "\"asset\"")
               ? 60
               : 0;
}

static int probe_gltf(const unsigned char *head, size_t len, const char *path)
{
    char text[KILN_PROBE_BYTES + 1] = "";
    if (len >= 4 && kiln_get_u32(head) == KILN_GLB_MAGIC) return 100;
    memcpy(text, head, len < sizeof text - 1 ? len : sizeof text - 1);
    return probe_text(text, path);
}

/* ---- open ------------------------------------------------------------------------------------ */

static void close_gltf(kiln_source *source)
{
    gltf_source *s = (gltf_source *)source;
    if (!s) return;
    kiln_spz_decoder_free(s->decoder);
    kiln_rows_release(&s->moved);
    free(s->values);
    free(s->piece);
    kiln_gltf_scene_release(&s->scene);
    kiln_gltf_document_release(&s->document);
    if (s->spool >= 0) close(s->spool);
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

static void add_gltf_note(kiln_source_info *info, const char *text)
{
    const size_t at = strlen(info->notes);
    (void)snprintf(info->notes + at, sizeof info->notes - at, "%s%s", at ? "; " : "", text);
}

static void describe_gltf(gltf_source *s)
{
    kiln_source_info *info = &s->info;
    const kiln_gltf_scene *scene = &s->scene;
    const char *writer = json_string_value(
        json_object_get(json_object_get(s->document.file.json, "asset"), "generator"));
    (void)snprintf(info->writer, sizeof info->writer, "%s", writer ? writer : "");
    for (size_t n = strlen(info->writer);
         n && !kiln_utf8_valid((const unsigned char *)info->writer, n);)
        info->writer[--n] = '\0';
    (void)snprintf(info->up_axis, sizeof info->up_axis, "%s", s->is_turned ? "-y" : "y");
    (void)snprintf(info->axes, sizeof info->axes, "%s", s->is_turned ? "LUF" : "RDF");
    info->kind = KILN_SCENE_SPLATS;
    info->dialect = KILN_DIALECT_3DGS;
    info->n_rows = scene->n_rows;
    info->sh_degree = scene->sh_degree;
    info->antialiased = scene->antialiased;
    info->file_bytes = s->document.file.file_bytes;
    info->spool_bytes = scene->spool_bytes;
    for (uint32_t i = 0; i < scene->n_parts; i++) info->wide |= scene->parts[i].moves;
    if (scene->n_drafts)
        add_gltf_note(
            info, "an early draft of KHR_gaussian_splatting: colour and opacity come from COLOR_0");
    if (scene->n_linear)
        add_gltf_note(info, "its colours are linear (lin_rec709_display) and are not converted");
    if (scene->least_degree < scene->sh_degree)
        add_gltf_note(info, "primitives of a lower SH degree are filled with zeros");
    if (s->document.file.trailing_bytes)
        add_gltf_note(info, "bytes after the end of the GLB are ignored");
}

static kiln_status open_gltf(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                             kiln_error *err)
{
    kiln_status st = KILN_OK;
    gltf_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "glTF reader", err));
    s->fd = s->spool = -1;
    s->is_turned = at->options->frame == KILN_FRAME_RUB;
    KILN_GO(KILN_ALLOC(&s->path, strlen(at->name) + 1, "path", err));
    strcpy(s->path, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    if (at->spool) KILN_GO(kiln_file_open(at->spool, &s->spool, err));
    KILN_GO(kiln_gltf_document_open(s->fd, s->path, at->packing, &s->document, err));
    st = kiln_gltf_scene_find(&s->document, &s->scene, err);
    info->has_none = s->scene.has_none;
    if (st != KILN_OK) goto done;
    KILN_GO(kiln_alloc_unset((void **)&s->piece, PIECE_CAPACITY, 1, "a piece of the file", err));
    KILN_GO(KILN_ALLOC_UNSET(&s->values, TILE_ROWS, "numbers of the file", err));
    describe_gltf(s);
    kiln_gltf_document_forget(&s->document);
    *info = s->info;
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_gltf((kiln_source *)s);
    return st;
}

static kiln_status list_gltf_members(kiln_source *source, kiln_member_fn *add, void *context,
                                     kiln_error *err)
{
    const gltf_source *s = (const gltf_source *)source;
    char full[KILN_PATH_MAX];
    for (uint32_t i = 0; i < s->document.n_members; i++) {
        const char *path = s->document.members[i];
        if (path[0] != '/' && !realpath(path, full))
            return kiln_fail(err, KILN_E_INPUT, "cannot find '%s'", path);
        KILN_TRY(add(context, path[0] == '/' ? path : full, err));
    }
    return KILN_OK;
}

static kiln_status spool_gltf(kiln_source *source, int fd, unsigned threads, kiln_error *err)
{
    const gltf_source *s = (const gltf_source *)source;
    (void)threads;
    KILN_TRY(kiln_gltf_document_spool(&s->document, fd, err));
    for (uint32_t i = 0; i < s->scene.n_splats; i++) {
        const kiln_gltf_splats *p = &s->scene.splats[i];
        if (!p->is_spz) continue;
        const kiln_spz_range range = {p->packed.spooled ? fd : s->fd, s->path, p->packed.at,
                                      p->packed.bytes};
        KILN_TRY(kiln_spz_range_unpack(&range, &p->spz, fd, p->spz_at, err));
    }
    return KILN_OK;
}

/* ---- accessors to planes --------------------------------------------------------------------- */

/* *src: element `row` of an accessor; n elements follow. Where elements stand apart, others lie
 * between them, so whole strides are read, and the next accessor finds its own there. */
static kiln_status fetch_elements(gltf_source *s, const kiln_gltf_accessor *a, uint64_t row,
                                  uint64_t n, const unsigned char **src, kiln_error *err)
{
    const uint64_t lead = a->stride > a->element_bytes ? a->offset % a->stride : 0,
                   begin = a->offset - lead + row * a->stride;
    const uint64_t needed = lead + (n - 1) * a->stride + a->element_bytes;
    const uint64_t bytes = kiln_max_u64(needed, kiln_min_u64(n * a->stride, a->view.bytes - begin)),
                   at = a->view.at + begin;
    const kiln_gltf_range *h = &s->held;
    if (h->bytes == 0 || h->spooled != a->view.spooled || at < h->at ||
        at + needed > h->at + h->bytes) {
        s->held = (kiln_gltf_range){.at = at, .spooled = a->view.spooled};
        KILN_TRY(kiln_file_read_at(a->view.spooled ? s->spool : s->fd, s->path, at, s->piece,
                                   (size_t)bytes, err));
        s->held.bytes = bytes;
    }
    *src = s->piece + (at - s->held.at) + lead;
    return KILN_OK;
}

/* Where rows go: n of them from row `at` of planes whose components lie rows->n apart. */
typedef struct {
    kiln_rows *rows;
    uint64_t at, n;
} target;

static float *target_component(const target *t, float *planes, uint32_t component)
{
    return planes + component * t->rows->n + t->at;
}

typedef void convert(uint64_t n, const double *v, float *out);

static void to_sh0(uint64_t n, const double *v, float *out)
{
    for (uint64_t i = 0; i < n; i++) out[i] = (float)((v[i] - 0.5) / KILN_SH_C0_F64);
}

/* One component of the opacities or of what a draft of the extension has beside them, as `fn` makes
 * it a plane's. */
static void take_component(gltf_source *s, const kiln_gltf_splats *p, const unsigned char *src,
                           uint32_t component, uint64_t n, convert *fn, float *out)
{
    kiln_gltf_gather_f64(&p->opacity, src, component, n, s->values);
    fn(n, s->values, out);
}

static kiln_status take_geometry(gltf_source *s, const kiln_gltf_splats *p, uint64_t row,
                                 const target *t, kiln_error *err)
{
    static const uint32_t wxyz[] = {3, 0, 1, 2};
    const unsigned char *src;
    KILN_TRY(fetch_elements(s, &p->position, row, t->n, &src, err));
    for (uint32_t c = 0; c < 3; c++)
        kiln_gltf_gather_f64(&p->position, src, c, t->n, t->rows->means + c * t->rows->n + t->at);
    KILN_TRY(fetch_elements(s, &p->rotation, row, t->n, &src, err));
    for (uint32_t c = 0; c < 4; c++)
        kiln_gltf_gather_f32(&p->rotation, src, wxyz[c], t->n,
                             target_component(t, t->rows->quats, c));
    KILN_TRY(fetch_elements(s, &p->scale, row, t->n, &src, err));
    for (uint32_t c = 0; c < 3; c++) {
        float *scales = target_component(t, t->rows->log_scales, c);
        kiln_gltf_gather_f32(&p->scale, src, c, t->n, scales);
        kiln_log_scales(t->n, scales, scales);
    }
    return KILN_OK;
}

static kiln_status take_colour(gltf_source *s, const kiln_gltf_splats *p, uint64_t row,
                               const target *t, kiln_error *err)
{
    const uint32_t n_sh = (p->sh_degree + 1) * (p->sh_degree + 1);
    const unsigned char *src;
    KILN_TRY(fetch_elements(s, &p->opacity, row, t->n, &src, err));
    take_component(s, p, src, p->opacity.components - 1, t->n, kiln_alpha_logits,
                   target_component(t, t->rows->opacity_logits, 0));
    for (uint32_t c = 0; c < 3 && p->is_draft; c++)
        take_component(s, p, src, c, t->n, to_sh0, target_component(t, t->rows->sh0, c));
    for (uint32_t k = p->is_draft ? 1 : 0; k < n_sh; k++) {
        float *planes = k ? t->rows->shN + 3 * (k - 1) * t->rows->n : t->rows->sh0;
        KILN_TRY(fetch_elements(s, &p->sh[k], row, t->n, &src, err));
        for (uint32_t c = 0; c < 3; c++)
            kiln_gltf_gather_f32(&p->sh[k], src, c, t->n, target_component(t, planes, c));
    }
    return KILN_OK;
}

static uint64_t widest_stride(const kiln_gltf_splats *p)
{
    uint32_t stride = p->position.stride;
    const kiln_gltf_accessor *const others[] = {&p->rotation, &p->scale, &p->opacity};
    for (int i = 0; i < 3; i++) stride = others[i]->stride > stride ? others[i]->stride : stride;
    for (uint32_t k = 0; k < KILN_GLTF_SH_MAX; k++)
        stride = p->sh[k].stride > stride ? p->sh[k].stride : stride;
    return stride;
}

static kiln_status take_accessors(gltf_source *s, const kiln_gltf_splats *p, uint64_t row,
                                  const target *all, kiln_error *err)
{
    const uint64_t step = kiln_min_u64(TILE_ROWS, PIECE_BYTES / widest_stride(p));
    s->held.bytes = 0;
    for (uint64_t i = 0; i < all->n; i += step) {
        const target t = {
            .rows = all->rows, .at = all->at + i, .n = kiln_min_u64(step, all->n - i)};
        KILN_TRY(take_geometry(s, p, row + i, &t, err));
        KILN_TRY(take_colour(s, p, row + i, &t, err));
    }
    return KILN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static kiln_status take_spz(gltf_source *s, uint32_t splats, uint64_t row, uint64_t n,
                            kiln_rows *rows, kiln_error *err)
{
    const kiln_gltf_splats *p = &s->scene.splats[splats];
    if (!s->decoder || s->decodes != splats) {
        kiln_spz_decoder_free(s->decoder);
        s->decoder = NULL;
        KILN_TRY(kiln_spz_decoder_new(&p->spz, &s->decoder, err));
        s->decodes = splats;
    }
    const kiln_spz_unpacked unpacked = {s->spool, s->path, p->spz_at + KILN_SPZ_HEADER};
    return kiln_spz_decoder_read(s->decoder, &unpacked, row, n, rows, err);
}

/* Zeros in the coefficients that a primitive does not have. */
static void fill_up(const gltf_source *s, uint32_t degree, const target *t)
{
    for (uint32_t c = kiln_sh_components(degree); c < kiln_sh_components(s->info.sh_degree); c++)
        memset(target_component(t, t->rows->shN, c), 0, t->n * sizeof(float));
}

static kiln_status alloc_moved(gltf_source *s, kiln_error *err)
{
    kiln_rows *r = &s->moved;
    if (r->means) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&r->log_scales, 3 * MOVE_ROWS, "rows that are moved", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->quats, 4 * MOVE_ROWS, "rows that are moved", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->opacity_logits, MOVE_ROWS, "rows that are moved", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->sh0, 3 * MOVE_ROWS, "rows that are moved", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->shN, (uint64_t)MOVE_ROWS * kiln_sh_components(s->info.sh_degree),
                              "rows that are moved", err));
    return KILN_ALLOC_UNSET(&r->means, 3 * MOVE_ROWS, "rows that are moved", err);
}

static void copy_planes(const target *t, float *to, const float *from, uint32_t components)
{
    for (uint32_t c = 0; c < components; c++)
        memcpy(target_component(t, to, c), from + c * t->n, t->n * sizeof *to);
}

/* Rows by themselves, moved, then put where they belong. */
static kiln_status take_moved(gltf_source *s, const kiln_gltf_part *part, uint64_t row,
                              const target *all, kiln_error *err)
{
    const kiln_gltf_splats *p = &s->scene.splats[part->splats];
    kiln_rows *r = &s->moved;
    KILN_TRY(alloc_moved(s, err));
    for (uint64_t i = 0; i < all->n; i += MOVE_ROWS) {
        const target t = {
            .rows = all->rows, .at = all->at + i, .n = kiln_min_u64(MOVE_ROWS, all->n - i)};
        r->n = t.n;
        if (p->is_spz)
            KILN_TRY(take_spz(s, part->splats, row + i, t.n, r, err));
        else
            KILN_TRY(take_accessors(s, p, row + i, &(target){.rows = r, .n = t.n}, err));
        const kiln_similarity_planes planes = {.n = t.n,
                                               .means = r->means,
                                               .log_scales = r->log_scales,
                                               .quats = r->quats,
                                               .shN = r->shN,
                                               .sh_degree = p->sh_degree};
        kiln_similarity_rows(&part->at_scene, 1, &planes);
        for (uint64_t c = 0; c < 3; c++)
            memcpy(all->rows->means + c * all->rows->n + t.at, r->means + c * t.n,
                   t.n * sizeof *r->means);
        copy_planes(&t, all->rows->log_scales, r->log_scales, 3);
        copy_planes(&t, all->rows->quats, r->quats, 4);
        copy_planes(&t, all->rows->opacity_logits, r->opacity_logits, 1);
        copy_planes(&t, all->rows->sh0, r->sh0, 3);
        copy_planes(&t, all->rows->shN, r->shN, kiln_sh_components(p->sh_degree));
    }
    return KILN_OK;
}

static kiln_status read_part(gltf_source *s, const kiln_gltf_part *part, uint64_t row,
                             const target *t, kiln_error *err)
{
    const kiln_gltf_splats *p = &s->scene.splats[part->splats];
    const bool is_whole = t->n == t->rows->n;
    if (part->moves || (p->is_spz && !is_whole))
        KILN_TRY(take_moved(s, part, row, t, err));
    else if (p->is_spz)
        KILN_TRY(take_spz(s, part->splats, row, t->n, t->rows, err));
    else
        KILN_TRY(take_accessors(s, p, row, t, err));
    fill_up(s, p->sh_degree, t);
    return KILN_OK;
}

static kiln_status read_gltf_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset,
                                  kiln_rows *rows, uint64_t *next_offset, kiln_error *err)
{
    gltf_source *s = (gltf_source *)source;
    (void)offset;
    rows->n = n;
    for (uint32_t i = 0; i < s->scene.n_parts; i++) {
        const kiln_gltf_part *part = &s->scene.parts[i];
        const uint64_t begin = kiln_max_u64(first, part->first);
        const uint64_t end = kiln_min_u64(first + n, part->first + s->scene.splats[part->splats].n);
        if (begin >= end) continue;
        const target t = {.rows = rows, .at = begin - first, .n = end - begin};
        KILN_TRY(read_part(s, part, begin - part->first, &t, err));
    }
    if (s->is_turned) kiln_rows_turn(rows, s->info.sh_degree, from_gltf);
    *next_offset = first + n;
    return KILN_OK;
}

/* The lists at their longest, a piece, what is moved; the JSON is gone before rows are read. */
static uint64_t gltf_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t lists = KILN_GLTF_SPLATS_MAX * sizeof(kiln_gltf_splats) +
                           KILN_GLTF_PARTS_MAX * sizeof(kiln_gltf_part);
    const uint64_t moved =
        MOVE_ROWS *
        (3 * sizeof(double) + (11 + (uint64_t)kiln_sh_components(info->sh_degree)) * sizeof(float));
    if (pass == KILN_PASS_SPOOL_THREAD) return 0;
    return sizeof(gltf_source) + 2 * lists + PIECE_CAPACITY + TILE_ROWS * sizeof(double) + moved +
           kiln_spz_decoder_ram(info->sh_degree) + (pass == KILN_PASS_SPOOL ? KILN_UNPACK_RAM : 0);
}

const kiln_reader kiln_reader_gltf = {
    .name = "gltf",
    .suffixes = "glb,gltf",
    .summary = "glTF and GLB with KHR_gaussian_splatting, its early draft, and SPZ in it",
    .packed = KILN_PACKED_WHOLE,
    .has_options = true,
    .ram = gltf_reader_ram,
    .probe = probe_gltf,
    .open = open_gltf,
    .members = list_gltf_members,
    .spool = spool_gltf,
    .read = read_gltf_rows,
    .close = close_gltf,
};
