/* loss -- see loss.h. One unit draws all cameras: the file is read into an order that can be sought
 * once. */
#include "stages/export/loss.h"

#include "base/minmax.h"
#include "kernels/draw/draw.h"
#include "stages/files/packing.h"
#include "stages/formats/clean_rows.h"
#include "stages/formats/rad/rad_read.h"
#include "stages/formats/rows.h"
#include "stages/formats/turn.h"
#include "stages/frame/background.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The plan: this, n cameras behind it, and behind those the names of n_leaves files. */
typedef struct {
    char reader[32], spool[64], file[KILN_PATH_MAX];
    kiln_source_frame frame;
    /* files beside `file` that are read instead of it, each; 0: `file` is read */
    uint32_t n_leaves;
    kiln_profile_id profile;
    bool antialiased;
    double background[3], origin[3]; /* origin: what positions of the file are measured from */
    uint32_t n;
} setup;

/* ---- parent ---------------------------------------------------------------------------------- */

void kiln_loss_release(kiln_loss *l)
{
    free(l->cameras);
    free(l->psnr);
    kiln_texts_release(&l->names);
    l->cameras = NULL;
    l->psnr = NULL;
}

static kiln_status stored_profile(kiln_manifest *m, kiln_profile_id *out, kiln_error *err)
{
    kiln_parameter *list;
    uint32_t n;
    *out = KILN_PROFILE_INRIA;
    KILN_TRY(kiln_parameters_get(m, "render", &list, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const kiln_profile_id id = strcmp(list[i].name, "profile") == 0
                                       ? kiln_profile_find(list[i].value)
                                       : KILN_PROFILE_COUNT;
        if (id != KILN_PROFILE_COUNT) *out = id;
    }
    kiln_parameters_free(list, n);
    return KILN_OK;
}

typedef struct {
    kiln_loss *l;
    uint64_t all, met, taken;
} choice;

/* Evenly among all: the i-th of n of `all`. */
static kiln_status choose_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    choice *k = context;
    if (k->met++ != k->taken * k->all / k->l->n) return KILN_OK;
    if (k->taken == k->l->n) return KILN_OK;
    kiln_camera *to = &k->l->cameras[k->taken++];
    *to = *c;
    to->photo = to->mask = ""; /* they last as long as the row is read */
    return kiln_texts_add(&k->l->names, c->name, &to->name, err);
}

static kiln_status choose_loss_cameras(kiln_manifest *m, kiln_loss *l, kiln_error *err)
{
    kiln_scene_size size;
    KILN_TRY(kiln_scene_size_get(m, &size, err));
    choice k = {.l = l, .all = (uint64_t)size.cameras};
    if (k.all == 0)
        return kiln_fail(err, KILN_E_INPUT, "--report-loss: the bake has no cameras to draw");
    l->n = l->most < k.all ? l->most : (uint32_t)k.all;
    KILN_TRY(KILN_ALLOC(&l->cameras, l->n, "cameras", err));
    KILN_TRY(KILN_ALLOC(&l->psnr, l->n, "cameras", err));
    return kiln_cameras_each(m, choose_camera, &k, err);
}

kiln_status kiln_loss_plan(kiln_manifest *m, const kiln_export *e, const kiln_writer_functions *f,
                           const char *spool, kiln_loss *l, kiln_buffer *plan, kiln_error *err)
{
    setup s;
    kiln_buffer names = {0};
    memset(&s, 0, sizeof s);
    KILN_TRY(choose_loss_cameras(m, l, err));
    KILN_TRY(stored_profile(m, &s.profile, err));
    KILN_TRY(kiln_background_parse("scene", kiln_export_scene(e), s.background, err));
    s.antialiased = kiln_export_scene(e)->antialiased;
    s.n = l->n;
    (void)snprintf(s.reader, sizeof s.reader, "%s", f->reader);
    (void)snprintf(s.spool, sizeof s.spool, "%s", spool);
    for (int c = 0; c < 3 && !f->relative; c++) s.origin[c] = e->origin[c];
    KILN_TRY(kiln_path_join(s.file, sizeof s.file, f->last_file ? e->temporary : "",
                            f->last_file ? f->last_file : e->temporary, err));
    s.frame = f->leaves ? KILN_FRAME_AS_IS : e->frame;
    kiln_status st = f->leaves ? f->leaves(s.file, &names, err) : KILN_OK;
    s.n_leaves = (uint32_t)(names.size / KILN_LEAF_NAME);
    plan->size = 0;
    if (st == KILN_OK) st = kiln_buffer_put(plan, &s, sizeof s, err);
    if (st == KILN_OK) st = kiln_buffer_put(plan, l->cameras, l->n * sizeof *l->cameras, err);
    if (st == KILN_OK && names.size) st = kiln_buffer_put(plan, names.data, names.size, err);
    kiln_buffer_release(&names);
    return st;
}

