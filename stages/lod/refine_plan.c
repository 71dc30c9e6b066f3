/* The parent's part of refine.h: which cameras and which neighbours a chunk is refined with. */
#include "stages/lod/refine.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "base/vec3.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/lod/in_picture.h"
#include "stages/lod/lod_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_run *r;
    kiln_lod_plan *p;
    const kiln_camera *cameras;
    uint32_t n_cameras;
    bool training; /* there are cameras of the training split */
    const kiln_view_request *request;
    const double *origin;
    uint32_t steps;
    const uint32_t *node_of; /* of a chunk of `baked`; while units are finished */
} planning;

/* ---- cameras --------------------------------------------------------------------------------- */
/* Is a corner or the middle of the chunk's box in the picture, or the camera within the box? Where
 * the chunk's rows lie in its box only the worker knows. */
static bool may_see(const planning *k, const kiln_camera *c, const kiln_level_node *node)
{
    double lo[3], hi[3], at[3], centre[3];
    bool within = true;
    if (k->training && strcmp(c->split, "train") != 0) return false;
    kiln_pose_centre(c->r, c->t, centre);
    for (int i = 0; i < 3; i++) {
        lo[i] = (double)node->box_min[i] + k->origin[i];
        hi[i] = (double)node->box_max[i] + k->origin[i];
        at[i] = 0.5 * (lo[i] + hi[i]);
        within &= centre[i] >= lo[i] && centre[i] <= hi[i];
    }
    if (within || kiln_lod_in_picture(c, k->request->near_m, at)) return true;
    for (int corner = 0; corner < 8; corner++) {
        for (int i = 0; i < 3; i++) at[i] = corner >> i & 1 ? hi[i] : lo[i];
        if (kiln_lod_in_picture(c, k->request->near_m, at)) return true;
    }
    return false;
}

static void set_camera(const planning *k, const kiln_camera *c, kiln_refine_camera *to)
{
    memcpy(to->r, c->r, sizeof to->r);
    kiln_pose_centre(c->r, c->t, to->centre);
    for (int i = 0; i < 3; i++) to->centre[i] -= k->origin[i];
    to->fx = c->fx;
    to->fy = c->fy;
    to->cx = c->cx;
    to->cy = c->cy;
    to->width = c->width;
    to->height = c->height;
}

static void choose_node_cameras(const planning *k, const kiln_level_node *node, kiln_refine_unit *u)
{
    uint32_t seeing = 0, met = 0;
    for (uint32_t i = 0; i < k->n_cameras; i++) seeing += may_see(k, &k->cameras[i], node);
    const uint32_t n = seeing < KILN_REFINE_CANDIDATES ? seeing : KILN_REFINE_CANDIDATES;
    for (uint32_t i = 0; i < k->n_cameras && u->n_cameras < n; i++) {
        if (!may_see(k, &k->cameras[i], node)) continue;
        /* the j-th is in the middle of the j-th part of the list */
        if (met++ == (2 * (uint64_t)u->n_cameras + 1) * seeing / (2 * (uint64_t)n))
            set_camera(k, &k->cameras[i], &u->cameras[u->n_cameras++]);
    }
}

/* ---- neighbours ------------------------------------------------------------------------------ */
static bool touch(const kiln_level_node *a, const kiln_level_node *b)
{
    for (int i = 0; i < 3; i++)
        if (a->reach_max[i] < b->reach_min[i] || b->reach_max[i] < a->reach_min[i]) return false;
    return true;
}

static double apart(const kiln_level_node *a, const kiln_level_node *b)
{
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double d = ((double)a->box_min[i] + (double)a->box_max[i]) -
                         ((double)b->box_min[i] + (double)b->box_max[i]);
        sum += d * d;
    }
    return sum;
}

static void set_chunk(const planning *k, uint32_t node, kiln_refine_chunk *c)
{
    const kiln_level_node *at = &k->p->tree.nodes[node];
    c->chunk = (uint32_t)(at->chunk - k->p->baked->chunks);
    c->rows = at->chunk->count;
}

