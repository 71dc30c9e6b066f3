/* voxel_cluster -- see the header. A block is flooded as one number of 64 bits; what reaches its
 * faces goes on in the six blocks beside it. */
#include "stages/prune/voxel_cluster.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The voxels of a block at the lower and the upper face along each axis. */
static const uint64_t faces[3][2] = {{0x1111111111111111u, 0x8888888888888888u},
                                     {0x000f000f000f000fu, 0xf000f000f000f000u},
                                     {0x000000000000ffffu, 0xffff000000000000u}};
static const int steps[3] = {1, 4, 16}; /* bits from a voxel to the next along an axis */

typedef struct {
    kiln_voxel_table *t;
    uint64_t *reached; /* [n] */
    uint32_t *queue;   /* [n] a ring */
    uint8_t *queued;   /* [n] */
    uint32_t n, head, in_queue;
} flood;

uint64_t kiln_voxel_cluster_bytes(uint64_t n)
{
    return n * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint8_t));
}

/* Is a nearer to the seed than b? Each is the offset of a voxel. */
static bool is_nearer(const int32_t a[3], const int32_t b[3])
{
    int32_t far[2] = {0, 0};
    for (int i = 0; i < 3; i++) {
        far[0] = abs(a[i]) > far[0] ? abs(a[i]) : far[0];
        far[1] = abs(b[i]) > far[1] ? abs(b[i]) : far[1];
    }
    if (far[0] != far[1]) return far[0] < far[1];
    if (a[2] != b[2]) return a[2] < b[2];
    return a[1] != b[1] ? a[1] > b[1] : a[0] > b[0];
}

bool kiln_voxel_nearest(const kiln_voxel_table *t, const int32_t seed[3], int32_t out[3])
{
    int32_t best[3], block[3], off[3];
    bool found = false;
    for (uint32_t place = 0; place < t->n; place++) {
        kiln_voxel_unkey(t->blocks[place], block);
        for (int i = 0; i < KILN_VOXELS; i++) {
            if (!(t->solid[place] >> i & 1)) continue;
            for (int a = 0; a < 3; a++)
                off[a] = KILN_VOXEL_SIDE * block[a] + (i >> 2 * a & 3) - seed[a];
            if (!found || is_nearer(off, best)) memcpy(best, off, sizeof best);
            found = true;
        }
    }
    for (int a = 0; a < 3 && found; a++) out[a] = seed[a] + best[a];
    return found;
}

static uint64_t spread_in_block(uint64_t reached, uint64_t solid)
{
    for (uint64_t was = 0; was != reached;) {
        was = reached;
        for (int a = 0; a < 3; a++) {
            const uint64_t up = (reached & ~faces[a][1]) << steps[a],
                           down = (reached & ~faces[a][0]) >> steps[a];
            reached |= (up | down) & solid;
        }
    }
    return reached;
}

static void reach_voxels(flood *f, uint32_t place, uint64_t voxels)
{
    const uint64_t more = voxels & f->t->solid[place] & ~f->reached[place];
    if (!more) return;
    f->reached[place] |= more;
    if (f->queued[place]) return;
    f->queued[place] = 1;
    f->queue[(f->head + (uint64_t)f->in_queue++) % f->n] = place;
}

/* What is reached on a face reaches the opposite face of the block beside it. */
static void cross_faces(flood *f, uint32_t place)
{
    int32_t block[3];
    kiln_voxel_unkey(f->t->blocks[place], block);
    for (int a = 0; a < 3; a++)
        for (int side = 0; side < 2; side++) {
            const int shift = (KILN_VOXEL_SIDE - 1) * steps[a];
            const uint64_t there = f->reached[place] & faces[a][side];
            int32_t beside[3] = {block[0], block[1], block[2]};
            beside[a] += side ? 1 : -1;
            if (!there || beside[a] < -KILN_VOXEL_BLOCKS || beside[a] >= KILN_VOXEL_BLOCKS)
                continue;
            const uint32_t to = kiln_voxel_table_find(f->t, kiln_voxel_key(beside));
            if (to != KILN_VOXEL_NONE) reach_voxels(f, to, side ? there >> shift : there << shift);
        }
}

static void flood_from(flood *f, uint32_t place, uint64_t voxels)
{
    reach_voxels(f, place, voxels);
    while (f->in_queue > 0) {
        const uint32_t at = f->queue[f->head];
        f->head = (f->head + 1) % f->n;
        f->in_queue--;
        f->queued[at] = 0;
        f->reached[at] = spread_in_block(f->reached[at], f->t->solid[at]);
        cross_faces(f, at);
    }
}

kiln_status kiln_voxel_cluster(kiln_voxel_table *t, const int32_t seed[3], bool *whole,
                               kiln_error *err)
{
    flood f = {.t = t, .n = t->n};
    int32_t block[3];
    int at = 0;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&f.reached, f.n, "the cluster", err));
    KILN_GO(KILN_ALLOC_UNSET(&f.queue, f.n, "the cluster", err));
    KILN_GO(KILN_ALLOC(&f.queued, f.n, "the cluster", err));
    for (int a = 0; a < 3; a++) {
        const int32_t in_block = seed[a] & (KILN_VOXEL_SIDE - 1);
        block[a] = (seed[a] - in_block) / KILN_VOXEL_SIDE;
        at |= in_block << 2 * a;
    }
    const uint32_t place = kiln_voxel_table_find(t, kiln_voxel_key(block));
    if (place == KILN_VOXEL_NONE)
        KILN_GO(kiln_fail(err, KILN_E_BUG, "the seed of a cluster is not in the table"));
    flood_from(&f, place, 1ull << at);
    *whole = true;
    for (uint32_t i = 0; i < f.n; i++) {
        *whole = *whole && (f.reached[i] || !t->solid[i]);
        t->solid[i] = f.reached[i];
    }
done:
    free(f.reached);
    free(f.queue);
    free(f.queued);
    return st;
}
