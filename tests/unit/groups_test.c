/* Groups of blocks, on the disk and in memory: whatever the planes, their types and how blocks are
 * grouped, a chunk's slices are its rows. */
#include "stages/chunk/groups.h"

#include "base/memory.h"
#include "stages/spatial/row_places.h"
#include "tests/unit/manifest_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 300, BLOCKS = 7, ROWS = BLOCK * (BLOCKS - 1) + 17, PLANES = 3, MAX = 130 };
static const struct {
    const char *name;
    kiln_type type;
    uint32_t components;
} planes[PLANES] = {
    {"means", KILN_TYPE_F32, 3}, {"extra/flag", KILN_TYPE_U8, 1}, {"extra/far", KILN_TYPE_F64, 2}};

typedef struct {
    char folder[600];
    kiln_manifest *m;
    kiln_runner *runner;
    kiln_layer *layer;
    kiln_row_parts parts;
    unsigned char *data[PLANES]; /* planar over all rows */
    kiln_spatial_file order;
    kiln_scratch_file places;
    kiln_manifest *readers[2];
    kiln_scatter_arrays arrays;
    kiln_planned_chunk *chunks;
    uint64_t n_chunks;
} bench;

static uint64_t rows_of(uint32_t block)
{
    return block + 1 < BLOCKS ? BLOCK : ROWS - BLOCK * (BLOCKS - 1);
}

/* Floats of a sphere's shell and, in the other planes, bytes that name row and component. */
static void make_data(bench *b)
{
    kiln_error err = {0};
    uint32_t seed = 99;
    for (int p = 0; p < PLANES; p++) {
        const uint32_t size = kiln_type_size(planes[p].type);
        OK(kiln_alloc((void **)&b->data[p], ROWS * planes[p].components, size, "plane", &err));
        for (uint64_t i = 0; i < ROWS * planes[p].components; i++) {
            seed = seed * 1664525u + 1013904223u;
            const float v = (float)(seed >> 8) / 8388608.0f - 1;
            const double d = (double)i + 0.5;
            if (size == 1) b->data[p][i] = (unsigned char)(seed >> 13);
            if (size == 4) memcpy(b->data[p] + 4 * i, &v, sizeof v);
            if (size == 8) memcpy(b->data[p] + 8 * i, &d, sizeof d);
        }
    }
}

static void put_layer(bench *b)
{
    kiln_error err = {0};
    static kiln_chunk blocks[BLOCKS];
    static kiln_plane all[BLOCKS][PLANES];
    static kiln_hash hashes[BLOCKS][PLANES];
    static unsigned char buffer[BLOCK * 16];
    kiln_layer l = {.kind = "source", .count = ROWS, .n_chunks = BLOCKS, .chunks = blocks};
    OK(kiln_manifest_begin(b->m, &err));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const uint64_t n = rows_of(i), first = (uint64_t)i * BLOCK;
        blocks[i] = (kiln_chunk){.count = n, .n_planes = PLANES, .planes = all[i]};
        snprintf(blocks[i].name, sizeof blocks[i].name, "%08u", i);
        for (int p = 0; p < PLANES; p++) {
            const uint32_t size = kiln_type_size(planes[p].type);
            for (uint64_t c = 0; c < planes[p].components; c++)
                memcpy(buffer + c * n * size, b->data[p] + (c * ROWS + first) * size, n * size);
            const uint64_t bytes = n * planes[p].components * size;
            hashes[i][p] = put_bytes(b->m, buffer, bytes, size);
            all[i][p] = (kiln_plane){.type = planes[p].type,
                                     .components = planes[p].components,
                                     .data = array_of(&hashes[i][p], bytes)};
            snprintf(all[i][p].name, sizeof all[i][p].name, "%s", planes[p].name);
        }
    }
    OK(kiln_layer_put(b->m, &l, &err));
    OK(kiln_manifest_commit(b->m, &err));
    OK(kiln_layer_get_digest(b->m, "source", l.digest, &b->layer, &err));
}

