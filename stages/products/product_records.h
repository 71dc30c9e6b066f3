/* product_records -- how stages keep the manifest's list of products (schema/products.h).
 *
 * A run that is about to write lists its files as begun, before the first is written: should it be
 * killed, the next run knows that what lies there without a mark (.npy) is its own. When its output
 * becomes current, what it wrote is described, and files of the stage that are not among them are
 * superseded: pictures of cameras that are gone, an export of an earlier prune. Nothing removes
 * those but kiln-gc. */
#ifndef KILN_STAGES_PRODUCTS_PRODUCT_RECORDS_H
#define KILN_STAGES_PRODUCTS_PRODUCT_RECORDS_H

#include "schema/products.h"
#include "stages/products/product_place.h"

#include <jansson.h>

/* The list of a manifest; of a bake without one, the pictures of its table `image`, as their units
 * describe them. What cannot be read is warned of and counts as empty. */
kiln_status kiln_product_records_get(kiln_manifest *m, kiln_product_list *out,
                                     kiln_error *err) KILN_MUST_CHECK;

bool kiln_product_is_folder(const kiln_product *p);
/* Sets what describes p: {"size": ., "mtime_ns": ., "hash": "."}, as a unit's counters have it.
 * False: that is no description. */
bool kiln_product_describe(kiln_product *p, const json_t *described);
/* The same from a file or folder as it lies there. Files above 1 GiB are not hashed: only size and
 * time tell whether such a file was changed. */
kiln_status kiln_product_describe_path(kiln_product *p, const char *path,
                                       kiln_error *err) KILN_MUST_CHECK;
/* Says whether `path` is as p describes it: by size and time, else by its hash. An emptied file
 * counts as unchanged: nothing is lost with it. */
bool kiln_product_is_unchanged(const kiln_product *p, const char *path);
/* Says whether a folder is what `cp -r` makes of the one that p describes: every file is newer, of
 * the same name and size, and the folder carries our mark. What was edited by hand in such a copy,
 * byte for byte as long, does not show. */
bool kiln_product_is_copied_folder(const kiln_product *p, const char *path);

/* Lists a file as begun. `of`: what it is made from. seen: what stands there, and whether -w allows
 * to replace it: that counts as ours from now on, as it lies there, so that tasks on other hosts
 * and a run that goes on after a kill come to the same answer. */
kiln_status kiln_product_begin(kiln_product_list *list, const char *path, const char *stage,
                               kiln_hash of, const kiln_product_seen *seen,
                               kiln_error *err) KILN_MUST_CHECK;
/* Lists a file as one of the current output, without a description where there is none yet. *out
 * may be NULL. */
kiln_status kiln_product_current(kiln_product_list *list, const char *path, const char *stage,
                                 kiln_hash of, kiln_product **out, kiln_error *err) KILN_MUST_CHECK;
/* Says of all products of the stage that are not of `of` that they are superseded. */
void kiln_products_supersede(kiln_product_list *list, const char *stage, kiln_hash of);

#endif
