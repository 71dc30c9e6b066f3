/* kiln-prune -- normalises scales and drops what breaks renderers: the cure for exploded Gaussians whose tile lists take
 * all memory. Statistics of the whole input first, then each block on its own, then pairs before and after by camera.
 *
 * The output has the blocks of the input with the same names and borders; a block that no rule touches keeps its bytes.
 * Why the defaults are what they are: kernels/prune/DESIGN.md. */
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/run_layers.h"
#include "stages/engine/work.h"
#include "stages/import/reader.h"
#include "stages/prune/prune_report.h"
#include "stages/prune/prune_units.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 8, CAMERAS_USUAL = 32 };

static struct {
    kiln_prune_options rules;
    bool dry_run, all_cameras;
    const char *sizes, *against;
    const char *filter_boxes, *filter_spheres, *filter_values;
} o;

#define POLICY_none(id, option)
#define POLICY_clamp(id, option) POLICY(id, option, "clamp")
#define POLICY_drop(id, option) POLICY(id, option, "drop")
#define POLICY(id, option, def)                                                                                  \
    {option "-policy", 0,   KILN_OPT_ENUM, &o.rules.id##_policy,                                                 \
     "WHAT",           def, "clamp|drop",  "what --" option " does with a Gaussian: clamp its axes, or drop it", \
     KILN_KEYED},