/* The order, and chunks cut from it. */
static void plan_chunks(bench *b)
{
    kiln_error err = {0};
    uint64_t codes[ROWS];
    kiln_cell_list cells;
    const kiln_spatial_args a = {.runner = b->runner,
                                 .manifest = b->m,
                                 .layer = b->layer,
                                 .half = 1,
                                 .folder = b->folder,
                                 .ram = 1 << 30};
    OK(kiln_spatial_partition(&a, &err));
    OK(kiln_spatial_open(b->folder, ROWS, false, &b->order, &err));
    OK(kiln_spatial_codes(&b->order, 0, ROWS, codes, &err));
    OK(kiln_row_places_make(b->folder, ROWS, 1 << 20, 2, &err));
    OK(kiln_row_places_open(b->folder, ROWS, &b->places, &err));
    OK(kiln_cells_cut(codes, ROWS, MAX, MAX / 4, &cells, &err));
    b->n_chunks = cells.n;
    OK(KILN_ALLOC(&b->chunks, cells.n, "chunks", &err));
    for (uint64_t i = 0; i < cells.n; i++) b->chunks[i].cells = cells.items[i];
    kiln_cell_list_release(&cells);
    assert_true(b->n_chunks > 10);
}

static void bench_init(void **state, bench *b)
{
    kiln_error err = {0};
    char path[600], command[700];
    memset(b, 0, sizeof *b);
    snprintf(command, sizeof command, "mkdir '%s'", in_scratch(state, "parts", b->folder));
    assert_int_equal(system(command), 0);
    b->m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    const kiln_runner_options o = {.device = KILN_RUNNER_CPU, .threads = 2};
    OK(kiln_runner_new(&o, &b->runner, &err));
    make_data(b);
    put_layer(b);
    for (int i = 0; i < 2; i++) b->readers[i] = open_manifest(path, KILN_OPEN_READ);
    OK(kiln_row_parts_make(b->layer, NULL, &b->parts, &err));
    assert_int_equal(b->parts.row_bytes, 12 + 1 + 16); /* odd: no slice but the first is aligned */
    plan_chunks(b);
}

static void bench_release(bench *b)
{
    free(b->chunks);
    kiln_scatter_arrays_release(&b->arrays);
    for (int i = 0; i < 2; i++) kiln_manifest_close(b->readers[i]);
    kiln_scratch_drop(&b->places);
    kiln_spatial_close(&b->order);
    for (int p = 0; p < PLANES; p++) free(b->data[p]);
    kiln_row_parts_release(&b->parts);
    kiln_layer_free(b->layer);
    kiln_runner_free(b->runner);
    kiln_manifest_close(b->m);
}

static const unsigned char *data_of(const bench *b, const char *name)
{
    for (int p = 0; p < PLANES; p++)
        if (!strcmp(planes[p].name, name)) return b->data[p];
    fail_msg("no plane '%s'", name);
    return NULL;
}

static void check_part(const bench *b, const kiln_block_groups *g, const kiln_row_part *p,
                       const kiln_row_list *list, const unsigned char *slices, const uint32_t *rows)
{
    static unsigned char out[MAX * 16];
    const unsigned char *data = data_of(b, p->plane->name);
    for (uint32_t i = 0; i < g->n; i++) {
        const uint64_t first = list->starts[i], n = list->starts[i + 1] - first;
        const kiln_row_copy copy = {.from = slices + first * b->parts.row_bytes + n * p->at,
                                    .to = out,
                                    .from_rows = n,
                                    .to_rows = list->n,
                                    .components = p->plane->components,
                                    .size = p->size};
        kiln_rows_copy(&copy, NULL, list->to + first, n, 1);
    }
    for (uint64_t c = 0; c < p->plane->components; c++)
        for (uint64_t k = 0; k < list->n; k++)
            assert_memory_equal(out + (c * list->n + k) * p->size,
                                data + (c * ROWS + rows[k]) * p->size, p->size);
}

static kiln_group_store store_of(const bench *b, const kiln_block_groups *g)
{
    return (kiln_group_store){
        .groups = g, .n_chunks = b->n_chunks, .row_bytes = b->parts.row_bytes, .folder = b->folder};
}

static kiln_chunk_scatter scatter_of(bench *b, const kiln_group_store *store, unsigned threads)
{
    return (kiln_chunk_scatter){.store = store,
                                .readers = b->readers,
                                .n_readers = threads,
                                .threads = threads,
                                .parts = &b->parts,
                                .chunks = b->chunks,
                                .places = &b->places,
                                .arrays = &b->arrays};
}

