/* units_find -- looks for many units at once: for a stage that has nothing to do and thousands of
 * results to be sure of.
 *
 * A lookup by the key's index takes some ten times as long as the next row of the table does. If
 * many units are wanted, the table is read once in its own order, and each key is looked up among
 * the wanted ones. */
#ifndef KILN_SCHEMA_UNITS_FIND_H
#define KILN_SCHEMA_UNITS_FIND_H

#include "schema/manifest.h"

KILN_C_BEGIN

/* Called for keys[i], which is stored; counters last until it returns. `unit` is its row, for
 * kiln_unit_outputs_of. */
typedef kiln_status kiln_units_found_fn(void *context, uint64_t i, int64_t unit,
                                        const char *counters, kiln_error *err);

/* Calls `found` once for each of n keys that is stored, in no order; a key may be there several
 * times. What `found` returns ends it, unless it is KILN_OK. Takes KILN_UNITS_FIND_RAM bytes a key.
 * Where the table cannot be read through, it looks for each that has not been found, as
 * kiln_unit_find does. Call it in a transaction: one for each lookup takes longer than to look. */
enum { KILN_UNITS_FIND_RAM = 32 };
kiln_status kiln_units_find(kiln_manifest *m, const kiln_hash *keys, uint64_t n,
                            kiln_units_found_fn *found, void *context,
                            kiln_error *err) KILN_MUST_CHECK;
/* The outputs of a unit that was found, as kiln_unit_find gives them; release *out. */
kiln_status kiln_unit_outputs_of(kiln_manifest *m, int64_t unit, const char *counters,
                                 kiln_unit_result *out, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