/* The nearest that touch, nearest first; equally near ones in the order of the tree. */
static void choose_chunks(const planning *k, uint32_t node, kiln_refine_unit *u)
{
    const kiln_level_tree *tree = &k->p->tree;
    double distance[1 + KILN_REFINE_NEIGHBOURS] = {0};
    set_chunk(k, node, &u->chunks[0]);
    u->n_chunks = 1;
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        if (i == node || !tree->nodes[i].chunk || !touch(&tree->nodes[node], &tree->nodes[i]))
            continue;
        const double d = apart(&tree->nodes[node], &tree->nodes[i]);
        uint32_t at = u->n_chunks;
        while (at > 1 && d < distance[at - 1]) at--;
        if (at > KILN_REFINE_NEIGHBOURS) continue;
        if (u->n_chunks <= KILN_REFINE_NEIGHBOURS) u->n_chunks++;
        for (uint32_t j = u->n_chunks - 1; j > at; j--) {
            distance[j] = distance[j - 1];
            u->chunks[j] = u->chunks[j - 1];
        }
        distance[at] = d;
        set_chunk(k, i, &u->chunks[at]);
    }
}

/* ---- units ----------------------------------------------------------------------------------- */
/* The rows of the neighbourhood, whoever merged them, and all that says how they are fitted. */
static kiln_hash key_refine_unit(const planning *k, const kiln_refine_unit *u)
{
    kiln_hasher *h = kiln_run_key_bare(k->r, "refine");
    /* visibility is in the key of the chunk's merged levels */
    KILN_KEY_LISTS(kiln_refine_unit, 9040);
    const double least_gain = KILN_REFINE_LEAST_GAIN;
    kiln_key_u64(h, "version", KILN_REFINE_VERSION);
    kiln_key_u64(h, "steps", u->steps);
    kiln_key_bytes(h, "least gain", &least_gain, sizeof least_gain);
    kiln_key_u64(h, "levels", u->n_levels);
    kiln_key_u64(h, "weighted", u->weighted);
    kiln_key_u64(h, "profile", u->profile);
    kiln_key_u64(h, "antialiased", u->antialiased);
    kiln_key_bytes(h, "near", &u->near_m, sizeof u->near_m);
    kiln_key_bytes(h, "errors", &u->errors, sizeof u->errors);
    kiln_key_bytes(h, "cameras", u->cameras, u->n_cameras * sizeof *u->cameras);
    for (uint32_t i = 0; i < u->n_chunks; i++) kiln_key_hash(h, "chunk", u->chunks[i].unit);
    return kiln_key_end(h);
}

/* All but keys, which the merged levels have later, and cameras. */
static kiln_status prepare_unit(const planning *k, uint32_t node, kiln_unit *unit, kiln_error *err)
{
    const kiln_lod_unit *merged = kiln_lod_payload(k->p, node);
    kiln_refine_unit *u;
    KILN_TRY(KILN_ALLOC(&u, 1, "the units of refinement", err));
    unit->payload = u;
    unit->payload_bytes = sizeof *u;
    u->unit = KILN_LOD_REFINE;
    u->steps = k->steps;
    u->n_levels = merged->n_levels;
    u->sh_degree = merged->sh_degree;
    u->weighted = merged->weighted;
    u->profile = k->request->profile;
    u->antialiased = k->request->antialiased;
    u->near_m = k->request->near_m;
    u->baked = merged->baked;
    u->errors = merged->errors;
    memcpy(u->counts, merged->counts, merged->n_levels * sizeof *u->counts);
    choose_chunks(k, node, u);
    (void)snprintf(unit->name, sizeof unit->name, "refine %s", k->p->tree.nodes[node].name);
    unit->cost = u->chunks[0].rows;
    unit->ram = kiln_lod_refine_ram(u);
    unit->ram_thread = kiln_lod_refine_ram_thread(u);
    return KILN_OK;
}

kiln_status kiln_lod_refine_prepare(kiln_run *r, kiln_lod_plan *p, const kiln_view_request *request,
                                    uint32_t steps, kiln_error *err)
{
    const planning k = {.r = r, .p = p, .request = request, .steps = steps};
    uint64_t most = 0;
    if (steps == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&p->refined, p->tree.n_nodes, "the units of refinement", err));
    KILN_TRY(KILN_ALLOC(&p->refined_of, p->tree.n_nodes, "the units of refinement", err));
    for (uint32_t i = 0; i < p->tree.n_nodes; i++) p->refined_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < p->tree.n_nodes; i++) {
        if (!p->tree.nodes[i].chunk) continue;
        KILN_TRY(kiln_run_interrupted(r, err));
        kiln_unit *unit = &p->refined[p->n_refined++];
        KILN_TRY(prepare_unit(&k, i, unit, err));
        most = kiln_max_u64(most, unit->ram);
    }
    kiln_run_foresee_ram(r, most, p->n_refined);
    return KILN_OK;
}

