/* level_cut -- see level_cut.h. The parent's side. */
#include "stages/export/level_cut.h"

#include "base/count.h"
#include "base/log.h"
#include "base/minmax.h"
#include "schema/layers.h"
#include "schema/level_sites.h"
#include "stages/export/bakes.h"
#include "stages/export/export_rounds.h"
#include "stages/export/export_shared.h"
#include "stages/export/level_chunks.h"
#include "stages/export/made_levels.h"
#include "stages/export/survey.h"
#include "stages/formats/rows.h"
#include "stages/frame/level_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VIEWS_MOST = 32 };

/* What a choice of one bake reads. */
typedef struct {
    kiln_level_tree tree;
    kiln_layer *seen; /* the layer `visibility`; NULL: there is none */
    kiln_distance_prior prior;
    kiln_view_request *views; /* [n_views] whose pictures count */
    uint32_t n_views;
    kiln_hash cameras; /* of the views; none where a number of rows or a level is asked for */
    bool weighted;     /* rows of levels have visibility and prominence */
    uint64_t *left;    /* [tree.n_nodes] */
    uint64_t rows;     /* their sum */
    kiln_level_cut cut;
} cut_bake;

struct kiln_cut_bakes {
    uint32_t n;
    cut_bake bake[];
};

void kiln_cut_release(kiln_cut_bakes *c)
{
    for (uint32_t i = 0; c && i < c->n; i++) {
        cut_bake *b = &c->bake[i];
        kiln_level_cut_release(&b->cut);
        kiln_level_tree_release(&b->tree);
        kiln_layer_free(b->seen);
        free(b->views);
        free(b->left);
    }
    free(c);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool asks_level(const kiln_export_options *o)
{
    kiln_level_wish wish;
    kiln_error none;
    return kiln_level_wish_parse(o->level, &wish, &none) == KILN_OK && !kiln_level_wish_full(&wish);
}

static bool asks_db(const kiln_export_options *o)
{
    kiln_level_wish wish;
    kiln_error none;
    return kiln_level_wish_parse(o->level, &wish, &none) == KILN_OK && wish.form == KILN_LEVEL_DB;
}

bool kiln_cut_is_asked(const kiln_export_options *o)
{
    return asks_level(o) || o->count || !isnan(o->percent);
}

typedef struct {
    const char *name, *off;
    bool asked;
} cut_option;

static kiln_status refuse_both(const cut_option *a, const cut_option *b, kiln_error *err)
{
    const bool typed_a = kiln_opt_given(&kiln_export_cli, a->name),
               typed_b = kiln_opt_given(&kiln_export_cli, b->name);
    const cut_option *const stored = typed_a ? b : a;
    if (typed_a && typed_b)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--%s and --%s both say how many Gaussians are written; leave one of them out", a->name,
            b->name);
    return kiln_fail(
        err, KILN_E_USAGE,
        "--%s and --%s both say how many Gaussians are written; --%s %s takes the stored one back",
        a->name, b->name, stored->name, stored->off);
}

kiln_status kiln_cut_check(const kiln_export_options *o, const kiln_writer *const list[],
                           uint32_t n, kiln_error *err)
{
    const cut_option all[] = {{"level", "0", asks_level(o)},
                              {"count", "off", o->count > 0},
                              {"percent", "off", !isnan(o->percent)}};
    for (int a = 0; a < 3; a++)
        for (int b = a + 1; b < 3; b++)
            if (all[a].asked && all[b].asked) return refuse_both(&all[a], &all[b], err);
    for (uint32_t i = 0; i < n && kiln_cut_is_asked(o); i++)
        if (list[i]->holds & (KILN_NEEDS_LEVELS | KILN_TAKES_LEVELS))
            return kiln_fail(err, KILN_E_USAGE,
                             "--level, --count and --percent choose from the levels of detail, and "
                             "the format %s holds all of them; "
                             "leave the option out, or write a format without levels, such as ply",
                             list[i]->name);
    return KILN_OK;
}

/* ---- what is read ---------------------------------------------------------------------------- */

static bool is_judge(const kiln_camera *c, bool train)
{
    return !train || strcmp(c->split, "train") == 0;
}

