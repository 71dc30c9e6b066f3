/* drawn -- see drawn.h. Structs of chunks are copied into the list of both layers, without what
 * they own. */
#include "stages/frame/drawn.h"

#include "base/log.h"
#include "base/memory.h"
#include "schema/level_sites.h"

#include <stdlib.h>
#include <string.h>

const kiln_level_wish kiln_level_full = {.form = KILN_LEVEL_AT, .level = 0};

/* ---- what is drawn --------------------------------------------------------------------------- */
void kiln_drawn_release(kiln_drawn *d)
{
    if (d->chunks && d->chunks != d->layer) {
        free(d->chunks->chunks);
        free(d->chunks);
    }
    kiln_level_tree_release(&d->tree);
    kiln_layer_free(d->levels);
    kiln_layer_free(d->layer);
    *d = (kiln_drawn){0};
}

static kiln_status list_both(kiln_drawn *d, kiln_error *err)
{
    const kiln_layer *a = d->layer, *b = d->levels;
    KILN_TRY(KILN_ALLOC(&d->chunks, 1, "chunks and levels", err));
    *d->chunks =
        (kiln_layer){.digest = a->digest, .count = a->count + b->count, .sh_degree = a->sh_degree};
    memcpy(d->chunks->kind, a->kind, sizeof a->kind);
    if (b->sh_degree != a->sh_degree)
        return kiln_fail(err, KILN_E_IO,
                         "the levels of '%s' have SH degree %u instead of %u; run kiln-lod again",
                         a->kind, b->sh_degree, a->sh_degree);
    if (b->n_chunks > UINT32_MAX - a->n_chunks)
        return kiln_fail(err, KILN_E_IO, "'%s' has too many levels", a->kind);
    KILN_TRY(KILN_ALLOC(&d->chunks->chunks, (size_t)a->n_chunks + b->n_chunks, "chunks and levels",
                        err));
    if (a->n_chunks) memcpy(d->chunks->chunks, a->chunks, a->n_chunks * sizeof *a->chunks);
    if (b->n_chunks)
        memcpy(d->chunks->chunks + a->n_chunks, b->chunks, b->n_chunks * sizeof *b->chunks);
    d->chunks->n_chunks = a->n_chunks + b->n_chunks;
    return KILN_OK;
}

/* d->layer and, where there are some, d->levels are read. */
static kiln_status join_levels(kiln_manifest *m, kiln_drawn *d, kiln_error *err)
{
    d->n_full = d->layer->n_chunks;
    d->chunks = d->layer;
    if (!d->levels) return KILN_OK;
    d->chunks = NULL;
    KILN_TRY(kiln_level_tree_make(d->layer, d->levels, &d->tree, err));
    KILN_TRY(kiln_level_tree_read_sites(m, &d->tree, err));
    return list_both(d, err);
}

/* Says of each chunk whether the cut has it: *out [n_chunks], to be freed also after a failure. */
static kiln_status mark_cut(const kiln_drawn *d, const kiln_level_wish *wish,
                            const kiln_view_request *request, bool **out, kiln_error *err)
{
    kiln_level_cut cut = {0};
    KILN_TRY(KILN_ALLOC(out, d->chunks->n_chunks, "chunks of a cut", err));
    const kiln_status st = kiln_level_choose(&d->tree, wish, request, &cut, err);
    for (uint32_t i = 0; st == KILN_OK && i < cut.n; i++) (*out)[cut.picks[i].chunk] = true;
    kiln_level_cut_release(&cut);
    return st;
}

kiln_status kiln_drawn_narrow(kiln_drawn *d, const kiln_level_wish *wish, kiln_error *err)
{
    kiln_layer *l = d->chunks;
    bool *chosen = NULL;
    uint32_t n = 0;
    if (!d->levels || d->narrow || wish->form != KILN_LEVEL_AT) return KILN_OK;
    const kiln_status st = mark_cut(d, wish, NULL, &chosen, err);
    for (uint32_t i = 0; st == KILN_OK && i < l->n_chunks; i++)
        if (chosen[i]) l->chunks[n++] = l->chunks[i];
    free(chosen);
    if (st != KILN_OK) return st;
    l->n_chunks = n;
    l->count = 0;
    for (uint32_t i = 0; i < n; i++) l->count += l->chunks[i].count;
    d->n_full = 0;
    d->narrow = true;
    return KILN_OK;
}

kiln_status kiln_drawn_current(kiln_manifest *m, kiln_layer_kind kind, bool with_levels,
                               kiln_drawn *out, kiln_error *err)
{
    *out = (kiln_drawn){0};
    KILN_TRY(kiln_layer_current(m, kind, &out->layer, err));
    if (with_levels) KILN_TRY(kiln_levels_get(m, out->layer, &out->levels, err));
    return join_levels(m, out, err);
}

