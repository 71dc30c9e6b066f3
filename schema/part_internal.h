/* part_internal -- what the files of parts share: part.c writes, part_read.c opens, part_gather.c
 * gathers. */
#ifndef KILN_SCHEMA_PART_INTERNAL_H
#define KILN_SCHEMA_PART_INTERNAL_H

#include "schema/manifest_internal.h"
#include "schema/part.h"

struct kiln_part {
    kiln_manifest *m;
    kiln_part_info info;
    unsigned threads;
    kiln_part_memory **keeps; /* NULL: each gather has memory of its own */
    uint64_t n, capacity;
    kiln_hash *keys; /* sorted */
    int64_t *ids;    /* unit.id of each */
};

/* Row `part`: KILN_E_INPUT where it breaks a rule of part.h or is not one row. seal: zero where
 * there is none. */
kiln_status kiln_part_read_info(kiln_manifest *m, kiln_part_info *out, kiln_hash *seal,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_part_check_info(const kiln_part_info *info, kiln_status wrong,
                                 kiln_error *err) KILN_MUST_CHECK;
/* What an open reads behind the connection p->m: all rows are checked against the seal, and the
 * units' keys listed. kiln_part_free_rows, after a failure too. */
kiln_status kiln_part_read_rows(kiln_part *p, kiln_error *err) KILN_MUST_CHECK;
void kiln_part_free_rows(kiln_part *p);
/* Hash of all rows but the packed bytes, which their own hashes vouch for. */
kiln_status kiln_part_seal(kiln_manifest *m, kiln_hash *out, kiln_error *err) KILN_MUST_CHECK;
/* Place of a key in p->keys; p->n where it is not there. */
uint64_t kiln_part_find(const kiln_part *p, kiln_hash key);

#endif