static void check_chunk(const bench *b, const kiln_group_store *store, uint64_t index)
{
    kiln_error err = {0};
    uint32_t rows[MAX];
    kiln_row_list list;
    static unsigned char slices[MAX * 29];
    const kiln_block_groups *g = store->groups;
    const kiln_cell_group *c = &b->chunks[index].cells;
    const uint64_t n = c->end - c->begin;
    OK(kiln_spatial_rows(&b->order, c->begin, n, rows, &err));
    OK(kiln_row_list_make(rows, n, g->starts, g->n, &list, &err));
    OK(kiln_group_slices(store, index, &list, slices, &err));
    for (uint32_t p = 0; p < b->parts.n; p++)
        check_part(b, g, &b->parts.items[p], &list, slices, rows);
    kiln_row_list_release(&list);
}

static void slices_are_the_rows_of_the_chunks(void **state)
{
    kiln_error err = {0};
    bench b;
    bench_init(state, &b);
    const uint64_t sizes[] = {1, 2 * BLOCK, ROWS}; /* a block a group, two, all */
    const uint32_t groups[] = {BLOCKS, (BLOCKS + 1) / 2, 1};
    for (int k = 0; k < 3; k++) {
        kiln_block_groups g;
        OK(kiln_block_groups_cut(b.layer, &b.parts, sizes[k], "this", &g, &err));
        assert_int_equal(g.n, groups[k]);
        kiln_groups_drop_others(b.folder, &g);
        const kiln_group_store store = store_of(&b, &g);
        const kiln_chunk_scatter s = scatter_of(&b, &store, 2);
        for (uint32_t i = g.n; i-- > 0;) { /* in any order */
            const bool was =
                kiln_group_is_whole(b.folder, &g.items[i], b.n_chunks, b.parts.row_bytes);
            /* the last block alone was a group before, too */
            assert_int_equal(was, k == 1 && i == g.n - 1);
            OK(kiln_group_scatter(&s, i, &err));
            assert_true(kiln_group_is_whole(b.folder, &g.items[i], b.n_chunks, b.parts.row_bytes));
        }
        for (uint64_t i = 0; i < b.n_chunks; i++) check_chunk(&b, &store, i);
        kiln_block_groups_release(&g);
    }
    bench_release(&b);
}

/* The same in memory, where groups lie one behind the other; none writes into another. */
static void groups_in_memory_are_those_on_the_disk(void **state)
{
    kiln_error err = {0};
    bench b;
    bench_init(state, &b);
    const uint64_t sizes[] = {1, 2 * BLOCK, ROWS};
    for (int k = 0; k < 3; k++) {
        kiln_block_groups g;
        kiln_scratch_file memory[2];
        int fds[2];
        char path[64];
        OK(kiln_block_groups_cut(b.layer, &b.parts, sizes[k], "this", &g, &err));
        const uint64_t bytes = kiln_groups_bytes(&g, b.n_chunks, b.parts.row_bytes);
        for (int i = 0; i < 2; i++) {
            fds[i] = memfd_create("groups_test", MFD_CLOEXEC);
            assert_true(fds[i] >= 0 && ftruncate(fds[i], (off_t)bytes) == 0);
            snprintf(path, sizeof path, "/proc/self/fd/%d", fds[i]);
            assert_int_equal(kiln_scratch_open_shared(path, bytes + 1, &memory[i], &err),
                             KILN_E_IO);
            OK(kiln_scratch_open_shared(path, bytes, &memory[i], &err));
        }
        kiln_group_store store = store_of(&b, &g);
        store.memory = memory;
        store.n_memory = 1 + (uint32_t)k % 2;
        const kiln_chunk_scatter s = scatter_of(&b, &store, 1 + (unsigned)k % 2);
        for (uint32_t i = g.n; i-- > 0;) OK(kiln_group_scatter(&s, i, &err));
        for (uint64_t i = 0; i < b.n_chunks; i++) check_chunk(&b, &store, i);
        assert_int_equal(kiln_group_scatter(&s, g.n, &err), KILN_E_BUG);
        for (int i = 0; i < 2; i++) {
            kiln_scratch_drop(&memory[i]);
            close(fds[i]);
        }
        kiln_block_groups_release(&g);
    }
    bench_release(&b);
}