static const kiln_opt options[] = {
#define RULE(number, key, id, option, kind, arg, def, range, policy, n, looks_at, help) \
    {option, 0, KILN_OPT_##kind, &o.rules.id, arg, def, range, help, KILN_KEYED}, POLICY_##policy(id, option)
#include "kernels/prune/rules.def"
    KILN_FILTER_OPTIONS(&o.filter_boxes, &o.filter_spheres, &o.filter_values, "keep"),
    {"merge-distance", 0, KILN_OPT_F64, &o.rules.merge_distance, "FACTOR", "0.1", "0..10",
     "near-duplicates are at most this many median spacings apart", KILN_KEYED},
    {"dry-run", 'n', KILN_OPT_BOOL, &o.dry_run, NULL, NULL, NULL, "say what would happen, write nothing", KILN_ONCE},
    {"all-cameras", 0, KILN_OPT_BOOL, &o.all_cameras, NULL, NULL, NULL, "predict pairs for all cameras, not only for 32", 0},
    {"sizes", 0, KILN_OPT_TEXT, &o.sizes, "PIXELS", NULL, NULL, "predict pairs at these sizes of the longer side, N[,N...]", 0},
    {"against", 0, KILN_OPT_PATH, &o.against, "MANIFEST", NULL, NULL, "also print the scales of this other bake, to compare", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const kiln_cli cli = {.program = "kiln-prune",
                             .summary = "normalises scales and prunes what breaks renderers",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

typedef struct {
    kiln_scene scene;
    kiln_layer *input, *spacing; /* spacing: only where the input has no such plane itself */
    uint32_t *spacing_of;        /* [input->n_chunks] its block for each of the input's; NULL with the plane in the input */
    kiln_prune_size size;
    uint64_t cache; /* what a worker keeps decoded, at most */
    uint32_t *rows; /* --drop-row */
    uint64_t n_rows;
    kiln_prune_filters filters;
    uint64_t filtered[KILN_FILTER_KINDS]; /* rows that they drop */
    kiln_prune_stats stats;
    kiln_prune_rules rules;
    kiln_merged_row *merges;
    uint64_t n_merges;
    kiln_unit *blocks;  /* [n_blocks], of the input's those that have spacing */
    uint32_t *block_of; /* [n_blocks] which of the input's it is */
    uint32_t n_blocks;
    uint32_t *kept; /* [input->n_chunks] what became of each block, as kiln_prune_request has it */
    kiln_tally tally, other;
    double largest[3]; /* as in kiln_prune_report */
    kiln_camera *cameras;
    uint32_t n_cameras, n_views;
    kiln_prune_view *views;
    kiln_view_request *requests; /* [n_views] */
    kiln_chunk_keys keys;        /* of the input */
} pruning;

static void units_free(kiln_unit *units, uint64_t n)
{
    if (!units) return;
    kiln_units_release(units, n);
    for (uint64_t i = 0; i < n; i++) free(units[i].payload);
    free(units);
}

static void pruning_release(pruning *p)
{
    units_free(p->blocks, p->n_blocks);
    free(p->block_of);
    free(p->kept);
    free(p->requests);
    kiln_chunk_keys_release(&p->keys);
    free(p->views);
    free(p->cameras);
    free(p->merges);
    free(p->rows);
    free(p->spacing_of);
    kiln_layer_free(p->spacing);
    kiln_layer_free(p->input);
}

/* ---- input ------------------------------------------------------------------------------------------------------------- */
static kiln_status open_input(kiln_run *r, pruning *p, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_scene_get(m, &p->scene, err));
    if (p->scene.kind == KILN_SCENE_NONE)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' holds neither Gaussians nor points; import a scene that has some, or with --random-points N",
                         kiln_manifest_path(m));
    KILN_TRY(kiln_run_need(r, "knn", err));
    if (p->scene.kind == KILN_SCENE_POINTS) {
        kiln_status st = kiln_layer_current(m, KILN_LAYER_initial, &p->input, err);
        if (st != KILN_E_STALE) return st;
        return kiln_fail(err, KILN_E_STALE, "'%s' holds points that are no Gaussians yet; run kiln-knn '%s' first",
                         kiln_manifest_path(m), kiln_manifest_path(m));
    }
    KILN_TRY(kiln_layer_current(m, KILN_LAYER_source, &p->input, err));
    KILN_TRY(kiln_layer_current(m, KILN_LAYER_spacing, &p->spacing, err));
    KILN_TRY(KILN_ALLOC(&p->spacing_of, p->input->n_chunks, "the blocks", err));
    for (uint32_t i = 0; i < p->input->n_chunks; i++)
        p->spacing_of[i] = kiln_prune_find_block(p->spacing, p->input->chunks[i].name);
    return KILN_OK;
}

/* Filters look at the planes of the first block, which all others have too. */
static kiln_status bind_filters(pruning *p, kiln_error *err)
{
    memcpy(p->filters.origin, p->scene.origin, sizeof p->filters.origin);
    if (p->input->n_chunks == 0 || p->filters.filters.n == 0) return KILN_OK;
    return kiln_filters_bind(&p->filters.filters, &p->input->chunks[0], p->input->sh_degree, err);
}

/* What filters read beside the copies that a block has of its geometry. */
static uint64_t filters_ram(const pruning *p)
{
    uint64_t planes = 0;
    for (uint32_t k = 0; k < p->filters.filters.n_planes; k++) planes += !kiln_prune_keeps(p->filters.filters.planes[k].name);
    return p->filters.filters.n ? planes * (p->size.blocks.plane + kiln_read_ram(p->size.blocks.plane)) + sizeof p->filters : 0;
}

/* Of the planes that are kept where no rows are merged (prune_units.h). */
static uint64_t kept_bytes(const kiln_layer *l)
{
    enum { CACHED = 4096 + 256 }; /* as kiln_layer_size_of counts */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        for (uint32_t k = 0; k < l->chunks[i].n_planes; k++)
            if (kiln_prune_keeps(l->chunks[i].planes[k].name)) bytes += l->chunks[i].planes[k].data.raw_bytes + CACHED;
    return bytes;
}

static void take_size(pruning *p)
{
    p->size = (kiln_prune_size){.rows = p->input->count, .blocks = kiln_layer_size_of(p->input)};
    p->cache = o.rules.merge ? p->size.blocks.all : kept_bytes(p->input);
    if (!p->spacing) return;
    p->size.blocks.planes += p->size.blocks.rows * sizeof(float);
    p->cache += kiln_layer_size_of(p->spacing).all;
}

/* Before the first unit, so that a cap which is refused later costs no work. A camera's unit gets lists besides, which come from
 * the search for near-duplicates and take less than that does. */
static kiln_status need_ram(kiln_run *r, const pruning *p, kiln_error *err)
{
    enum { TILE_ROWS = 1024 };
    kiln_run_foresee_ram(r, kiln_prune_stats_ram(&p->size), 1);
    const uint64_t block = kiln_prune_block_ram(&p->size, o.rules.merge) + filters_ram(p);
    kiln_run_foresee_ram(
        r, kiln_prune_pairs_ram(&p->size, TILE_ROWS) + filters_ram(p) + kiln_shared_payload_ram(p->n_rows * sizeof *p->rows), 1);
    kiln_run_foresee_ram(r, block, p->input->n_chunks);
    if (o.rules.merge) kiln_run_foresee_ram(r, kiln_prune_merges_ram(&p->size), 1);
    if (o.rules.merge) KILN_TRY(kiln_run_need_ram(r, kiln_prune_merges_ram(&p->size), "near-duplicates", err));
    return kiln_run_need_ram(r, block, "a block", err);
}

/* Has it all that pruning reads? kiln-knn leaves blocks out when it finishes partially. */
static bool has_block(const pruning *p, uint32_t block) { return !p->spacing || p->spacing_of[block] != KILN_PRUNE_NO_BLOCK; }

static const kiln_chunk *spacing_block(const pruning *p, uint32_t block)
{
    return p->spacing && has_block(p, block) ? &p->spacing->chunks[p->spacing_of[block]] : NULL;
}

static kiln_hash input_key(kiln_run *r, const pruning *p)
{
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_hash(h, "input", p->input->digest);
    if (p->spacing) kiln_key_hash(h, "spacing", p->spacing->digest);
    kiln_key_bytes(h, "origin", p->scene.origin, sizeof p->scene.origin); /* crops are in the source's coordinates */
    return kiln_key_end(h);
}

/* ---- payloads ---------------------------------------------------------------------------------------------------------- */
static kiln_prune_unit head_of(const pruning *p, kiln_prune_unit_kind kind)
{
    kiln_prune_unit u;
    memset(&u, 0, sizeof u);
    u.kind = kind;
    u.layer = p->input->digest;
    u.layer_kind = kiln_layer_kind_find(p->input->kind);
    if (p->spacing) u.spacing = p->spacing->digest;
    u.rules = p->rules;
    return u;
}

static kiln_status set_payload(kiln_unit *unit, const kiln_prune_unit *head, const kiln_merged_row *merges, const uint32_t *rows,
                               const void *text, kiln_error *err)
{
    kiln_buffer b = {0};
    kiln_status st;
    KILN_GO(kiln_buffer_put(&b, head, sizeof *head, err));
    if (head->n_merges) KILN_GO(kiln_buffer_put(&b, merges, head->n_merges * sizeof *merges, err));
    if (head->n_rows) KILN_GO(kiln_buffer_put(&b, rows, head->n_rows * sizeof *rows, err));
    if (head->text_bytes) KILN_GO(kiln_buffer_put(&b, text, head->text_bytes, err));
    unit->payload = b.data;
    unit->payload_bytes = b.size;
    return KILN_OK;
done:
    kiln_buffer_release(&b);
    return st;
}

/* Runs one unit and reads its only output, of a known size (0: any). */
static kiln_status run_one(kiln_run *r, const char *what, kiln_unit *u, const char *output, uint64_t want, void **data,
                           uint64_t *bytes, kiln_error *err)
{
    KILN_TRY(kiln_run_units(r, what, u, 1, err));
    KILN_TRY(kiln_unit_data(r, u, output, data, bytes, err));
    if (!want || *bytes == want) return KILN_OK;
    free(*data);
    *data = NULL;
    return kiln_unit_refuse(r, u,
                            kiln_fail(err, KILN_E_IO, "its '%s' has %llu bytes, not %llu", output, (unsigned long long)*bytes,
                                      (unsigned long long)want),
                            err);
}

static void key_planes(kiln_hasher *h, const pruning *p, uint32_t block, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) kiln_key_plane(h, &p->input->chunks[block], names[i]);
    if (spacing_block(p, block)) kiln_key_plane(h, spacing_block(p, block), "spacing2");
}

/* ---- statistics, rules, merges ------------------------------------------------------------------------------------------ */
/* Order statistics of finite numbers. */
static kiln_status check_statistics(const kiln_prune_stats *s, uint64_t n, kiln_error *err)
{
    bool sound = s->n <= n && isfinite(s->median_log_scale) && isfinite(s->median_spacing2) && s->median_spacing2 >= 0;
    for (int a = 0; a < 3; a++) sound = sound && isfinite(s->lo[a]) && isfinite(s->hi[a]) && s->lo[a] <= s->hi[a];
    return sound ? KILN_OK : kiln_fail(err, KILN_E_IO, "its statistics are none of this layer");
}

static kiln_status take_statistics(kiln_run *r, pruning *p, kiln_error *err)
{
    static const char *const names[] = {"means", "log_scales", "spacing2"};
    kiln_unit u = {.name = "statistics", .cost = p->input->count};
    kiln_prune_unit head = head_of(p, KILN_PRUNE_STATS);
    void *data = NULL;
    uint64_t bytes;
    kiln_status st;
    kiln_hasher *h = kiln_run_key_bare(r, "statistics");
    for (uint32_t i = 0; i < p->input->n_chunks; i++) key_planes(h, p, i, names, 3);
    u.key = kiln_key_end(h);
    u.ram = head.ram = kiln_prune_stats_ram(&p->size);
    u.ram_thread = head.ram_thread = kiln_prune_stats_ram_thread(&p->size);
    u.ram_cache = p->cache + kiln_prune_ahead_ram(p->input);
    KILN_GO(set_payload(&u, &head, NULL, NULL, NULL, err));
    KILN_GO(run_one(r, "measuring scales", &u, "statistics", sizeof p->stats, &data, &bytes, err));
    memcpy(&p->stats, data, sizeof p->stats);
    KILN_GO(kiln_unit_refuse(r, &u, check_statistics(&p->stats, p->input->count, err), err));
    KILN_GO(kiln_prune_rules_make(&o.rules, &p->stats, p->scene.origin, &p->rules, err));
done:
    free(data);
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

static bool has_row(const pruning *p, uint32_t block, uint32_t row)
{
    return block < p->input->n_chunks && has_block(p, block) && row < p->input->chunks[block].count;
}

static kiln_status check_merges(const pruning *p, uint64_t bytes, kiln_error *err)
{
    bool sound = bytes % sizeof *p->merges == 0;
    for (uint64_t i = 0; i < p->n_merges && sound; i++) {
        const kiln_merged_row *m = &p->merges[i];
        sound = has_row(p, m->block, m->row) && has_row(p, m->into_block, m->into_row);
    }
    return sound ? KILN_OK : kiln_fail(err, KILN_E_IO, "it merges rows that the layer does not have");
}

static kiln_status find_merges(kiln_run *r, pruning *p, kiln_error *err)
{
    static const char *const names[] = {"means", "log_scales", "quats", "sh0", "source_row"};
    kiln_unit u = {.name = "near-duplicates", .cost = p->input->count};
    kiln_prune_unit head = head_of(p, KILN_PRUNE_MERGES);
    uint64_t bytes;
    kiln_status st;
    if (!o.rules.merge) return KILN_OK;
    head.stats = p->stats;
    head.merge_distance = (float)(o.rules.merge_distance * sqrt((double)p->stats.median_spacing2));
    head.n_rows = p->n_rows;
    kiln_hasher *h = kiln_run_key_bare(r, "merges");
    kiln_key_f64(h, "distance", (double)head.merge_distance);
    kiln_key_bytes(h, "rows", p->rows, p->n_rows * sizeof *p->rows);
    for (uint32_t i = 0; i < p->input->n_chunks; i++) key_planes(h, p, i, names, 5);
    u.key = kiln_key_end(h);
    u.ram = head.ram = kiln_prune_merges_ram(&p->size);
    u.ram_cache = p->cache;
    KILN_GO(set_payload(&u, &head, NULL, p->rows, NULL, err));
    KILN_GO(run_one(r, "looking for near-duplicates", &u, "merges", 0, (void **)&p->merges, &bytes, err));
    p->n_merges = bytes / sizeof *p->merges;
    KILN_GO(kiln_unit_refuse(r, &u, check_merges(p, bytes, err), err));
done:
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */
/* All planes of a block: names, types, content. */
static void key_block(kiln_hasher *h, const pruning *p, uint32_t block)
{
    const kiln_chunk *c = &p->input->chunks[block];
    for (uint32_t i = 0; i < c->n_planes; i++) {
        kiln_key_text(h, "type", kiln_type_name(c->planes[i].type));
        kiln_key_plane(h, c, c->planes[i].name);
    }
    if (spacing_block(p, block)) kiln_key_plane(h, spacing_block(p, block), "spacing2");
}

/* Nothing where there are none: keys stay what they were before there were filters. */
static void key_filters(kiln_hasher *h, const pruning *p)
{
    if (p->filters.filters.n == 0) return;
    kiln_key_text(h, "boxes", o.filter_boxes ? o.filter_boxes : "");
    kiln_key_text(h, "spheres", o.filter_spheres ? o.filter_spheres : "");
    kiln_key_text(h, "values", o.filter_values ? o.filter_values : "");
    kiln_key_bytes(h, "origin", p->filters.origin, sizeof p->filters.origin);
}

/* Merges that concern a block: its own survivors with all that goes into them, and its own rows that go elsewhere. */
static bool concerns(const kiln_merged_row *m, uint32_t block) { return m->block == block || m->into_block == block; }

static kiln_status plan_block(kiln_run *r, const pruning *p, uint32_t block, kiln_merged_row *merges, kiln_unit *u, kiln_error *err)
{
    kiln_prune_unit head = head_of(p, KILN_PRUNE_BLOCK);
    const uint32_t *rows = p->rows;
    uint64_t end = 0;
    const uint64_t number = strtoull(p->input->chunks[block].name, NULL, 10); /* not block, where some are missing */
    head.block = block;
    head.planes = !kiln_run_is_once(r);
    while (end < p->n_rows && p->rows[end] / KILN_BLOCK_ROWS < number) end++;
    rows += end;
    for (; end < p->n_rows && p->rows[end] / KILN_BLOCK_ROWS == number; end++) head.n_rows++;

    /* also those of near-duplicates and of pairs; kiln_prune_rules_key comes from rules.def */
    _Static_assert(offsetof(kiln_prune_unit, rules) == 68 && sizeof head - offsetof(kiln_prune_unit, stats) == 256,
                   "kiln_prune_unit has another size: add to the keys what results depend on, then write the new size");
    kiln_hasher *h = kiln_run_key_bare(r, "block");
    kiln_prune_rules_key(h, &p->rules);
    key_filters(h, p);
    key_block(h, p, block);
    kiln_key_bytes(h, "rows", rows, head.n_rows * sizeof *rows);
    for (uint64_t i = 0; i < p->n_merges; i++) {
        const kiln_merged_row *m = &p->merges[i];
        if (!concerns(m, block)) continue;
        merges[head.n_merges++] = *m;
        kiln_key_bytes(h, "merge", m, sizeof *m);
        if (m->into_block == block && m->block != block) key_block(h, p, m->block);
    }
    (void)snprintf(u->name, sizeof u->name, "block %s", p->input->chunks[block].name);
    u->key = kiln_key_end(h);
    u->cost = p->input->chunks[block].count;
    u->ram = head.ram = kiln_prune_block_ram(&p->size, head.n_merges > 0) + filters_ram(p);
    u->ram_cache = p->cache;
    u->optional = true;
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    return set_payload(u, &head, merges, rows, &p->filters, err);
}

static kiln_status add_filtered(kiln_run *r, pruning *p, const kiln_unit *u, kiln_error *err)
{
    uint64_t filtered[KILN_FILTER_KINDS];
    KILN_TRY(kiln_unit_struct(r, u, "filtered", filtered, sizeof filtered, err));
    for (int k = 0; k < KILN_FILTER_KINDS; k++) p->filtered[k] += filtered[k];
    return KILN_OK;
}

/* What cameras are told of a block. Survivors of merges change although no rule counts them. */
static uint32_t kept_of(const pruning *p, uint32_t block, const kiln_tally *t)
{
    bool touched = t->kept != t->rows;
    for (int k = 0; k < KILN_PRUNE_RULES; k++) touched = touched || t->counts[k][1] > 0;
    for (uint64_t i = 0; i < p->n_merges && !touched; i++) touched = concerns(&p->merges[i], block);
    return !touched ? KILN_PRUNE_UNTOUCHED : t->kept <= p->input->chunks[block].count ? (uint32_t)t->kept : KILN_PRUNE_UNKNOWN;
}

static kiln_status add_tally(kiln_run *r, pruning *p, uint32_t i, kiln_error *err)
{
    kiln_tally *t;
    const kiln_unit *u = &p->blocks[i];
    KILN_TRY(KILN_ALLOC(&t, 1, "a tally", err));
    const kiln_status st = kiln_unit_struct(r, u, "tally", t, sizeof *t, err);
    if (st == KILN_OK) kiln_tally_add(&p->tally, t);
    if (st == KILN_OK) p->kept[p->block_of[i]] = kept_of(p, p->block_of[i], t);
    free(t);
    return st == KILN_OK && p->filters.filters.n ? add_filtered(r, p, u, err) : st;
}

static double larger(double a, double log_scale) { return fmax(a, exp(log_scale)); }

/* The largest axes of a block, before and after; exp(-infinity) of a block without rows is 0. */
static kiln_status take_largest(kiln_run *r, pruning *p, uint32_t i, kiln_error *err)
{
    kiln_chunk after = {.count = 0};
    KILN_TRY(kiln_chunk_read_bounds(r, &p->blocks[i], &after, err));
    p->largest[0] = larger(p->largest[0], p->input->chunks[p->block_of[i]].max_log_scale);
    p->largest[1] = larger(p->largest[1], after.max_log_scale);
    return KILN_OK;
}

static kiln_status prune_blocks(kiln_run *r, pruning *p, kiln_error *err)
{
    const uint32_t n = p->input->n_chunks;
    kiln_merged_row *merges = NULL;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&p->blocks, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&p->block_of, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&p->kept, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&merges, p->n_merges, "merged rows", err));
    for (uint32_t i = 0; i < n; i++) p->kept[i] = KILN_PRUNE_UNKNOWN;
    for (uint32_t i = 0; i < n; i++) {
        if (!has_block(p, i)) continue;
        KILN_GO(plan_block(r, p, i, merges, &p->blocks[p->n_blocks], err));
        p->block_of[p->n_blocks++] = i;
    }
    kiln_run_serial(r, true);
    st = kiln_run_units(r, "pruning", p->blocks, p->n_blocks, err);
    kiln_run_serial(r, false);
    KILN_GO(st);
    for (uint32_t i = 0; i < p->n_blocks; i++)
        if (!p->blocks[i].quarantined) {
            KILN_GO(add_tally(r, p, i, err));
            KILN_GO(kiln_unit_pass(r, &p->blocks[i], take_largest(r, p, i, err)));
        }
    if (kiln_run_is_once(r)) KILN_GO(kiln_run_refused(r, err)); /* else when the layer is made, with what else is wrong */
done:
    free(merges);
    return st;
}

/* ---- prediction -------------------------------------------------------------------------------------------------------- */
static kiln_status parse_sizes(uint32_t sizes[SIZES_MAX], uint32_t *n, kiln_error *err)
{
    uint32_t *list = NULL;
    uint64_t count = 0;
    *n = 1;
    sizes[0] = 0; /* the camera's own */
    if (!o.sizes) return KILN_OK;
    KILN_TRY(kiln_prune_rows_parse("--sizes", o.sizes, &list, &count, err));
    kiln_status st = KILN_OK;
    if (count == 0 || count > SIZES_MAX || list[0] < 16 || list[count - 1] > 1u << 20)
        st = kiln_fail(err, KILN_E_USAGE, "--sizes takes 1 to %d sizes from 16 to 1048576, not '%s'", SIZES_MAX, o.sizes);
    for (uint64_t i = 0; st == KILN_OK && i < count; i++) sizes[i] = list[i];
    if (st == KILN_OK) *n = (uint32_t)count;
    free(list);
    return st;
}

static uint32_t at_least_one(double v) { return v < 1 ? 1 : (uint32_t)(v + 0.5); }

/* The same view with its longer side `size` pixels long. */
static kiln_camera resized(const kiln_camera *c, uint32_t size)
{
    kiln_camera out = *c;
    if (size == 0) return out;
    const double s = (double)size / (c->width > c->height ? c->width : c->height);
    out.width = at_least_one(c->width * s);
    out.height = at_least_one(c->height * s);
    const double sx = (double)out.width / c->width, sy = (double)out.height / c->height;
    out.fx *= sx;
    out.cx *= sx;
    out.fy *= sy;
    out.cy *= sy;
    return out;
}

static kiln_status make_views(kiln_run *r, pruning *p, kiln_error *err)
{
    const kiln_view_options request = {.near_text = "profile"}; /* inria, as the scene says */
    uint32_t sizes[SIZES_MAX], n_sizes, n;
    KILN_TRY(kiln_cameras_get(kiln_run_manifest(r), &p->cameras, &p->n_cameras, err));
    KILN_TRY(parse_sizes(sizes, &n_sizes, err));
    n = o.all_cameras || p->n_cameras < CAMERAS_USUAL ? p->n_cameras : CAMERAS_USUAL;
    p->n_views = n * n_sizes;
    KILN_TRY(KILN_ALLOC(&p->views, p->n_views, "views", err));
    KILN_TRY(KILN_ALLOC(&p->requests, p->n_views, "views", err));
    KILN_TRY(kiln_chunk_keys_make(p->input, &p->keys, err));
    for (uint32_t i = 0; i < p->n_views; i++) {
        const kiln_camera *c = &p->cameras[(uint64_t)(i / n_sizes) * p->n_cameras / n]; /* evenly chosen */
        const kiln_camera scaled = resized(c, sizes[i % n_sizes]);
        p->views[i] = (kiln_prune_view){.camera = c->name, .width = scaled.width, .height = scaled.height};
        KILN_TRY(kiln_view_request_init(&p->requests[i], &request, &p->scene, &scaled, err));
    }
    return KILN_OK;
}

/* shared: what all views get, all merges and the rows to drop. */
static kiln_status plan_view(kiln_run *r, const pruning *p, uint32_t i, const kiln_buffer *shared, kiln_unit *u, kiln_error *err)
{
    kiln_prune_unit head = head_of(p, KILN_PRUNE_PAIRS);
    kiln_buffer payload = {0};
    head.request = p->requests[i];
    head.n_rows = p->n_rows;
    head.n_merges = p->n_merges;
    head.n_kept = p->input->n_chunks; /* in no key: it says what the rules and the input say, sooner */
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    kiln_view_chunks blocks;
    KILN_TRY(kiln_view_chunks_of_layer(p->input, &p->requests[i], &blocks, err));
    kiln_hasher *h = kiln_run_key_bare(r, "pairs");
    kiln_key_hash(h, "view", kiln_view_request_table_key(&p->requests[i], &p->keys, &blocks));
    kiln_prune_rules_key(h, &p->rules);
    key_filters(h, p);
    for (uint32_t b = 0; b < blocks.n; b++) key_planes(h, p, blocks.numbers[b], (const char *const[]){"spacing2"}, 1);
    kiln_view_chunks_release(&blocks);
    kiln_key_bytes(h, "rows", p->rows, p->n_rows * sizeof *p->rows);
    kiln_key_bytes(h, "merges", p->merges, p->n_merges * sizeof *p->merges);
    (void)snprintf(u->name, sizeof u->name, "pairs of %.120s", p->views[i].camera);
    u->key = kiln_key_end(h);
    u->cost = 1;
    u->optional = u->planning = true; /* a forecast: the layer is whole without it, and every shard prints it */
    u->shared_payload = shared->data;
    u->shared_payload_bytes = shared->size;
    u->ram = head.ram = kiln_prune_pairs_ram(&p->size, kiln_view_tiles_y(&p->requests[i].view)) + filters_ram(p) +
                        kiln_shared_payload_ram(shared->size);
    u->ram_cache = p->cache + kiln_prune_ahead_ram(p->input);
    KILN_TRY(kiln_buffer_put(&payload, &head, sizeof head, err));
    u->payload = payload.data;
    u->payload_bytes = payload.size;
    return KILN_OK;
}

/* What follows the head in a payload, as read_request of prune_units.c expects it. */
static kiln_status put_lists(const pruning *p, kiln_buffer *b, kiln_error *err)
{
    if (p->n_merges) KILN_TRY(kiln_buffer_put(b, p->merges, p->n_merges * sizeof *p->merges, err));
    if (p->n_rows) KILN_TRY(kiln_buffer_put(b, p->rows, p->n_rows * sizeof *p->rows, err));
    KILN_TRY(kiln_buffer_put(b, p->kept, p->input->n_chunks * sizeof *p->kept, err));
    return p->filters.filters.n ? kiln_buffer_put(b, &p->filters, sizeof p->filters, err) : KILN_OK;
}

/* Is counting long enough for a GPU? A thread of the CPU counts a row of a view in 0.13 microseconds (DESIGN.md). The worker of the
 * GPU decodes the planes once more, which takes about as long as the GPU does to be ready. */
static bool is_long(const pruning *p)
{
    const double cpu_s = 0.13e-6 * (double)p->input->count * p->n_views;
    return kiln_run_gpu_pays(cpu_s / 2);
}

/* Of one thread; the same on all hosts. */
static double pairs_s(const pruning *p)
{
    const double rows = (double)p->input->count;
    return kiln_work_prune(rows, p->n_views) - kiln_work_prune(rows, 0);
}

static kiln_status predict(kiln_run *r, pruning *p, kiln_error *err)
{
    kiln_buffer shared = {0};
    kiln_unit *units = NULL;
    kiln_status st;
    KILN_GO(make_views(r, p, err));
    KILN_GO(KILN_ALLOC(&units, p->n_views, "views", err));
    KILN_GO(put_lists(p, &shared, err));
    for (uint32_t i = 0; i < p->n_views; i++) KILN_GO(plan_view(r, p, i, &shared, &units[i], err));
    KILN_GO(kiln_run_computes(r, is_long(p), err));
    kiln_run_shares_planning(r, kiln_work_is_round(pairs_s(p)));
    KILN_GO(kiln_run_units(r, "counting pairs", units, p->n_views, err));
    for (uint32_t i = 0; i < p->n_views; i++) {
        p->views[i].missing = units[i].quarantined;
        if (units[i].quarantined) continue;
        KILN_GO(kiln_unit_struct(r, &units[i], "pairs", &p->views[i].count, sizeof p->views[i].count, err));
    }
done:
    units_free(units, p->n_views);
    kiln_buffer_release(&shared);
    return st;
}

static kiln_status look_at_other(kiln_run *r, pruning *p, kiln_error *err)
{
    kiln_unit u = {.name = "the other bake", .volatile_result = true, .cost = 1};
    kiln_prune_unit head = head_of(p, KILN_PRUNE_SCALES);
    void *data = NULL;
    uint64_t bytes;
    float largest;
    kiln_status st;
    if (!o.against) return KILN_OK;
    head.text_bytes = strlen(o.against) + 1;
    u.ram = head.ram = kiln_prune_scales_ram(&p->size);
    KILN_GO(set_payload(&u, &head, NULL, NULL, o.against, err));
    KILN_GO(run_one(r, "reading the other bake", &u, "tally", sizeof p->other, &data, &bytes, err));
    memcpy(&p->other, data, sizeof p->other);
    KILN_GO(kiln_unit_struct(r, &u, "largest", &largest, sizeof largest, err));
    p->largest[2] = larger(0, (double)largest);
done:
    free(data);
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

/* ---- the layer --------------------------------------------------------------------------------------------------------- */
/* Rows that the rules left, counted by the plane that every block has. */
static kiln_status count_kept(const kiln_unit *u, uint64_t most, uint64_t *out, kiln_error *err)
{
    kiln_array rows;
    KILN_TRY(kiln_unit_result_array(&u->result, "source_row", &rows, err));
    free(rows.segments);
    *out = rows.raw_bytes / sizeof(uint32_t);
    if (rows.raw_bytes % sizeof(uint32_t) == 0 && *out <= most) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "its source rows have %llu bytes", (unsigned long long)rows.raw_bytes);
}

static kiln_status fill_block(kiln_run *r, const pruning *p, uint32_t i, kiln_chunk *c, kiln_error *err)
{
    const kiln_chunk *from = &p->input->chunks[p->block_of[i]];
    const kiln_unit *u = &p->blocks[i];
    memcpy(c->name, from->name, sizeof c->name);
    if (!kiln_chunk_plane(from, "source_row"))
        return kiln_fail(err, KILN_E_IO, "block '%s' has no plane 'source_row'; import the scene again", from->name);
    KILN_TRY(count_kept(u, from->count, &c->count, err));
    for (uint32_t k = 0; k < from->n_planes; k++) {
        const kiln_plane *plane = &from->planes[k];
        KILN_TRY(kiln_chunk_add_output(c, &u->result, plane->name, plane->name, plane->type, plane->components, err));
    }
    if (p->spacing) KILN_TRY(kiln_chunk_add_output(c, &u->result, "spacing2", "spacing2", KILN_TYPE_F32, 1, err));
    return kiln_chunk_read_bounds(r, u, c, err);
}

static kiln_status put_layer(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const pruning *p = context;
    kiln_layer *l = NULL;
    kiln_status st;
    KILN_GO(kiln_layer_new(KILN_LAYER_pruned, p->input->sh_degree, p->n_blocks, &l, err));
    l->n_chunks = 0; /* as far as they are filled: quarantined blocks leave a gap in the names */
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        if (p->blocks[i].quarantined) continue;
        kiln_chunk *c = &l->chunks[l->n_chunks++];
        st = kiln_unit_refuse(r, &p->blocks[i], fill_block(r, p, i, c, err), err);
        KILN_GO(kiln_unit_pass(r, &p->blocks[i], st));
        l->count += c->count;
    }
    KILN_GO(kiln_run_refused(r, err));
    KILN_GO(kiln_stage_outputs_clear(m, "prune", err));
    KILN_GO(kiln_run_put_layer(r, l, err));
done:
    kiln_layer_free(l);
    return st;
}

