#include "stages/knn/spacing.h"

#include "base/count.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/json_text.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/knn/pages.h"
#include "stages/knn/range.h"
#include "stages/spatial/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the whole layer fits into one device, that is faster than a partition on several devices
 * (tests/bench/RESULTS.md, STEPS=knn). Above WHOLE_ROWS rows the layer is partitioned, because the
 * memory of one device might not suffice. */
enum { WHOLE_ROWS = 1 << 28, RANGE_ROWS = 1 << 20, RANGE_ROWS_LEAST = 1 << 14, GROUPS_MOST = 64 };

/* Of a plan: no smaller ranges, and no larger ones; tasks of several workers want several. */
enum { SHARED_ROWS_LEAST = 1 << 16, SHARED_ROWS_MOST = 1 << 21, SHARED_RANGES_LEAST = 8 };

bool kiln_knn_is_shared(uint64_t n, uint64_t range_rows, uint64_t row_ns)
{
    return range_rows || n * row_ns >= KILN_KNN_SHARED_NS;
}

/* What the units of ranges have in common. */
typedef struct {
    kiln_spacing *s;
    kiln_knn_unit payload;
    kiln_hash plan; /* of everything that decides the values and their pieces */
    kiln_unit *units;
    kiln_knn_unit *payloads;
    uint64_t n;
    uint64_t counts[KILN_RANK_BINS];
    bool back_is_shared; /* the way back is a round of its own in a plan */
} ranges;

const kiln_unit *kiln_spacing_of(const kiln_spacing *s, uint32_t block)
{
    return &s->units[s->unit_of_block[block]];
}

void kiln_spacing_release(kiln_spacing *s)
{
    if (s->units) kiln_units_release(s->units, s->n);
    for (uint64_t i = 0; s->payloads && i < s->n; i++) free(s->payloads[i]);
    free(s->payloads);
    free(s->units);
    free(s->unit_of_block);
    memset(s, 0, sizeof *s);
}

static kiln_status reserve_unit_output(kiln_spacing *s, uint64_t n, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&s->units, n, "the units of the spacing", err));
    KILN_TRY(KILN_ALLOC(&s->payloads, n, "the units of the spacing", err));
    s->n = n;
    return KILN_ALLOC(&s->unit_of_block, s->source->n_chunks, "the blocks of the source", err);
}

static kiln_hasher *key_values(kiln_run *r, const char *what, const kiln_layer *source,
                               const kiln_knn_unit *u)
{
    KILN_KEY_LISTS(kiln_knn_unit, 192); /* its ranges: plan_partition and plan_ranges */
    kiln_hasher *h = kiln_run_key_bare(r, what);
    kiln_key_u64(h, "neighbors", u->neighbors);
    kiln_key_f64(h, "fallback2", (double)u->fallback2);
    for (uint32_t i = 0; i < source->n_chunks; i++) kiln_key_plane(h, &source->chunks[i], "means");
    return h;
}

static double seconds_since(uint64_t start_ns) { return 1e-9 * (double)(kiln_now_ns() - start_ns); }

/* ---- the whole layer ------------------------------------------------------------------------- */
static uint64_t whole_ram(uint64_t n)
{
    enum { MEANS = 12, INDEXED = 20 + 1, SPACING = 4 };
    return n * (MEANS + INDEXED + SPACING) + kiln_outputs_ram(n * SPACING) + (4u << 20);
}