static uint32_t profile_named(const char *name)
{
    uint32_t p = 0;
    while (p + 1 < KILN_PROFILE_COUNT && strcmp(kiln_profiles[p].name, name) != 0) p++;
    return p;
}

/* Cameras for training, or all where there are none, evenly; under what the errors were measured
 * with. */
static kiln_status choose_views(const kiln_scene *scene, const kiln_layer *levels,
                                const kiln_camera *cameras, uint32_t n, cut_bake *b,
                                kiln_error *err)
{
    char near_text[32];
    const kiln_view_options options = {.profile = profile_named(levels->origin_profile),
                                       .antialiased = levels->origin_antialiased ? 1 : 2,
                                       .near_text = near_text};
    uint32_t train = 0;
    (void)snprintf(near_text, sizeof near_text, "%.9g", (double)levels->origin_near);
    for (uint32_t i = 0; i < n; i++) train += is_judge(&cameras[i], true);
    const uint32_t judges = train ? train : n, most = judges < VIEWS_MOST ? judges : VIEWS_MOST;
    kiln_hasher *h = kiln_hasher_new();
    KILN_TRY(KILN_ALLOC(&b->views, most, "cameras", err));
    for (uint32_t i = 0, at = 0; i < n && b->n_views < most; i++) {
        if (!is_judge(&cameras[i], train > 0)) continue;
        if (at++ != (uint64_t)b->n_views * judges / most) continue;
        kiln_key_hash(h, "camera", kiln_camera_hash(&cameras[i]));
        KILN_TRY(kiln_view_request_init(&b->views[b->n_views], &options, scene, &cameras[i], err));
        b->n_views++;
    }
    b->cameras = kiln_key_end(h);
    return KILN_OK;
}

static kiln_status read_cut_bake(kiln_manifest *m, kiln_export_bake *bake, cut_bake *b,
                                 kiln_error *err)
{
    kiln_camera *cameras = NULL;
    kiln_error none;
    uint32_t n = 0;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_export_load_levels(m, bake, err));
    KILN_TRY(kiln_level_tree_make(bake->layer, bake->levels, &b->tree, err));
    if (asks_db(&kiln_export_given)) KILN_TRY(kiln_level_tree_read_sites(m, &b->tree, err));
    b->weighted =
        bake->levels->n_chunks && kiln_chunk_plane(&bake->levels->chunks[0], "visibility") != NULL;
    if (kiln_layer_current(m, KILN_LAYER_visibility, &b->seen, &none) != KILN_OK) b->seen = NULL;
    KILN_TRY(kiln_cameras_get(m, &cameras, &n, err));
    if (b->weighted && !b->seen)
        KILN_GO(kiln_distance_prior_find(m, &bake->scene, bake->layer, cameras, n, &b->prior, err));
    if (asks_db(&kiln_export_given))
        KILN_GO(choose_views(&bake->scene, bake->levels, cameras, n, b, err));
    KILN_GO(KILN_ALLOC(&b->left, b->tree.n_nodes, "the rows of nodes", err));
done:
    free(cameras);
    return st;
}

static kiln_status read_added(kiln_run *r, kiln_export_bake *bake, cut_bake *b, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_manifest_open(bake->path, KILN_OPEN_READ, "export", kiln_run_allow_network(r), &m,
                                err));
    kiln_status st = kiln_run_need_of(r, m, kiln_layer_kinds[KILN_LAYER_levels].stage, err);
    if (st == KILN_OK) st = read_cut_bake(m, bake, b, err);
    kiln_manifest_close(m);
    if (st != KILN_OK) kiln_note(err, "--add");
    return st;
}

