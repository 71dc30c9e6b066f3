/* hash -- XXH3-128 of content, and the keys of units built from it.
 *
 * A key is a hash over a tagged, length-prefixed sequence of items, so that no two different
 * sequences give the same bytes. Text form: 32 lower-case hex digits, most significant byte first
 * (XXH128 canonical form).
 */
#ifndef KILN_SCHEMA_HASH_H
#define KILN_SCHEMA_HASH_H

#include "base/extern_c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    unsigned char bytes[16]; /* canonical (big-endian) */
} kiln_hash;

kiln_hash kiln_hash_of(const void *data, size_t bytes);
bool kiln_hash_equal(kiln_hash a, kiln_hash b);
bool kiln_hash_is_zero(kiln_hash h);
const char *kiln_hash_hex(kiln_hash h, char buf[33]); /* returns buf */
bool kiln_hash_parse(const char *hex, kiln_hash *out);

/* streaming; NULL when memory is gone: every function accepts that, end gives zero */
typedef struct kiln_hasher kiln_hasher;
kiln_hasher *kiln_hasher_new(void);
void kiln_hasher_update(kiln_hasher *h, const void *data, size_t bytes);
kiln_hash kiln_hasher_end(kiln_hasher *h); /* frees */

/* Make the key of a unit: begin, any number of items in a fixed order, end. */
kiln_hasher *kiln_key_begin(const char *stage, uint32_t algorithm_version);
void kiln_key_text(kiln_hasher *h, const char *name, const char *value);
void kiln_key_u64(kiln_hasher *h, const char *name, uint64_t value);
void kiln_key_f64(kiln_hasher *h, const char *name, double value); /* by bits; all NANs alike */
void kiln_key_bytes(kiln_hasher *h, const char *name, const void *data, size_t bytes);
void kiln_key_hash(kiln_hasher *h, const char *name, kiln_hash value);
#define kiln_key_end kiln_hasher_end

KILN_C_END

#endif