/* The sums of all blocks, read from their groups or from the blocks themselves, added up. */
static void sum_blocks(bench *b, const kiln_group_store *store, bool groups, kiln_row_sum *out)
{
    kiln_error err = {0};
    kiln_row_sum sums[ROWS + 1];
    const kiln_chunk_scatter s = scatter_of(b, store, 1);
    memset(out, 0, b->n_chunks * sizeof *out);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (groups)
            OK(kiln_group_sums(store, i, sums, &err));
        else
            OK(kiln_block_sums(&s, i, sums, &err));
        for (uint64_t c = 0; c < b->n_chunks; c++) {
            out[c].low += sums[c].low;
            out[c].high += sums[c].high;
        }
    }
}

/* By the definition: a row at a time, from a plane of one row. */
static void sum_rows(const bench *b, kiln_row_sum *out)
{
    memset(out, 0, b->n_chunks * sizeof *out);
    for (uint64_t c = 0; c < b->n_chunks; c++)
        for (uint64_t place = b->chunks[c].cells.begin; place < b->chunks[c].cells.end; place++) {
            kiln_error err = {0};
            uint32_t row;
            static unsigned char bytes[BLOCK * 29];
            static uint32_t chunk[BLOCK];
            OK(kiln_spatial_rows(&b->order, place, 1, &row, &err));
            /* rows of the block up to this one, which alone is counted */
            const uint32_t block = row / BLOCK, n = row % BLOCK + 1;
            for (uint32_t p = 0; p < b->parts.n; p++) {
                const kiln_row_part *part = &b->parts.items[p];
                for (uint64_t k = 0; k < part->plane->components; k++)
                    memcpy(bytes + n * part->at + (k * n + n - 1) * part->size,
                           data_of(b, part->plane->name) + (k * ROWS + row) * part->size,
                           part->size);
            }
            kiln_row_sum sums[2] = {{0}};
            memset(chunk, 0, sizeof chunk);
            chunk[n - 1] = 1;
            const kiln_block_rows rows = {.parts = &b->parts,
                                          .planes = bytes,
                                          .n_rows = n,
                                          .count = n,
                                          .block = block,
                                          .chunk = chunk};
            kiln_row_sums_add(&rows, sums);
            out[c].low += sums[1].low;
            out[c].high += sums[1].high;
        }
}

/* However blocks are grouped, and where nothing is scattered, a chunk has the same sum; another
 * value gives another one. */
static void sums_do_not_depend_on_groups(void **state)
{
    kiln_error err = {0};
    bench b;
    static kiln_row_sum want[ROWS], got[ROWS];
    bench_init(state, &b);
    sum_rows(&b, want);
    for (uint64_t c = 1; c < b.n_chunks; c++)
        assert_memory_not_equal(&want[c], &want[c - 1], sizeof *want);
    const uint64_t sizes[] = {1, 2 * BLOCK, ROWS};
    for (int k = 0; k < 3; k++) {
        kiln_block_groups g;
        OK(kiln_block_groups_cut(b.layer, &b.parts, sizes[k], "this", &g, &err));
        kiln_groups_drop_others(b.folder, &g);
        const kiln_group_store store = store_of(&b, &g);
        const kiln_chunk_scatter s = scatter_of(&b, &store, 2);
        for (uint32_t i = 0; i < g.n; i++) OK(kiln_group_scatter(&s, i, &err));
        sum_blocks(&b, &store, true, got);
        assert_memory_equal(got, want, b.n_chunks * sizeof *want);
        sum_blocks(&b, &store, false, got);
        assert_memory_equal(got, want, b.n_chunks * sizeof *want);
        kiln_block_groups_release(&g);
    }
    bench_release(&b);
}

/* Each single bit of a row counts, also in a plane whose components are not paired; a row that lies
 * elsewhere is another. */
static void each_bit_of_a_row_counts(void **state)
{
    (void)state;
    kiln_plane two[] = {{.name = "a", .type = KILN_TYPE_F32, .components = 3},
                        {.name = "b", .type = KILN_TYPE_U8, .components = 1}};
    kiln_row_part items[] = {{.plane = &two[0], .size = 4},
                             {.plane = &two[1], .size = 1, .at = 12}};
    const kiln_row_parts parts = {.items = items, .n = 2, .row_bytes = 13};
    unsigned char row[13] = {1, 2, 3};
    const uint32_t chunk[1] = {0};
    kiln_block_rows rows = {
        .parts = &parts, .planes = row, .n_rows = 1, .count = 1, .block = 4, .chunk = chunk};
    kiln_row_sum was = {0};
    kiln_row_sums_add(&rows, &was);
    for (unsigned bit = 0; bit < 8 * sizeof row; bit++) {
        kiln_row_sum now = {0};
        row[bit / 8] ^= (unsigned char)(1u << bit % 8);
        kiln_row_sums_add(&rows, &now);
        row[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(now.low != was.low && now.high != was.high);
    }
    rows.block = 5;
    kiln_row_sum other = {0};
    kiln_row_sums_add(&rows, &other);
    assert_true(other.low != was.low && other.high != was.high);
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int was = fgetc(f);
    assert_true(was != EOF);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(was ^ 1, f), was ^ 1);
    assert_int_equal(fclose(f), 0);
}