kiln_status kiln_cut_open(kiln_run *r, kiln_export *e, kiln_cut_bakes **out, kiln_error *err)
{
    const char *const kind = e->bakes[0].layer->kind;
    *out = NULL;
    if (strcmp(kind, kiln_layer_kinds[KILN_LAYER_baked].name) != 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--level, --count and --percent choose from the levels of detail of the "
                         "layer 'baked'; '%s' has none, leave "
                         "out --layer",
                         kind);
    if (!e->splats)
        return kiln_fail(err, KILN_E_USAGE,
                         "levels of detail are of Gaussians, and the layer holds points");
    KILN_TRY(kiln_alloc((void **)out, sizeof **out + e->n_bakes * sizeof(cut_bake), 1,
                        "a cut of the levels", err));
    (*out)->n = e->n_bakes;
    KILN_TRY(kiln_run_need(r, kiln_layer_kinds[KILN_LAYER_levels].stage, err));
    KILN_TRY(read_cut_bake(kiln_run_manifest(r), &e->bakes[0], &(*out)->bake[0], err));
    for (uint32_t i = 1; i < e->n_bakes; i++)
        KILN_TRY(read_added(r, &e->bakes[i], &(*out)->bake[i], err));
    return KILN_OK;
}

void kiln_cut_key(kiln_hasher *h, const kiln_export *e, const kiln_cut_bakes *c)
{
    for (uint32_t i = 0; c && i < c->n; i++) {
        kiln_key_hash(h, "levels", e->bakes[i].levels->digest);
        kiln_key_hash(h, "cameras", c->bake[i].cameras);
        if (c->bake[i].seen) kiln_key_hash(h, "visibility", c->bake[i].seen->digest);
    }
}

/* ---- what filters leave ---------------------------------------------------------------------- */

static kiln_status gather_count(kiln_export_parent *p, uint64_t unit, const void *result,
                                size_t bytes, kiln_error *err)
{
    kiln_chunk_survey s;
    (void)unit;
    if (!result || bytes != sizeof s)
        return kiln_fail(err, KILN_E_BUG, "a count of %zu bytes", bytes);
    memcpy(&s, result, sizeof s);
    return kiln_buffer_put(p->plan, &s.n, sizeof s.n, err);
}

static uint64_t count_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, KILN_ROWS_MEANS) + ((uint64_t)1 << 16);
}

static const kiln_export_round counting = {
    .what = "counting", .ram = count_ram, .run = NULL, .gather = gather_count};

static kiln_status count_left(kiln_run *r, const kiln_writer *w, kiln_export *e, kiln_error *err)
{
    kiln_buffer counts = {0};
    if (e->filters.n == 0) return KILN_OK;
    kiln_status st = kiln_export_prepare(r, w, e, KILN_ROUND_COUNT, &counting, &counts, err);
    for (uint32_t i = 0; st == KILN_OK && i < e->n_chunks; i++)
        memcpy(&e->chunks[i].n, counts.data + i * sizeof(uint64_t), sizeof(uint64_t));
    kiln_buffer_release(&counts);
    if (st == KILN_OK) kiln_export_count_rows(e);
    return st == KILN_OK && e->n_rows == 0 ? kiln_export_fail_empty(e, err) : st;
}

/* Of each leaf, how many rows are left. */
static kiln_status spread_left(const kiln_export *e, uint32_t bake, cut_bake *b, kiln_error *err)
{
    const kiln_layer *layer = e->bakes[bake].layer;
    uint64_t *left;
    KILN_TRY(KILN_ALLOC(&left, layer->n_chunks, "the rows of chunks", err));
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        if (e->chunks[i].bake != bake) continue;
        left[e->chunks[i].chunk - layer->chunks] = e->chunks[i].n;
        b->rows += e->chunks[i].n;
    }
    for (uint32_t i = 0; i < b->tree.n_nodes; i++)
        if (b->tree.nodes[i].chunk) b->left[i] = left[b->tree.nodes[i].chunk - layer->chunks];
    free(left);
    return KILN_OK;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* All rows that are written; 0: as --level says. */
static uint64_t wanted_rows(const kiln_export_options *o, uint64_t all)
{
    const double share = isnan(o->percent) ? 0 : floor(o->percent / 100 * (double)all + 0.5);
    const uint64_t wanted = o->count ? o->count : isnan(o->percent) ? 0 : (uint64_t)share;
    if (!o->count && isnan(o->percent)) return 0;
    return wanted < 1 ? 1 : wanted < all ? wanted : all;
}

