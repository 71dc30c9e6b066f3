/* voxel_box -- boxes of blocks in the grid of voxels: what a row reaches, what a part has. */
#ifndef KILN_STAGES_PRUNE_VOXEL_BOX_H
#define KILN_STAGES_PRUNE_VOXEL_BOX_H

#include <stdbool.h>
#include <stdint.h>

/* Blocks lo to hi, both included. Empty if lo is above hi along an axis. */
typedef struct {
    int32_t lo[3], hi[3];
} kiln_voxel_box;

/* Widened by another box it is that box. */
static inline kiln_voxel_box kiln_voxel_box_empty(void)
{
    return (kiln_voxel_box){.lo = {INT32_MAX, INT32_MAX, INT32_MAX},
                            .hi = {INT32_MIN, INT32_MIN, INT32_MIN}};
}

/* To the smallest box that has both. */
static inline void kiln_voxel_box_widen(kiln_voxel_box *to, const kiln_voxel_box *by)
{
    for (int a = 0; a < 3; a++) {
        to->lo[a] = by->lo[a] < to->lo[a] ? by->lo[a] : to->lo[a];
        to->hi[a] = by->hi[a] > to->hi[a] ? by->hi[a] : to->hi[a];
    }
}

static inline void kiln_voxel_box_add(kiln_voxel_box *to, const int32_t block[3])
{
    kiln_voxel_box_widen(to, &(kiln_voxel_box){.lo = {block[0], block[1], block[2]},
                                               .hi = {block[0], block[1], block[2]}});
}

static inline kiln_voxel_box kiln_voxel_box_common(const kiln_voxel_box *p, const kiln_voxel_box *q)
{
    kiln_voxel_box out = *p;
    for (int a = 0; a < 3; a++) {
        out.lo[a] = q->lo[a] > p->lo[a] ? q->lo[a] : p->lo[a];
        out.hi[a] = q->hi[a] < p->hi[a] ? q->hi[a] : p->hi[a];
    }
    return out;
}

static inline uint64_t kiln_voxel_box_count(const kiln_voxel_box *b)
{
    uint64_t n = 1;
    for (int a = 0; a < 3; a++) n *= b->lo[a] > b->hi[a] ? 0 : (uint64_t)(b->hi[a] - b->lo[a]) + 1;
    return n;
}

static inline bool kiln_voxel_box_has(const kiln_voxel_box *b, const int32_t block[3])
{
    bool has = true;
    for (int a = 0; a < 3; a++) has = has && block[a] >= b->lo[a] && block[a] <= b->hi[a];
    return has;
}

/* Have they no block in common? True, too, if one is kiln_voxel_box_empty. */
static inline bool kiln_voxel_box_is_apart(const kiln_voxel_box *p, const kiln_voxel_box *q)
{
    bool apart = false;
    for (int a = 0; a < 3; a++) apart |= p->lo[a] > q->hi[a] || q->lo[a] > p->hi[a];
    return apart;
}

#endif
