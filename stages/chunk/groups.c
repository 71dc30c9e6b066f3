/* Groups of blocks: how they are cut, what their files are called, and reading slices of them. */
#include "stages/chunk/groups.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/run_layers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "group-";

/* The planes in the order and layout of the file. */
static kiln_hash content_of(const kiln_row_parts *parts, const kiln_block_group *g)
{
    kiln_hasher *h = kiln_hasher_new();
    for (uint32_t i = 0; i < parts->n; i++) {
        const kiln_row_part *p = &parts->items[i];
        kiln_key_text(h, "type", kiln_type_name(p->plane->type));
        kiln_key_u64(h, "components", p->plane->components);
        for (uint32_t b = g->first_block; b < g->end_block && b < p->layer->n_chunks; b++)
            kiln_key_plane(h, &p->layer->chunks[b], p->plane->name);
    }
    return kiln_hasher_end(h);
}

kiln_status kiln_block_groups_cut(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows, kiln_block_groups *out,
                                  kiln_error *err)
{
    *out = (kiln_block_groups){0};
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
        out->items[i].content = content_of(parts, &out->items[i]);
    }
    return KILN_OK;
}

void kiln_block_groups_release(kiln_block_groups *g)
{
    free(g->starts);
    free(g->items);
    *g = (kiln_block_groups){0};
}

/* ---- files -------------------------------------------------------------------------------------------------------------- */
void kiln_group_name(const kiln_block_group *g, char out[64])
{
    char hex[33];
    (void)snprintf(out, 64, "%s%u-%u-%.16s", prefix, g->first_block, g->end_block, kiln_hash_hex(g->content, hex));
}

uint64_t kiln_group_bytes(const kiln_block_group *g, uint64_t n_chunks, uint64_t row_bytes)
{
    return (n_chunks + 1) * sizeof(uint32_t) + g->n_rows * row_bytes;
}

uint64_t kiln_groups_bytes(const kiln_block_groups *g, uint64_t n_chunks, uint64_t row_bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n; i++) sum += kiln_group_bytes(&g->items[i], n_chunks, row_bytes);
    return sum;
}

bool kiln_group_is_whole(const char *folder, const kiln_block_group *g, uint64_t n_chunks, uint64_t row_bytes)
{
    char name[64];
    kiln_group_name(g, name);
    return kiln_scratch_is_whole(folder, name, kiln_group_bytes(g, n_chunks, row_bytes));
}

static bool is_wanted(const kiln_block_groups *g, const char *name)
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
        if (strncmp(e->d_name, prefix, sizeof prefix - 1) != 0 || is_wanted(g, e->d_name)) continue;
        if (kiln_path_join(path, sizeof path, folder, e->d_name, NULL) == KILN_OK && unlink(path) != 0)
            kiln_warn("scratch '%s' could not be removed: %s", path, strerror(errno));
    }
    (void)closedir(d);
}

/* ---- slices ------------------------------------------------------------------------------------------------------------- */
static kiln_status read_slice(const kiln_scratch_file *f, uint64_t n_chunks, uint64_t index, uint64_t n_rows, uint64_t row_bytes,
                              unsigned char *to, kiln_error *err)
{
    uint32_t slice[2];
    if (index >= n_chunks) return kiln_fail(err, KILN_E_BUG, "the plan has no chunk %llu", (unsigned long long)index);
    KILN_TRY(kiln_scratch_read(f, index * sizeof *slice, slice, sizeof slice, err));
    if (slice[1] < slice[0] || slice[1] - slice[0] != n_rows)
        return kiln_fail(err, KILN_E_IO, "scratch '%s' is of another plan; remove it and run the same command again", f->path);
    const uint64_t at = (n_chunks + 1) * sizeof *slice + slice[0] * row_bytes;
    return kiln_scratch_read(f, at, to, n_rows * row_bytes, err);
}

kiln_status kiln_group_slices(const char *folder, const kiln_block_groups *g, uint64_t n_chunks, uint64_t index, uint64_t row_bytes,
                              const kiln_row_list *rows, unsigned char **out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_alloc_unset((void **)out, rows->n, row_bytes, "the rows of a chunk", err));
    for (uint32_t i = 0; st == KILN_OK && i < g->n; i++) {
        const uint64_t first = rows->starts[i], n = rows->starts[i + 1] - first;
        kiln_scratch_file f;
        char name[64];
        if (n == 0) continue;
        kiln_group_name(&g->items[i], name);
        KILN_GO(kiln_scratch_open(folder, name, kiln_group_bytes(&g->items[i], n_chunks, row_bytes), &f, err));
        st = read_slice(&f, n_chunks, index, n, row_bytes, *out + first * row_bytes, err);
        kiln_scratch_drop(&f);
    }
done:
    if (st != KILN_OK) {
        free(*out);
        *out = NULL;
    }
    return st;
}