/* What a disk has lost of the sums is not taken for them. */
static void damaged_sums_are_refused(void **state)
{
    kiln_error err = {0};
    bench b;
    kiln_block_groups g;
    kiln_row_sum sums[ROWS + 1];
    char name[64], path[700];
    bench_init(state, &b);
    OK(kiln_block_groups_cut(b.layer, &b.parts, 1, "this", &g, &err));
    const kiln_group_store store = store_of(&b, &g);
    const kiln_chunk_scatter s = scatter_of(&b, &store, 1);
    OK(kiln_group_scatter(&s, 2, &err));
    OK(kiln_group_sums(&store, 2, sums, &err));
    kiln_group_name(&g.items[2], name);
    snprintf(path, sizeof path, "%s/%s", b.folder, name);
    flip(path, (long)(kiln_group_bytes(&g.items[2], b.n_chunks, b.parts.row_bytes) -
                      kiln_block_sums_bytes(b.n_chunks)));
    assert_int_equal(kiln_group_sums(&store, 2, sums, &err), KILN_E_IO);
    assert_says(&err, "damaged");
    kiln_block_groups_release(&g);
    bench_release(&b);
}

static uint32_t place_at(const bench *b, uint64_t row)
{
    kiln_error err = {0};
    uint32_t place;
    OK(kiln_row_places_read(&b->places, row, 1, &place, &err));
    return place;
}

