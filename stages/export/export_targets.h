/* export_targets -- whose the file or folder is that stands where an export goes, and the list of
 * what was written there (stages/products). In the parent. */
#ifndef KILN_STAGES_EXPORT_EXPORT_TARGETS_H
#define KILN_STAGES_EXPORT_EXPORT_TARGETS_H

#include "schema/products.h"
#include "stages/formats/writer.h"
#include "stages/products/product_guard.h"

/* Where one format goes. */
typedef struct {
    const kiln_writer *writer;
    char path[KILN_PATH_MAX]; /* file or folder as the user named it */
    char relative[64];        /* what the list of products calls it; "": it is none of them */
    bool known;               /* the bake remembers that this very export wrote there */
    bool own;                 /* by size and time it lies there as this export wrote it */
    /* a folder may be replaced if all names in it are those of the format */
    bool replace;
    kiln_product_seen seen; /* what stood there as a file, and what may be replaced */
} kiln_export_target;

/* The file that the format writes last: the target itself, or one in its folder. */
kiln_status kiln_export_target_last(const kiln_export_target *t, char out[KILN_PATH_MAX],
                                    kiln_error *err) KILN_MUST_CHECK;
/* Fills `relative` of a target at its default place. */
void kiln_export_target_name(kiln_export_target *t);
/* Fills `seen` and `replace`. KILN_E_USAGE: it may not be replaced, or holds what may not. */
kiln_status kiln_export_target_check(kiln_product_guard *g, kiln_export_target *t, bool overwrite,
                                     kiln_error *err) KILN_MUST_CHECK;

/* KILN_E_USAGE where `folder`, which -o names, holds a scene: a name was forgotten, which the
 * sentence gives. manifest: of the bake, there or to be; n: formats that go into it, the first of
 * them `w`. */
kiln_status kiln_export_refuse_scene(kiln_product_guard *g, const char *manifest,
                                     const char *folder, const kiln_writer *w, uint32_t n,
                                     kiln_error *err) KILN_MUST_CHECK;

/* Keeps a target in the list: _begin before it is written, _put when it is part of the current
 * output. of: what all formats of that output have in common. */
kiln_status kiln_export_target_begin(const kiln_export_target *t, kiln_hash of,
                                     kiln_product_list *list, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_export_target_put(const kiln_export_target *t, kiln_hash of,
                                   kiln_product_list *list, kiln_error *err) KILN_MUST_CHECK;

#endif
