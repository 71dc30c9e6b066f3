/* camera_scores -- see the header. */
#include "stages/prune/camera_scores.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/blend_weights/blend_weights.h"
#include "kernels/math/real.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/prune/camera_looks.h"
#include "stages/prune/pruned_blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* units whose results are in memory at a time where none is stored */
    LISTS = 8,
    HALVES = 1 << 16, /* values of half a score's bits */
    TARGETS = 4,
};

/* What a block's rows show: in a scratch file, and of one block at a time in memory. Its scores
 * stand behind all of these. */
typedef struct {
    kiln_run *run;
    kiln_pruning *p;
    bool alphas;
    uint32_t n_groups;
    kiln_looks_of_unit *groups;
    uint64_t *starts; /* [n_chunks + 1] rows before each block */
    int fd, reads;    /* of the scratch file, to write and to read */
    char path[64];
    char *seen;      /* of a block, as kiln_prune_seen_bytes */
    float *scores;   /* of a block; negative: another rule drops the row */
    kiln_unit *left; /* of blocks */
    uint32_t *left_of;
    uint32_t n_left;
} scoring;

static void scoring_release(scoring *s)
{
    if (s->fd >= 0) (void)close(s->fd);
    if (s->reads >= 0) (void)close(s->reads);
    kiln_pruning_units_free(s->left, s->n_left);
    free(s->left_of);
    free(s->groups);
    free(s->starts);
    free(s->seen);
    free(s->scores);
}

static uint64_t rows_of(const scoring *s, uint32_t block)
{
    return s->starts[block + 1] - s->starts[block];
}
static uint64_t seen_at(const scoring *s, uint32_t block)
{
    return kiln_prune_seen_bytes(s->starts[block], s->alphas);
}

static uint64_t scores_at(const scoring *s, uint32_t block)
{
    return seen_at(s, s->p->input->n_chunks) + s->starts[block] * sizeof *s->scores;
}

static uint8_t *marks_at(const scoring *s, uint32_t block)
{
    return s->p->marks + block * kiln_prune_pairs_of_bits_bytes(s->p->size.blocks.rows);
}

static kiln_status open_scoring(scoring *s, kiln_error *err)
{
    const kiln_pruning *p = s->p;
    const uint32_t n = p->input->n_chunks;
    KILN_TRY(KILN_ALLOC(&s->starts, (uint64_t)n + 1, "the blocks", err));
    for (uint32_t i = 0; i < n; i++) s->starts[i + 1] = s->starts[i] + p->input->chunks[i].count;
    KILN_TRY(KILN_ALLOC(&s->seen, kiln_prune_seen_bytes(p->size.blocks.rows, true),
                        "what cameras see of a block", err));
    KILN_TRY(KILN_ALLOC(&s->scores, p->size.blocks.rows, "scores of a block", err));
    KILN_TRY(KILN_ALLOC(&s->p->marks, 2 * kiln_pruning_mark_bytes(p), "marks of rows", err));
    KILN_TRY(
        kiln_scratch_unnamed(kiln_manifest_path(kiln_run_manifest(s->run)), &s->fd, s->path, err));
    if (ftruncate(s->fd, (off_t)scores_at(s, n)) != 0)
        return kiln_file_write_failed(s->path, errno, err);
    return kiln_file_open(s->path, &s->reads, err);
}

/* ---- which rows are left --------------------------------------------------------------------- */
static kiln_status find_left(scoring *s, kiln_error *err)
{
    kiln_pruning *p = s->p;
    kiln_merged_row *merges = NULL;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&s->left, p->input->n_chunks, "the blocks", err));
    KILN_GO(KILN_ALLOC(&s->left_of, p->input->n_chunks, "the blocks", err));
    KILN_GO(KILN_ALLOC(&merges, p->n_merges, "merged rows", err));
    for (uint32_t i = 0; i < p->input->n_chunks; i++) {
        s->left_of[i] = KILN_PRUNE_NO_BLOCK;
        if (!kiln_pruning_has_block(p, i)) continue;
        KILN_GO(kiln_pruning_plan_block(s->run, p, KILN_PRUNE_LEFT, i, merges, &s->left[s->n_left],
                                        err));
        s->left_of[i] = s->n_left++;
    }
    kiln_run_shares_planning(s->run,
                             kiln_work_is_round(kiln_work_prune((double)p->input->count, 0)));
    kiln_run_serial(s->run, true);
    st = kiln_run_units(s->run, "looking for rows that are left", s->left, s->n_left, err);
    kiln_run_serial(s->run, false);