kiln_status kiln_loss_take(kiln_loss *l, const void *result, size_t bytes, kiln_error *err)
{
    if (bytes != l->n * sizeof *l->psnr)
        return kiln_fail(err, KILN_E_BUG, "%zu bytes of losses for %u cameras", bytes, l->n);
    memcpy(l->psnr, result, bytes);
    return KILN_OK;
}

/* ---- the file, read again -------------------------------------------------------------------- */

enum { SMALL_BYTES = 1 << 20 }; /* cameras, numbers of rows, offsets of blocks */

typedef struct {
    kiln_export_worker *x;
    /* chunks that are drawn: blocks of the file, or files */
    uint32_t n_chunks, sh_degree;
    kiln_draw_chunk_fn *give;
    char path[KILN_PATH_MAX];
    const char *leaves;
    kiln_rad_file rad;
    kiln_rad_leaves rad_rows;
    const kiln_reader *reader; /* NULL: of a RAD */
    kiln_source *source;
    kiln_source_info *info;
    const kiln_packing *packing; /* the file is packed, and unpacked to scratch; NULL: it is not */
    /* [blocks + 1] of their first rows, as the pass before told them */
    uint64_t *offsets;
    kiln_rows rows;
    kiln_clean clean;
} written;

typedef struct {
    kiln_export_worker *x;
    /* of e->chunks: those of the layer, not its levels, but for a cut of them */
    uint32_t *chunks, n_chunks;
    kiln_export_rows rows;
    /* [65,536] of rows of several bakes, whose source rows are not unique: as they are drawn */
    uint32_t *number;
} wanted;

static void close_file(written *f)
{
    if (f->source) f->reader->close(f->source);
    f->source = NULL;
    kiln_rows_release(&f->rows);
    kiln_clean_release(&f->clean);
    memset(&f->rows, 0, sizeof f->rows);
    memset(&f->clean, 0, sizeof f->clean);
    free(f->offsets);
    f->offsets = NULL;
}

static void close_written(written *f)
{
    close_file(f);
    free(f->rad_rows.store);
    kiln_rad_close(&f->rad);
    free(f->info);
}

static kiln_status open_source(written *f, const setup *s, const char *spool, kiln_error *err)
{
    const kiln_read_options options = {.frame = s->frame};
    const kiln_source_at at = {.path = f->packing ? s->spool : f->path,
                               .name = f->path,
                               .packing = f->packing ? f->packing->name : NULL,
                               .spool = spool,
                               .options = &options};
    memset(f->info, 0, sizeof *f->info);
    return f->reader->open(&at, &f->source, f->info, err);
}

/* As many threads as there is memory for; a SOG decodes an image on each. Rows are not read yet. */
static kiln_status spool_threads(const written *f, unsigned *threads, kiln_error *err)
{
    const kiln_worker *w = f->x->w;
    const uint64_t one = SMALL_BYTES + kiln_reader_ram(f->reader, f->info, KILN_PASS_SPOOL);
    const uint64_t more = kiln_reader_ram(f->reader, f->info, KILN_PASS_SPOOL_THREAD),
                   share = kiln_worker_ram(w);
    KILN_TRY(kiln_worker_need_ram(w, one, 0, "reading what --report-loss draws", err));
    *threads = kiln_worker_threads(w);
    if (more && *threads > 1)
        *threads = 1 + (unsigned)kiln_min_u64(*threads - 1, share > one ? (share - one) / more : 0);
    return KILN_OK;
}

