/* Groups of blocks: how they are cut, what their files are called, and reading slices of them. */
#include "stages/chunk/groups.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/parent/run_layers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "group-";

/* The planes in the order and layout of the file, and whose page cache may have it. */
static kiln_hash content_of(const kiln_row_parts *parts, const kiln_block_group *g,
                            const char *boot)
{
    kiln_hasher *h = kiln_hasher_new();
    if (*boot) kiln_key_text(h, "boot", boot);
    for (uint32_t i = 0; i < parts->n; i++) {
        const kiln_row_part *p = &parts->items[i];
        kiln_key_text(h, "type", kiln_type_name(p->plane->type));
        kiln_key_u64(h, "components", p->plane->components);
        for (uint32_t b = g->first_block; b < g->end_block && b < p->layer->n_chunks; b++)
            kiln_key_plane(h, &p->layer->chunks[b], p->plane->name);
    }
    return kiln_hasher_end(h);
}

kiln_status kiln_block_groups_cut(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows,
                                  const char *boot, kiln_block_groups *out, kiln_error *err)
{
    *out = (kiln_block_groups){.are_of_boot = *boot != 0};
    KILN_TRY(KILN_ALLOC(&out->items, l->n_chunks, "the groups of blocks", err));
    KILN_TRY(KILN_ALLOC(&out->starts, (uint64_t)l->n_chunks + 1, "the groups of blocks", err));
    kiln_block_group g = {0};
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const uint64_t count = l->chunks[i].count;
        if (g.n_rows && g.n_rows + count > rows) {
            out->items[out->n++] = g;
            g = (kiln_block_group){.first_block = i, .first_row = g.first_row + g.n_rows};
        }
        g.n_rows += count;
        g.end_block = i + 1;
    }
    if (g.n_rows) out->items[out->n++] = g;
    for (uint32_t i = 0; i < out->n; i++) {
        out->starts[i + 1] = out->starts[i] + out->items[i].n_rows;
        out->items[i].content = content_of(parts, &out->items[i], boot);
    }
    return KILN_OK;
}

void kiln_block_groups_release(kiln_block_groups *g)
{
    free(g->starts);
    free(g->items);
    *g = (kiln_block_groups){0};
}

/* ---- files ----------------------------------------------------------------------------------- */
void kiln_group_name(const kiln_block_group *g, char out[64])
{
    char hex[33];
    (void)snprintf(out, 64, "%s%u-%u-%.16s", prefix, g->first_block, g->end_block,
                   kiln_hash_hex(g->content, hex));
}

uint64_t kiln_group_bytes(const kiln_block_group *g, uint64_t n_chunks, uint64_t row_bytes)
{
    return n_chunks * sizeof(kiln_slice) + g->n_rows * row_bytes +
           (g->end_block - g->first_block) * kiln_block_sums_bytes(n_chunks);
}

uint64_t kiln_groups_bytes(const kiln_block_groups *g, uint64_t n_chunks, uint64_t row_bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n; i++) sum += kiln_group_bytes(&g->items[i], n_chunks, row_bytes);
    return sum;
}

bool kiln_group_is_there(const char *folder, const kiln_block_group *g)
{
    char name[64], path[KILN_PATH_MAX];
    struct stat s;
    kiln_group_name(g, name);
    return kiln_path_join(path, sizeof path, folder, name, NULL) == KILN_OK && lstat(path, &s) == 0;
}

bool kiln_group_is_whole(const char *folder, const kiln_block_group *g, uint64_t n_chunks,
                         uint64_t row_bytes)
{
    char name[64];
    kiln_group_name(g, name);
    return kiln_scratch_is_whole(folder, name, kiln_group_bytes(g, n_chunks, row_bytes));
}

kiln_status kiln_group_keep_sound(const kiln_group_store *s, uint32_t group, bool *kept,
                                  kiln_error *err)
{
    const kiln_block_group *g = &s->groups->items[group];
    char name[64];
    *kept = false;
    if (s->memory) return KILN_OK;
    kiln_group_name(g, name);
    return kiln_scratch_keep_sound(s->folder, name, kiln_group_bytes(g, s->n_chunks, s->row_bytes),
                                   kept, err);
}

