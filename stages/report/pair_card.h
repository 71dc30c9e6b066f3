/* pair_card -- what a page shows of a picture_pair: buttons that choose what is seen, and the
 * pictures over each other. Both are seen under a slider at first, or beside each other. */
#ifndef KILN_STAGES_REPORT_PAIR_CARD_H
#define KILN_STAGES_REPORT_PAIR_CARD_H

#include "stages/page/html.h"
#include "stages/report/view_pictures.h"

typedef struct {
    const char *set; /* a constant that no other section has; with number it names the buttons */
    uint32_t number;
    const kiln_report_pair *pair;
    const char *left, *right;        /* constants: what the two are, such as "Photo" */
    const kiln_view_pictures *tiles; /* with a heat map, NULL: there is none */
    bool exact;                      /* not larger than it is */
    bool beside;                     /* both are seen beside each other at first */
} kiln_pair_card;

/* Writes nothing if there is no picture. */
void kiln_pair_card_write(kiln_html *h, const kiln_pair_card *c);

#endif
