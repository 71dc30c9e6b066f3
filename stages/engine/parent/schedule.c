/* The schedule keeps all items in one array, `order`, bundle after bundle. A bundle is a group, or
 * a single item; bundles are sorted by cost. A slot holds at most one bundle and takes items from
 * its front; an idle slot steals from the back of another's bundle. So both keep using what
 * neighbouring items share. */
#include "stages/engine/parent/schedule.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

typedef struct {
    uint64_t first, end; /* range of `order` that is not handed out yet */
    uint64_t cost;       /* of that range */
    bool held;
} bundle;

enum { NO_BUNDLE = -1 };

struct kiln_schedule {
    const kiln_slots *slots;
    kiln_trial *trials; /* by item */
    uint64_t *costs;    /* by item */
    uint64_t *order;    /* items, bundle after bundle */
    bundle *bundles;    /* biggest first */
    uint64_t n, n_bundles;
    uint64_t limit;      /* kiln_schedule_limit */
    uint64_t first_free; /* every bundle before this one is held or empty */
    uint64_t *again;     /* items that came back, oldest first */
    uint64_t n_again, n_waiting;
    int64_t holds[KILN_SLOTS_MAX];
};

/* ---- making it ------------------------------------------------------------------------------- */
typedef struct {
    uint64_t group, item;
} grouped;

