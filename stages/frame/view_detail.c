/* view_detail -- see view_detail.h. */
#include "stages/frame/view_detail.h"

#include "base/count.h"
#include "base/quote.h"

#include <math.h>

json_t *kiln_detail_json(const kiln_view_detail *d)
{
    json_t *levels = json_array();
    for (uint32_t k = 0; levels && k <= KILN_LEVELS_MAX; k++) {
        if (d->chunks_of_level[k] == 0) continue;
        json_t *row =
            json_pack("{s:I, s:I, s:I}", "level", (json_int_t)k, "chunks",
                      (json_int_t)d->chunks_of_level[k], "rows", (json_int_t)d->of_level[k]);
        if (json_array_append_new(levels, row) == 0) continue;
        json_decref(levels);
        levels = NULL;
    }
    if (!levels) return NULL;
    return json_pack("{s:I, s:I, s:o}", "rows", (json_int_t)d->rows, "full", (json_int_t)d->full,
                     "levels", levels);
}

void kiln_detail_add(kiln_view_detail *sum, const kiln_view_detail *d)
{
    sum->rows += d->rows;
    sum->full += d->full;
    for (uint32_t k = 0; k <= KILN_LEVELS_MAX; k++) {
        sum->of_level[k] += d->of_level[k];
        sum->chunks_of_level[k] += d->chunks_of_level[k];
    }
}

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

void kiln_detail_print(const kiln_view_detail *sum, uint32_t n, const char *wish)
{
    const char *between = "  by level: ";
    if (n == 0 || sum->full == 0) return;
    kiln_print("level %s: %s a view, %.1f %% of %.0f", wish,
               KILN_COUNT(llrint((double)sum->rows / n), "Gaussian"), percent(sum->rows, sum->full),
               (double)sum->full / n);
    for (uint32_t k = 0; k <= KILN_LEVELS_MAX; k++) {
        const double share = percent(sum->of_level[k], sum->rows);
        if (share < 0.5) continue; /* which rounds to nothing */
        kiln_print_part("%s%u: %.0f %%", between, k, share);
        between = ", ";
    }
    if (between[0] == ',') kiln_print("%s", "");
}
