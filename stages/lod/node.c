/* The levels of one node, from its rows to its outputs. */
#include "stages/lod/node.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/chunk/cells.h"

#include <stdlib.h>
#include <string.h>

kiln_status kiln_lod_node_open(const kiln_lod_unit *u, kiln_lod_node *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    out->unit = u;
    KILN_TRY(KILN_ALLOC(&out->children, u->n_children, "the errors of children", err));
    KILN_TRY(kiln_lod_rows_make(u->rows, u->sh_degree, u->weighted, &out->from, err));
    for (uint32_t i = 0; i < u->n_levels; i++)
        KILN_TRY(kiln_lod_rows_make(u->counts[i], u->sh_degree, u->weighted, &out->levels[i], err));
    return KILN_OK;
}

void kiln_lod_node_release(kiln_lod_node *n)
{
    for (uint32_t i = 0; i < KILN_LEVELS_MAX; i++) kiln_lod_rows_release(&n->levels[i]);
    kiln_lod_rows_release(&n->from);
    free(n->children);
}

/* As many as the unit may have, the worker has, and its memory has room for. */
static unsigned threads_of(const kiln_worker *w, const kiln_lod_unit *u)
{
    const uint64_t one = kiln_lod_unit_ram(u), may = kiln_worker_ram(w);
    const uint64_t more = may > one ? (may - one) / kiln_lod_unit_ram_thread(u) : 0;
    const uint64_t most = kiln_min_u64(u->threads, kiln_worker_threads(w));
    return (unsigned)kiln_max_u64(1, kiln_min_u64(most, 1 + more));
}

static kiln_status coarsen(kiln_lod_node *n, unsigned threads, kiln_error *err)
{
    const kiln_lod_unit *u = n->unit;
    const size_t bytes = kiln_coarsen_bytes(u->rows, u->sh_degree, u->n_levels);
    kiln_coarsen_rows out[KILN_LEVELS_MAX];
    void *work;
    KILN_TRY(kiln_alloc_unset(&work, bytes, 1, "merging", err));
    for (uint32_t i = 0; i < u->n_levels; i++) out[i] = n->levels[i].rows;
    n->from.rows.antialiased = u->errors.antialiased != 0;
    const kiln_coarsen_levels levels = {.n = u->n_levels, .counts = u->counts, .out = out};
    const kiln_status st = kiln_coarsen(&n->from.rows, &levels, work, bytes, threads, err);
    free(work);
    for (uint32_t i = 0; st == KILN_OK && i < u->n_levels; i++)
        if (out[i].n != u->counts[i])
            return kiln_fail(err, KILN_E_BUG, "level %u of a node has %llu rows instead of %llu",
                             u->first_level + i, (unsigned long long)out[i].n,
                             (unsigned long long)u->counts[i]);
    return st;
}

static kiln_status measure_node_errors(kiln_worker *w, const kiln_lod_node *n, unsigned threads,
                                       kiln_error *err)
{
    const kiln_lod_unit *u = n->unit;
    kiln_coarsen_rows levels[KILN_LEVELS_MAX];
    kiln_lod_errors errors;
    if (u->errors.n_views == 0) return KILN_OK;
    for (uint32_t i = 0; i < u->n_levels; i++) levels[i] = n->levels[i].rows;
    const uint64_t taken = kiln_lod_errors_bytes(u->rows), share = kiln_worker_ram(w);
    /* its largest arrays go back each time */
    const bool keeps = taken > 4 * kiln_memory_tidies_from(share);
    /* or the kernel zeroes pages for each of some eighty pictures anew */
    if (keeps) kiln_memory_keep(taken);
    const kiln_lod_measured_node measured = {.request = &u->errors,
                                             .reference = &n->from.rows,
                                             .levels = levels,
                                             .n_levels = u->n_levels,
                                             .n_children = u->n_children,
                                             .children = n->children};
    const kiln_status st = kiln_lod_errors_measure(&measured, threads, &errors, err);
    if (keeps) {
        kiln_memory_tidy(share);
        kiln_memory_trim();
    }
    KILN_TRY(st);
    return kiln_worker_put(w, "errors", &errors, sizeof errors, sizeof(float), err);
}

kiln_status kiln_lod_node_merge(kiln_worker *w, kiln_lod_node *n, kiln_error *err)
{
    const kiln_lod_unit *u = n->unit;
    const unsigned threads = threads_of(w, u);
    KILN_TRY(coarsen(n, threads, err));
    KILN_TRY(measure_node_errors(w, n, threads, err));
    for (uint32_t i = 0; i < u->n_levels; i++)
        KILN_TRY(kiln_lod_rows_put(w, u->first_level + i, &n->levels[i].rows, err));
    return KILN_OK;
}

uint64_t kiln_lod_unit_ram_thread(const kiln_lod_unit *u)
{
    /* a thread that merges takes nothing */
    return u->errors.n_views ? kiln_lod_errors_bytes_thread(u->rows) : 1;
}

uint64_t kiln_lod_scene_ram(uint64_t rows, uint32_t sh_degree)
{
    enum { LEVELS = 4 /* of --levels */ };
    /* nodes above leaves merge fewer rows: of eight children a sixteenth each */
    kiln_lod_unit u = {.rows = kiln_min_u64(rows, KILN_CHUNK_ROWS_MAX),
                       .n_levels = LEVELS,
                       .sh_degree = sh_degree,
                       .weighted = 1,
                       .errors.n_views = 1};
    for (uint32_t i = 0; i < LEVELS; i++) u.counts[i] = kiln_max_u64(1, u.rows >> (i + 1));
    return kiln_lod_unit_ram(&u);
}

uint64_t kiln_lod_unit_ram(const kiln_lod_unit *u)
{
    const uint64_t from = kiln_lod_rows_bytes(u->rows, u->sh_degree, u->weighted);
    uint64_t levels = 0;
    for (uint32_t i = 0; i < u->n_levels; i++)
        levels += kiln_lod_rows_bytes(u->counts[i], u->sh_degree, u->weighted);
    /* While rows are read, one plane is there twice; the scratch of merging comes after that. */
    const uint64_t merging = kiln_coarsen_bytes(u->rows, u->sh_degree, u->n_levels);
    /* when merging is done */
    const uint64_t measuring = u->errors.n_views ? kiln_lod_errors_bytes(u->rows) : 0;
    return from + levels + kiln_max_u64(merging, measuring) + kiln_read_ram(from) +
           kiln_outputs_ram(levels) + ((uint64_t)1 << 20);
}
