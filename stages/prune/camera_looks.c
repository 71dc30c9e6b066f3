/* camera_looks -- see the header. */
#include "stages/prune/camera_looks.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/draw/draw_size.h"
#include "stages/cameras/pinholes.h"
#include "stages/engine/devices/work.h"
#include "stages/prune/pruned_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_SLABS_MOST = 64 }; /* a block is read once for each slab that it reaches into */

/* ---- which ----------------------------------------------------------------------------------- */
typedef struct {
    kiln_pruning *p;
    const kiln_source_file *files;
    uint32_t n_files, n_train, n_own, n_masks; /* n_own: cameras that the scene has itself */
    bool train;
} taking;

static bool is_taken(const taking *t, const kiln_camera *c)
{
    return !t->train || strcmp(c->split, "train") == 0;
}

static kiln_status count_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    taking *t = context;
    (void)err;
    t->n_own += !c->synthetic;
    t->n_train += strcmp(c->split, "train") == 0;
    t->n_masks += c->mask[0] != 0;
    return KILN_OK;
}

static const kiln_source_file *file_at(const taking *t, const char *path)
{
    for (uint32_t i = 0; i < t->n_files; i++)
        if (strcmp(t->files[i].path, path) == 0) return &t->files[i];
    return NULL;
}

static kiln_status take_mask(taking *t, const kiln_camera *c, kiln_prune_mask *m, kiln_error *err)
{
    const kiln_source_file *f = file_at(t, c->mask);
    m->width = c->width;
    m->height = c->height;
    if (c->distorted) {
        KILN_TRY(kiln_pinhole_lens(c, &m->lens, err));
        m->target = (kiln_pinhole){c->fx, c->fy, c->cx, c->cy, c->width, c->height};
        m->width = m->lens.width;
        m->height = m->lens.height;
    }
    if (f) m->file = (kiln_file_info){.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
    if (f) m->hash = f->hash;
    snprintf(m->path, sizeof m->path, "%s", c->mask);
    return KILN_OK;
}

static kiln_status take_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    /* inria, as the scene says */
    static const kiln_view_options options = {.near_text = "profile"};
    taking *t = context;
    kiln_pruning *p = t->p;
    if (!is_taken(t, c)) return KILN_OK;
    kiln_prune_look *look = &p->looks[p->n_looks++];
    KILN_TRY(kiln_view_request_init(&look->request, &options, &p->scene, c, err));
    look->mask = KILN_PRUNE_NO_MASK;
    if (!c->mask[0]) return KILN_OK;
    look->mask = p->n_masks++;
    return take_mask(t, c, &p->masks[look->mask], err);
}

static kiln_status refuse_without_cameras(kiln_run *r, kiln_error *err)
{
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s' has no cameras of its own, and --min-contribution, --min-visibility and --keep ask "
        "what cameras see; import "
        "the scene with --cameras FILE, or prune by --min-opacity and switch them off (--keep off)",
        kiln_manifest_path(kiln_run_manifest(r)));
}

kiln_status kiln_pruning_take_looks(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    taking t = {.p = p};
    kiln_source_file *files = NULL;
    kiln_status st = KILN_OK;
    kiln_scene_size size;
    if (!kiln_prune_asks_cameras(&p->o->rules)) return KILN_OK;
    KILN_TRY(kiln_scene_size_get(m, &size, err));
    KILN_TRY(kiln_cameras_each(m, count_camera, &t, err));
    if (t.n_own == 0) return refuse_without_cameras(r, err);
    t.train = t.n_train > 0;
    KILN_GO(KILN_ALLOC(&p->looks, t.train ? t.n_train : (uint64_t)size.cameras, "cameras", err));
    KILN_GO(KILN_ALLOC(&p->masks, t.n_masks, "masks of photos", err));
    if (t.n_masks) KILN_GO(kiln_sources_get(m, &files, &t.n_files, err));
    t.files = files;
    KILN_GO(kiln_cameras_each(m, take_camera, &t, err));
done:
    free(files);
    return st;
}

/* ---- keys ------------------------------------------------------------------------------------ */
void kiln_pruning_key_look(const kiln_pruning *p, uint32_t look, kiln_hasher *h)
{
    const kiln_prune_look *l = &p->looks[look];
    kiln_key_bytes(h, "look", &l->request, sizeof l->request);
    if (l->mask == KILN_PRUNE_NO_MASK) return;
    kiln_key_hash(h, "mask", p->masks[l->mask].hash);
    kiln_key_bytes(h, "lens", &p->masks[l->mask].lens, sizeof p->masks[l->mask].lens);
}

void kiln_pruning_key_looks(const kiln_pruning *p, kiln_hasher *h)
{
    for (uint32_t i = 0; i < p->n_looks; i++) kiln_pruning_key_look(p, i, h);
}

/* ---- memory and time ------------------------------------------------------------------------- */
/* The rules, as far as they decide what may be seen. Before they are known nothing is ruled out. */
static kiln_prune_unit rules_head(const kiln_pruning *p)
{
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_SCORES);
    head.n_merges = p->n_merges;
    return head;
}