static kiln_status measure_whole(kiln_run *r, const kiln_knn_unit *u, bool on_device, kiln_hash key,
                                 kiln_spacing *s, kiln_error *err)
{
    kiln_knn_unit *payload;
    json_t *c = NULL;
    json_int_t fallbacks = 0;
    const uint64_t start = kiln_now_ns();
    KILN_TRY(reserve_unit_output(s, 1, err));
    KILN_TRY(KILN_ALLOC(&payload, 1, "the units of the spacing", err));
    s->payloads[0] = payload;
    *payload = *u;
    payload->kind = KILN_KNN_SPACING;
    payload->on_device = on_device;
    s->units[0] = (kiln_unit){.name = "spacing",
                              .key = key,
                              .payload = payload,
                              .payload_bytes = sizeof *payload,
                              .cost = s->source->count,
                              .ram = on_device ? kiln_knn_on_device_ram(s->source)
                                               : whole_ram(s->source->count)};
    KILN_TRY(kiln_run_units(r, "measuring spacing", s->units, 1, err));
    KILN_TRY(kiln_unit_counters(r, &s->units[0], &c, err));
    const int bad = json_unpack(c, "{s:F, s:F, s:F, s:I}", "min2", &s->min2, "median2", &s->median2,
                                "max2", &s->max2, "fallbacks", &fallbacks);
    json_decref(c);
    s->fallbacks = (uint64_t)fallbacks;
    s->whole_s = seconds_since(start);
    if (!bad && fallbacks >= 0) return KILN_OK;
    return kiln_unit_refuse(r, &s->units[0],
                            kiln_fail(err, KILN_E_IO, "its counters are incomplete"), err);
}

/* ---- the partition --------------------------------------------------------------------------- */
static uint64_t range_ram(uint64_t rows, uint64_t n, uint32_t k)
{
    enum { SORT = 4 + 8 + 12, PIECE = 8, INDEXED = 20 + 1, SPACING = 4 };
    const uint64_t n_pages = kiln_range_pages(n, kiln_range_page_rows(n, rows)),
                   piece = rows * PIECE + KILN_RANK_BINS * 4;
    const uint64_t search = kiln_range_ram(rows, rows, n_pages, k);
    const uint64_t put = rows * (SORT + INDEXED) + kiln_outputs_ram(piece);
    return (search > put ? search : put) + rows * SPACING + n_pages * KILN_KNN_PAGE_BYTES +
           (4u << 20);
}

/* Half of what one unit may take, so that there is room for more than one worker. */
static uint64_t choose_range_rows(kiln_run *r, uint64_t n, uint32_t k, uint64_t most)
{
    uint64_t rows = most;
    while (rows > RANGE_ROWS_LEAST && range_ram(rows, n, k) > kiln_run_unit_ram(r) / 2) rows /= 2;
    return rows;
}

/* Ranges for the tasks of a plan, as many for one as for another. */
static uint64_t choose_shared_rows(kiln_run *r, uint64_t n, uint32_t k, uint64_t tasks)
{
    const uint64_t most = choose_range_rows(r, n, k, SHARED_ROWS_MOST),
                   least = kiln_min_u64(most, SHARED_ROWS_LEAST);
    uint64_t n_ranges = tasks;
    while (n_ranges < SHARED_RANGES_LEAST || n_ranges * most < n) n_ranges += tasks;
    return kiln_max_u64(least, (n + n_ranges - 1) / n_ranges);
}

static uint64_t partition_ram(kiln_run *r, const kiln_layer *source)
{
    enum { ROW = 37 + 12 }; /* all at once, and blocks on their way (spatial/partition.h) */
    const uint64_t most = kiln_run_unit_ram(r), least = kiln_spatial_least_ram(source),
                   all = source->count * ROW + (8u << 20);
    const uint64_t wanted = all < most ? all : most;
    return wanted > least ? wanted : least;
}

/* The folder is of the layer and the cube alone: ranges of any size and number of neighbours find
 * what they need in it. */
static void plan_partition(kiln_run *r, const kiln_scene *scene, ranges *p)
{
    const kiln_layer *source = p->s->source;
    kiln_knn_ranges *g = &p->payload.ranges;
    memcpy(g->root_centre, scene->root_centre, sizeof g->root_centre);
    g->root_half = scene->has_root ? scene->root_half : 1;
    g->ram = partition_ram(r, source);
    kiln_hasher *h = kiln_run_key_bare(r, "partition");
    kiln_key_bytes(h, "root_centre", g->root_centre, sizeof g->root_centre);
    kiln_key_f64(h, "root_half", g->root_half);
    for (uint32_t i = 0; i < source->n_chunks; i++) kiln_key_plane(h, &source->chunks[i], "means");
    g->scratch = kiln_key_end(h);
}

