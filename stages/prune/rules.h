/* rules -- what the user asked kiln-prune for, what the input looks like, and the thresholds that
 * come of both. */
#ifndef KILN_STAGES_PRUNE_RULES_H
#define KILN_STAGES_PRUNE_RULES_H

#include "base/option.h"
#include "base/status.h"
#include "kernels/prune/prune.h"
#include "schema/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As given: a rule's option has the rule's id (rules.def); numbers that are NAN are off. */
typedef double kiln_prune_F64;
typedef const char *kiln_prune_TEXT;
typedef bool kiln_prune_BOOL;
typedef struct {
#define RULE(id, kind, ...) kiln_prune_##kind id;
#include "stages/prune/rules.def"
#define CLAMP(id, ...) uint32_t id##_policy; /* kiln_prune_policy */
#define DROP(...)
#include "stages/prune/rules.def"
    double merge_distance; /* median spacings */
    double seed_pos[3];    /* of filter_cluster, in the coordinates of the source */
} kiln_prune_options;

/* What rules.def says of a rule. Places are offsets in bytes. */
typedef struct {
    const char *option, *looks_at;
    kiln_opt_kind kind;
    size_t given; /* place of its option in kiln_prune_options */
    /* place in kiln_prune_rules and number of its thresholds; 0: it is a pass */
    size_t floats, n_floats;
    /* places in kiln_prune_options and in kiln_prune_rules; 0: it drops and has no policy */
    size_t given_policy, policy;
    double automatic; /* the limit that `auto` stands for; 0: it has no `auto` */
} kiln_prune_rule_info;
extern const kiln_prune_rule_info kiln_prune_rule_infos[KILN_PRUNE_RULES];

/* The rules whose limit is `auto`: bit r is rule r. */
uint32_t kiln_prune_auto_rules(const kiln_prune_options *o);
/* What `auto` stands for; NAN: the rule's limit is not `auto`. */
double kiln_prune_auto_limit(const kiln_prune_options *o, kiln_prune_rule rule);
/* The options with limits for `auto`: what it stands for if those rules act, else off. */
kiln_prune_options kiln_prune_options_resolved(const kiln_prune_options *o, bool act);

/* Of the whole input, before any row is dropped. */
typedef struct {
    uint64_t n;
    float lo[3], hi[3]; /* nearest ranks 0.1 % and 99.9 % of the means */
    float median_spacing2;
    float median_log_scale; /* of the longest axis */
} kiln_prune_stats;

/* The extent of the scene: the longest side of the box of the central 99.8 % of the means, plus six
 * median longest axes. The second part keeps a scene of one place from having no extent. */
float kiln_prune_extent(const kiln_prune_stats *s);

/* No limit of o is `auto`. KILN_E_USAGE for a crop that cannot be read. Crops are in the
 * coordinates of the source, origin not subtracted. */
kiln_status kiln_prune_rules_make(const kiln_prune_options *o, const kiln_prune_stats *s,
                                  const double origin[3], kiln_prune_rules *out,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Check the texts of --crop-box, --crop-sphere and --drop-row. KILN_E_USAGE. */
kiln_status kiln_crop_box_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_crop_sphere_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_drop_row_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Checks the text of --keep. KILN_E_USAGE. */
kiln_status kiln_keep_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* The number of rows that --keep keeps of a scene of n rows, at most n, UINT64_MAX for off.
 * KILN_E_USAGE. */
kiln_status kiln_keep_rows(const char *text, uint64_t n, uint64_t *out,
                           kiln_error *err) KILN_MUST_CHECK;
/* Reads the text of --outlier-sor; *neighbors is 0 for off. KILN_E_USAGE. */
kiln_status kiln_outlier_sor_parse(const char *text, uint32_t *neighbors, double *sigmas,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_outlier_sor_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* What --filter-floaters and --filter-cluster say: a voxel's side, the opacity from which on it is
 * solid, and a Gaussian's least opacity in one. */
typedef struct {
    bool on;
    double size, opacity, min;
} kiln_voxel_rule;
/* Read the texts of both. KILN_E_USAGE. */
kiln_status kiln_filter_floaters_parse(const char *text, kiln_voxel_rule *out,
                                       kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_filter_cluster_parse(const char *text, kiln_voxel_rule *out,
                                      kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_filter_floaters_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_filter_cluster_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Is a rule on that is a pass over the whole input, before all others? */
bool kiln_prune_finds_strays(const kiln_prune_options *o);
/* Is a rule on that asks what training cameras see? */
bool kiln_prune_asks_cameras(const kiln_prune_options *o);
/* The same of one option, by its name and its stored value. */
bool kiln_prune_option_asks_cameras(const char *option, const char *value);
/* All texts of a set of options. */
kiln_status kiln_prune_options_check(const kiln_prune_options *o, kiln_error *err) KILN_MUST_CHECK;
void kiln_prune_rules_key(kiln_hasher *h, const kiln_prune_rules *r);
/* The threshold of a rule in the units of its option; NAN: off, or the rule has none. *drops: its
 * policy. */
double kiln_prune_rule_limit(const kiln_prune_options *o, kiln_prune_rule rule, bool *drops);

/* "3,17,42" or "none": ascending, each once; free(*rows). KILN_E_USAGE says `option`. */
kiln_status kiln_prune_rows_parse(const char *option, const char *text, uint32_t **rows,
                                  uint64_t *n, kiln_error *err) KILN_MUST_CHECK;

#endif
