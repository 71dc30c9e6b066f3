/* digest -- what layers and tile tables are named by: a hash over names and hashes, in a byte sequence that SCHEMA.md
 * ("Digests") spells out for other programs. Texts end with their NUL, numbers are 64-bit little-endian, so that the
 * sequence can be taken apart again in one way only. */
#include "schema/manifest_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kiln_hash_text(kiln_hasher *h, const char *text) { kiln_hasher_update(h, text, strlen(text) + 1); }

void kiln_hash_u64(kiln_hasher *h, uint64_t v)
{
    unsigned char le[8];
    for (int i = 0; i < 8; i++) le[i] = (unsigned char)(v >> (8 * i));
    kiln_hasher_update(h, le, sizeof le);
}

void kiln_hash_array(kiln_hasher *h, const kiln_array *a)
{
    kiln_hash_u64(h, a->raw_bytes);
    if (a->raw_bytes == 0) return; /* with one empty segment or with none: alike */
    for (uint32_t i = 0; i < a->n_segments; i++) kiln_hasher_update(h, a->segments[i].bytes, sizeof a->segments[i].bytes);
}

kiln_hash kiln_layer_digest(const kiln_layer *l)
{
    kiln_hasher *h = kiln_hasher_new();
    kiln_hash_text(h, "kiln-layer-1");
    kiln_hash_u64(h, l->n_chunks);
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        kiln_hash_text(h, c->name);
        kiln_hash_u64(h, c->count);
        kiln_hash_u64(h, c->n_planes);
        for (uint32_t p = 0; p < c->n_planes; p++) {
            kiln_hash_text(h, c->planes[p].name);
            kiln_hash_text(h, kiln_type_name(c->planes[p].type));
            kiln_hash_u64(h, c->planes[p].components);
            kiln_hash_array(h, &c->planes[p].data);
        }
    }
    return kiln_hasher_end(h);
}

kiln_hash kiln_tile_table_digest(const kiln_tile_table *t)
{
    kiln_hasher *h = kiln_hasher_new();
    kiln_hash_text(h, "kiln-table-1");
    kiln_hash_u64(h, t->width);
    kiln_hash_u64(h, t->height);
    kiln_hash_u64(h, t->visible);
    kiln_hash_u64(h, t->pairs);
    kiln_hash_array(h, &t->chunks);
    kiln_hash_array(h, &t->visible_slot);
    kiln_hash_array(h, &t->visible_row);
    kiln_hash_u64(h, t->n_bands);
    for (uint32_t i = 0; i < t->n_bands; i++) {
        const kiln_tile_band *b = &t->bands[i];
        kiln_hash_u64(h, b->row0);
        kiln_hash_u64(h, b->row1);
        kiln_hash_u64(h, b->pairs);
        kiln_hash_array(h, &b->tile_count);
        kiln_hash_array(h, &b->tile_bytes);
        kiln_hash_array(h, &b->rank_delta);
    }
    return kiln_hasher_end(h);
}