static void plan_ranges(kiln_run *r, uint64_t rows, ranges *p)
{
    const kiln_layer *source = p->s->source;
    kiln_knn_ranges *g = &p->payload.ranges;
    const uint64_t n = source->count;
    const uint32_t page = kiln_range_page_rows(n, rows);
    g->range_rows = (rows + page - 1) / page * page;
    g->batch_rows = g->range_rows;
    g->page_rows = kiln_range_page_rows(n, g->range_rows);
    g->group_rows = g->range_rows > n / GROUPS_MOST ? g->range_rows : n / GROUPS_MOST;
    kiln_hasher *h = key_values(r, "ranges", source, &p->payload);
    kiln_key_bytes(h, "root_centre", g->root_centre, sizeof g->root_centre);
    kiln_key_f64(h, "root_half", g->root_half);
    kiln_key_u64(h, "range_rows", g->range_rows);
    kiln_key_u64(h, "group_rows", g->group_rows);
    p->plan = kiln_key_end(h);
    p->n = (n + g->range_rows - 1) / g->range_rows;
}

/* *sum: in, of what a plan has made, 0: none; out, what the ranges are to find. */
static kiln_status make_partition(kiln_run *r, ranges *p, uint64_t *sum, kiln_error *err)
{
    enum { PLACE = 24 }; /* bytes: row, code, mean */
    char folder[KILN_PATH_MAX];
    const kiln_layer *source = p->s->source;
    const kiln_knn_ranges *g = &p->payload.ranges;
    const uint64_t start = kiln_now_ns();
    uint64_t need = kiln_range_pages(source->count, g->page_rows) * KILN_KNN_PAGE_BYTES;
    kiln_knn_unit payload = p->payload;
    payload.kind = KILN_KNN_PARTITION;
    payload.ranges.sum = *sum;
    KILN_TRY(kiln_run_scratch(r, g->scratch, folder, err));
    need += kiln_spatial_is_complete(folder, source->count, true)
                ? source->count * PLACE
                : kiln_spatial_scratch_bytes(source, true, g->ram);
    KILN_TRY(kiln_run_check_scratch(r, need, err));
    kiln_unit u = {.name = "partition",
                   .key = g->scratch,
                   .payload = &payload,
                   .payload_bytes = sizeof payload,
                   .cost = source->count,
                   .ram = g->ram,
                   .volatile_result = true};
    kiln_status st = kiln_run_units(r, "ordering points", &u, 1, err);
    if (st == KILN_OK) st = kiln_unit_struct(r, &u, "sum", sum, sizeof *sum, err);
    kiln_units_release(&u, 1);
    p->s->partition_s = seconds_since(start);
    return st;
}

/* ---- the ranges ------------------------------------------------------------------------------ */
static kiln_hash range_key(kiln_run *r, const ranges *p, uint64_t i)
{
    char hex[33];
    kiln_hasher *h = kiln_run_key_bare(r, "range");
    kiln_key_text(h, "plan", kiln_hash_hex(p->plan, hex));
    kiln_key_u64(h, "range", i);
    return kiln_key_end(h);
}

static kiln_status is_stored(kiln_run *r, kiln_hash key, bool *is_there, kiln_error *err)
{
    kiln_unit_result found = {0};
    KILN_TRY(kiln_unit_find(kiln_run_manifest(r), key, is_there, &found, err));
    kiln_unit_result_release(&found);
    return KILN_OK;
}

/* The size of ranges of which most rows are stored, among those that a unit has memory for; 0:
 * nothing is. What a run leaves behind may be of another size than this one would choose: --ram
 * differs, or what is free does. */