static bool is_wanted_group(const kiln_block_groups *g, const char *name)
{
    char wanted[64];
    for (uint32_t i = 0; i < g->n; i++) {
        kiln_group_name(&g->items[i], wanted);
        if (!strcmp(wanted, name)) return true;
    }
    return false;
}

void kiln_groups_drop_others(const char *folder, const kiln_block_groups *g)
{
    char path[KILN_PATH_MAX];
    DIR *d = opendir(folder);
    if (!d) return;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strncmp(e->d_name, prefix, sizeof prefix - 1) != 0 || is_wanted_group(g, e->d_name))
            continue;
        if (kiln_path_join(path, sizeof path, folder, e->d_name, NULL) == KILN_OK &&
            unlink(path) != 0)
            kiln_warn("scratch '%s' could not be removed: %s", path, strerror(errno));
    }
    (void)closedir(d);
}

/* ---- where a group lies ---------------------------------------------------------------------- */
/* Where a group lies in shared memory. Groups that follow each other are in different files,
 * because they are written at a time. */
static const kiln_scratch_file *memory_of(const kiln_group_store *s, uint32_t group)
{
    return &s->memory[group % s->n_memory];
}

static uint64_t place_of_group(const kiln_group_store *s, uint32_t group)
{
    return group * s->n_chunks * sizeof(kiln_slice) + s->groups->starts[group] * s->row_bytes +
           s->groups->items[group].first_block * kiln_block_sums_bytes(s->n_chunks);
}

kiln_status kiln_group_create(const kiln_group_store *s, uint32_t group, kiln_scratch_file *out,
                              uint64_t *at, kiln_error *err)
{
    const kiln_block_group *g = &s->groups->items[group];
    char name[64];
    *at = 0;
    if (s->memory) { /* the descriptor stays the store's */
        *out = *memory_of(s, group);
        *at = place_of_group(s, group);
        return KILN_OK;
    }
    kiln_group_name(g, name);
    KILN_TRY(kiln_scratch_create(s->folder, name, kiln_group_bytes(g, s->n_chunks, s->row_bytes),
                                 out, err));
    out->left_in_cache = s->groups->are_of_boot;
    return KILN_OK;
}

kiln_status kiln_group_finish(const kiln_group_store *s, kiln_scratch_file *f, kiln_error *err)
{
    if (!s->memory) return kiln_scratch_finish(f, err);
    *f = (kiln_scratch_file){0};
    return KILN_OK;
}

void kiln_group_drop(const kiln_group_store *s, kiln_scratch_file *f)
{
    if (!s->memory) kiln_scratch_drop(f);
}

/* ---- slices ---------------------------------------------------------------------------------- */
kiln_hash kiln_slice_hash(const kiln_group_store *s, uint32_t group, const uint32_t *rows,
                          const unsigned char *bytes, uint64_t n)
{
    kiln_hash all = kiln_hash_of(bytes, n * s->row_bytes);
    const kiln_hash of_rows = kiln_hash_of(rows, n * sizeof *rows),
                    *content = &s->groups->items[group].content;
    for (unsigned i = 0; i < sizeof all.bytes; i++)
        all.bytes[i] ^= of_rows.bytes[i] ^ content->bytes[i] ^ s->plan.bytes[i];
    return all;
}

/* What stays is found by the next run, too. */
static kiln_status refuse_slice(const kiln_group_store *s, const kiln_scratch_file *f,
                                const char *why, kiln_error *err)
{
    if (!s->memory && !s->only_reads) (void)unlink(f->path);
    return kiln_fail(err, KILN_E_IO, "scratch '%s' is %s; run the same command again", f->path,
                     why);
}

typedef struct {
    uint64_t chunk, n;
    uint32_t group;
    const uint32_t *rows; /* [n] of the group */
} wanted_slice;

static kiln_status read_slice(const kiln_group_store *s, const kiln_scratch_file *f, uint64_t at,
                              const wanted_slice *w, unsigned char *to, kiln_error *err)
{
    kiln_slice slice;
    KILN_TRY(kiln_scratch_read(f, at + w->chunk * sizeof slice, &slice, sizeof slice, err));
    if (slice.end < slice.begin || slice.end - slice.begin != w->n ||
        slice.end > s->groups->items[w->group].n_rows)
        return refuse_slice(s, f, "from another plan", err);
    const uint64_t first = at + s->n_chunks * sizeof slice + slice.begin * s->row_bytes;
    KILN_TRY(kiln_scratch_read(f, first, to, w->n * s->row_bytes, err));
    if (kiln_hash_equal(slice.hash, kiln_slice_hash(s, w->group, w->rows, to, w->n)))
        return KILN_OK;
    return refuse_slice(s, f, "damaged: its content differs from what was written", err);
}

