/* voxel_table -- see the header. A slot is taken by the thread that puts its key there first; that
 * thread gives the block its place, and others wait for it. */
#include "stages/prune/voxel_table.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define FREE_SLOT UINT64_MAX
enum { KEY_BITS = 21 };

uint64_t kiln_voxel_key(const int32_t block[3])
{
    uint64_t key = 0;
    for (int a = 0; a < 3; a++)
        key |= (uint64_t)(uint32_t)(block[a] + KILN_VOXEL_BLOCKS) << KEY_BITS * a;
    return key;
}

void kiln_voxel_unkey(uint64_t key, int32_t block[3])
{
    for (int a = 0; a < 3; a++)
        block[a] = (int32_t)(key >> KEY_BITS * a & ((1u << KEY_BITS) - 1)) - KILN_VOXEL_BLOCKS;
}

static uint32_t slots_of(uint64_t capacity)
{
    uint32_t n = 1024;
    while (n < 2 * capacity) n *= 2;
    return n;
}

uint64_t kiln_voxel_table_bytes(uint64_t capacity, bool sums)
{
    return slots_of(capacity) * (uint64_t)(sizeof(uint64_t) + sizeof(uint32_t)) +
           capacity * (2 * sizeof(uint64_t) +
                       (sums ? sizeof(uint64_t) + KILN_VOXELS * sizeof(uint32_t) : 0));
}

kiln_status kiln_voxel_table_make(uint32_t capacity, bool sums, kiln_voxel_table *out,
                                  kiln_error *err)
{
    memset(out, 0, sizeof *out);
    out->capacity = capacity;
    out->n_slots = slots_of(capacity);
    KILN_TRY(KILN_ALLOC_UNSET(&out->keys, out->n_slots, "the voxels", err));
    KILN_TRY(KILN_ALLOC_UNSET(&out->places, out->n_slots, "the voxels", err));
    KILN_TRY(KILN_ALLOC_UNSET(&out->blocks, capacity, "the voxels", err));
    KILN_TRY(KILN_ALLOC_UNSET(&out->solid, capacity, "the voxels", err));
    if (sums) KILN_TRY(KILN_ALLOC_UNSET(&out->open, capacity, "the sums of voxels", err));
    if (sums) KILN_TRY(KILN_ALLOC_UNSET(&out->sums, capacity, "the sums of voxels", err));
    kiln_voxel_table_clear(out);
    return KILN_OK;
}

void kiln_voxel_table_release(kiln_voxel_table *t)
{
    free(t->keys);
    free(t->places);
    free(t->blocks);
    free(t->solid);
    free(t->open);
    free(t->sums);
    memset(t, 0, sizeof *t);
}

void kiln_voxel_table_clear(kiln_voxel_table *t)
{
    memset(t->keys, 0xff, t->n_slots * sizeof *t->keys);
    memset(t->places, 0, t->n_slots * sizeof *t->places);
    atomic_store(&t->n, 0);
}

static uint32_t first_slot(const kiln_voxel_table *t, uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio (Knuth) */
    return (uint32_t)(key >> 32) & (t->n_slots - 1);
}

bool kiln_voxel_table_is_full(const kiln_voxel_table *t)
{
    return atomic_load_explicit(&t->n, memory_order_relaxed) > t->capacity;
}

static uint32_t place_block(kiln_voxel_table *t, uint32_t slot, uint64_t key)
{
    const uint32_t place = atomic_fetch_add(&t->n, 1);
    const bool full = place >= t->capacity;
    if (!full) {
        t->blocks[place] = key;
        t->solid[place] = 0;
        if (t->sums) {
            atomic_store_explicit(&t->open[place], 0, memory_order_relaxed);
            memset(t->sums[place], 0, sizeof t->sums[place]);
        }
    }
    atomic_store_explicit(&t->places[slot], full ? KILN_VOXEL_NONE : place + 1,
                          memory_order_release);
    return full ? KILN_VOXEL_NONE : place;
}

static uint32_t place_at(const kiln_voxel_table *t, uint32_t slot)
{
    uint32_t place;
    do place = atomic_load_explicit(&t->places[slot], memory_order_acquire);
    while (place == 0);
    return place == KILN_VOXEL_NONE ? place : place - 1;
}

uint32_t kiln_voxel_table_take(kiln_voxel_table *t, uint64_t key)
{
    _Static_assert(1024 > KILN_VOXEL_TABLE_THREADS, "some slot is free in a full table");
    for (uint32_t slot = first_slot(t, key);; slot = (slot + 1) & (t->n_slots - 1)) {
        uint64_t there = atomic_load_explicit(&t->keys[slot], memory_order_relaxed);
        if (there == FREE_SLOT) {
            if (kiln_voxel_table_is_full(t)) return KILN_VOXEL_NONE;
            if (atomic_compare_exchange_strong(&t->keys[slot], &there, key))
                return place_block(t, slot, key);
        }
        if (there == key) return place_at(t, slot);
    }
}

uint32_t kiln_voxel_table_find(const kiln_voxel_table *t, uint64_t key)
{
    for (uint32_t slot = first_slot(t, key);; slot = (slot + 1) & (t->n_slots - 1)) {
        const uint64_t there = atomic_load_explicit(&t->keys[slot], memory_order_relaxed);
        if (there == FREE_SLOT) return KILN_VOXEL_NONE;
        if (there == key) return place_at(t, slot);
    }
}

void kiln_voxel_table_want(kiln_voxel_table *t, uint32_t place, uint64_t voxels)
{
    if (voxels & ~atomic_load_explicit(&t->open[place], memory_order_relaxed))
        atomic_fetch_or_explicit(&t->open[place], voxels, memory_order_relaxed);
}

/* A sum below need and what all threads add to it at a time are below 2^32: need is below 37. */
void kiln_voxel_table_add(kiln_voxel_table *t, uint32_t place, uint64_t voxels,
                          const uint32_t add[KILN_VOXELS], uint32_t need)
{
    _Static_assert((37ull + KILN_VOXEL_TABLE_THREADS) * KILN_VOXEL_UNIT < UINT32_MAX,
                   "sums fit 32 bits");
    uint64_t reached = 0;
    for (; voxels; voxels &= voxels - 1) {
        const int i = __builtin_ctzll(voxels);
        _Atomic(uint32_t) *sum = &t->sums[place][i];
        if (atomic_load_explicit(sum, memory_order_relaxed) >= need) continue;
        const uint32_t was = atomic_fetch_add_explicit(sum, add[i], memory_order_relaxed);
        reached |= (uint64_t)(was + add[i] >= need) << i;
    }
    if (reached) atomic_fetch_and_explicit(&t->open[place], ~reached, memory_order_relaxed);
}

void kiln_voxel_table_settle(kiln_voxel_table *t, uint32_t need)
{
    for (uint32_t place = 0; place < atomic_load(&t->n); place++)
        for (int i = 0; i < KILN_VOXELS; i++)
            t->solid[place] |= (uint64_t)(t->sums[place][i] >= need) << i;
}