done:
    free(merges);
    return st;
}

/* ---- what cameras see ------------------------------------------------------------------------ */
static kiln_status plan_group(const scoring *s, const kiln_looks_of_unit *g,
                              const kiln_buffer *shared, kiln_unit *u, kiln_error *err)
{
    const kiln_pruning *p = s->p;
    static const char *const names[] = {"means", "log_scales", "quats", "opacity_logits",
                                        "source_row"};
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_SCORES);
    head.n_merges = p->n_merges;
    head.n_rows = p->n_rows;
    head.stray_bytes = p->stray_bytes;
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    kiln_hasher *h = kiln_run_key_bare(s->run, "scores");
    kiln_key_u64(h, "alphas", s->alphas);
    for (uint32_t i = g->first; i < g->first + g->n; i++) kiln_pruning_key_look(p, i, h);
    kiln_prune_rules_key(h, &p->rules);
    kiln_pruning_key_filters(h, p);
    kiln_key_bytes(h, "rows", p->rows, p->n_rows * sizeof *p->rows);
    kiln_key_bytes(h, "merges", p->merges, p->n_merges * sizeof *p->merges);
    if (p->strays) kiln_key_bytes(h, "strays", p->strays, p->stray_bytes);
    for (uint32_t b = 0; b < p->input->n_chunks; b++)
        if (kiln_pruning_looks_may_see(p, g, b))
            kiln_pruning_key_planes(h, p, b, names, sizeof names / sizeof *names);
    (void)snprintf(u->name, sizeof u->name, "views %u to %u", g->first + 1, g->first + g->n);
    u->key = kiln_key_end(h);
    u->planning = true;
    return kiln_pruning_plan_looks(s->run, p, g, &head, shared, u, err);
}

static kiln_status make_groups(scoring *s, double *cpu_s, kiln_error *err)
{
    s->n_groups = kiln_pruning_score_units(s->p);
    KILN_TRY(KILN_ALLOC(&s->groups, s->n_groups, "groups of cameras", err));
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g] = kiln_pruning_score_unit(s->p, g);
        *cpu_s += kiln_pruning_looks_s(s->p, &s->groups[g]);
    }
    return KILN_OK;
}

/* What a group has seen is added to what others have. False: no picture gives that. */
static bool add_seen(const scoring *s, uint64_t n, void *of_group)
{
    const kiln_prune_seen to = kiln_prune_seen_at(s->seen, n, s->alphas),
                          from = kiln_prune_seen_at(of_group, n, s->alphas);
    bool sound = true;
    for (uint64_t i = 0; i < n; i++) {
        to.weights[i] += from.weights[i];
        if (s->alphas) to.alphas[i] += from.alphas[i];
        if (from.peaks[i] > to.peaks[i]) to.peaks[i] = from.peaks[i];
        sound = sound && from.peaks[i] < KILN_BLEND_UNIT && from.peaks[i] <= from.weights[i];
    }
    return sound;
}

static kiln_status fold_block(const scoring *s, const kiln_unit *u, uint32_t block, kiln_error *err)
{
    const uint64_t n = rows_of(s, block), bytes = kiln_prune_seen_bytes(n, s->alphas);
    void *data;
    uint64_t size;
    KILN_TRY(kiln_unit_data(s->run, u, s->p->input->chunks[block].name, &data, &size, err));
    kiln_status st = KILN_OK;
    if (size != bytes)
        KILN_GO(kiln_fail(err, KILN_E_IO, "of block '%s' it has not what its rows show",
                          s->p->input->chunks[block].name));
    KILN_GO(kiln_file_read_at(s->reads, s->path, seen_at(s, block), s->seen, bytes, err));
    if (!add_seen(s, n, data))
        KILN_GO(kiln_fail(err, KILN_E_IO, "a row has an impossible part of a pixel"));
    KILN_GO(kiln_file_write_at(s->fd, s->path, seen_at(s, block), s->seen, bytes, err));
done:
    free(data);
    return st;
}

