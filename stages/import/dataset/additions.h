/* additions -- further files of rows: those of --add, and how each is moved.
 *
 * An item of --add is a file's name, and behind it, after a ';' each and in any order, what moves
 * this file alone:
 *
 *   FILE;translate=X,Y,Z;rotate=X,Y,Z;scale=S
 *
 * A name may itself hold a ';': the parts are recognised from the end, each at most once, and what
 * is left is the name. The numbers are those of import's --translate, --rotate and --scale.
 */
#ifndef KILN_STAGES_IMPORT_ADDITIONS_H
#define KILN_STAGES_IMPORT_ADDITIONS_H

#include "base/file.h"
#include "base/memory.h"
#include "stages/import/dataset/dataset.h"

/* Of a program whose files stand on the command line (kiln convert): messages do not name --add.
 * For the main thread, before the first item. */
void kiln_additions_are_inputs(void);
/* What stands behind the name of such a file in a message: " of --add", or "". */
const char *kiln_addition_of(void);
/* KILN_E_USAGE: a part that is none, or no name. */
kiln_status kiln_addition_parse(const char *item, char path[KILN_PATH_MAX], kiln_move *move,
                                kiln_error *err) KILN_MUST_CHECK;
/* Why the file of an item, parsed as `path`, is not there: KILN_E_USAGE where a part behind a file
 * is mistyped, or all of the item names a file; else KILN_E_INPUT. */
kiln_status kiln_addition_not_there(const char *item, const char *path,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Appends the item again in its one form: what does nothing is left out, unless it is needed so
 * that the name stays the name. */
kiln_status kiln_addition_text(const char *path, const kiln_move *move, kiln_buffer *out,
                               kiln_error *err) KILN_MUST_CHECK;

/* Looks at the file and appends it to d->more, with its members to the sources. path: absolute. */
kiln_status kiln_dataset_add_rows(kiln_dataset *d, const char *path, const kiln_move *move,
                                  kiln_error *err) KILN_MUST_CHECK;
/* All items of a list's text. */
kiln_status kiln_dataset_add_list(kiln_dataset *d, const char *list,
                                  kiln_error *err) KILN_MUST_CHECK;
/* The finding of such a file. */
kiln_status kiln_dataset_tell_added(kiln_dataset *d, const kiln_rows_file *f,
                                    kiln_error *err) KILN_MUST_CHECK;

#endif
