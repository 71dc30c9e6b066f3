/* row_survey -- how the Gaussians of a layer are distributed, and how many of them rules of
 * kiln-prune would touch at other limits.
 *
 * Of a layer of more than KILN_SURVEY_ROWS rows, evenly chosen blocks are read. For one thread, as
 * manifest.h. */
#ifndef KILN_STAGES_SURVEY_ROW_SURVEY_H
#define KILN_STAGES_SURVEY_ROW_SURVEY_H

#include "stages/survey/bake_facts.h"

#include <stdbool.h>

enum { KILN_SURVEY_ROWS = 2000000, KILN_SURVEY_BINS = 800, KILN_SURVEY_LIMITS = 8 };

/* name, lowest value, width of a bin, whether values are natural logarithms, and for people: key in
 * JSON, title, unit */
#define KILN_SURVEY_MAP(X)                                                          \
    X(SCALE, -28.0, 0.05, true, "scale", "Longest axis", "scene units")             \
    X(OPACITY, 0.0, 1.0 / 100, false, "opacity", "Opacity", "0 to 1")               \
    X(NEEDLE, 0.0, 0.025, true, "needle", "Needle ratio", "longest to middle axis") \
    X(SPACING, -28.0, 0.05, true, "spacing", "Spacing", "scene units, to the nearest neighbours")
typedef enum {
#define X(name, ...) KILN_SURVEY_##name,
    KILN_SURVEY_MAP(X)
#undef X
        KILN_SURVEY_KINDS
} kiln_survey_kind;

typedef struct {
    double low, width;
    bool is_log;
    const char *key, *title, *unit;
} kiln_survey_info;
extern const kiln_survey_info kiln_survey_infos[KILN_SURVEY_KINDS];

typedef struct {
    uint64_t rows; /* that have this number */
    uint64_t bins[KILN_SURVEY_BINS];
    double least, most; /* as in the map: logarithms */
} kiln_distribution;

/* A rule and the limits that are tried, ascending. touched[i]: rows that the rule alone would drop
 * or clamp at limits[i]. */
typedef struct {
    const char *name; /* of the option, static; NULL: the table's end */
    double limits[KILN_SURVEY_LIMITS];
    uint64_t touched[KILN_SURVEY_LIMITS];
    int n, now; /* now: index of the limit of the bake; -1: the rule is off */
} kiln_rule_trial;
enum { KILN_TRIALS = 4 };

typedef struct {
    uint64_t rows, read; /* of the layer; that were looked at */
    kiln_distribution of[KILN_SURVEY_KINDS];
} kiln_row_survey;

typedef struct {
    bool has_before, has_after;
    kiln_row_survey before, after; /* of what kiln-prune read, and of what it made */
    kiln_rule_trial trials[KILN_TRIALS + 1];
} kiln_prune_survey;

/* Fills *out. A bake without Gaussians yet has neither side. As kiln_plane_read. */
kiln_status kiln_prune_survey_make(const kiln_bake_facts *b, kiln_prune_survey *out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* The value that a share (0..1) of the rows does not exceed: the middle of its bin, as in the map.
 * NAN without rows. */
double kiln_distribution_at(const kiln_distribution *d, kiln_survey_kind kind, double share);
/* The same for people: least and most themselves for 0 and 1, no logarithm. */
double kiln_distribution_value(const kiln_distribution *d, kiln_survey_kind kind, double share);
/* The lower border of a bin, for people: no logarithm. */
double kiln_survey_border(kiln_survey_kind kind, int bin);

/* The bins of two layers, joined to the bars of one plot. */
enum { KILN_SURVEY_BARS = 56 };
typedef struct {
    int first, join, n; /* the bin that the first bar begins with, bins of a bar, bars */
    uint64_t bars[2][KILN_SURVEY_BARS], most;
} kiln_survey_bars;
/* Fills *out with at most `most_bars` (up to KILN_SURVEY_BARS) bars: of opacity those from 0 to 1,
 * of others those that have rows, in the middle. */
void kiln_survey_join(kiln_survey_kind kind, const kiln_distribution *const d[2], int most_bars,
                      kiln_survey_bars *out);

#endif