static kiln_status fold_group(const scoring *s, const kiln_looks_of_unit *g, const kiln_unit *u,
                              kiln_error *err)
{
    for (uint32_t b = 0; b < s->p->input->n_chunks; b++) {
        if (!kiln_pruning_looks_may_see(s->p, g, b)) continue;
        KILN_TRY(kiln_unit_refuse(s->run, u, fold_block(s, u, b, err), err));
    }
    return KILN_OK;
}

/* Groups [first, end). */
static kiln_status look_by_groups(const scoring *s, const kiln_buffer *shared, uint32_t first,
                                  uint32_t end, kiln_error *err)
{
    kiln_unit *units = NULL;
    const uint32_t n = end - first;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&units, n, "the cameras", err));
    for (uint32_t g = 0; g < n; g++)
        KILN_GO(plan_group(s, &s->groups[first + g], shared, &units[g], err));
    KILN_GO(kiln_run_units(s->run, "looking through cameras", units, n, err));
    for (uint32_t g = 0; g < n; g++)
        KILN_GO(kiln_unit_pass(s->run, &units[g],
                               fold_group(s, &s->groups[first + g], &units[g], err)));
    KILN_GO(kiln_run_refused(s->run, err));
done:
    kiln_pruning_units_free(units, n);
    return st;
}

static kiln_status look_at_rows(scoring *s, kiln_error *err)
{
    kiln_pruning *p = s->p;
    kiln_buffer shared = {0};
    double cpu_s = 0;
    kiln_status st;
    kiln_prune_unit head = {
        .n_merges = p->n_merges, .n_rows = p->n_rows, .stray_bytes = p->stray_bytes};
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    const kiln_prune_request lists = {.head = &head,
                                      .merges = p->merges,
                                      .rows = p->rows,
                                      .strays = p->strays,
                                      .text = (const char *)&p->filters};
    KILN_GO(make_groups(s, &cpu_s, err));
    KILN_GO(kiln_pruning_put_lists(&lists, &shared, err));
    kiln_run_computes(s->run, kiln_run_named_kind(s->run) || kiln_run_gpu_pays(cpu_s));
    kiln_run_shares_planning(s->run, kiln_work_is_round(cpu_s));
    const uint32_t at_a_time = kiln_run_is_once(s->run) ? LISTS : s->n_groups;
    for (uint32_t g = 0; g < s->n_groups; g += at_a_time)
        KILN_GO(look_by_groups(s, &shared, g,
                               g + at_a_time < s->n_groups ? g + at_a_time : s->n_groups, err));
    kiln_run_computes(s->run, false);
    kiln_run_shares_planning(s->run, false);
done:
    kiln_buffer_release(&shared);
    return st;
}

/* ---- scores ---------------------------------------------------------------------------------- */
/* 0, or which rule drops the row, as kiln_prune_unit says. */
static unsigned mark_of(const scoring *s, const kiln_prune_seen *seen, uint64_t row)
{
    const kiln_prune_options *o = &s->p->o->rules;
    /* never where it is NAN */
    if ((double)seen->peaks[row] < o->min_contribution * KILN_BLEND_UNIT) return 1;
    if (!s->alphas) return 0;
    if (seen->alphas[row] == 0) return o->min_visibility > 0 ? 2 : 0;
    return (double)seen->weights[row] < o->min_visibility * (double)seen->alphas[row] ? 2 : 0;
}

/* What a row matters to the cameras: where it is the most of some pixel, and how much it is of all
 * of them (DESIGN.md). At most 2^103; the square is exact. */