static void set_place(const bench *b, uint64_t row, uint32_t place)
{
    FILE *f = fopen(b->places.path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)(row * sizeof place), SEEK_SET), 0);
    assert_int_equal(fwrite(&place, sizeof place, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* Files of another plan are told by their slices, a plan of another layer by its rows. */
static void what_does_not_belong_together_is_refused(void **state)
{
    kiln_error err = {0};
    bench b;
    kiln_block_groups g;
    bench_init(state, &b);
    OK(kiln_block_groups_cut(b.layer, &b.parts, ROWS, "this", &g, &err));
    const kiln_group_store store = store_of(&b, &g);
    const kiln_chunk_scatter s = scatter_of(&b, &store, 1);
    const uint32_t was = place_at(&b, 5);
    b.chunks[0].cells.end--; /* a row that no chunk has */
    assert_int_equal(kiln_group_scatter(&s, 0, &err), KILN_E_IO);
    assert_says(&err, "but those of the chunk before end at");
    b.chunks[0].cells.end++;
    b.chunks[1].cells.begin--; /* one that two have */
    assert_int_equal(kiln_group_scatter(&s, 0, &err), KILN_E_IO);
    assert_says(&err, "but those of the chunk before end at");
    b.chunks[1].cells.begin++;
    b.chunks[b.n_chunks - 1].cells.end--; /* the last */
    assert_int_equal(kiln_group_scatter(&s, 0, &err), KILN_E_IO);
    assert_says(&err, "does not have all rows");
    b.chunks[b.n_chunks - 1].cells.end++;
    set_place(&b, 5, place_at(&b, 6));
    assert_int_equal(kiln_group_scatter(&s, 0, &err), KILN_E_IO);
    assert_says(&err, "the same place");
    set_place(&b, 5, UINT32_MAX);
    assert_int_equal(kiln_group_scatter(&s, 0, &err), KILN_E_IO);
    assert_says(&err, "does not have all rows");
    set_place(&b, 5, was);
    OK(kiln_group_scatter(&s, 0, &err));
    uint32_t row = 0;
    kiln_row_list list;
    unsigned char slices[29];
    OK(kiln_row_list_make(&row, 1, g.starts, g.n, &list, &err));
    assert_int_equal(kiln_group_slices(&store, 0, &list, slices, &err), KILN_E_IO);
    assert_says(&err, "another plan");
    kiln_row_list_release(&list);
    row = ROWS;
    assert_int_equal(kiln_row_list_make(&row, 1, g.starts, g.n, &list, &err), KILN_E_IO);
    kiln_row_list_release(&list);
    kiln_block_groups_release(&g);
    bench_release(&b);
}

/* The plan does not see planes but means: a group of other values is no longer whole, and its old
 * file goes. */
static void a_group_is_of_its_content(void **state)
{
    kiln_error err = {0};
    bench b;
    kiln_block_groups g, other;
    bench_init(state, &b);
    OK(kiln_block_groups_cut(b.layer, &b.parts, 2 * BLOCK, "this", &g, &err));
    const kiln_group_store store = store_of(&b, &g);
    const kiln_chunk_scatter s = scatter_of(&b, &store, 1);
    for (uint32_t i = 0; i < 2; i++) OK(kiln_group_scatter(&s, i, &err));
    /* of the first block, all but means */
    for (uint32_t p = 0; p < b.layer->chunks[0].n_planes; p++) {
        kiln_plane *plane = &b.layer->chunks[0].planes[p];
        if (strcmp(plane->name, "means") != 0) plane->data.segments[0].bytes[0] ^= 1;
    }
    OK(kiln_block_groups_cut(b.layer, &b.parts, 2 * BLOCK, "this", &other, &err));
    assert_false(kiln_group_is_whole(b.folder, &other.items[0], b.n_chunks, b.parts.row_bytes));
    assert_true(kiln_group_is_whole(b.folder, &other.items[1], b.n_chunks, b.parts.row_bytes));
    kiln_groups_drop_others(b.folder, &other);
    assert_false(kiln_group_is_whole(b.folder, &g.items[0], b.n_chunks, b.parts.row_bytes));
    kiln_block_groups_release(&other);
    kiln_block_groups_release(&g);
    bench_release(&b);
}

/* A power cut may leave a file of the right size without its bytes: after a reboot no group of
 * before is whole. */
static void a_group_is_of_this_start_of_the_system(void **state)
{
    kiln_error err = {0};
    bench b;
    kiln_block_groups g, other;
    char boot[KILN_SCRATCH_BOOT_MAX], again[KILN_SCRATCH_BOOT_MAX];
    bench_init(state, &b);
    OK(kiln_block_groups_cut(b.layer, &b.parts, ROWS, "this", &g, &err));
    assert_true(g.are_of_boot);
    const kiln_group_store store = store_of(&b, &g);
    const kiln_chunk_scatter s = scatter_of(&b, &store, 1);
    OK(kiln_group_scatter(&s, 0, &err));
    for (int k = 0; k < 2; k++) {
        OK(kiln_block_groups_cut(b.layer, &b.parts, ROWS, k ? "" : "the next", &other, &err));
        assert_int_equal(other.are_of_boot, k == 0);
        assert_false(kiln_group_is_whole(b.folder, &other.items[0], b.n_chunks, b.parts.row_bytes));
        kiln_block_groups_release(&other);
    }
    assert_true(kiln_group_is_whole(b.folder, &g.items[0], b.n_chunks, b.parts.row_bytes));
    kiln_block_groups_release(&g);
    kiln_scratch_boot(boot);
    kiln_scratch_boot(again);
    assert_string_equal(boot, again);
    assert_true(strlen(boot) < sizeof boot && !strchr(boot, '\n'));
    if (access("/proc/sys/kernel/random/boot_id", R_OK) == 0) assert_true(strlen(boot) >= 32);
    bench_release(&b);
}

/* What the disk has lost is told by the chunk that reads it, and the next run makes the group
 * anew. */
static void a_damaged_group_is_refused_and_removed(void **state)
{
    kiln_error err = {0};
    bench b;
    kiln_block_groups g;
    char name[64], path[700];
    uint32_t rows[MAX];
    kiln_row_list list;
    static unsigned char slices[MAX * 29];
    bench_init(state, &b);
    OK(kiln_block_groups_cut(b.layer, &b.parts, ROWS, "this", &g, &err));
    const kiln_group_store store = store_of(&b, &g);
    const kiln_chunk_scatter s = scatter_of(&b, &store, 1);
    const uint64_t n = b.chunks[0].cells.end,
                   bytes = kiln_group_bytes(&g.items[0], b.n_chunks, b.parts.row_bytes);
    kiln_group_name(&g.items[0], name);
    snprintf(path, sizeof path, "%s/%s", b.folder, name);
    OK(kiln_spatial_rows(&b.order, 0, n, rows, &err));
    OK(kiln_row_list_make(rows, n, g.starts, g.n, &list, &err));
    /* of the rows */
    const uint64_t first =
        bytes - BLOCKS * kiln_block_sums_bytes(b.n_chunks) - ROWS * b.parts.row_bytes;
    const long at[] = {(long)first, (long)(first + n * b.parts.row_bytes - 1), 8};
    for (int k = 0; k < 3; k++) { /* the first byte of its slice, the last one, its hash */
        OK(kiln_group_scatter(&s, 0, &err));
        OK(kiln_group_slices(&store, 0, &list, slices, &err));
        flip(path, at[k]);
        assert_int_equal(kiln_group_slices(&store, 0, &list, slices, &err), KILN_E_IO);
        assert_says(&err, "damaged");
        assert_false(kiln_group_is_whole(b.folder, &g.items[0], b.n_chunks, b.parts.row_bytes));
    }
    OK(kiln_group_scatter(&s, 0, &err));
    flip(path, (long)(first + n * b.parts.row_bytes)); /* another chunk's */
    OK(kiln_group_slices(&store, 0, &list, slices, &err));
    kiln_row_list_release(&list);
    kiln_block_groups_release(&g);
    bench_release(&b);
}

/* A file that another plan, or other planes, have left under this name, and rows that are not those
 * of the chunk. Tasks on other hosts may see the file otherwise: where it is only read it stays. */
static void a_group_of_other_origin_is_refused(void **state)
{
    kiln_error err = {0};
    bench b;
    kiln_block_groups g;
    uint32_t rows[MAX];
    kiln_row_list list;
    static unsigned char slices[MAX * 29];
    bench_init(state, &b);
    OK(kiln_block_groups_cut(b.layer, &b.parts, ROWS, "", &g, &err));
    kiln_group_store store = store_of(&b, &g);
    const kiln_chunk_scatter s = scatter_of(&b, &store, 1);
    const uint64_t n = b.chunks[0].cells.end;
    store.only_reads = true;
    OK(kiln_spatial_rows(&b.order, 0, n, rows, &err));
    OK(kiln_row_list_make(rows, n, g.starts, g.n, &list, &err));
    OK(kiln_group_scatter(&s, 0, &err));
    unsigned char *const parts[] = {store.plan.bytes,
                                    g.items[0].content.bytes + 15 /* not in the name */,
                                    (unsigned char *)list.from};
    for (int k = 0; k < 3; k++) {
        *parts[k] ^= 1;
        assert_int_equal(kiln_group_slices(&store, 0, &list, slices, &err), KILN_E_IO);
        assert_says(&err, "damaged");
        *parts[k] ^= 1;
        OK(kiln_group_slices(&store, 0, &list, slices, &err));
    }
    kiln_row_list_release(&list);
    kiln_block_groups_release(&g);
    bench_release(&b);
}

/* The estimate is of what is asked for: the most rows for some memory take no more than it, one
 * more does. */
static void memory_of_a_group_is_told(void **state)
{
    bench b;
    bench_init(state, &b);
    for (uint64_t ram = 300000; ram < 500000; ram += 777) {
        const uint64_t rows = kiln_scatter_rows(b.layer, &b.parts, ram, b.n_chunks);
        if (rows) assert_true(kiln_scatter_ram(b.layer, &b.parts, rows, b.n_chunks) <= ram);
        if (rows < ROWS)
            assert_true(kiln_scatter_ram(b.layer, &b.parts, rows + 1, b.n_chunks) > ram);
    }
    bench_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slices_are_the_rows_of_the_chunks, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(groups_in_memory_are_those_on_the_disk, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(sums_do_not_depend_on_groups, make_scratch, remove_scratch),
        cmocka_unit_test(each_bit_of_a_row_counts),
        cmocka_unit_test_setup_teardown(damaged_sums_are_refused, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(what_does_not_belong_together_is_refused, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_group_is_of_its_content, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_group_is_of_this_start_of_the_system, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_damaged_group_is_refused_and_removed, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_group_of_other_origin_is_refused, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(memory_of_a_group_is_told, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
