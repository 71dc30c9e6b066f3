/* Cutting sorted Hilbert codes into chunks: every rule of stages/chunk/DESIGN.md checked from the
 * codes alone, on many small trees. SEED=n repeats one. */
#include "stages/chunk/cells.h"

#include "kernels/spatial_order/spatial_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 700, DEEPEST = KILN_HILBERT_BITS };

static uint64_t seed = 1;

static uint64_t random_u64(void) /* splitmix64, Steele and others 2014 */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Clusters of every depth, equal codes among them: a code repeats a random share of one before
 * it. */
static uint64_t make_codes(uint64_t *codes)
{
    uint64_t n = random_u64() % ROWS;
    for (uint64_t i = 0; i < n; i++) {
        codes[i] = random_u64() >> 1;
        if (i == 0) continue;
        uint64_t mask = (UINT64_MAX >> 1) >> 3 * (random_u64() % (DEEPEST + 1));
        codes[i] = (codes[random_u64() % i] & ~mask) | (codes[i] & mask);
    }
    if (n) qsort(codes, n, sizeof *codes, by_value);
    return n;
}

/* ---- reading names back ---------------------------------------------------------------------- */
typedef struct {
    unsigned depth;       /* of the parent cell */
    uint64_t prefix;      /* its digits */
    unsigned first, last; /* children */
    bool part, root;
} parsed;

static parsed parse(const char *name)
{
    parsed p = {0};
    if (!strcmp(name, "/")) {
        p.root = true;
        return p;
    }
    while (*name == '/') {
        assert_true(name[1] >= '0' && name[1] <= '7');
        unsigned digit = (unsigned)(name[1] - '0');
        name += 2;
        if (*name == '/') {
            p.prefix = p.prefix << 3 | digit;
            p.depth++;
            continue;
        }
        p.first = p.last = digit;
        if (*name == '-') {
            p.last = (unsigned)(name[1] - '0');
            assert_true(p.last > p.first && p.last < 8);
            name += 2;
        } else if (*name == '.') {
            p.part = true;
            name += 1 + strspn(name + 1, "0123456789");
        }
    }
    assert_int_equal(*name, '\0');
    return p;
}

static uint64_t prefix_of(uint64_t code, unsigned depth)
{
    return depth ? code >> 3 * (DEEPEST - depth) : 0;
}

static uint64_t rows_in(const uint64_t *codes, uint64_t n, uint64_t prefix, unsigned depth)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) count += prefix_of(codes[i], depth) == prefix;
    return count;
}

/* ---- the rules ------------------------------------------------------------------------------- */
typedef struct {
    uint64_t codes[ROWS], n;
    uint32_t max, min;
    kiln_cell_list list;
} tree;

/* ---- codes that are not in memory ------------------------------------------------------------ */
typedef struct {
    const tree *t;
    uint64_t reads, fails_at, largest; /* fails_at: the read that fails; 0: none */
} stream;

static kiln_status read_codes(void *context, uint64_t first, uint64_t n, uint64_t *out,
                              kiln_error *err)
{
    stream *s = context;
    assert_true(first <= s->t->n && n <= s->t->n - first);
    if (++s->reads == s->fails_at) return kiln_fail(err, KILN_E_IO, "no disk");
    if (n > s->largest) s->largest = n;
    memcpy(out, s->t->codes + first, n * sizeof *out);
    return KILN_OK;
}

static void check_stream(const tree *t, uint64_t window)
{
    stream s = {.t = t};
    const kiln_code_source source = {
        .n = t->n, .read = read_codes, .context = &s, .window = window};
    kiln_cell_list list;
    assert_int_equal(kiln_cells_cut_from(&source, t->max, t->min, &list, NULL), KILN_OK);
    assert_int_equal(list.n, t->list.n);
    if (list.n) assert_memory_equal(list.items, t->list.items, list.n * sizeof *list.items);
    assert_true(s.largest <= (window ? window : 1));
    kiln_cell_list_release(&list);
}

static void cut(tree *t)
{
    const uint64_t windows[] = {0, 1, 7, 64, t->n, UINT64_MAX};
    assert_int_equal(kiln_cells_cut(t->codes, t->n, t->max, t->min, &t->list, NULL), KILN_OK);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) check_stream(t, windows[i]);
}

