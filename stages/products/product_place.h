/* product_place -- gives a file that is whole its name.
 *
 * Whether it may have the name was asked before the work began (product_guard.h), minutes or hours
 * ago. Meanwhile the user, or a second run with the same target, may have put something there. So
 * the state that was looked at is kept, travels to the worker that writes the file, and is compared
 * once more right before the rename. Where nothing was, the rename itself refuses to replace. A
 * file with the very bytes that are to be written may always go. */
#ifndef KILN_STAGES_PRODUCTS_PRODUCT_PLACE_H
#define KILN_STAGES_PRODUCTS_PRODUCT_PLACE_H

#include "base/status.h"
#include "schema/hash.h"

#include <stdbool.h>
#include <stdint.h>

/* What stood at a path when kiln_product_guard_check allowed to write there. Zeroed: nothing. */
typedef struct {
    uint64_t device, inode, size;
    int64_t mtime_ns;
    /* as bool, without padding: units that travel are hashed; keeps_ours: what SplatKiln wrote is
     * replaced with `overwrite` alone, too */
    uint16_t there, overwrite, keeps_ours, unused;
    /* of an export: its bake, by where it lies; else zero. What is ours is replaced only if it was
     * exported from there to here. The file is noted so. */
    kiln_hash bake;
} kiln_product_seen;

/* Fills all but `overwrite`, `keeps_ours` and `bake`. The entry itself is looked at, not what a
 * link leads to. */
void kiln_product_look(const char *path, kiln_product_seen *out);
/* KILN_E_USAGE: "'PATH' was made or changed by another program during this run". */
kiln_status kiln_product_refuse_made(const char *path, kiln_error *err);
/* Renames a file to `path`. KILN_E_USAGE: something stands there that was not there before and that
 * SplatKiln did not write, unless `seen` allows to replace it; `temporary` is still there.
 * KILN_E_IO: it cannot be renamed, or a folder, pipe or device has the name. */
kiln_status kiln_product_put(const char *temporary, const char *path, const kiln_product_seen *seen,
                             kiln_error *err) KILN_MUST_CHECK;
/* Writes a whole file: beside its place, synced, then kiln_product_put. Makes missing parent
 * folders. */
kiln_status kiln_product_write(const char *path, const void *data, size_t size,
                               const kiln_product_seen *seen, kiln_error *err) KILN_MUST_CHECK;

#endif