/* Its part of `wanted`, so that the parts of all bakes are just as many. */
static uint64_t part_of(uint64_t wanted, uint64_t from, uint64_t rows, uint64_t all)
{
    const uint64_t to = from + rows;
    const double share = (double)wanted / (double)all;
    const uint64_t lower = from == 0 ? 0 : (uint64_t)floor(share * (double)from),
                   upper = to == all ? wanted : (uint64_t)floor(share * (double)to);
    return upper > lower ? upper - lower : 1;
}

/* rows: as kiln_level_aim has it. */
static kiln_status choose_cut(const kiln_level_wish *wish, uint64_t rows, cut_bake *b,
                              kiln_error *err)
{
    const kiln_level_aim aim = {
        .wish = *wish, .rows = rows, .views = b->views, .n_views = b->n_views, .left = b->left};
    kiln_level_cut_release(&b->cut);
    return kiln_level_choose_file(&b->tree, &aim, &b->cut, err);
}

static uint64_t cut_rows(const kiln_cut_bakes *c)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < c->n; i++) rows += c->bake[i].cut.rows;
    return rows;
}

/* A bake keeps a row in each of its nodes, which may be more than its part: others have fewer
 * then. */
static kiln_status balance_cuts(const kiln_level_wish *wish, uint64_t wanted, kiln_cut_bakes *c,
                                kiln_error *err)
{
    for (uint32_t i = 0; i < c->n; i++) {
        cut_bake *b = &c->bake[i];
        const uint64_t rows = cut_rows(c), above = rows > wanted ? rows - wanted : 0;
        const uint64_t spare = b->cut.rows - b->cut.n, less = kiln_min_u64(above, spare);
        if (less) KILN_TRY(choose_cut(wish, b->cut.rows - less, b, err));
    }
    return KILN_OK;
}

/* What a number of rows cannot be: fewer than nodes. A share is rounded up to that. */
static kiln_status check_least(const kiln_export_options *o, uint64_t wanted,
                               const kiln_cut_bakes *c, kiln_error *err)
{
    const unsigned long long least = cut_rows(c);
    if (least <= wanted) return KILN_OK;
    if (o->count)
        return kiln_fail(err, KILN_E_USAGE,
                         "--count %llu: the rows that are left lie in %llu nodes of the levels, "
                         "each of which keeps one "
                         "Gaussian; the least is --count %llu",
                         (unsigned long long)o->count, least, least);
    kiln_warn("--percent %g: %llu Gaussians are written rather than %llu, because the rows that "
              "are left lie in so many "
              "nodes of the levels, each of which keeps one",
              o->percent, least, (unsigned long long)wanted);
    return KILN_OK;
}