static float score_of(const kiln_prune_seen *seen, uint64_t row)
{
    const double peak = (double)seen->peaks[row];
    return (float)(peak * peak * (double)seen->weights[row]);
}

static kiln_status score_block(const scoring *s, uint32_t block, kiln_error *err)
{
    const uint64_t n = rows_of(s, block), bytes = (n + 7) / 8;
    const kiln_unit *u = &s->left[s->left_of[block]];
    uint8_t *left, *marks = marks_at(s, block);
    kiln_status st;
    KILN_TRY(KILN_ALLOC(&left, bytes, "rows that are left", err));
    KILN_GO(kiln_unit_struct(s->run, u, "left", left, bytes, err));
    KILN_GO(kiln_file_read_at(s->reads, s->path, seen_at(s, block), s->seen,
                              kiln_prune_seen_bytes(n, s->alphas), err));
    const kiln_prune_seen seen = kiln_prune_seen_at(s->seen, n, s->alphas);
    for (uint64_t i = 0; i < n; i++) {
        const bool is_left = left[i >> 3] >> (i & 7) & 1;
        s->scores[i] = is_left ? score_of(&seen, i) : -1.0f;
        s->p->n_left += is_left;
        if (is_left) kiln_prune_set_two_bits(marks, i, mark_of(s, &seen, i));
    }
    KILN_GO(kiln_file_write_at(s->fd, s->path, scores_at(s, block), s->scores,
                               n * sizeof *s->scores, err));
done:
    free(left);
    return st;
}

/* ---- the highest ----------------------------------------------------------------------------- */
/* The rows with the highest scores: all above a score, and the first of those that have it. */
typedef struct {
    uint64_t rows;   /* how many are wanted; afterwards how many of those that have the score */
    bool unmarked;   /* only of rows that no rule drops so far */
    uint32_t bits;   /* of the score; its upper half is found first */
    uint64_t *lower; /* [HALVES] how often each lower half comes with it */
    unsigned value;  /* the class of a row of a curve; 0: of --keep */
} target;

typedef struct {
    uint64_t *upper[2]; /* [HALVES] of all rows, of those that no rule drops */
    target targets[TARGETS];
    uint32_t n;
} selection;

static void selection_release(selection *x)
{
    for (int i = 0; i < 2; i++) free(x->upper[i]);
    for (uint32_t t = 0; t < x->n; t++) free(x->targets[t].lower);
}

/* From the highest bin down, the one in which the rows end. *rows: what is left of them for it.
 * None: all are wanted. */
static uint32_t bin_from_above(const uint64_t *bins, uint64_t *rows)
{
    uint32_t bin = HALVES;
    while (bin-- > 0) {
        if (bins[bin] >= *rows) return bin;
        *rows -= bins[bin];
    }
    *rows = UINT64_MAX;
    return 0;
}

typedef void row_fn(selection *x, uint32_t bits, uint8_t *marks, uint8_t *classes, uint64_t row);

static void count_upper(selection *x, uint32_t bits, uint8_t *marks, uint8_t *classes, uint64_t row)
{
    (void)classes;
    x->upper[0][bits >> 16]++;
    x->upper[1][bits >> 16] += kiln_prune_two_bits(marks, row) == 0;
}

static void count_lower(selection *x, uint32_t bits, uint8_t *marks, uint8_t *classes, uint64_t row)
{
    (void)classes;
    for (uint32_t t = 0; t < x->n; t++) {
        const target *a = &x->targets[t];
        if (bits >> 16 == a->bits >> 16 && !(a->unmarked && kiln_prune_two_bits(marks, row) != 0))
            a->lower[bits & 0xffff]++;
    }
}

static bool take_scored(target *t, uint32_t bits)
{
    if (bits != t->bits || t->rows == UINT64_MAX) return bits >= t->bits;
    if (t->rows == 0) return false;
    t->rows--;
    return true;
}