static int by_group(const void *a, const void *b)
{
    const grouped *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* A bundle while bundles are sorted: by cost, then by its first item. `first` is an index into the
 * list sorted by group. */
typedef struct {
    uint64_t cost, item, first, end;
} weighed;

static int by_cost(const void *a, const void *b)
{
    const weighed *x = a, *y = b;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static uint64_t weigh(const kiln_schedule_item *items, const grouped *list, uint64_t n,
                      weighed *out)
{
    uint64_t n_out = 0;
    for (uint64_t i = 0; i < n; i++) {
        const bool joins = n_out && list[i].group && list[i].group == list[i - 1].group;
        if (!joins) out[n_out++] = (weighed){.item = list[i].item, .first = i};
        weighed *w = &out[n_out - 1];
        w->end = i + 1;
        w->cost += items[list[i].item].cost;
    }
    return n_out;
}

static void lay_out(kiln_schedule *s, const grouped *list, const weighed *w)
{
    uint64_t at = 0;
    for (uint64_t b = 0; b < s->n_bundles; b++) {
        const uint64_t first = at;
        for (uint64_t i = w[b].first; i < w[b].end; i++) s->order[at++] = list[i].item;
        s->bundles[b] = (bundle){.first = first, .end = at, .cost = w[b].cost};
    }
}

static kiln_status sort_items(kiln_schedule *s, const kiln_schedule_item *items, uint64_t n,
                              kiln_error *err)
{
    kiln_status st = KILN_OK;
    grouped *list = NULL;
    weighed *w = NULL;
    KILN_GO(KILN_ALLOC(&list, n, "the order of units", err));
    KILN_GO(KILN_ALLOC(&w, n, "the order of units", err));
    for (uint64_t i = 0; i < n; i++) list[i] = (grouped){items[i].group, i};
    if (n) qsort(list, n, sizeof *list, by_group);
    s->n_bundles = weigh(items, list, n, w);
    assert(s->n_bundles <= n);
    if (n) qsort(w, s->n_bundles, sizeof *w, by_cost);
    lay_out(s, list, w);
done:
    free(list);
    free(w);
    return st;
}

kiln_status kiln_schedule_new(const kiln_schedule_item *items, uint64_t n, const kiln_slots *slots,
                              kiln_schedule **out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_schedule *s = NULL;
    *out = NULL;
    KILN_GO(KILN_ALLOC(&s, 1, "the order of units", err));
    KILN_GO(KILN_ALLOC(&s->trials, n, "the order of units", err));
    KILN_GO(KILN_ALLOC(&s->costs, n, "the order of units", err));
    KILN_GO(KILN_ALLOC(&s->order, n, "the order of units", err));
    KILN_GO(KILN_ALLOC(&s->bundles, n, "the order of units", err));
    KILN_GO(KILN_ALLOC(&s->again, n, "the order of units", err));
    KILN_GO(sort_items(s, items, n, err));
    s->slots = slots;
    s->n = s->n_waiting = n;
    s->limit = UINT64_MAX;
    for (uint64_t i = 0; i < n; i++) s->costs[i] = items[i].cost;
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++) s->holds[i] = NO_BUNDLE;
    *out = s;
    s = NULL;
done:
    kiln_schedule_free(s);
    return st;
}

void kiln_schedule_free(kiln_schedule *s)
{
    if (!s) return;
    free(s->trials);
    free(s->costs);
    free(s->order);
    free(s->bundles);
    free(s->again);
    free(s);
}

/* ---- handing out ----------------------------------------------------------------------------- */
uint64_t kiln_schedule_waiting(const kiln_schedule *s) { return s->n_waiting; }

const kiln_trial *kiln_schedule_trial(const kiln_schedule *s, uint64_t item)
{
    assert(item < s->n);
    return &s->trials[item];
}

static uint64_t take_again(kiln_schedule *s, uint64_t place)
{
    assert(place < s->n_again && s->n_waiting > 0);
    const uint64_t item = s->again[place];
    for (uint64_t i = place + 1; i < s->n_again; i++) s->again[i - 1] = s->again[i];
    s->n_again--;
    return item;
}

static uint64_t take(kiln_schedule *s, bundle *b, bool from_back)
{
    assert(b->held && b->first < b->end && s->n_waiting > 0);
    const uint64_t item = s->order[from_back ? --b->end : b->first++];
    assert(b->cost >= s->costs[item]);
    b->cost -= s->costs[item];
    return item;
}

static bool is_empty(const bundle *b) { return b->first == b->end; }

/* Frees the bundles of closed slots. */
static void let_go_of_closed(kiln_schedule *s)
{
    for (unsigned i = 0; i < s->slots->n; i++) {
        if (!s->slots->closed[i] || s->holds[i] == NO_BUNDLE) continue;
        assert(s->bundles[s->holds[i]].held);
        s->bundles[s->holds[i]].held = false;
        if ((uint64_t)s->holds[i] < s->first_free) s->first_free = (uint64_t)s->holds[i];
        s->holds[i] = NO_BUNDLE;
    }
}

static bool hold_next(kiln_schedule *s, unsigned slot)
{
    while (s->first_free < s->n_bundles &&
           (s->bundles[s->first_free].held || is_empty(&s->bundles[s->first_free])))
        s->first_free++;
    if (s->first_free == s->n_bundles || s->order[s->bundles[s->first_free].first] >= s->limit)
        return false;
    /* The bundle that the slot held before is empty; items left in it would never be handed out. */
    assert(s->holds[slot] == NO_BUNDLE || is_empty(&s->bundles[s->holds[slot]]));
    s->holds[slot] = (int64_t)s->first_free;
    s->bundles[s->first_free].held = true;
    return true;
}

/* Returns the held bundle with the most cost left; NULL if all are empty. */
static bundle *fullest(const kiln_schedule *s)
{
    bundle *best = NULL;
    for (unsigned i = 0; i < s->slots->n; i++) {
        bundle *b = s->holds[i] == NO_BUNDLE ? NULL : &s->bundles[s->holds[i]];
        if (b && !is_empty(b) && (!best || b->cost > best->cost)) best = b;
    }
    return best;
}

bool kiln_schedule_next(kiln_schedule *s, unsigned slot, bool idle, uint64_t *item)
{
    if (slot >= s->slots->n || s->slots->closed[slot]) return false;
    let_go_of_closed(s);
    for (uint64_t i = 0; i < s->n_again; i++) {
        if (!kiln_trial_fits(&s->trials[s->again[i]], s->slots, slot)) continue;
        *item = take_again(s, i);
        s->n_waiting--;
        return true;
    }
    bundle *b = s->holds[slot] == NO_BUNDLE ? NULL : &s->bundles[s->holds[slot]];
    bool steals = false;
    if (!b || is_empty(b)) {
        if (hold_next(s, slot)) {
            b = &s->bundles[s->holds[slot]];
        } else {
            b = idle ? fullest(s) : NULL;
            steals = true;
        }
    }
    if (!b) return false;
    *item = take(s, b, steals);
    s->n_waiting--;
    return true;
}

void kiln_schedule_limit(kiln_schedule *s, uint64_t limit) { s->limit = limit; }

/* ---- what comes back ------------------------------------------------------------------------- */
void kiln_schedule_return(kiln_schedule *s, uint64_t item)
{
    assert(item < s->n && s->n_again < s->n && s->n_waiting < s->n);
    s->again[s->n_again++] = item;
    s->n_waiting++;
}

void kiln_schedule_suspect(kiln_schedule *s, uint64_t item)
{
    s->trials[item].is_suspect = true;
    kiln_schedule_return(s, item);
}

bool kiln_schedule_is_suspect(const kiln_schedule *s, uint64_t item)
{
    return s->trials[item].is_suspect || s->trials[item].attempts > 0;
}

bool kiln_schedule_fail(kiln_schedule *s, uint64_t item, unsigned slot)
{
    if (!kiln_trial_fail(&s->trials[item], s->slots, slot)) return false;
    kiln_schedule_return(s, item);
    return true;
}

bool kiln_schedule_stranded(kiln_schedule *s, uint64_t *item)
{
    for (uint64_t i = 0; i < s->n_again; i++) {
        if (!kiln_trial_is_stranded(&s->trials[s->again[i]], s->slots)) continue;
        *item = take_again(s, i);
        s->n_waiting--;
        return true;
    }
    return false;
}

bool kiln_schedule_needs(const kiln_schedule *s, unsigned slot, const bool others[KILN_SLOTS_MAX])
{
    for (uint64_t i = 0; i < s->n_again; i++) {
        const kiln_trial *t = &s->trials[s->again[i]];
        bool taken = !kiln_trial_fits(t, s->slots, slot);
        for (unsigned k = 0; k < s->slots->n && !taken; k++)
            taken = others[k] && kiln_trial_fits(t, s->slots, k);
        if (!taken) return true;
    }
    return false;
}
