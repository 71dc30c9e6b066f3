/* sog_meta -- meta.json of a SOG scene, version 1 or 2, checked and turned into the tables that
 * codes are looked up in (sog.h). */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_META_H
#define KILN_STAGES_FORMATS_SOG_SOG_META_H

#include "base/status.h"
#include "stages/formats/sog/sog_rows.h"

#include <jansson.h>
#include <stdint.h>

/* meta.json holds three codebooks: 20 KB. More than this is none; its values take 40 KB of
 * memory. */
enum { KILN_SOG_META_MAX = 1 << 20, KILN_SOG_META_TREE_MAX = 3 << 20 };

typedef struct {
    /* n is not filled; degree and palette UINT32_MAX: version 1, where only the size of the palette
     * tells */
    kiln_sog_codes codes;
    uint32_t version;             /* 1 or 2 */
    double count;                 /* a positive whole number, perhaps more than the images hold */
    char *files[KILN_SOG_IMAGES]; /* owned; safe relative names; NULL: no such image */
} kiln_sog_meta;

/* label: what sentences call the file. KILN_E_INPUT with what is missing or out of range.
 * kiln_sog_meta_release(out) after a failure too. */
kiln_status kiln_sog_meta_take(const json_t *json, const char *label, kiln_sog_meta *out,
                               kiln_error *err) KILN_MUST_CHECK;
void kiln_sog_meta_release(kiln_sog_meta *m);

#endif