/* A file that is no file of fixed places is read into scratch once. */
static kiln_status spool_source(written *f, const setup *s, kiln_error *err)
{
    unsigned threads;
    KILN_TRY(spool_threads(f, &threads, err));
    const int fd = open(s->spool, O_RDWR | O_CLOEXEC);
    if (fd < 0) return kiln_fail(err, KILN_E_IO, "cannot open scratch: %s", strerror(errno));
    kiln_status st = KILN_OK;
    /* of another file */
    if (ftruncate(fd, 0) != 0)
        st = kiln_fail(err, KILN_E_IO, "cannot empty scratch: %s", strerror(errno));
    if (st == KILN_OK) st = f->reader->spool(f->source, fd, threads, err);
    (void)close(fd);
    f->reader->close(f->source);
    f->source = NULL;
    return st == KILN_OK ? open_source(f, s, s->spool, err) : st;
}

/* The file is ours, so that what it unpacks to is not limited. */
static kiln_status unpack_source(const written *f, const setup *s, kiln_error *err)
{
    uint64_t bytes;
    const int fd = open(s->spool, O_RDWR | O_CLOEXEC);
    if (fd < 0) return kiln_fail(err, KILN_E_IO, "cannot open scratch: %s", strerror(errno));
    const kiln_status st = kiln_unpack(f->packing, f->path, fd, UINT64_MAX, &bytes, err);
    (void)close(fd);
    return st;
}

static uint64_t rows_ram(const kiln_export *e)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        const uint64_t one = kiln_export_rows_ram(e, i, KILN_ROWS_SPLAT | KILN_ROWS_SOURCE_ROW);
        if (one > rows) rows = one;
    }
    /* of the file a block; its reader and pictures are asked for when they are known */
    return rows + ((uint64_t)96 << 20);
}

/* Of both sides. */
static uint64_t picture_bytes(uint64_t width, uint64_t height)
{
    return width * height * 2 * 4 * sizeof(float);
}

/* With all rows visible, and as many pairs as a band has unless one row of tiles has more. */
static uint64_t most_of_picture(const kiln_export *e, const kiln_camera *c)
{
    const kiln_view view = {.width = c->width, .height = c->height};
    kiln_draw_size size = {.visible = e->n_rows, .largest_chunk = KILN_BLOCK_ROWS};
    size.band_tiles = (uint64_t)kiln_view_tiles_x(&view) * kiln_view_tiles_y(&view);
    size.band_pairs = e->n_rows < KILN_BAND_PAIRS / size.band_tiles ? e->n_rows * size.band_tiles
                                                                    : KILN_BAND_PAIRS;
    return kiln_draw_collect_bytes(&size) + kiln_draw_picture_bytes(&size, &view) +
           picture_bytes(c->width, c->height);
}

static uint64_t ram_with(const kiln_export *e, const char *format, const kiln_camera *cameras,
                         uint32_t n)
{
    const kiln_source_info info = {
        .kind = KILN_SCENE_SPLATS, .n_rows = e->n_rows, .sh_degree = e->sh_degree};
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = kiln_max_u64(most, most_of_picture(e, &cameras[i]));
    return rows_ram(e) + kiln_reader_ram(kiln_reader_named(format), &info, KILN_PASS_BLOCK) + most;
}

uint64_t kiln_loss_ram(const kiln_export *e)
{
    const setup *s = e->plan;
    return ram_with(e, s->reader, (const kiln_camera *)(const void *)(s + 1), s->n);
}

kiln_status kiln_loss_foresee(kiln_manifest *m, const kiln_export *e,
                              const kiln_writer_functions *f, const kiln_loss *l, uint64_t *ram,
                              uint64_t *plan_bytes, kiln_error *err)
{
    kiln_loss chosen = {.most = l->most};
    const kiln_status st = choose_loss_cameras(m, &chosen, err);
    *ram = ram_with(e, f->reader, chosen.cameras, st == KILN_OK ? chosen.n : 0);
    *plan_bytes = sizeof(setup) + chosen.n * sizeof *chosen.cameras +
                  (f->leaves ? e->n_chunks * (uint64_t)KILN_LEAF_NAME : 0);
    kiln_loss_release(&chosen);
    return st;
}

