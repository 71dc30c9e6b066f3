/* products -- the files and folders that stages have written into a bake's folder: what each looked
 * like when it was written, and whether it still follows from the current output of its stage.
 *
 * The list is the counters of one unit of the stage "product" (SCHEMA.md, "Products"). Programs
 * that do not know it keep it. A bake of a version that had none has an empty list.
 *
 * A manifest may come from a stranger. So paths are relative and below renders/ or export/, and
 * lead nowhere else: no entry can speak for a file outside of the bake's own folders. */
#ifndef KILN_SCHEMA_PRODUCTS_H
#define KILN_SCHEMA_PRODUCTS_H

#include "base/extern_c.h"
#include "schema/manifest.h"

KILN_C_BEGIN

typedef enum {
    KILN_PRODUCT_CURRENT, /* written by the current output of its stage */
    /* a run meant to write it; unless that run ended, nothing describes it */
    KILN_PRODUCT_BEGUN,
    KILN_PRODUCT_SUPERSEDED, /* written by an earlier output */
} kiln_product_state;

typedef struct {
    /* relative to the manifest's folder: "renders/a.png"; a folder ends with '/'. Owned by the
     * list */
    char *path;
    char stage[16]; /* that wrote it */
    kiln_product_state state;
    bool described; /* what follows describes it */
    uint64_t size;  /* of a folder: of all of its files */
    /* of a folder: of the newest file, when its content, name or place changed last */
    int64_t mtime_ns;
    /* of the content; of a folder: of the names and sizes of its files. Zero: not known */
    kiln_hash hash;
    /* what it was made from: products of a stage whose `of` differs are of different outputs */
    kiln_hash of;
} kiln_product;

typedef struct {
    kiln_product *products; /* in the order of their paths, each once */
    uint32_t n, capacity;
} kiln_product_list;

/* Reads the list; empty where there is none. KILN_E_INPUT: it is none that a program of ours
 * writes. kiln_product_list_release, after a failure too. */
kiln_status kiln_product_list_get(kiln_manifest *m, kiln_product_list *out,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Replaces the stored list. Inside a transaction. */
kiln_status kiln_product_list_put(kiln_manifest *m, const kiln_product_list *list,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_product_list_release(kiln_product_list *list);

/* NULL: it has none of this path. Valid until one is added or removed. */
kiln_product *kiln_product_list_find(const kiln_product_list *list, const char *path);
/* The entry of this path, a new one if there is none: then of this stage, BEGUN and not described.
 * KILN_E_INPUT: the path is none that a list may hold. */
kiln_status kiln_product_list_add(kiln_product_list *list, const char *path, const char *stage,
                                  kiln_product **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_product_list_remove(kiln_product_list *list, kiln_product *p);
/* Says whether a list may hold this path. */
bool kiln_product_path_is_safe(const char *path);

KILN_C_END

#endif
