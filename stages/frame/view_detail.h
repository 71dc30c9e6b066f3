/* view_detail -- what is said of the levels of detail that views take. */
#ifndef KILN_STAGES_VIEW_DETAIL_H
#define KILN_STAGES_VIEW_DETAIL_H

#include "stages/engine/json_text.h"
#include "stages/frame/drawn.h"

/* {"rows": ., "full": ., "levels": [{"level": ., "chunks": ., "rows": .}, ...]}, a new reference;
 * NULL: out of memory. */
json_t *kiln_detail_json(const kiln_view_detail *d);
void kiln_detail_add(kiln_view_detail *sum, const kiln_view_detail *d);
/* Prints two lines of the sum over n views, the second with the share of each level. wish: the text
 * of --level. */
void kiln_detail_print(const kiln_view_detail *sum, uint32_t n, const char *wish);

#endif
