/* voxel_rows -- see the header. */
#include "stages/prune/voxel_rows.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of voxels: of a large scene about as many as it has rows. */
enum { VOXEL_BLOCKS_LEAST = 1 << 12, VOXEL_BLOCKS_MOST = 1 << 22 };

static uint32_t least_capacity(const kiln_pruning *p)
{
    enum { HALVES = 2 }; /* a part of one block cannot be halved */
    if (!p->o->voxel_blocks) return VOXEL_BLOCKS_LEAST;
    return p->o->voxel_blocks > HALVES ? p->o->voxel_blocks : HALVES;
}

static uint64_t voxels_ram(const kiln_pruning *p, uint64_t capacity)
{
    return kiln_prune_voxels_ram(p->input, p->size.blocks.rows, capacity);
}

static uint32_t choose_capacity(kiln_run *r, const kiln_pruning *p)
{
    const uint64_t may = kiln_run_unit_ram(r);
    uint32_t n = least_capacity(p);
    while (!p->o->voxel_blocks && n < VOXEL_BLOCKS_MOST && n < p->input->count &&
           voxels_ram(p, 2 * n) <= may)
        n *= 2;
    return n;
}

static kiln_status parse_voxel_rules(const kiln_pruning *p, kiln_voxel_rule out[2], kiln_error *err)
{
    KILN_TRY(kiln_filter_floaters_parse(p->o->rules.filter_floaters, &out[0], err));
    return kiln_filter_cluster_parse(p->o->rules.filter_cluster, &out[1], err);
}

kiln_status kiln_pruning_least_voxels(const kiln_pruning *p, uint64_t *least, kiln_error *err)
{
    kiln_voxel_rule rules[2];
    KILN_TRY(parse_voxel_rules(p, rules, err));
    *least = rules[0].on || rules[1].on ? voxels_ram(p, least_capacity(p)) : 0;
    return KILN_OK;
}

/* In how many parts the grid is taken changes no result. */
static kiln_hash voxels_key(kiln_run *r, const kiln_pruning *p, const kiln_prune_voxels *v)
{
    enum { GRID = 2 }; /* 1 was around the scene's origin: rows far from it were outside */
    static const char *const names[] = {"means", "log_scales", "quats", "opacity_logits"};
    KILN_KEY_LISTS(kiln_prune_voxels, 80);
    kiln_hasher *h = kiln_run_key_bare(r, v->cluster ? "cluster" : "floaters");
    kiln_key_u64(h, "grid", GRID);
    kiln_key_f64(h, "size", v->size);
    kiln_key_f64(h, "opacity", v->opacity);
    kiln_key_f64(h, "min", v->min);
    for (int a = 0; a < 3; a++) kiln_key_f64(h, "origin", v->origin[a]);
    for (int a = 0; a < 3 && v->cluster; a++) kiln_key_f64(h, "seed", v->seed[a]);
    for (uint32_t i = 0; i < p->input->n_chunks; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            kiln_key_plane(h, &p->input->chunks[i], names[k]);
    return kiln_key_end(h);
}

static kiln_status search_voxels_of(kiln_run *r, kiln_pruning *p, const kiln_voxel_rule *rule,
                                    bool cluster, kiln_error *err)
{
    kiln_unit u = {.name = "voxels", .cost = p->input->count, .planning = true, .n_outputs = 2};
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_VOXELS);
    kiln_prune_voxels v;
    kiln_status st;
    memset(&v, 0, sizeof v);
    v.size = rule->size;
    v.opacity = rule->opacity;
    v.min = rule->min;
    memcpy(v.seed, p->o->rules.seed_pos, sizeof v.seed);
    memcpy(v.origin, p->scene.origin, sizeof v.origin);
    v.capacity = choose_capacity(r, p);
    v.cluster = cluster;
    if (cluster) memcpy(u.name, "cluster", sizeof "cluster");
    u.key = voxels_key(r, p, &v);
    u.ram = head.ram = voxels_ram(p, v.capacity);
    u.ram_cache = p->cache;
    head.text_bytes = sizeof v;
    KILN_GO(kiln_pruning_set_payload(
        &u, &(kiln_prune_request){.head = &head, .text = (const char *)&v}, true, err));
    KILN_GO(kiln_run_units(
        r, cluster ? "looking for the cluster of voxels" : "looking for solid voxels", &u, 1, err));
    KILN_GO(kiln_pruning_take_strays(
        r, p, cluster ? KILN_STRAY_FILTER_CLUSTER : KILN_STRAY_FILTER_FLOATERS, &u, err));
    if (cluster) KILN_GO(kiln_unit_struct(r, &u, "voxels", &p->cluster, sizeof p->cluster, err));
done:
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

kiln_status kiln_pruning_search_voxels(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_voxel_rule rules[2];
    KILN_TRY(parse_voxel_rules(p, rules, err));
    for (int i = 0; i < 2; i++)
        if (rules[i].on) KILN_TRY(search_voxels_of(r, p, &rules[i], i == 1, err));
    return KILN_OK;
}