static kiln_status open_group_file(const kiln_group_store *s, uint32_t group, kiln_scratch_file *f,
                                   kiln_error *err)
{
    const kiln_block_group *g = &s->groups->items[group];
    char name[64];
    kiln_group_name(g, name);
    return kiln_scratch_open(s->folder, name, kiln_group_bytes(g, s->n_chunks, s->row_bytes), f,
                             err);
}

static kiln_status read_from_file(const kiln_group_store *s, const wanted_slice *w,
                                  unsigned char *to, kiln_error *err)
{
    kiln_scratch_file f;
    KILN_TRY(open_group_file(s, w->group, &f, err));
    const kiln_status st = read_slice(s, &f, 0, w, to, err);
    kiln_scratch_drop(&f);
    return st;
}

kiln_status kiln_group_slices(const kiln_group_store *s, uint64_t index, const kiln_row_list *rows,
                              unsigned char *out, kiln_error *err)
{
    if (index >= s->n_chunks)
        return kiln_fail(err, KILN_E_BUG, "the plan has no chunk %llu", (unsigned long long)index);
    for (uint32_t i = 0; i < s->groups->n; i++) {
        const uint64_t first = rows->starts[i];
        const wanted_slice w = {.chunk = index,
                                .n = rows->starts[i + 1] - first,
                                .group = i,
                                .rows = rows->from + first};
        unsigned char *to = out + first * s->row_bytes;
        if (w.n == 0) continue;
        if (s->memory)
            KILN_TRY(read_slice(s, memory_of(s, i), place_of_group(s, i), &w, to, err));
        else
            KILN_TRY(read_from_file(s, &w, to, err));
    }
    return KILN_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */
kiln_row_sum kiln_sums_hash(const kiln_group_store *s, uint32_t group, const kiln_row_sum *sums)
{
    const kiln_hash *content = &s->groups->items[group].content;
    kiln_hash all = kiln_hash_of(sums, s->n_chunks * sizeof *sums);
    kiln_row_sum out;
    for (unsigned i = 0; i < sizeof all.bytes; i++)
        all.bytes[i] ^= content->bytes[i] ^ s->plan.bytes[i];
    _Static_assert(sizeof out == sizeof all.bytes, "a hash has the room of a sum");
    memcpy(&out, all.bytes, sizeof out);
    return out;
}

static kiln_status read_sums(const kiln_group_store *s, const kiln_scratch_file *f, uint64_t at,
                             uint32_t group, kiln_row_sum *sums, kiln_error *err)
{
    KILN_TRY(kiln_scratch_read(f, at, sums, kiln_block_sums_bytes(s->n_chunks), err));
    const kiln_row_sum hash = kiln_sums_hash(s, group, sums);
    if (memcmp(&hash, &sums[s->n_chunks], sizeof hash) == 0) return KILN_OK;
    return refuse_slice(s, f, "damaged: its content differs from what was written", err);
}

kiln_status kiln_group_sums(const kiln_group_store *s, uint32_t block, kiln_row_sum *sums,
                            kiln_error *err)
{
    uint32_t group = 0;
    kiln_scratch_file f;
    while (group < s->groups->n && s->groups->items[group].end_block <= block) group++;
    if (group == s->groups->n)
        return kiln_fail(err, KILN_E_BUG, "block %u belongs to no group", block);
    const kiln_block_group *g = &s->groups->items[group];
    const uint64_t at = s->n_chunks * sizeof(kiln_slice) + g->n_rows * s->row_bytes +
                        (block - g->first_block) * kiln_block_sums_bytes(s->n_chunks);
    if (s->memory)
        return read_sums(s, memory_of(s, group), place_of_group(s, group) + at, group, sums, err);
    KILN_TRY(open_group_file(s, group, &f, err));
    const kiln_status st = read_sums(s, &f, at, group, sums, err);
    kiln_scratch_drop(&f);
    return st;
}