static void mark_unchosen(selection *x, uint32_t bits, uint8_t *marks, uint8_t *classes,
                          uint64_t row)
{
    for (uint32_t t = 0; t < x->n; t++) {
        target *a = &x->targets[t];
        if (a->unmarked && kiln_prune_two_bits(marks, row) != 0) continue;
        const bool taken = take_scored(a, bits);
        if (a->value == 0 && !taken) kiln_prune_set_two_bits(marks, row, 3);
        if (a->value > 0 && taken) kiln_prune_set_two_bits(classes, row, a->value);
    }
}

/* Rows that are left, in the order of the source: of equal scores the first come first. */
static kiln_status each_score(const scoring *s, selection *x, row_fn *visit, kiln_error *err)
{
    for (uint32_t b = 0; b < s->p->input->n_chunks; b++) {
        const uint64_t n = rows_of(s, b);
        uint8_t *marks = marks_at(s, b), *classes = marks + kiln_pruning_mark_bytes(s->p);
        if (n == 0 || s->left_of[b] == KILN_PRUNE_NO_BLOCK) continue;
        KILN_TRY(kiln_file_read_at(s->reads, s->path, scores_at(s, b), s->scores,
                                   n * sizeof *s->scores, err));
        for (uint64_t i = 0; i < n; i++)
            if (s->scores[i] >= 0) visit(x, kiln_bits_of(s->scores[i]), marks, classes, i);
    }
    return KILN_OK;
}

/* --keep, and for a dry run the half, the quarter and the eighth of the scene's rows. */
static kiln_status name_targets(const scoring *s, selection *x, kiln_error *err)
{
    uint64_t rows;
    KILN_TRY(kiln_keep_rows(s->p->o->rules.keep, s->p->stats.n, &rows, err));
    if (rows != UINT64_MAX) x->targets[x->n++] = (target){.rows = rows, .unmarked = true};
    for (unsigned k = 1; k < TARGETS && s->p->o->dry_run; k++)
        x->targets[x->n++] = (target){.rows = kiln_max_u64(s->p->stats.n >> k, 1), .value = k};
    for (uint32_t t = 0; t < x->n; t++)
        KILN_TRY(KILN_ALLOC(&x->targets[t].lower, HALVES, "counts of scores", err));
    for (int i = 0; i < 2; i++) KILN_TRY(KILN_ALLOC(&x->upper[i], HALVES, "counts of scores", err));
    return KILN_OK;
}

static kiln_status choose_highest(const scoring *s, kiln_error *err)
{
    selection x = {.n = 0};
    kiln_status st;
    KILN_GO(name_targets(s, &x, err));
    if (x.n == 0) goto done;
    KILN_GO(each_score(s, &x, count_upper, err));
    for (uint32_t t = 0; t < x.n; t++)
        x.targets[t].bits = bin_from_above(x.upper[x.targets[t].unmarked], &x.targets[t].rows)
                            << 16;
    KILN_GO(each_score(s, &x, count_lower, err));
    for (uint32_t t = 0; t < x.n; t++)
        if (x.targets[t].rows != UINT64_MAX)
            x.targets[t].bits |= bin_from_above(x.targets[t].lower, &x.targets[t].rows);
    KILN_GO(each_score(s, &x, mark_unchosen, err));
done:
    selection_release(&x);
    return st;
}

kiln_status kiln_pruning_score(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    scoring s = {
        .run = r, .p = p, .alphas = !isnan(p->o->rules.min_visibility), .fd = -1, .reads = -1};
    kiln_status st;
    if (p->n_looks == 0) return KILN_OK;
    KILN_GO(open_scoring(&s, err));
    KILN_GO(find_left(&s, err));
    KILN_GO(look_at_rows(&s, err));
    for (uint32_t b = 0; b < p->input->n_chunks; b++) {
        if (s.left_of[b] == KILN_PRUNE_NO_BLOCK || rows_of(&s, b) == 0) continue;
        if (s.left[s.left_of[b]].quarantined)
            s.left_of[b] = KILN_PRUNE_NO_BLOCK;
        else
            KILN_GO(kiln_unit_refuse(r, &s.left[s.left_of[b]], score_block(&s, b, err), err));
    }
    KILN_GO(choose_highest(&s, err));
done:
    scoring_release(&s);
    return st;
}