/* For `auto`. Nothing is said where near-duplicates are looked for, or another bake is read: how long that takes depends on more.
 */
static kiln_status expect_work(kiln_run *r, const pruning *p, uint32_t n_sizes, kiln_error *err)
{
    kiln_scene_size size;
    if (o.rules.merge || o.against) return KILN_OK;
    KILN_TRY(kiln_scene_size_get(kiln_run_manifest(r), &size, err));
    const double views = size.cameras < CAMERAS_USUAL || o.all_cameras ? size.cameras : CAMERAS_USUAL;
    kiln_run_expect_work(r, kiln_work_prune((double)p->input->count, views * n_sizes));
    return KILN_OK;
}

/* ---- run --------------------------------------------------------------------------------------------------------------- */
/* Options that change no result but ask for numbers: worth a look at a pruned scene too. */
static bool asks_for_numbers(void) { return o.all_cameras || o.sizes || o.against; }

static kiln_status report(kiln_run *r, const pruning *p, kiln_error *err)
{
    const kiln_prune_report what = {.options = &o.rules,
                                    .stats = &p->stats,
                                    .tally = &p->tally,
                                    .filtered = p->filters.filters.n ? p->filtered : NULL,
                                    .other = o.against ? &p->other : NULL,
                                    .against = o.against,
                                    .largest = {p->largest[0], p->largest[1], p->largest[2]},
                                    .views = p->views,
                                    .n_views = p->n_views,
                                    .dry_run = o.dry_run,
                                    .all = kiln_run_prints_all(r, o.dry_run) || asks_for_numbers()};
    KILN_TRY(kiln_prune_report_json(&what, kiln_run_report(r), err));
    if (kiln_run_prints(r, o.dry_run)) kiln_prune_report_print(&what);
    kiln_prune_report_warn(&what, p->n_rows);
    return KILN_OK;
}