static kiln_status find_stored(kiln_run *r, ranges *p, uint64_t *rows, kiln_error *err)
{
    const uint64_t n = p->s->source->count;
    uint64_t most = 0;
    *rows = 0;
    for (uint64_t size = RANGE_ROWS; size >= RANGE_ROWS_LEAST; size /= 2) {
        uint64_t stored = 0;
        if (range_ram(size, n, p->payload.neighbors) > kiln_run_unit_ram(r)) continue;
        plan_ranges(r, size, p);
        for (uint64_t i = 0; i < p->n; i++) {
            bool is_there;
            KILN_TRY(is_stored(r, range_key(r, p, i), &is_there, err));
            stored += !is_there      ? 0
                      : i + 1 < p->n ? p->payload.ranges.range_rows
                                     : n - i * p->payload.ranges.range_rows;
        }
        if (stored <= most) continue; /* as much: larger ranges read less */
        most = stored;
        *rows = size;
    }
    return KILN_OK;
}

static kiln_status list_ranges(kiln_run *r, ranges *p, kiln_error *err)
{
    const uint64_t n = p->s->source->count, rows = p->payload.ranges.range_rows;
    KILN_TRY(KILN_ALLOC(&p->units, p->n, "the ranges", err));
    KILN_TRY(KILN_ALLOC(&p->payloads, p->n, "the ranges", err));
    for (uint64_t i = 0; i < p->n; i++) {
        p->payloads[i] = p->payload;
        p->payloads[i].kind = KILN_KNN_RANGE;
        p->payloads[i].ranges.range = i;
        p->units[i] = (kiln_unit){.key = range_key(r, p, i),
                                  .payload = &p->payloads[i],
                                  .payload_bytes = sizeof p->payloads[i],
                                  .cost = i + 1 < p->n ? rows : n - i * rows,
                                  .ram = range_ram(rows, n, p->payload.neighbors)};
        (void)snprintf(p->units[i].name, sizeof p->units[i].name, "range %" PRIu64 " of %" PRIu64,
                       i + 1, p->n);
    }
    return KILN_OK;
}

/* The partition is made only when a range is due: it is not stored. */
static kiln_status is_due(kiln_run *r, const ranges *p, bool *due, kiln_error *err)
{
    *due = kiln_run_force(r);
    for (uint64_t i = 0; i < p->n && !*due; i++) {
        bool is_there;
        KILN_TRY(is_stored(r, p->units[i].key, &is_there, err));
        *due = !is_there;
    }
    return KILN_OK;
}

static kiln_status add_counts(kiln_run *r, const kiln_unit *u, uint64_t counts[KILN_RANK_BINS],
                              kiln_error *err)
{
    uint32_t *bins;
    KILN_TRY(KILN_ALLOC_UNSET(&bins, KILN_RANK_BINS, "the bins of a median", err));
    const kiln_status st =
        kiln_unit_struct(r, u, "ranks", bins, KILN_RANK_BINS * sizeof *bins, err);
    for (uint32_t i = 0; st == KILN_OK && i < KILN_RANK_BINS; i++) counts[i] += bins[i];
    free(bins);
    return st;
}

static kiln_status sum_range(kiln_run *r, ranges *p, uint64_t i, kiln_error *err)
{
    kiln_spacing *s = p->s;
    json_t *c = NULL;
    double min2 = 0, max2 = 0;
    json_int_t fallbacks = 0, batches = 0, candidates = 0, queries = 0;
    KILN_TRY(add_counts(r, &p->units[i], p->counts, err));
    KILN_TRY(kiln_unit_counters(r, &p->units[i], &c, err));
    const int bad = json_unpack(c, "{s:F, s:F, s:I, s:I, s:I, s:I}", "min2", &min2, "max2", &max2,
                                "fallbacks", &fallbacks, "batches", &batches, "candidates",
                                &candidates, "queries", &queries);
    json_decref(c);
    if (bad || fallbacks < 0)
        return kiln_unit_refuse(r, &p->units[i],
                                kiln_fail(err, KILN_E_IO, "its counters are incomplete"), err);
    if (i == 0 || min2 < s->min2) s->min2 = min2;
    if (i == 0 || max2 > s->max2) s->max2 = max2;
    s->fallbacks += (uint64_t)fallbacks;
    s->batches += (uint64_t)batches;
    s->candidates += (uint64_t)candidates;
    s->queries += (uint64_t)queries;
    return KILN_OK;
}

