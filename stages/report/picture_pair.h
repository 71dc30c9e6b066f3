/* picture_pair -- two pictures of one view, which a page lays over each other, and their
 * difference, as files of a page. Pure functions, any thread. */
#ifndef KILN_STAGES_REPORT_PICTURE_PAIR_H
#define KILN_STAGES_REPORT_PICTURE_PAIR_H

#include "base/memory.h"
#include "stages/report/thumbnail.h"

typedef struct {
    uint32_t width, height;
    kiln_buffer left, right, difference; /* JPEG; empty: there is none. The difference needs both */
} kiln_report_pair;

/* Encodes those of the two that have pixels; both have the size of the pair, which is set by the
 * caller. Release the pair also after a failure. */
kiln_status kiln_picture_pair_make(const kiln_thumbnail *left, const kiln_thumbnail *right,
                                   kiln_report_pair *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_picture_pair_release(kiln_report_pair *p);
/* The bytes that it takes of a page. */
uint64_t kiln_picture_pair_bytes(const kiln_report_pair *p);

#endif