static void check_chunk(const tree *t, const kiln_cell_group *c)
{
    parsed p = parse(c->name);
    uint64_t size = c->end - c->begin;
    assert_true(size >= 1 && size <= t->max);
    if (p.root) {
        assert_int_equal(size, t->n);
        assert_string_equal(c->parent, "");
        assert_int_equal(c->depth, 0);
        return;
    }
    assert_int_equal(c->depth, p.depth + 1);
    for (uint64_t i = c->begin; i < c->end; i++) { /* rows lie in the cells that the name says */
        assert_true(prefix_of(t->codes[i], p.depth) == p.prefix);
        unsigned digit = (unsigned)(prefix_of(t->codes[i], p.depth + 1) & 7);
        assert_true(digit >= p.first && digit <= p.last);
    }
    /* and the name says no more */
    assert_int_equal(prefix_of(t->codes[c->begin], p.depth + 1) & 7, p.first);
    assert_int_equal(prefix_of(t->codes[c->end - 1], p.depth + 1) & 7, p.last);
    assert_true(rows_in(t->codes, t->n, p.prefix, p.depth) > t->max); /* what fits is not split */
    uint64_t whole = 0;
    for (unsigned d = p.first; d <= p.last; d++) {
        uint64_t rows = rows_in(t->codes, t->n, p.prefix << 3 | d, p.depth + 1);
        if (!p.part) assert_true(rows <= t->max); /* no internal child inside a group */
        whole += rows;
    }
    if (p.part) {
        assert_int_equal(p.depth + 1, DEEPEST);
        assert_true(whole > t->max);
    } else {
        assert_int_equal(whole, size);
    }
}

/* The leaf behind a group would have joined it if it could. */
static void check_pair(const tree *t, const kiln_cell_group *a, const kiln_cell_group *b)
{
    parsed p = parse(a->name), q = parse(b->name);
    assert_int_equal(a->end, b->begin);
    if (strcmp(a->parent, b->parent) || p.part || q.part) return;
    uint64_t have = a->end - a->begin,
             leaf = rows_in(t->codes, t->n, q.prefix << 3 | q.first, q.depth + 1);
    /* between them lies nothing; an internal child would be chunks of its own */
    for (unsigned d = p.last + 1; d < q.first; d++)
        assert_int_equal(rows_in(t->codes, t->n, p.prefix << 3 | d, p.depth + 1), 0);
    assert_true(have + leaf > t->max || (have >= t->min && leaf >= t->min));
}

static void check_tree(const tree *t)
{
    if (t->n == 0) {
        assert_int_equal(t->list.n, 0);
        return;
    }
    assert_int_equal(t->list.items[0].begin, 0);
    assert_int_equal(t->list.items[t->list.n - 1].end, t->n);
    for (uint64_t i = 0; i < t->list.n; i++) check_chunk(t, &t->list.items[i]);
    for (uint64_t i = 1; i < t->list.n; i++)
        check_pair(t, &t->list.items[i - 1], &t->list.items[i]);
}

static void make_tree(tree *t)
{
    static const uint32_t maxima[] = {1, 2, 3, 5, 16, 100, 65536};
    memset(t, 0, sizeof *t);
    t->n = make_codes(t->codes);
    t->max = maxima[random_u64() % (sizeof maxima / sizeof *maxima)];
    t->min = (uint32_t)(random_u64() % 3 == 0 ? t->max : random_u64() % 2 ? t->max / 4 : 1);
}

static void every_chunk_keeps_every_rule(void **state)
{
    (void)state;
    static tree t;
    for (int round = 0; round < 150; round++) {
        make_tree(&t);
        cut(&t);
        check_tree(&t);
        kiln_cell_list_release(&t.list);
    }
}

static bool same_chunk(const tree *a, const kiln_cell_group *x, const tree *b,
                       const kiln_cell_group *y)
{
    return !strcmp(x->name, y->name) && x->end - x->begin == y->end - y->begin &&
           !memcmp(a->codes + x->begin, b->codes + y->begin,
                   (x->end - x->begin) * sizeof *a->codes);
}

static bool has_chunk(const tree *t, const tree *of, const kiln_cell_group *c)
{
    for (uint64_t i = 0; i < t->list.n; i++)
        if (same_chunk(t, &t->list.items[i], of, c)) return true;
    return false;
}

static void path_of(uint64_t prefix, unsigned depth, char out[96])
{
    char *at = out;
    for (unsigned d = depth; d-- > 0;) {
        *at++ = '/';
        *at++ = (char)('0' + (prefix >> 3 * d & 7));
    }
    if (depth == 0) *at++ = '/';
    *at = '\0';
}

/* The deepest split cell with the row, and the one above when it is split no longer: chunks of
 * other cells stay. */
static void check_dropped(const tree *before, const tree *after, uint64_t code)
{
    char cell[96] = "", above[96] = "";
    unsigned depth = 0;
    if (before->n <= before->max) return; /* one chunk, no cell to be under */
    while (depth + 1 < DEEPEST &&
           rows_in(before->codes, before->n, prefix_of(code, depth + 1), depth + 1) > before->max)
        depth++;
    path_of(prefix_of(code, depth), depth, cell);
    if (rows_in(after->codes, after->n, prefix_of(code, depth), depth) <= before->max && depth > 0)
        path_of(prefix_of(code, depth - 1), depth - 1, above);
    for (uint64_t i = 0; i < before->list.n; i++) {
        const kiln_cell_group *c = &before->list.items[i];
        if (!has_chunk(after, before, c))
            assert_true(!strcmp(c->parent, cell) || !strcmp(c->parent, above));
    }
}