static const char measuring[] = "measuring spacing";

/* Tasks of a plan find the partition made, and know its sum from the claim. A gather makes again
 * what is damaged or gone. */
static kiln_status share_partition(kiln_run *r, ranges *p, bool due, uint64_t *sum, kiln_error *err)
{
    static const char decision[] = "partition-sum";
    const kiln_scratch_use use = kiln_run_scratch_use(r);
    if (use == KILN_SCRATCH_PLAN && due) KILN_TRY(make_partition(r, p, sum, err));
    KILN_TRY(kiln_run_decide(r, decision, sum, err));
    if (use != KILN_SCRATCH_MEND || !due || !kiln_run_is_planned(r, measuring, p->units, p->n))
        return KILN_OK;
    return make_partition(r, p, sum, err);
}

static kiln_status run_ranges(kiln_run *r, ranges *p, kiln_error *err)
{
    bool due;
    uint64_t sum = 0;
    KILN_TRY(list_ranges(r, p, err));
    KILN_TRY(is_due(r, p, &due, err));
    if (kiln_run_scratch_use(r) != KILN_SCRATCH_OWN)
        KILN_TRY(share_partition(r, p, due, &sum, err));
    else if (due)
        KILN_TRY(make_partition(r, p, &sum, err));
    for (uint64_t i = 0; i < p->n; i++) {
        p->payloads[i].ranges.sum = sum;
        p->payloads[i].ranges.of_plan = kiln_run_scratch_use(r) == KILN_SCRATCH_READ;
    }
    const uint64_t start = kiln_now_ns();
    KILN_TRY(kiln_run_units(r, measuring, p->units, p->n, err));
    for (uint64_t i = 0; i < p->n; i++) KILN_TRY(sum_range(r, p, i, err));
    p->s->ranges_s = seconds_since(start);
    return KILN_OK;
}

/* ---- the way back ---------------------------------------------------------------------------- */
/* Keyed by what the ranges found for this group: a range that comes out as before changes
 * nothing. */
static kiln_hash back_key(kiln_run *r, const ranges *p, uint32_t first, uint32_t end, uint32_t high)
{
    char name[32];
    kiln_hasher *h = kiln_run_key_bare(r, "back");
    kiln_key_u64(h, "high", high);
    for (uint32_t i = first; i < end; i++) {
        kiln_key_text(h, "block", p->s->source->chunks[i].name);
        kiln_key_u64(h, "rows", p->s->source->chunks[i].count);
    }
    (void)snprintf(name, sizeof name, KILN_KNN_TO, first);
    for (uint64_t i = 0; i < p->n; i++) {
        const kiln_unit_result *found = &p->units[i].result;
        for (uint32_t o = 0; o < found->n; o++)
            if (!strcmp(found->outputs[o].name, name))
                kiln_key_hash(h, "piece", found->outputs[o].hash);
    }
    return kiln_key_end(h);
}

static uint64_t back_ram(const ranges *p, uint64_t rows)
{
    enum { SPACING = 4, PIECE = 8 };
    const uint64_t piece =
        rows < p->payload.ranges.range_rows ? rows : p->payload.ranges.range_rows;
    return rows * SPACING + piece * PIECE * 2 +
           kiln_outputs_ram(rows * SPACING + KILN_RANK_BINS * 4) + (4u << 20);
}

/* Blocks whose spacing one unit sorts back. */
typedef struct {
    uint32_t first, end;
    uint64_t rows;
} block_group;

