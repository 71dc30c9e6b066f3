/* product_guard -- whether a file or folder that is there may be replaced: the one rule for every
 * program that writes what a user names, or where a user may have files.
 *
 *   1. A file of the imported scene is never replaced (scene_files.h); nor does a picture go where
 *      import looks for photos.
 *   2. A file that this manifest lists as ours (schema/products.h) is replaced if it is unchanged
 *      since.
 *   3. A file that carries our mark (product_mark.h) is replaced.
 *      An export replaces what the same bake exported to the same place: other files of ours may be
 *      scenes. Where a person names a new file, which kiln_product_guard_keep_ours says, none is.
 *   4. Everything else is replaced with -w, --overwrite alone. A link is replaced by a file then;
 *      what it leads to stays.
 * A folder in a file's place, a pipe and a device are never replaced.
 *
 * A guard answers before any work is done; product_place.h asks again right before the rename.
 * DESIGN.md lists who writes what.
 *
 *   kiln_product_guard *g;
 *   KILN_TRY(kiln_product_guard_open(m, o.overwrite, &g, err));
 *   st = kiln_product_guard_check(g, path, &seen, err);   ... any number of them
 *   kiln_product_guard_close(g);
 *   ...
 *   KILN_TRY(kiln_product_put(temporary, path, &seen, err)); */
#ifndef KILN_STAGES_PRODUCTS_PRODUCT_GUARD_H
#define KILN_STAGES_PRODUCTS_PRODUCT_GUARD_H

#include "schema/manifest.h"
#include "stages/products/product_place.h"

/* The option's row, the same for every program that has it; where: bool *. */
#define KILN_OVERWRITE_OPTION(where)                                                       \
    KILN_OPTION_BOOL("overwrite", where,                                                   \
                     "also replace files that SplatKiln did not write, that were changed " \
                     "since, or that another bake exported; never those of the imported "  \
                     "scene",                                                              \
                     .letter = 'w', .brief = "also replace files that SplatKiln did not write")
/* Of a program that replaces none of its own files without it, either (keep_ours). */
#define KILN_OVERWRITE_ALL_OPTION(where) \
    KILN_OPTION_BOOL("overwrite", where, "replace files that are there", .letter = 'w')

typedef struct kiln_product_guard kiln_product_guard;

/* m: of the bake that is written from; NULL: there is none, so steps 3 and 4 remain. It must
 * outlive the guard. A list of products that cannot be read is warned of, and counts as empty. */
kiln_status kiln_product_guard_open(kiln_manifest *m, bool overwrite, kiln_product_guard **out,
                                    kiln_error *err) KILN_MUST_CHECK;
void kiln_product_guard_close(kiln_product_guard *g); /* accepts NULL */
/* Adds a scene that is not imported yet: its file, or all that lies in its folder but for `out`,
 * the folder of the bake, is never replaced. */
void kiln_product_guard_scene(kiln_product_guard *g, const char *scene, const char *out);

/* Leaves step 3 out: what is there may be the source of a bake, or another scene that was
 * converted. So it is replaced with -w alone, and a folder that is not empty, too. */
void kiln_product_guard_keep_ours(kiln_product_guard *g);
/* Narrows step 3 for what is asked from now on: of what is ours only that is replaced which the
 * bake of this manifest, there or to be, has exported to this place. NULL: as at first. */
void kiln_product_guard_export(kiln_product_guard *g, const char *manifest);

/* KILN_E_USAGE: "'PATH' was changed since SplatKiln wrote it", with what to do. */
kiln_status kiln_product_refuse_changed(const char *path, kiln_error *err);
/* Counts a file as ours, as it lies there: the caller knows it from a record that older bakes
 * have. */
void kiln_product_guard_own(kiln_product_guard *g, const char *path);
/* Asks for a file. KILN_E_USAGE: it may not be written. KILN_E_IO: a folder, a pipe or a device has
 * the name. seen may be NULL. */
kiln_status kiln_product_guard_check(kiln_product_guard *g, const char *path,
                                     kiln_product_seen *seen, kiln_error *err) KILN_MUST_CHECK;
/* Opens a guard, asks for one file and closes it. */
kiln_status kiln_product_guard_ask(kiln_manifest *m, bool overwrite, const char *path,
                                   kiln_product_seen *seen, kiln_error *err) KILN_MUST_CHECK;
/* Asks for a folder of many files, which may not lie where import looks for photos. whole: it is
 * replaced as a whole, so none of the scene's may lie in it; else it is shared with files of
 * others. Says nothing of what else it holds. KILN_E_USAGE. */
kiln_status kiln_product_guard_folder(kiln_product_guard *g, const char *path, bool whole,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Asks for a folder into which files go without a name of their own. KILN_E_USAGE: the scene's
 * photos or masks lie in it. */
kiln_status kiln_product_guard_into(kiln_product_guard *g, const char *path,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Step 3 for such a folder, which is ours by its files. KILN_E_USAGE: it stays all the same. known:
 * the bake knows that it wrote it. Fills `seen`, unless it is NULL, but for what stands there. */
kiln_status kiln_product_guard_folder_mark(const kiln_product_guard *g, const char *path,
                                           bool known, kiln_product_seen *seen,
                                           kiln_error *err) KILN_MUST_CHECK;

/* Says whether anything lies in a folder. */
bool kiln_folder_holds_any(const char *path);

/* What the list of the manifest says of a file or folder of the bake. */
typedef enum {
    KILN_LISTED_NOT,       /* nothing */
    KILN_LISTED_UNCHANGED, /* ours, as it was written */
    KILN_LISTED_CHANGED,   /* ours, and changed since */
} kiln_listed;
kiln_listed kiln_product_guard_listed(const kiln_product_guard *g, const char *path);
/* Says whether the manifest lists any file of this stage. One of a version before lists none. */
bool kiln_product_guard_lists(const kiln_product_guard *g, const char *stage);

#endif
