/* info_internal -- the parts of kiln-info.
 *
 * A part puts what it knows into the JSON document that --json prints, under its own keys, and
 * prints it for people from that document, so that the two cannot disagree. Gathering fails with
 * KILN_E_NOMEM and as manifest.h does; printing goes to stdout, which main checks at its end. For
 * one thread, as manifest.h. */
#ifndef KILN_STAGES_INFO_INTERNAL_H
#define KILN_STAGES_INFO_INTERNAL_H

#include "schema/manifest.h"
#include "stages/engine/engine.h"

#include <jansson.h>

/* ---- parts: info is the document ------------------------------------------------------------- */
/* "stages" */
kiln_status kiln_info_stages(kiln_manifest *m, json_t *info, kiln_error *err) KILN_MUST_CHECK;
/* "plan" */
kiln_status kiln_info_plan(kiln_manifest *m, json_t *info, kiln_error *err) KILN_MUST_CHECK;
/* Files that do not follow from the bake any more (stale_products.h). */
kiln_status kiln_info_superseded(kiln_manifest *m, json_t *info, kiln_error *err) KILN_MUST_CHECK;
void kiln_info_print_superseded(const json_t *info);
/* "quarantine" */
kiln_status kiln_info_quarantine(kiln_manifest *m, json_t *info, kiln_error *err) KILN_MUST_CHECK;
/* "scene" and the rows in "counts"; after the stages. */
kiln_status kiln_info_scene(kiln_manifest *m, json_t *info, kiln_error *err) KILN_MUST_CHECK;
/* "cameras", "profile", "test", "fast", "damaged_photos" and the rest of "counts"; after the scene.
 * in_full: all cameras; else those that the table for people shows. */
kiln_status kiln_info_views(kiln_manifest *m, bool in_full, json_t *info,
                            kiln_error *err) KILN_MUST_CHECK;
/* "plots": an object by name (info_plots.c). */
kiln_status kiln_info_plots(kiln_manifest *m, json_t *info, kiln_error *err) KILN_MUST_CHECK;

void kiln_info_print_scene(const json_t *info);
/* several files as one; --translate, --rotate, --scale */
void kiln_info_print_joined_and_moved(const json_t *info);
void kiln_info_print_stages(const json_t *info);
void kiln_info_print_plan(const json_t *info);
void kiln_info_print_quarantine(const json_t *info);
void kiln_info_print_cameras(const json_t *info);
void kiln_info_print_damaged(const json_t *info);
void kiln_info_print_fast(const json_t *info);
/* ascii: with characters of ASCII alone. As wide as the terminal, at most 80 columns. */
kiln_status kiln_info_print_plots(const json_t *info, bool ascii, kiln_error *err) KILN_MUST_CHECK;

/* Writes the cameras alone into a file, or to stdout where output is "-". KILN_E_USAGE: the file
 * belongs to the bake. KILN_E_IO. */
kiln_status kiln_info_write_cameras(kiln_run *r, const char *output, bool overwrite,
                                    kiln_error *err) KILN_MUST_CHECK;

/* How many of n rows a table for people shows: all of a few or with --verbose, else the first.
 * _print_rest says how many more there are. */
size_t kiln_info_shown(size_t n);
void kiln_info_print_rest(size_t n, size_t shown);

/* ---- JSON ------------------------------------------------------------------------------------ */
/* Takes `value`; a NULL one, or one that cannot be added, is out of memory. */
kiln_status kiln_info_set(json_t *object, const char *key, json_t *value,
                          kiln_error *err) KILN_MUST_CHECK;
json_t *kiln_info_count(uint64_t v);
json_t *kiln_info_vector(const double v[3]);
json_t *kiln_info_utc(int64_t ns); /* "2026-11-28T03:31:18Z"; null for 0 */
/* Text that is JSON itself, as an object; as it stands where it is damaged. */
json_t *kiln_info_parsed(const char *text);

/* A member as text for people: "-", or `none`, where it is missing or of another type. The last two
 * write into buf. */
const char *kiln_info_text(const json_t *object, const char *key, const char *none);
const char *kiln_info_count_text(const json_t *object, const char *key, char buf[32]);
const char *kiln_info_real_text(const json_t *object, const char *key, int digits, char buf[32]);

#endif
