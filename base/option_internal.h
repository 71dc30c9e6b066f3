/* option_internal -- what option.c (the command line), option_value.c (one value) and option_help.c
 * (what is printed about them) share. */
#ifndef KILN_BASE_OPTION_INTERNAL_H
#define KILN_BASE_OPTION_INTERNAL_H

#include "base/option.h"

/* The row behind o in the program's own table, then in the common one; NULL: the first, and behind
 * the last. */
const kiln_opt *kiln_opt_next(const kiln_cli *cli, const kiln_opt *o);
const kiln_opt *kiln_opt_find(const kiln_cli *cli, const char *name, size_t length);

/* The check of a row's values, by its own name or that of the row that it is an alias of; NULL:
 * none. */
const kiln_opt_check *kiln_opt_check_of(const kiln_cli *cli, const kiln_opt *o);

/* A copy that lives as long as the process; ~ and ~/x become $HOME when `expand`. */
kiln_status kiln_opt_keep(const char *text, bool expand, const char **out,
                          kiln_error *err) KILN_MUST_CHECK;
/* Checks and stores one value; KILN_E_USAGE with "--name takes ..., not 'text'". */
kiln_status kiln_opt_value_set(const kiln_opt *o, const char *text,
                               kiln_error *err) KILN_MUST_CHECK;
/* The value of an option that was never set: NULL, 0, NAN, false. */
void kiln_opt_value_none(const kiln_opt *o);
/* What it takes, for people: "a whole number from 1 to 32", "png|png16|npy". */
const char *kiln_opt_takes(const kiln_opt *o, char *buf, size_t size);
/* Is `word` one of those of a range "a|b|c"? */
bool kiln_opt_is_choice(const char *range, const char *word, size_t length);
/* Bounds alone: "1 to 32", "at least 0", "" where there are none. */
const char *kiln_opt_bounds(const kiln_opt *o, char *buf, size_t size);

#endif
