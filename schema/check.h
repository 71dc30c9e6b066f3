/* check -- what the parts of kiln_manifest_verify share: the list of problems, which goes on after one is found. */
#ifndef KILN_SCHEMA_CHECK_H
#define KILN_SCHEMA_CHECK_H

#include "base/extern_c.h"
#include "schema/manifest_internal.h"

KILN_C_BEGIN

typedef struct {
    kiln_manifest *m;
    kiln_problem_fn *report;
    void *context;
    uint64_t problems;
    uint64_t bytes;  /* raw bytes whose hash was computed */
    char first[600]; /* the first sentence, for the error */
} kiln_check;

void kiln_check_problem(kiln_check *c, const char *fmt, ...) KILN_PRINTF(2, 3);
/* A failed call: damage (KILN_E_IO, KILN_E_INPUT, KILN_E_STALE, KILN_E_BUG) becomes a problem and KILN_OK; the rest stays. */
kiln_status kiln_check_take(kiln_check *c, kiln_status st, const kiln_error *err) KILN_MUST_CHECK;
/* A growing block that several checks use one after the other. *data has at least `bytes`; contents are lost. */
typedef struct {
    void *data;
    uint64_t room;
} kiln_scratch;
kiln_status kiln_scratch_want(kiln_scratch *s, uint64_t bytes, kiln_error *err) KILN_MUST_CHECK;

kiln_status kiln_check_rows(kiln_check *c, kiln_error *err) KILN_MUST_CHECK;   /* check_rows.c */
kiln_status kiln_check_layers(kiln_check *c, kiln_error *err) KILN_MUST_CHECK; /* check_layers.c */
kiln_status kiln_check_tables(kiln_check *c, kiln_error *err) KILN_MUST_CHECK; /* check_tables.c */

KILN_C_END

#endif