static kiln_status add_back(kiln_run *r, ranges *p, uint64_t i, const block_group *g, uint32_t high,
                            kiln_error *err)
{
    const size_t bytes = sizeof(kiln_knn_unit) + p->n * sizeof(kiln_hash);
    KILN_TRY(kiln_alloc(&p->s->payloads[i], bytes, 1, "the keys of ranges", err));
    kiln_knn_unit u = p->payload;
    u.kind = KILN_KNN_BACK;
    u.ranges.first_block = g->first;
    u.ranges.range = p->n;
    u.ranges.high = high;
    memcpy(p->s->payloads[i], &u, sizeof u);
    for (uint64_t k = 0; k < p->n; k++)
        memcpy((char *)p->s->payloads[i] + sizeof u + k * sizeof(kiln_hash), &p->units[k].key,
               sizeof(kiln_hash));
    p->s->units[i] = (kiln_unit){.key = back_key(r, p, g->first, g->end, high),
                                 .payload = p->s->payloads[i],
                                 .payload_bytes = bytes,
                                 .cost = g->rows,
                                 .ram = back_ram(p, g->rows),
                                 .planning = !p->back_is_shared};
    (void)snprintf(p->s->units[i].name, sizeof p->s->units[i].name, "spacing of %u blocks from %s",
                   g->end - g->first, p->s->source->chunks[g->first].name);
    for (uint32_t b = g->first; b < g->end; b++) p->s->unit_of_block[b] = (uint32_t)i;
    return KILN_OK;
}

static kiln_status list_groups(kiln_run *r, ranges *p, uint32_t high, kiln_error *err)
{
    const kiln_layer *source = p->s->source;
    uint64_t rows, n = 0;
    for (uint32_t b = 0; b < source->n_chunks; n++)
        b = kiln_knn_group_end(source, b, p->payload.ranges.group_rows, &rows);
    KILN_TRY(reserve_unit_output(p->s, n, err));
    n = 0;
    for (block_group g = {0}; g.first < source->n_chunks; g.first = g.end, n++) {
        g.end = kiln_knn_group_end(source, g.first, p->payload.ranges.group_rows, &g.rows);
        KILN_TRY(add_back(r, p, n, &g, high, err));
    }
    return KILN_OK;
}

/* The median's bin is known when all ranges are; its place in the bin, when all groups are. */
static kiln_status run_back(kiln_run *r, ranges *p, kiln_error *err)
{
    kiln_spacing *s = p->s;
    const uint64_t start = kiln_now_ns();
    uint64_t rank = (s->source->count - 1) / 2;
    const uint32_t high = kiln_rank_pick(p->counts, &rank);
    KILN_TRY(list_groups(r, p, high, err));
    KILN_TRY(kiln_run_units(r, "sorting back", s->units, s->n, err));
    memset(p->counts, 0, sizeof p->counts);
    for (uint64_t i = 0; i < s->n; i++) KILN_TRY(add_counts(r, &s->units[i], p->counts, err));
    s->median2 = (double)kiln_rank_value(high << 16 | kiln_rank_pick(p->counts, &rank));
    s->back_s = seconds_since(start);
    return KILN_OK;
}

static void ranges_free(ranges *p)
{
    if (p->units) kiln_units_release(p->units, p->n);
    free(p->units);
    free(p->payloads);
    free(p);
}

static kiln_status measure_ranges(kiln_run *r, uint64_t rows, ranges *p, kiln_error *err)
{
    plan_ranges(r,
                rows ? rows
                     : choose_range_rows(r, p->s->source->count, p->payload.neighbors, RANGE_ROWS),
                p);
    p->s->n_ranges = p->n;
    p->s->range_rows = p->payload.ranges.range_rows;
    KILN_TRY(run_ranges(r, p, err));
    return run_back(r, p, err);
}

/* ---- which way ------------------------------------------------------------------------------- */
/* Asks a GPU's worker whether its device has room for the whole layer. Only there it is known what
 * is free. */