kiln_status kiln_drawn_get(kiln_manifest *m, const kiln_drawn_name *name, kiln_drawn *out,
                           kiln_error *err)
{
    *out = (kiln_drawn){0};
    KILN_TRY(
        kiln_layer_get_digest(m, kiln_layer_kinds[name->kind].name, name->layer, &out->layer, err));
    if (!kiln_hash_is_zero(name->levels))
        KILN_TRY(kiln_layer_get_digest(m, kiln_layer_kinds[KILN_LAYER_levels].name, name->levels,
                                       &out->levels, err));
    KILN_TRY(join_levels(m, out, err));
    return name->narrow ? kiln_drawn_narrow(out, &name->wish, err) : KILN_OK;
}

kiln_drawn_name kiln_drawn_name_of(const kiln_drawn *d, const kiln_level_wish *wish)
{
    kiln_drawn_name name = {.kind = (uint64_t)kiln_layer_kind_find(d->layer->kind),
                            .layer = d->layer->digest,
                            .wish = *wish,
                            .narrow = d->narrow};
    if (d->levels && !kiln_level_wish_full(wish)) name.levels = d->levels->digest;
    return name;
}

/* ---- what a view draws of it ----------------------------------------------------------------- */
void kiln_view_chunks_release(kiln_view_chunks *c)
{
    free(c->numbers);
    *c = (kiln_view_chunks){0};
}

/* chosen NULL: all chunks are. */
static kiln_status take_visible(const kiln_layer *l, const bool *chosen,
                                const kiln_view_request *request, kiln_view_chunks *out,
                                kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&out->numbers, l->n_chunks, "chunks of a view", err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        if ((chosen && !chosen[i]) || !kiln_view_request_may_see(request, &l->chunks[i])) continue;
        out->numbers[out->n++] = i;
        out->rows += l->chunks[i].count;
    }
    /* a view sees a few of many */
    uint32_t *less = realloc(out->numbers, (out->n ? out->n : 1) * sizeof *less);
    if (less) out->numbers = less;
    return KILN_OK;
}

kiln_status kiln_view_chunks_of_layer(const kiln_layer *l, const kiln_view_request *request,
                                      kiln_view_chunks *out, kiln_error *err)
{
    *out = (kiln_view_chunks){0};
    return take_visible(l, NULL, request, out, err);
}

kiln_status kiln_view_chunks_choose(const kiln_drawn *d, const kiln_level_wish *wish,
                                    const kiln_view_request *request, kiln_view_chunks *out,
                                    kiln_error *err)
{
    bool *chosen = NULL;
    kiln_status st = KILN_OK;
    *out = (kiln_view_chunks){0};
    if (d->narrow || !d->levels) return take_visible(d->chunks, NULL, request, out, err);
    if (!kiln_level_wish_full(wish))
        st = mark_cut(d, wish, request, &chosen, err);
    else if ((st = KILN_ALLOC(&chosen, d->chunks->n_chunks, "chunks of a cut", err)) == KILN_OK)
        memset(chosen, 1, d->n_full * sizeof *chosen);
    if (st == KILN_OK) st = take_visible(d->chunks, chosen, request, out, err);
    free(chosen);
    return st;
}

/* ---- said of it ------------------------------------------------------------------------------ */
void kiln_drawn_say_measured(const kiln_drawn *d, const kiln_level_wish *wish,
                             const kiln_view_request *request)
{
    const kiln_layer *l = d->levels;
    const char *profile = kiln_profiles[request->profile].name;
    if (!l || wish->form != KILN_LEVEL_DB || l->n_chunks == 0 || l->chunks[0].n_errors == 0) return;
    if (strcmp(l->origin_profile, profile) == 0 && l->origin_antialiased == request->antialiased)
        return;
    kiln_say("errors of levels were measured with the profile %s%s, so decibels are approximate; "
             "kiln-lod --profile %s --antialiased %s "
             "measures them as they are drawn",
             l->origin_profile, l->origin_antialiased ? ", antialiased" : "", profile,
             request->antialiased ? "on" : "off");
}

void kiln_view_detail_add(kiln_view_detail *sum, const kiln_drawn *d,
                          const kiln_view_request *request, const kiln_view_chunks *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const kiln_chunk *chunk = &d->chunks->chunks[c->numbers[i]];
        const uint32_t level = chunk->level < KILN_LEVELS_MAX ? chunk->level : KILN_LEVELS_MAX;
        sum->rows += chunk->count;
        sum->of_level[level] += chunk->count;
        sum->chunks_of_level[level]++;
    }
    for (uint32_t i = 0; i < d->layer->n_chunks; i++)
        if (kiln_view_request_may_see(request, &d->layer->chunks[i]))
            sum->full += d->layer->chunks[i].count;
}
