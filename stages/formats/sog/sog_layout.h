/* sog_layout -- the images of a SOG scene of version 2 and its meta.json, for a writer (sog.h). */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_LAYOUT_H
#define KILN_STAGES_FORMATS_SOG_SOG_LAYOUT_H

#include "base/memory.h"
#include "base/status.h"
#include "stages/formats/sog/sog.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_SOG_META_BYTES = 32 << 10 }; /* more than meta.json takes */
/* Images of a scene of this degree: without the last two where that is 0. */
static inline uint32_t kiln_sog_n_pictures(uint32_t degree)
{
    return degree ? KILN_SOG_IMAGES : KILN_SOG_LABELS;
}
/* Sides of an image. n > 0 rows: multiples of 4 a side, as splat-transform has them. */
void kiln_sog_image_size(uint64_t n, uint64_t *width, uint64_t *height);

/* Pixels [first, first + n) of an image from its codes: planes [c][n], c below `channels`. A
 * channel without codes is 0, alpha 255. */
void kiln_sog_fill(uint32_t channels, const uint8_t *codes, uint64_t n, uint32_t *argb);
/* All pixels of a palette, from codes [3 K][entries]. */
void kiln_sog_fill_palette(uint32_t entries, uint32_t degree, const uint8_t *codes, uint32_t *argb);

/* What meta.json says. */
typedef struct {
    uint64_t n;
    double mins[3], maxs[3];
    float log_scales[256], sh0[256], shN[256];
    uint32_t degree, palette; /* palette: entries, where degree is not 0 */
    bool antialiased, is_2dgs;
} kiln_sog_text;
/* Are meta.json and the images that it names in this folder? Looks at sizes only. */
bool kiln_sog_complete(const char *folder);
kiln_status kiln_sog_meta_put(const kiln_sog_text *t, kiln_buffer *out,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
