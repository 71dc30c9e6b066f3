/* name_fold -- file names that people take for one: V0.PNG and v0.png, an accented letter as one
 * character (NFC, as most programs write it) and as letter and mark (NFD, as Apple's file systems
 * kept it).
 */
#ifndef KILN_STAGES_FILES_NAME_FOLD_H
#define KILN_STAGES_FILES_NAME_FOLD_H

#include "base/file.h"

/* Writes the name with canonical decompositions, letters of Latin, Greek and Cyrillic small. Bytes
 * that are no UTF-8 stay. False: it does not fit. */
bool kiln_name_fold(const char *name, size_t n, char *out, size_t capacity);

/* Folders that were listed, with folded names. All 0 at first. */
typedef struct kiln_folded_folder kiln_folded_folder;
typedef struct {
    kiln_folded_folder *folders; /* owned */
    uint32_t n;
} kiln_folded_names;
void kiln_folded_names_release(kiln_folded_names *f);

/* Finds what `relative` (safe to append, kiln_name_is_safe) means below dir if names are folded:
 * each part is the only one that folds to the same. The last part may also be `stem` bytes of it
 * with an extension of `extensions` (small letters, NULL-terminated). Lists each folder once, at
 * most 100,000 entries. out: the path, "" if there is none. KILN_E_NOMEM. */
kiln_status kiln_folded_find(kiln_folded_names *f, const char *dir, const char *relative,
                             size_t stem, const char *const *extensions, char out[KILN_PATH_MAX],
                             kiln_error *err) KILN_MUST_CHECK;

/* May a file dir/relative be there, with its extension (from `stem` on) or another? False only
 * where the list of its folder says that no file's name begins so, however names are folded: what
 * cannot be listed, other than by being absent, is unknown. Lists few folders; where there are
 * many, true. KILN_E_NOMEM. */
kiln_status kiln_folded_may_hold(kiln_folded_names *f, const char *dir, const char *relative,
                                 size_t stem, bool *may, kiln_error *err) KILN_MUST_CHECK;

#endif
