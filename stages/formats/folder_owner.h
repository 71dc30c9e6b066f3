/* folder_owner -- whether a folder that is there may be replaced by an export. */
#ifndef KILN_STAGES_FORMATS_FOLDER_OWNER_H
#define KILN_STAGES_FORMATS_FOLDER_OWNER_H

#include "stages/formats/writer.h"

/* Is there a folder of this name, and not a link to one? */
bool kiln_is_real_folder(const char *path);

/* KILN_E_USAGE, with the name of a file: the folder `target` holds a file that the format f
 * (KILN_PLACE_FOLDER) never writes, or, unless `replace` is set, one that has a name of the format
 * and that no export of ours has written. Nothing there, or an empty folder, is fine. */
kiln_status kiln_folder_check(const kiln_writer_functions *f, const char *target, bool replace,
                              kiln_error *err) KILN_MUST_CHECK;

/* The same of one file that is there: `index`, in a folder of other people's files
 * (KILN_PLACE_SHARED). */
kiln_status kiln_folder_fail_foreign(const char *folder, const char *name,
                                     kiln_error *err) KILN_MUST_CHECK;

#endif