/* For the rows of both sides and what else is drawn with, of `more` bytes. */
static kiln_status need_ram(const written *f, uint64_t more, kiln_error *err)
{
    const uint64_t rows = rows_ram(f->x->e) + kiln_reader_ram(f->reader, f->info, KILN_PASS_BLOCK);
    return kiln_worker_need_ram(f->x->w, rows + more, 0, "the pictures of --report-loss", err);
}

static kiln_status open_written_file(written *f, const setup *s, kiln_error *err)
{
    KILN_TRY(kiln_packing_find(f->path, &f->packing, err));
    if (f->packing) KILN_TRY(unpack_source(f, s, err));
    KILN_TRY(open_source(f, s, NULL, err));
    if (f->info->spool_bytes && f->packing) /* scratch holds one of them */
        return kiln_fail(err, KILN_E_BUG, "the format %s is packed twice", s->reader);
    if (f->info->spool_bytes) KILN_TRY(spool_source(f, s, err));
    KILN_TRY(need_ram(f, 0, err));
    KILN_TRY(KILN_ALLOC(&f->offsets, f->info->n_rows / KILN_BLOCK_ROWS + 2, "blocks", err));
    f->offsets[0] = UINT64_MAX;
    KILN_TRY(kiln_rows_alloc(&f->rows, f->info, err));
    return kiln_clean_alloc(&f->clean, err);
}

static kiln_status read_written_block(written *f, uint32_t block, kiln_draw_chunk *out,
                                      kiln_error *err)
{
    const uint64_t first = (uint64_t)block * KILN_BLOCK_ROWS, left = f->info->n_rows - first;
    const setup *s = f->x->e->plan;
    /* of leaves: right, up, back, as they stand; a reader of glTF would turn its own axes */
    const int rub[3] = {1, -1, -1};
    kiln_row_counts counts = {0};
    KILN_TRY(f->reader->read(f->source, first, left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS,
                             f->offsets[block], &f->rows, &f->offsets[block + 1], err));
    if (s->n_leaves) kiln_rows_turn(&f->rows, f->info->sh_degree, rub);
    kiln_rows_clean(&f->rows, f->info, s->origin, first, &f->clean, &counts);
    *out = (kiln_draw_chunk){.n = f->clean.n,
                             .means = f->clean.means,
                             .log_scales = f->rows.log_scales,
                             .quats = f->rows.quats,
                             .opacity_logits = f->rows.opacity_logits,
                             .sh0 = f->rows.sh0,
                             .shN = f->rows.shN,
                             .source_rows = f->clean.source_row};
    return KILN_OK;
}

static kiln_status give_block(void *context, uint32_t block, kiln_draw_chunk *out, kiln_error *err)
{
    return read_written_block(context, block, out, err);
}

/* A file of one block, which is opened for each picture: a viewer keeps what is near, and this is
 * not about time. */
static kiln_status give_leaf(void *context, uint32_t leaf, kiln_draw_chunk *out, kiln_error *err)
{
    written *f = context;
    const setup *s = f->x->e->plan;
    char folder[KILN_PATH_MAX];
    close_file(f);
    (void)snprintf(folder, sizeof folder, "%s", s->file);
    *strrchr(folder, '/') = '\0'; /* its path was joined */
    KILN_TRY(kiln_path_join(f->path, sizeof f->path, folder,
                            f->leaves + (size_t)leaf * KILN_LEAF_NAME, err));
    KILN_TRY(open_written_file(f, s, err));
    if (f->info->n_rows > KILN_BLOCK_ROWS)
        return kiln_fail(err, KILN_E_BUG, "'%s' has more rows than a chunk", f->path);
    return read_written_block(f, 0, out, err);
}