static uint64_t rows_of_look(const kiln_pruning *p, const kiln_prune_unit *head, uint32_t first,
                             uint32_t n)
{
    uint64_t rows = 0;
    for (uint32_t b = 0; b < p->input->n_chunks; b++) {
        bool seen = false;
        for (uint32_t i = first; i < first + n && !seen; i++)
            seen = kiln_prune_may_see(head, &p->looks[i].request, &p->input->chunks[b]);
        if (seen) rows += p->input->chunks[b].count;
    }
    return rows;
}

bool kiln_pruning_looks_may_see(const kiln_pruning *p, const kiln_looks_of_unit *u, uint32_t block)
{
    const kiln_prune_unit head = rules_head(p);
    for (uint32_t i = u->first; i < u->first + u->n && kiln_pruning_has_block(p, block); i++)
        if (kiln_prune_may_see(&head, &p->looks[i].request, &p->input->chunks[block])) return true;
    return false;
}

/* A look's picture and, beside it, its mask; of CURVE two pictures of floats. */
static uint64_t look_ram(const kiln_pruning *p, const kiln_looks_of_unit *u, uint32_t i,
                         uint64_t rows, uint64_t capacity)
{
    const kiln_prune_look *l = &p->looks[i];
    const uint64_t pixels = (uint64_t)l->request.view.width * l->request.view.height;
    const uint64_t share = u->colour ? 0
                                     : KILN_DRAW_SHARE_BYTES + KILN_DRAW_PEAK_BYTES +
                                           (u->alphas ? KILN_DRAW_ALPHA_BYTES : 0);
    const kiln_draw_shares_size size = {.view = &l->request.view,
                                        .rows = rows,
                                        .capacity = capacity,
                                        .largest_chunk = p->size.blocks.rows,
                                        .share_bytes = share,
                                        .n_chunks = p->input->n_chunks};
    const kiln_prune_mask *mask = l->mask == KILN_PRUNE_NO_MASK ? NULL : &p->masks[l->mask];
    return kiln_max_u64(kiln_draw_shares_bytes(&size),
                        kiln_prune_mask_ram(mask, &l->request.view)) +
           (mask ? pixels : 0) + (u->colour ? 2 * 4 * sizeof(float) * pixels : 0);
}

typedef struct {
    uint64_t all;
    uint64_t of[KILN_LOOKS_OF_UNIT_MOST]; /* of each look */
} looks_rows;

static uint64_t looks_ram(const kiln_pruning *p, const kiln_looks_of_unit *u,
                          const looks_rows *rows, uint64_t capacity)
{
    const uint64_t held = u->colour ? 0 : kiln_prune_seen_bytes(rows->all, u->alphas);
    const uint64_t out =
        u->colour ? sizeof(kiln_prune_curve) : kiln_prune_seen_bytes(rows->all, u->alphas);
    const uint64_t putting =
        kiln_outputs_ram(out) + kiln_prune_seen_bytes(p->size.blocks.rows, u->alphas);
    uint64_t looking = 0;
    for (uint32_t i = 0; i < u->n; i++)
        looking = kiln_max_u64(looking, look_ram(p, u, u->first + i, rows->of[i], capacity));
    return kiln_pruned_scene_ram(&p->size, u->colour) + held + kiln_max_u64(looking, putting) +
           kiln_pruning_filters_ram(p) + KILN_CONNECTION_RAM;
}

static looks_rows count_looks_rows(const kiln_pruning *p, const kiln_looks_of_unit *u)
{
    const kiln_prune_unit head = rules_head(p);
    looks_rows rows = {.all = rows_of_look(p, &head, u->first, u->n)};
    for (uint32_t i = 0; i < u->n; i++) rows.of[i] = rows_of_look(p, &head, u->first + i, 1);
    return rows;
}

/* Rows of a slab for which `may` bytes have room; 0: a whole picture. */
static uint64_t capacity_of(const kiln_pruning *p, const kiln_looks_of_unit *u,
                            const looks_rows *rows, uint64_t may)
{
    const uint64_t whole = looks_ram(p, u, rows, 0);
    if (whole <= may) return 0;
    uint64_t low = rows->all / LOOK_SLABS_MOST + 1, high = rows->all;
    while (high > low + 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(looks_ram(p, u, rows, middle) <= may ? &low : &high) = middle;
    }
    return looks_ram(p, u, rows, low) < whole ? low : 0;
}

void kiln_pruning_size_looks(kiln_run *r, const kiln_pruning *p, const kiln_looks_of_unit *u,
                             kiln_prune_unit *head)
{
    const looks_rows rows = count_looks_rows(p, u);
    head->capacity = capacity_of(p, u, &rows, kiln_run_unit_ram(r));
    head->ram = looks_ram(p, u, &rows, head->capacity);
}