static void dropping_one_row_changes_chunks_of_one_cell(void **state)
{
    (void)state;
    static tree before, after;
    for (int round = 0; round < 60; round++) {
        make_tree(&before);
        if (before.n == 0) continue;
        cut(&before);
        for (int k = 0; k < 10; k++) {
            uint64_t row = random_u64() % before.n;
            after = before;
            memmove(after.codes + row, after.codes + row + 1,
                    (before.n - row - 1) * sizeof *after.codes);
            after.n--;
            cut(&after);
            check_dropped(&before, &after, before.codes[row]);
            kiln_cell_list_release(&after.list);
        }
        kiln_cell_list_release(&before.list);
    }
}

static void equal_codes_are_cut_by_rank(void **state)
{
    (void)state;
    static tree t;
    t = (tree){.n = 10, .max = 4, .min = 4};
    cut(&t);
    check_tree(&t);
    assert_int_equal(t.list.n, 3);
    const char *const names[] = {"/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0.0",
                                 "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0.1",
                                 "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0.2"};
    for (int i = 0; i < 3; i++) assert_string_equal(t.list.items[i].name, names[i]);
    assert_string_equal(t.list.items[0].parent, "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0");
    assert_int_equal(t.list.items[2].end - t.list.items[2].begin, 2);
    kiln_cell_list_release(&t.list);
}

/* One row in each of the root's children 0, 1, 3, 7 and three in child 4. */
static void a_tree_by_hand(void **state)
{
    (void)state;
    static tree t;
    const uint64_t digits[] = {0, 1, 3, 4, 4, 4, 7};
    static const struct {
        uint32_t max, min;
        const char *names[8];
    } cases[] = {
        {7, 1, {"/"}},
        {6, 1, {"/0", "/1", "/3", "/4", "/7"}}, /* nobody is below 1 */
        {6, 6, {"/0-4", "/7"}},                 /* 6 rows, then one more would be 7 */
        {6, 2, {"/0-3", "/4-7"}},               /* two big enough do not join, a small one does */
        {3, 3, {"/0-3", "/4", "/7"}},
        {2, 2, {"/0-1", "/3", "/4/0-1", "/4/2", "/7"}}, /* 4 is split: no group goes past it */
    };
    for (int i = 0; i < 7; i++)
        t.codes[i] = digits[i] << 60 | (i > 3 && i < 6 ? (uint64_t)(i - 3) << 57 : 0);
    t.n = 7;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        t.max = cases[k].max;
        t.min = cases[k].min;
        cut(&t);
        check_tree(&t);
        for (uint64_t i = 0; i < t.list.n; i++)
            assert_string_equal(t.list.items[i].name, cases[k].names[i]);
        assert_null(cases[k].names[t.list.n]);
        kiln_cell_list_release(&t.list);
    }
}

static void no_rows_make_no_chunk_and_no_size_is_refused(void **state)
{
    (void)state;
    kiln_cell_list l;
    uint64_t code = 5;
    assert_int_equal(kiln_cells_cut(NULL, 0, 4, 1, &l, NULL), KILN_OK);
    assert_int_equal(l.n, 0);
    assert_int_equal(kiln_cells_cut(&code, 1, 0, 0, &l, NULL), KILN_E_BUG);
    kiln_cell_list_release(&l);
}

static void a_read_that_fails_is_the_end(void **state)
{
    (void)state;
    static tree t;
    t.max = 3;
    do t.n = make_codes(t.codes);
    while (t.n < 100);
    stream all = {.t = &t}, some = {.t = &t};
    kiln_code_source source = {.n = t.n, .read = read_codes, .context = &all, .window = 20};
    kiln_cell_list list;
    kiln_error err = {0};
    assert_int_equal(kiln_cells_cut_from(&source, t.max, 1, &list, &err), KILN_OK);
    kiln_cell_list_release(&list);
    source.context = &some;
    for (some.fails_at = 1; some.fails_at <= all.reads; some.fails_at++) {
        some.reads = 0;
        assert_int_equal(kiln_cells_cut_from(&source, t.max, 1, &list, &err), KILN_E_IO);
        assert_int_equal(some.reads, some.fails_at);
        kiln_cell_list_release(&list);
    }
}

int main(void)
{
    if (getenv("SEED")) seed = strtoull(getenv("SEED"), NULL, 10);
    print_message("SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_keeps_every_rule),
        cmocka_unit_test(dropping_one_row_changes_chunks_of_one_cell),
        cmocka_unit_test(equal_codes_are_cut_by_rank),
        cmocka_unit_test(a_tree_by_hand),
        cmocka_unit_test(no_rows_make_no_chunk_and_no_size_is_refused),
        cmocka_unit_test(a_read_that_fails_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