static kiln_status give_rad(void *context, uint32_t chunk, kiln_draw_chunk *out, kiln_error *err)
{
    written *f = context;
    kiln_rad_leaves *r = &f->rad_rows;
    free(r->store);
    r->store = NULL;
    KILN_TRY(kiln_rad_read_leaves(&f->rad, chunk, ((const setup *)f->x->e->plan)->origin, r, err));
    *out = (kiln_draw_chunk){.n = r->n,
                             .means = r->means,
                             .log_scales = r->log_scales,
                             .quats = r->quats,
                             .opacity_logits = r->opacity_logits,
                             .sh0 = r->sh0,
                             .shN = r->shN,
                             .source_rows = r->place};
    return KILN_OK;
}

static kiln_status open_rad(written *f, const setup *s, kiln_error *err)
{
    KILN_TRY(kiln_rad_open(s->file, &f->rad, err));
    f->give = give_rad;
    f->n_chunks = f->rad.n_chunks;
    f->sh_degree = f->rad.sh_degree;
    return need_ram(f, 0, err);
}

static kiln_status open_written(written *f, const setup *s, kiln_error *err)
{
    if (strcmp(s->reader, KILN_READER_RAD) == 0) return open_rad(f, s, err);
    f->reader = kiln_reader_named(s->reader);
    if (!f->reader) return kiln_fail(err, KILN_E_BUG, "'%s' is not a reader", s->reader);
    KILN_TRY(KILN_ALLOC(&f->info, 1, "a file", err));
    (void)snprintf(f->path, sizeof f->path, "%s", s->file);
    f->give = s->n_leaves ? give_leaf : give_block;
    f->leaves = (const char *)(const void *)((const kiln_camera *)(const void *)(s + 1) + s->n);
    if (s->n_leaves) {
        kiln_draw_chunk first;
        f->n_chunks = s->n_leaves;
        KILN_TRY(give_leaf(f, 0, &first, err)); /* for the degree, which all have */
        f->sh_degree = f->info->sh_degree;
        return KILN_OK;
    }
    KILN_TRY(open_written_file(f, s, err));
    f->n_chunks = (uint32_t)((f->info->n_rows + KILN_BLOCK_ROWS - 1) / KILN_BLOCK_ROWS);
    f->sh_degree = f->info->sh_degree;
    return KILN_OK;
}

