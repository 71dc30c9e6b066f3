/* digest -- what layers and tile tables are named by: the hash of a text made of names, counts and
 * hashes, which SCHEMA.md ("Digests") gives as the SQL that prints it, so that any program can make
 * it. Names are written in hexadecimal: no name can pretend to be the next field. */
#include "base/endian.h"
#include "schema/layers.h"
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Upper-case, as SQLite's hex(). */
static void put_hex(kiln_hasher *h, const void *data, size_t bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        kiln_hasher_update(h, (const char[]){digits[p[i] >> 4], digits[p[i] & 15]}, 2);
}

static void hash_text(kiln_hasher *h, const char *fmt, ...) KILN_PRINTF(2, 3);
static void hash_text(kiln_hasher *h, const char *fmt, ...)
{
    char line[128]; /* numbers and names of our own only */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    kiln_hasher_update(h, line, (size_t)n);
}

/* One line for a segment; one without a hash for a chunk without planes or a plane without
 * bytes. */
static void put_plane_line(kiln_hasher *h, const kiln_chunk *c, const kiln_plane *p,
                           const kiln_hash *segment)
{
    put_hex(h, c->name, strlen(c->name));
    hash_text(h, " %" PRIu64 " ", c->count);
    if (p) {
        put_hex(h, p->name, strlen(p->name));
        hash_text(h, " %s %" PRIu32 " ", kiln_type_name(p->type), p->components);
    }
    if (segment) put_hex(h, segment->bytes, sizeof segment->bytes);
    hash_text(h, "\n");
}

/* What a layer of levels stands for. */
static void put_origin_line(kiln_hasher *h, const kiln_layer *l)
{
    hash_text(h, "of ");
    put_hex(h, l->origin.bytes, sizeof l->origin.bytes);
    hash_text(h, " ");
    put_hex(h, l->origin_profile, strlen(l->origin_profile));
    hash_text(h, " %d %g\n", l->origin_antialiased, l->origin_near);
}

static void put_hex_float(kiln_hasher *h, float v)
{
    unsigned char bytes[4];
    kiln_put_f32(bytes, v);
    put_hex(h, bytes, sizeof bytes);
}

/* What a chunk of levels says beside its planes. */
static void put_level_line(kiln_hasher *h, const kiln_chunk *c)
{
    put_hex(h, c->name, strlen(c->name));
    hash_text(h, " in ");
    put_hex(h, c->parent, strlen(c->parent));
    if (c->n_errors) hash_text(h, " %" PRId32 " ", c->error_step);
    for (uint32_t i = 0; i < c->n_errors; i++) put_hex_float(h, c->errors[i]);
    hash_text(h, "\n");
}

kiln_hash kiln_layer_digest(const kiln_layer *l)
{
    const bool is_levels = kiln_layer_is_levels(l);
    kiln_hasher *h = kiln_hasher_new();
    if (is_levels) put_origin_line(h, l);
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        if (is_levels) put_level_line(h, c);
        if (c->n_planes == 0) put_plane_line(h, c, NULL, NULL);
        for (uint32_t k = 0; k < c->n_planes; k++) {
            const kiln_plane *p = &c->planes[k];
            bool empty = p->data.raw_bytes == 0; /* with one empty segment or with none: alike */
            if (empty) put_plane_line(h, c, p, NULL);
            for (uint32_t s = 0; !empty && s < p->data.n_segments; s++)
                put_plane_line(h, c, p, &p->data.segments[s]);
        }
    }
    return kiln_hasher_end(h);
}

static void put_array_lines(kiln_hasher *h, const char *name, const kiln_array *a)
{
    for (uint32_t i = 0; a->raw_bytes && i < a->n_segments; i++) {
        hash_text(h, "%s ", name);
        put_hex(h, a->segments[i].bytes, sizeof a->segments[i].bytes);
        hash_text(h, "\n");
    }
}

kiln_hash kiln_tile_table_digest(const kiln_tile_table *t)
{
    kiln_hasher *h = kiln_hasher_new();
    hash_text(h, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", t->width, t->height,
              t->visible, t->pairs);
    put_array_lines(h, "chunks", &t->chunks);
    put_array_lines(h, "visible_row", &t->visible_row);
    put_array_lines(h, "visible_slot", &t->visible_slot);
    for (uint32_t i = 0; i < t->n_bands; i++) {
        const kiln_tile_band *b = &t->bands[i];
        hash_text(h, "%" PRIu32 " %" PRIu32 " %" PRIu64 "\n", b->row0, b->row1, b->pairs);
        put_array_lines(h, "rank_delta", &b->rank_delta);
        put_array_lines(h, "tile_bytes", &b->tile_bytes);
        put_array_lines(h, "tile_count", &b->tile_count);
    }
    return kiln_hasher_end(h);
}