static kiln_status choose_cuts(const kiln_export_options *o, const kiln_export *e,
                               kiln_cut_bakes *c, kiln_error *err)
{
    uint64_t from = 0;
    const uint64_t wanted = wanted_rows(o, e->n_rows);
    kiln_level_wish wish;
    KILN_TRY(kiln_level_wish_parse(o->level, &wish, err));
    for (uint32_t i = 0; i < c->n; i++) {
        cut_bake *b = &c->bake[i];
        KILN_TRY(spread_left(e, i, b, err));
        if (b->rows == 0) continue;
        KILN_TRY(choose_cut(&wish, wanted ? part_of(wanted, from, b->rows, e->n_rows) : 0, b, err));
        from += b->rows;
    }
    if (!wanted) return KILN_OK;
    KILN_TRY(balance_cuts(&wish, wanted, c, err));
    return check_least(o, wanted, c, err);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static const kiln_chunk *chunk_of_pick(const kiln_export_bake *b, const kiln_level_pick *p)
{
    const uint32_t n = b->layer->n_chunks;
    return p->chunk < n ? &b->layer->chunks[p->chunk] : &b->levels->chunks[p->chunk - n];
}

/* As many rows as its chunk has, or filters leave of it. */
static bool is_as_stored(const kiln_export_bake *bake, const cut_bake *b, const kiln_level_pick *p)
{
    return p->rows ==
           (p->chunk < bake->layer->n_chunks ? b->left[p->node] : chunk_of_pick(bake, p)->count);
}

static void weigh_request(const kiln_export_bake *bake, const cut_bake *b, kiln_made_request *q)
{
    q->weighted = b->weighted;
    q->antialiased = bake->levels->origin_antialiased;
    q->prior = b->prior;
    if (!b->weighted || !b->seen || q->chunk >= bake->layer->n_chunks ||
        q->chunk >= b->seen->n_chunks)
        return;
    const kiln_plane *v = kiln_chunk_plane(&b->seen->chunks[q->chunk], "visibility");
    const kiln_plane *p = kiln_chunk_plane(&b->seen->chunks[q->chunk], "prominence");
    if (v && v->data.n_segments == 1) q->visibility = v->data.segments[0];
    if (p && p->data.n_segments == 1) q->prominence = p->data.segments[0];
}

/* What is to be merged. */
typedef struct {
    kiln_buffer requests; /* kiln_made_request */
    uint64_t bytes;       /* of their rows */
} cut_list;

static kiln_status add_made(kiln_export *e, const cut_bake *b, uint32_t bake,
                            const kiln_level_pick *p, cut_list *out, kiln_error *err)
{
    kiln_made_request q;
    kiln_chunk *c = &e->made.chunks[e->made.n];
    memset(&q, 0, sizeof q);
    q.bake = bake;
    q.chunk = p->chunk;
    q.n = p->rows;
    q.at = out->bytes;
    weigh_request(&e->bakes[bake], b, &q);
    c->count = p->rows;
    c->level = p->level ? p->level : 1;
    (void)snprintf(c->name, sizeof c->name, "%.80s@%u", b->tree.nodes[p->node].name, c->level);
    e->made.at[e->made.n++] = q.at;
    KILN_TRY(kiln_made_planes(c, e->bakes[bake].layer->sh_degree, err));
    return kiln_buffer_put(&out->requests, &q, sizeof q, err);
}

/* A chunk of the layer is level 0 whatever was asked for: of a row or two nothing is to be merged,
 * and filters go on. */
static kiln_status list_pick(kiln_export *e, const cut_bake *b, uint32_t bake,
                             const kiln_level_pick *p, cut_list *out, kiln_error *err)
{
    const bool stored = is_as_stored(&e->bakes[bake], b, p),
               of_layer = p->chunk < e->bakes[bake].layer->n_chunks;
    kiln_export_chunk *c = &e->chunks[e->n_chunks++];
    *c = (kiln_export_chunk){.bake = bake,
                             .chunk = chunk_of_pick(&e->bakes[bake], p),
                             .n = p->rows,
                             .node = KILN_NO_NODE};
    e->cut = e->cut || !stored || !of_layer;
    if (stored) {
        c->level = of_layer ? 0 : p->level;
        return KILN_OK;
    }
    c->chunk = &e->made.chunks[e->made.n];
    c->level = p->level ? p->level : 1;
    KILN_TRY(add_made(e, b, bake, p, out, err));
    out->bytes += kiln_made_bytes(p->rows, e->bakes[bake].layer->sh_degree);
    return KILN_OK;
}

/* Makes e->chunks of the picks. */
static kiln_status list_picks(kiln_export *e, const kiln_cut_bakes *c, cut_list *out,
                              kiln_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) n += c->bake[i].cut.n;
    free(e->chunks);
    e->chunks = NULL;
    e->n_chunks = 0;
    KILN_TRY(KILN_ALLOC(&e->chunks, n, "chunks", err));
    KILN_TRY(KILN_ALLOC(&e->made.chunks, n, "merged chunks", err));
    KILN_TRY(KILN_ALLOC(&e->made.at, n, "merged chunks", err));
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < c->bake[i].cut.n; k++)
            KILN_TRY(list_pick(e, &c->bake[i], i, &c->bake[i].cut.picks[k], out, err));
    kiln_export_count_rows(e);
    return KILN_OK;
}

/* ---- merging --------------------------------------------------------------------------------- */

static uint64_t requests_of(const kiln_export *e)
{
    return e->plan_bytes / sizeof(kiln_made_request);
}