static kiln_status ask_device(kiln_run *r, const ranges *p, bool *fits, kiln_error *err)
{
    unsigned char answer = 0;
    kiln_knn_unit payload = p->payload;
    payload.kind = KILN_KNN_FITS_DEVICE;
    kiln_unit u = {.name = "free memory of the GPU",
                   .key = kiln_key_end(kiln_run_key_bare(r, "fits")),
                   .payload = &payload,
                   .payload_bytes = sizeof payload,
                   .cost = 1,
                   .ram = 4u << 20,
                   .optional = true,
                   .planning = true,
                   .volatile_result = true};
    kiln_status st = kiln_run_units(r, "asking the GPU for its free memory", &u, 1, err);
    if (st == KILN_OK && !u.quarantined)
        st = kiln_unit_struct(r, &u, "fits", &answer, sizeof answer, err);
    kiln_units_release(&u, 1);
    *fits = answer == 1;
    return st;
}

/* Host memory has no room for the points: does a GPU's have it? A result that is stored needs
 * none. */
static kiln_status choose_device(kiln_run *r, kiln_hash key, const ranges *p, bool *on_device,
                                 kiln_error *err)
{
    const char *kind;
    const kiln_layer *source = p->s->source;
    *on_device = false;
    if (source->count > WHOLE_ROWS || kiln_knn_on_device_ram(source) > kiln_run_unit_ram(r))
        return KILN_OK;
    KILN_TRY(kiln_run_device_kind(r, &kind, err));
    if (strcmp(kind, "cpu") == 0) return KILN_OK;
    if (!kiln_run_force(r)) KILN_TRY(is_stored(r, key, on_device, err));
    return *on_device ? KILN_OK : ask_device(r, p, on_device, err);
}

/* What is stored is gone on with, so that a run after a kill does nothing twice because more memory
 * is free than before. Devices are counted only where it matters. *rows: of stored ranges, 0: there
 * are none. */
static kiln_status choose_whole(kiln_run *r, kiln_hash key, ranges *p, uint64_t *rows, bool *whole,
                                bool *on_device, kiln_error *err)
{
    const uint64_t n = p->s->source->count;
    unsigned workers = 1;
    *on_device = false;
    *whole = n <= RANGE_ROWS_LEAST;
    if (*whole) return KILN_OK;
    const bool fits = whole_ram(n) <= kiln_run_unit_ram(r);
    if (fits) KILN_TRY(is_stored(r, key, whole, err));
    if (*whole) return KILN_OK;
    KILN_TRY(find_stored(r, p, rows, err));
    if (*rows) return KILN_OK;
    if (!fits) {
        KILN_TRY(choose_device(r, key, p, on_device, err));
        *whole = *on_device;
        return KILN_OK;
    }
    *whole = n <= WHOLE_ROWS;
    if (*whole) return KILN_OK;
    KILN_TRY(kiln_run_worker_count(r, &workers, err));
    *whole = workers == 1;
    return KILN_OK;
}

/* What the plan chooses for all hosts; *rows 0: it measures the whole. A GPU that has room for the
 * whole takes less time for it than for a partition. */
static kiln_status choose_for_all(kiln_run *r, kiln_hash key, ranges *p, uint64_t *rows,
                                  bool *on_device, kiln_error *err)
{
    enum { ROW_NS = 300 };
    const uint64_t n = p->s->source->count;
    const uint32_t k = p->payload.neighbors;
    const bool pays = kiln_knn_is_shared(n, 0, ROW_NS);
    const char *kind = "cpu";
    bool whole = false;
    if (pays && n <= WHOLE_ROWS) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    if (!pays || strcmp(kind, "cpu") != 0)
        KILN_TRY(choose_whole(r, key, p, rows, &whole, on_device, err));
    if (*rows == 0 && !whole)
        *rows = pays ? choose_shared_rows(r, n, k, kiln_run_tasks(r))
                     : choose_range_rows(r, n, k, RANGE_ROWS);
    return KILN_OK;
}