static kiln_status run_stage(kiln_run *r, pruning *p, kiln_error *err)
{
    uint32_t sizes[SIZES_MAX], n_sizes;
    bool fresh;
    KILN_TRY(kiln_prune_options_check(&o.rules, err));
    KILN_TRY(kiln_filters_parse(o.filter_boxes, o.filter_spheres, o.filter_values, &p->filters.filters, err));
    KILN_TRY(parse_sizes(sizes, &n_sizes, err));
    KILN_TRY(kiln_prune_rows_parse("--drop-row", o.rules.drop_row, &p->rows, &p->n_rows, err));
    KILN_TRY(open_input(r, p, err));
    KILN_TRY(bind_filters(p, err));
    take_size(p);
    const kiln_hash key = input_key(r, p);
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh && !asks_for_numbers()) return kiln_run_nothing_to_do(r, err);
    KILN_TRY(need_ram(r, p, err));
    KILN_TRY(expect_work(r, p, n_sizes, err));
    KILN_TRY(take_statistics(r, p, err));
    KILN_TRY(find_merges(r, p, err));
    KILN_TRY(prune_blocks(r, p, err));
    KILN_TRY(predict(r, p, err));
    KILN_TRY(look_at_other(r, p, err));
    KILN_TRY(report(r, p, err));
    return fresh || kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, put_layer, p, err);
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    pruning *p;
    KILN_TRY(KILN_ALLOC(&p, 1, "the state of prune", err));
    kiln_status st = run_stage(r, p, err);
    pruning_release(p);
    free(p);
    return st;
}

const kiln_stage_program kiln_stage_prune = {
    .name = "prune", .cli = &cli, .open = KILN_OPEN_WRITE, .packs = true, .rounds = true, .run = run, .unit = kiln_prune_compute};