double kiln_pruning_looks_s(const kiln_pruning *p, const kiln_looks_of_unit *u)
{
    const looks_rows rows = count_looks_rows(p, u);
    double cpu_s = 0;
    for (uint32_t i = 0; i < u->n; i++) {
        const kiln_view *v = &p->looks[u->first + i].request.view;
        cpu_s += kiln_work_picture((double)rows.of[i], (double)v->width * v->height,
                                   4 * (double)rows.of[i], false);
    }
    return cpu_s;
}

uint32_t kiln_pruning_score_units(const kiln_pruning *p)
{
    return (p->n_looks + KILN_LOOKS_OF_UNIT_MOST - 1) / KILN_LOOKS_OF_UNIT_MOST;
}

kiln_looks_of_unit kiln_pruning_score_unit(const kiln_pruning *p, uint32_t i)
{
    const uint64_t n = p->n_looks, n_units = kiln_pruning_score_units(p);
    const uint32_t first = (uint32_t)(i * n / n_units), end = (uint32_t)((i + 1ull) * n / n_units);
    return (kiln_looks_of_unit){
        .first = first, .n = end - first, .alphas = !isnan(p->o->rules.min_visibility)};
}

uint32_t kiln_pruning_curve_units(const kiln_pruning *p)
{
    return p->o->dry_run ? (uint32_t)kiln_min_u64(p->n_looks, KILN_PRUNE_CAMERAS_USUAL) : 0;
}

kiln_looks_of_unit kiln_pruning_curve_unit(const kiln_pruning *p, uint32_t i)
{
    const uint64_t n = kiln_pruning_curve_units(p);
    return (kiln_looks_of_unit){
        .first = (uint32_t)((uint64_t)i * p->n_looks / n), .n = 1, .colour = true};
}

/* shared: bytes of what all units of the list get. */
static uint64_t least_looks_ram(const kiln_pruning *p, const kiln_looks_of_unit *u, uint64_t shared)
{
    const looks_rows rows = count_looks_rows(p, u);
    return looks_ram(p, u, &rows, capacity_of(p, u, &rows, 0)) + kiln_shared_payload_ram(shared);
}

void kiln_pruning_foresee_looks(kiln_run *r, const kiln_pruning *p, uint64_t *least)
{
    enum { REPORTED = 1 << 20, SELECTING = 4 << 20 };
    const uint32_t n_scores = kiln_pruning_score_units(p), n_curve = kiln_pruning_curve_units(p);
    const uint64_t marks = 2 * kiln_pruning_mark_bytes(p),
                   shared = p->n_rows * sizeof *p->rows + kiln_pruning_strays_bytes(p) +
                            (p->filters.filters.n ? sizeof p->filters : 0);
    *least = 0;
    if (p->n_looks == 0) return;
    for (uint32_t i = 0; i < n_scores; i++) {
        const kiln_looks_of_unit u = kiln_pruning_score_unit(p, i);
        *least = kiln_max_u64(*least, least_looks_ram(p, &u, shared));
    }
    for (uint32_t i = 0; i < n_curve; i++) {
        const kiln_looks_of_unit u = kiln_pruning_curve_unit(p, i);
        *least = kiln_max_u64(*least, least_looks_ram(p, &u, shared + marks));
    }
    *least += kiln_list_ram(n_scores + n_curve);
    kiln_run_foresee_parent(r, p->n_looks * sizeof *p->looks + p->n_masks * sizeof *p->masks +
                                   marks + kiln_prune_seen_bytes(2 * p->size.blocks.rows, true) +
                                   SELECTING + REPORTED);
}

/* ---- a unit ---------------------------------------------------------------------------------- */
kiln_status kiln_pruning_plan_looks(kiln_run *r, const kiln_pruning *p,
                                    const kiln_looks_of_unit *of, kiln_prune_unit *head,
                                    const kiln_buffer *shared, kiln_unit *u, kiln_error *err)
{
    kiln_prune_look looks[KILN_LOOKS_OF_UNIT_MOST];
    kiln_prune_mask *masks = NULL;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&masks, of->n, "masks of photos", err));
    memcpy(looks, p->looks + of->first, of->n * sizeof *looks);
    for (uint32_t i = 0; i < of->n; i++) {
        if (looks[i].mask == KILN_PRUNE_NO_MASK) continue;
        masks[head->n_masks] = p->masks[looks[i].mask];
        looks[i].mask = head->n_masks++;
    }
    head->n_looks = of->n;
    head->alphas = of->alphas;
    kiln_pruning_size_looks(r, p, of, head);
    u->ram = head->ram += kiln_shared_payload_ram(shared->size);
    u->ram_cache = p->cache + kiln_prune_ahead_ram(p->input);
    u->shared_payload = shared->data;
    u->shared_payload_bytes = shared->size;
    u->cost = 1 + (uint64_t)(1e3 * kiln_pruning_looks_s(p, of));
    const kiln_prune_request q = {.head = head, .looks = looks, .masks = masks};
    KILN_GO(kiln_pruning_set_payload(u, &q, false, err));
done:
    free(masks);
    return st;
}