/* What a task's host has of memory and devices is not asked. */
static kiln_status choose_ranges(kiln_run *r, kiln_hash key, ranges *p, uint64_t *rows, bool *whole,
                                 bool *on_device, kiln_error *err)
{
    if (kiln_run_tasks(r) == 0) return choose_whole(r, key, p, rows, whole, on_device, err);
    if (kiln_run_scratch_use(r) == KILN_SCRATCH_PLAN)
        KILN_TRY(choose_for_all(r, key, p, rows, on_device, err));
    KILN_TRY(kiln_run_decide(r, "range-rows", rows, err));
    *whole = *rows == 0;
    return KILN_OK;
}

/* Of whichever way is taken, were its units as small as they go. */
static uint64_t least_ram(const kiln_layer *source, uint64_t rows, ranges *p)
{
    const uint64_t n = source->count;
    if (n <= RANGE_ROWS_LEAST && !rows) return whole_ram(n);
    if (!rows) rows = RANGE_ROWS_LEAST;
    p->payload.ranges.range_rows = rows;
    const uint64_t group = rows > n / GROUPS_MOST ? rows : n / GROUPS_MOST,
                   block = kiln_layer_size_of(source).rows;
    const uint64_t ways[] = {range_ram(rows, n, p->payload.neighbors),
                             kiln_spatial_least_ram(source), back_ram(p, group + block)};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i] > most) most = ways[i];
    return most;
}

kiln_status kiln_spacing_measure(kiln_run *r, const kiln_scene *scene, const kiln_layer *source,
                                 const kiln_spacing_options *o, kiln_spacing *out, kiln_error *err)
{
    enum { BACK_ROW_NS = 25 };
    const kiln_knn_unit u = {.neighbors = o->neighbors,
                             .fallback2 = o->fallback2,
                             .most2 = o->most2,
                             .source = source->digest};
    const kiln_hash key = kiln_key_end(key_values(r, "spacing", source, &u));
    uint64_t rows = o->range_rows;
    bool whole = source->count == 0, on_device = false;
    kiln_status st = KILN_OK;
    ranges *p;
    KILN_TRY(KILN_ALLOC(&p, 1, "the ranges", err));
    out->source = source;
    p->s = out;
    p->payload = u;
    p->back_is_shared = kiln_knn_is_shared(source->count, rows, BACK_ROW_NS);
    kiln_run_foresee_ram(r, least_ram(source, rows, p),
                         source->count / RANGE_ROWS_LEAST + GROUPS_MOST);
    plan_partition(r, scene, p);
    if (!whole && !rows) st = choose_ranges(r, key, p, &rows, &whole, &on_device, err);
    if (st == KILN_OK)
        st = whole ? measure_whole(r, &u, on_device, key, out, err)
                   : measure_ranges(r, rows, p, err);
    ranges_free(p);
    return st;
}

kiln_status kiln_spacing_report(const kiln_spacing *s, json_t *report, kiln_error *err)
{
    json_t *o;
    if (s->n_ranges == 0) {
        o = json_pack("{s:o}", "whole_s", kiln_json_real(s->whole_s));
    } else {
        o = json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "partition_s",
                      kiln_json_real(s->partition_s), "ranges_s", kiln_json_real(s->ranges_s),
                      "back_s", kiln_json_real(s->back_s), "ranges", (json_int_t)s->n_ranges,
                      "range_rows", (json_int_t)s->range_rows, "batches", (json_int_t)s->batches,
                      "candidates", (json_int_t)s->candidates, "queries", (json_int_t)s->queries);
        kiln_chat("%s: partition took %.2f s, ranges %.2f s, scatter back to blocks %.2f s",
                  KILN_COUNT(s->n_ranges, "range"), s->partition_s, s->ranges_s, s->back_s);
    }
    if (o && json_object_set_new(report, "phases", o) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "cannot write the report");
}
