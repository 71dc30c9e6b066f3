/* shards -- which task computes which unit: the same on every host. Pure functions. */
#ifndef KILN_STAGES_ENGINE_HOSTS_SHARDS_H
#define KILN_STAGES_ENGINE_HOSTS_SHARDS_H

#include <stdint.h>

/* What decides where a unit goes. */
typedef struct {
    uint64_t cost, group, place; /* as in kiln_unit */
    uint64_t number;             /* of the unit, where its shard is written */
} kiln_share;
/* Sorts units by place, then number; those of one group stay behind each other, as they have one
 * place. */
void kiln_shares_sort(kiln_share *units, uint64_t n);
/* Cuts n units into n_shards consecutive ranges of about equal cost: shard_of[units[i].number],
 * from 0, never falls with i. A unit goes where its middle lies. Units of one group, one behind the
 * other, stay together if they cost less than half of a shard. The same on every host. */
void kiln_shards_cut(const kiln_share *units, uint64_t n, uint32_t n_shards, uint32_t *shard_of);

#endif
