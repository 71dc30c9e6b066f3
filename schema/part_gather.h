/* part_gather -- one gather, as part_gather.c and part_rows.c share it. */
#ifndef KILN_SCHEMA_PART_GATHER_H
#define KILN_SCHEMA_PART_GATHER_H

#include "schema/part_internal.h"
#include "schema/part_pipeline.h"

#include <stdbool.h>

typedef struct {
    kiln_manifest *m;        /* of the caller's thread */
    kiln_part *p;            /* of the thread that reads */
    const kiln_hash *wanted; /* NULL: all */
    uint64_t n_wanted;
    kiln_hash *sorted; /* wanted, for questions; NULL: not made yet */
    kiln_part_report *report;
    kiln_status refusal; /* of the first unit that was refused */
    kiln_error why;
    bool m_failed;
    /* reading */
    uint64_t *due; /* places in p->keys of units that m lacks, in order */
    uint64_t n_due, next;
    kiln_part_unit unit; /* is_open: whose outputs are being read, `output` the next of them */
    kiln_error unit_why; /* of unit.fault */
    uint32_t output;
    bool is_open;
    sqlite3_blob *packed; /* NULL: not opened yet */
    unsigned char *met;   /* a bit for each blob of the part, by blob.id: it was read */
    uint64_t n_ids;       /* bits */
    /* storing */
    kiln_part_group *group;
    kiln_part_report stored; /* of the group */
    kiln_status refused;     /* of the first unit of the group that is */
    kiln_error refused_why;
    kiln_error damage; /* the first damaged blob; only while refusal is KILN_OK */
    kiln_hash damaged;
    /* n_absent blobs without bytes: what kiln_unit_store takes for those that are stored */
    kiln_blob *absent;
    uint32_t n_absent;
} kiln_part_gathering;

/* Keeps why something is left out, if it is the first, and goes on: KILN_OK. What is no fault of
 * the part ends the gather: st. */
kiln_status kiln_gather_refuse(kiln_part_gathering *g, kiln_status st, const kiln_error *why,
                               kiln_error *err) KILN_MUST_CHECK;
/* notes that a failure is one of m's; gives st back */
kiln_status kiln_gather_of_manifest(kiln_part_gathering *g, kiln_status st);
kiln_status kiln_gather_quarantine(kiln_part_gathering *g, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_gather_runs(kiln_part_gathering *g, kiln_error *err) KILN_MUST_CHECK;

#endif