static kiln_status wanted_chunk(void *context, uint32_t number, kiln_draw_chunk *out,
                                kiln_error *err)
{
    wanted *k = context;
    const uint32_t chunk = k->chunks[number];
    kiln_export_rows_release(&k->rows);
    const bool one_bake = k->x->e->n_bakes == 1;
    KILN_TRY(
        kiln_export_rows_read(k->x, chunk, KILN_ROWS_SPLAT | KILN_ROWS_SOURCE_ROW, &k->rows, err));
    for (uint64_t i = 0; i < k->rows.n; i++) k->number[i] = (uint32_t)(k->rows.first + i);
    *out = (kiln_draw_chunk){.n = k->rows.n,
                             .means = k->rows.means,
                             .log_scales = k->rows.log_scales,
                             .quats = k->rows.quats,
                             .opacity_logits = k->rows.opacity_logits,
                             .sh0 = k->rows.sh0,
                             .shN = k->rows.shN,
                             .source_rows = one_bake ? k->rows.source_row : k->number};
    return KILN_OK;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Draws one side of a camera; what it takes is known behind a counting pass. */
static kiln_status draw_camera_side(const written *f, const kiln_draw_scene *scene,
                                    const double background[3], float *rgba, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_runner *runner = kiln_worker_runner(f->x->w);
    const kiln_view *v = scene->view;
    const float over[3] = {(float)background[0], (float)background[1], (float)background[2]};
    kiln_draw_tally t = {0};
    kiln_draw_size size = {.largest_chunk = KILN_BLOCK_ROWS};
    KILN_TRY(KILN_ALLOC(&t.row_pairs, kiln_view_tiles_y(v), "tile rows", err));
    KILN_GO(kiln_draw_count_all(runner, scene, &t, err));
    size.visible = t.visible;
    kiln_draw_size_bands(&size, v, t.row_pairs);
    KILN_GO(need_ram(f,
                     kiln_draw_collect_bytes(&size) + kiln_draw_picture_bytes(&size, v) +
                         picture_bytes(v->width, v->height),
                     err));
    KILN_GO(
        kiln_draw(runner, scene, &(kiln_draw_want){.background = over, .rgba = rgba}, NULL, err));
done:
    free(t.row_pairs);
    return st;
}

static double decibels(const float *a, const float *b, uint64_t pixels)
{
    double sum = 0;
    for (uint64_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++) {
            const double x = fmin(fmax((double)a[4 * i + (uint64_t)c], 0), 1),
                         y = fmin(fmax((double)b[4 * i + (uint64_t)c], 0), 1);
            sum += (x - y) * (x - y);
        }
    return sum == 0 ? INFINITY : -10 * log10(sum / (3.0 * (double)pixels));
}

static kiln_status measure_camera_psnr(kiln_export_worker *x, const setup *s,
                                       const kiln_camera *camera, wanted *k, written *f,
                                       double *psnr, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_view view;
    const kiln_profile *p = &kiln_profiles[s->profile];
    const uint64_t pixels = (uint64_t)camera->width * camera->height;
    const double intrinsics[4] = {camera->fx, camera->fy, camera->cx, camera->cy};
    float *rgba[2] = {NULL, NULL};
    double r[9], t[3];
    memcpy(r, camera->r, sizeof r);
    memcpy(t, camera->t, sizeof t);
    kiln_similarity_pose(&x->e->edits.move, r, t); /* it moves along with what is written */
    kiln_view_init(&view, r, t, x->e->base, intrinsics, camera->width, camera->height, p->near_m,
                   p->far_m);
    kiln_draw_scene scene = {.view = &view,
                             .profile = s->profile,
                             .antialiased = s->antialiased,
                             .sh_degree = x->e->sh_degree,
                             .n_chunks = k->n_chunks,
                             .chunk = wanted_chunk,
                             .context = k};
    KILN_GO(need_ram(f, picture_bytes(camera->width, camera->height), err));
    for (int i = 0; i < 2; i++) KILN_GO(KILN_ALLOC_UNSET(&rgba[i], 4 * pixels, "a picture", err));
    KILN_GO(draw_camera_side(f, &scene, s->background, rgba[0], err));
    scene.sh_degree = f->sh_degree;
    scene.n_chunks = f->n_chunks;
    scene.chunk = f->give;
    scene.context = f;
    KILN_GO(draw_camera_side(f, &scene, s->background, rgba[1], err));
    *psnr = decibels(rgba[0], rgba[1], pixels);
done:
    free(rgba[0]);
    free(rgba[1]);
    return st;
}

kiln_status kiln_loss_measure(kiln_export_worker *x, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const setup *s = x->e->plan;
    const kiln_camera *cameras = (const kiln_camera *)(const void *)(s + 1);
    wanted k = {.x = x};
    written f = {.x = x, .rad = {.fd = -1}};
    double *psnr = NULL;
    KILN_GO(KILN_ALLOC(&k.chunks, x->e->n_chunks, "chunks", err));
    for (uint32_t i = 0; i < x->e->n_chunks; i++)
        if (x->e->cut || x->e->chunks[i].level == 0) k.chunks[k.n_chunks++] = i;
    KILN_GO(KILN_ALLOC(&k.number, KILN_BLOCK_ROWS, "rows of a chunk", err));
    KILN_GO(KILN_ALLOC(&psnr, s->n, "cameras", err));
    KILN_GO(open_written(&f, s, err));
    for (uint32_t i = 0; i < s->n; i++)
        KILN_GO(measure_camera_psnr(x, s, &cameras[i], &k, &f, &psnr[i], err));
    KILN_GO(kiln_export_result(x, psnr, s->n * sizeof *psnr, err));
done:
    kiln_export_rows_release(&k.rows);
    close_written(&f);
    free(k.chunks);
    free(k.number);
    free(psnr);
    return st;
}