static void finish_unit(const planning *k, uint32_t node, kiln_unit *unit)
{
    kiln_refine_unit *u = (kiln_refine_unit *)unit->payload;
    const kiln_lod_unit *merged = kiln_lod_payload(k->p, node);
    u->visibility = merged->visibility;
    for (uint32_t i = 0; i < u->n_chunks; i++)
        u->chunks[i].unit = k->p->units[k->p->unit_of[k->node_of[u->chunks[i].chunk]]].key;
    choose_node_cameras(k, &k->p->tree.nodes[node], u);
    unit->key = key_refine_unit(k, u);
}

/* Leaves that no camera sees stay as they are merged. */
static kiln_status finish_units(const planning *k, kiln_error *err)
{
    kiln_lod_plan *p = k->p;
    const uint32_t n = p->n_refined;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        kiln_unit unit = p->refined[i];
        const uint32_t node = k->node_of[((kiln_refine_unit *)unit.payload)->chunks[0].chunk];
        KILN_TRY(kiln_run_interrupted(k->r, err));
        finish_unit(k, node, &unit);
        p->refined[i] = (kiln_unit){.payload = NULL};
        if (((kiln_refine_unit *)unit.payload)->n_cameras == 0) {
            free((void *)unit.payload);
            continue;
        }
        p->refined_of[node] = kept;
        p->refined[kept++] = unit;
    }
    p->n_refined = kept;
    return KILN_OK;
}

static kiln_status find_nodes(planning *k, uint32_t **node_of, kiln_error *err)
{
    const kiln_lod_plan *p = k->p;
    KILN_TRY(KILN_ALLOC(node_of, p->baked->n_chunks, "the units of refinement", err));
    for (uint32_t i = 0; i < p->tree.n_nodes; i++)
        if (p->tree.nodes[i].chunk) (*node_of)[p->tree.nodes[i].chunk - p->baked->chunks] = i;
    k->node_of = *node_of;
    return KILN_OK;
}

/* Sums what the units say of themselves. */
static kiln_status count_refined_levels(kiln_run *r, kiln_lod_plan *p, kiln_error *err)
{
    for (uint32_t i = 0; i < p->n_refined; i++) {
        const kiln_unit *unit = &p->refined[i];
        json_t *c;
        uint64_t levels = 0, kept = 0;
        kiln_status st = kiln_unit_counters(r, unit, &c, err);
        if (st == KILN_OK) {
            st = kiln_unit_count(r, unit, c, "levels", &levels, err);
            if (st == KILN_OK) st = kiln_unit_count(r, unit, c, "kept", &kept, err);
            json_decref(c);
        }
        KILN_TRY(kiln_unit_pass(r, unit, kiln_unit_refuse(r, unit, st, err)));
        p->tried += levels;
        p->better += kept;
    }
    return kiln_run_refused(r, err);
}

kiln_status kiln_lod_refine(kiln_run *r, kiln_lod_plan *p, const kiln_camera *cameras,
                            uint32_t n_cameras, const kiln_view_request *request,
                            const double origin[3], kiln_error *err)
{
    planning k = {.r = r,
                  .p = p,
                  .cameras = cameras,
                  .n_cameras = n_cameras,
                  .request = request,
                  .origin = origin};
    uint32_t *node_of = NULL;
    if (!p->refined) return KILN_OK;
    for (uint32_t i = 0; i < n_cameras; i++) k.training |= !strcmp(cameras[i].split, "train");
    kiln_status finished = find_nodes(&k, &node_of, err);
    if (finished == KILN_OK) finished = finish_units(&k, err);
    free(node_of);
    KILN_TRY(finished);
    kiln_run_on_cpu(r, false);
    kiln_run_serial(r, true);
    const kiln_status st = kiln_run_units(r, "refining", p->refined, p->n_refined, err);
    kiln_run_serial(r, false);
    return st == KILN_OK ? count_refined_levels(r, p, err) : st;
}