static kiln_status gather_bounds(kiln_export_parent *p, uint64_t unit, const void *result,
                                 size_t bytes, kiln_error *err)
{
    if (!result || bytes != sizeof(kiln_bounds))
        return kiln_fail(err, KILN_E_BUG, "bounds of %zu bytes", bytes);
    memcpy(&((kiln_made_request *)(void *)p->plan->data)[unit].bounds, result, bytes);
    return KILN_OK;
}

static const kiln_export_round merging = {.what = "merging",
                                          .units = requests_of,
                                          .ram = kiln_made_ram,
                                          .run = NULL,
                                          .gather = gather_bounds};

static void take_made_bounds(const kiln_buffer *requests, kiln_made_chunks *made)
{
    for (uint32_t i = 0; i < made->n; i++) {
        const kiln_bounds *b = &((const kiln_made_request *)(const void *)requests->data)[i].bounds;
        kiln_chunk *c = &made->chunks[i];
        memcpy(c->box_min, b->box_min, sizeof c->box_min);
        memcpy(c->box_max, b->box_max, sizeof c->box_max);
        memcpy(c->reach_min, b->reach_min, sizeof c->reach_min);
        memcpy(c->reach_max, b->reach_max, sizeof c->reach_max);
        c->max_log_scale = b->max_log_scale;
        c->max_opacity_logit = b->max_opacity_logit;
    }
}

static kiln_status merge_made(kiln_run *r, const kiln_writer *w, kiln_export *e,
                              kiln_buffer *requests, int *fd, kiln_error *err)
{
    if (e->made.n == 0) return KILN_OK;
    KILN_TRY(kiln_scratch_unnamed(e->target, fd, e->made_path, err));
    KILN_TRY(kiln_export_prepare(r, w, e, KILN_ROUND_MAKE, &merging, requests, err));
    take_made_bounds(requests, &e->made);
    return KILN_OK;
}

static void tell_cut(const kiln_export *e, uint64_t all)
{
    char merged[64] = "";
    if (e->made.n)
        (void)snprintf(merged, sizeof merged, "; %s made for this file",
                       KILN_COUNT(e->made.n, "was|were"));
    if (e->cut)
        kiln_say("%s for %llu (%s of the scene%s)",
                 KILN_COUNT(e->n_rows, "Gaussian stands|Gaussians stand"), (unsigned long long)all,
                 KILN_COUNT(e->n_chunks, "part"), merged);
    else if (all == 1)
        kiln_say("the only Gaussian that is there is written");
    else
        kiln_say("all %s that are there are written", KILN_COUNT(all, "Gaussian"));
}

/* Else a number that is too large would be taken for what it is not. */
static void tell_coarsest(const kiln_export_options *o, const kiln_export *e)
{
    kiln_level_wish wish;
    kiln_error none;
    uint32_t most = 0;
    if (o->count || !isnan(o->percent) ||
        kiln_level_wish_parse(o->level, &wish, &none) != KILN_OK || wish.form != KILN_LEVEL_AT)
        return;
    for (uint32_t i = 0; i < e->n_bakes; i++)
        for (uint32_t k = 0; k < e->bakes[i].levels->n_chunks; k++)
            if (e->bakes[i].levels->chunks[k].level > most)
                most = e->bakes[i].levels->chunks[k].level;
    if (wish.level > most)
        kiln_say("--level %u: the coarsest level of this scene is %u, which is written", wish.level,
                 most);
}

kiln_status kiln_cut_make(kiln_run *r, const kiln_writer *w, kiln_export *e, kiln_cut_bakes *c,
                          int *fd, kiln_error *err)
{
    cut_list list = {0};
    kiln_status st = KILN_OK;
    *fd = -1;
    KILN_TRY(count_left(r, w, e, err));
    const uint64_t all = e->n_rows;
    tell_coarsest(&kiln_export_given, e);
    KILN_GO(choose_cuts(&kiln_export_given, e, c, err));
    KILN_GO(list_picks(e, c, &list, err));
    KILN_GO(merge_made(r, w, e, &list.requests, fd, err));
    tell_cut(e, all);
done:
    kiln_buffer_release(&list.requests);
    return st;
}
