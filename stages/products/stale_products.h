/* stale_products -- files of a bake's folder that no longer follow from the bake: pictures of
 * cameras that are gone, an export of an earlier prune, the report of before. They are named (kiln
 * info, the end of kiln pipeline) and removed by kiln-gc alone. */
#ifndef KILN_STAGES_PRODUCTS_STALE_PRODUCTS_H
#define KILN_STAGES_PRODUCTS_STALE_PRODUCTS_H

#include "base/file.h"
#include "schema/manifest.h"

typedef struct {
    /* relative to the manifest's folder; a folder ends with '/'. Owned by the list */
    char *path;
    bool unchanged; /* as it was written; else somebody has changed it since, and it is his */
} kiln_stale_product;

typedef struct {
    char folder[KILN_PATH_MAX]; /* the manifest's */
    kiln_stale_product *products;
    uint32_t n;
} kiln_stale_list;

/* Only what is there. A link, and what is reached through one, is not. kiln_stale_list_release,
 * after a failure too. */
kiln_status kiln_stale_products_get(kiln_manifest *m, kiln_stale_list *out,
                                    kiln_error *err) KILN_MUST_CHECK;
void kiln_stale_list_release(kiln_stale_list *list);
/* "3 files do not follow from the bake any more: renders/a.png, renders/b.png and 1 more"; list->n
 * > 0. */
void kiln_stale_products_text(const kiln_stale_list *list, char out[1024]);
/* Removes the unchanged ones and the folders below renders/ and export/ that are empty then; takes
 * all of the list out of the manifest's, in a transaction of its own: those that were changed are
 * the user's from now on. *removed counts. KILN_E_IO: one cannot be removed. */
kiln_status kiln_stale_products_remove(kiln_manifest *m, const kiln_stale_list *list,
                                       uint32_t *removed, kiln_error *err) KILN_MUST_CHECK;

#endif
