/* rules -- what the user asked kiln-prune for, what the input looks like, and the thresholds that come of both. */
#ifndef KILN_STAGES_PRUNE_RULES_H
#define KILN_STAGES_PRUNE_RULES_H

#include "base/status.h"
#include "kernels/prune/prune.h"
#include "schema/hash.h"

#include <stdbool.h>
#include <stdint.h>

/* As given: a rule's option has the rule's name (rules.def); numbers that are NAN are off. */
#define KILN_PRUNE_POLICY_none(declaration)
#define KILN_PRUNE_POLICY_clamp(declaration) declaration
#define KILN_PRUNE_POLICY_drop(declaration) declaration
#define KILN_PRUNE_VALUE_F64(id) double id;
#define KILN_PRUNE_VALUE_TEXT(id) const char *id;
#define KILN_PRUNE_VALUE_BOOL(id) bool id;
typedef struct {
#define RULE(key, id, option, kind, ...) KILN_PRUNE_VALUE_##kind(id)
#include "stages/prune/rules.def"
#define RULE(key, id, option, kind, arg, def, range, policy, ...) KILN_PRUNE_POLICY_##policy(uint32_t id##_policy;)
#include "stages/prune/rules.def"
    double merge_distance; /* median spacings */
} kiln_prune_options;

/* Rules whose limit may be `auto`, and the limit that this stands for where they act (judgement.h). */
#define KILN_PRUNE_AUTO_MAP(AUTO) AUTO(max_extent, 0.5) AUTO(max_spacing, 32)
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

/* The extent of the scene: the longest side of the box of the central 99.8 % of the means, plus six median longest axes.
 * The second part keeps a scene of one place from having no extent. */
float kiln_prune_extent(const kiln_prune_stats *s);

/* No limit of o is `auto`. KILN_E_USAGE for a crop that cannot be read. Crops are in the coordinates of the source, origin not
 * subtracted. */
kiln_status kiln_prune_rules_make(const kiln_prune_options *o, const kiln_prune_stats *s, const double origin[3],
                                  kiln_prune_rules *out, kiln_error *err) KILN_MUST_CHECK;
/* Check the texts of --crop-box, --crop-sphere and --drop-row. KILN_E_USAGE. */
kiln_status kiln_crop_box_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_crop_sphere_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_drop_row_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* All three of a set of options. */
kiln_status kiln_prune_options_check(const kiln_prune_options *o, kiln_error *err) KILN_MUST_CHECK;
void kiln_prune_rules_key(kiln_hasher *h, const kiln_prune_rules *r);
/* The threshold of a rule in the units of its option; NAN: off, or the rule has none. *drops: its policy. */
double kiln_prune_rule_limit(const kiln_prune_options *o, kiln_prune_rule rule, bool *drops);

/* "3,17,42" or "none": ascending, each once; free(*rows). KILN_E_USAGE says `option`. */
kiln_status kiln_prune_rows_parse(const char *option, const char *text, uint32_t **rows, uint64_t *n,
                                  kiln_error *err) KILN_MUST_CHECK;

#endif
