/* foreign -- files of other programs that import does not read: each is named as what it is, with
 * what helps.
 *
 * A kind is one row of kinds[] (foreign.c): the marks by which its content is known, the names
 * under which a folder is looked through for it, and the sentence. Adding one: its row, and its
 * case in unit/foreign.
 */
#ifndef KILN_STAGES_FILES_FOREIGN_H
#define KILN_STAGES_FILES_FOREIGN_H

#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    KILN_FOREIGN_SCENE,   /* holds Gaussians or points, or is all that is left of them */
    KILN_FOREIGN_CAMERAS, /* holds cameras */
} kiln_foreign_role;

enum {
    KILN_PROBE_BYTES = 4096, /* of the beginning of a file, by which its kind is known */
    /* a score from here on: it is a file of that kind, damaged or not */
    KILN_CLAIM_BY_CONTENT = 80,
};

typedef struct kiln_foreign kiln_foreign; /* a row */

/* What a file is by its first bytes (head[len]), else by its suffix; NULL: none of these. *score:
 * how sure that is, as a reader's probe says it. Reads nothing. */
const kiln_foreign *kiln_foreign_find(const char *path, const unsigned char *head, size_t len,
                                      int *score);
/* The same of a file, by its content alone; NULL also where it cannot be read. */
const kiln_foreign *kiln_foreign_of_file(const char *path);
/* What a folder is by the folders in it, such as keyframes/cameras; NULL: none of these. */
const kiln_foreign *kiln_foreign_of_folder(const char *folder);
/* Could a file of this name in a folder be of such a kind? Its content decides. */
bool kiln_foreign_may_be(const char *name);
/* Is a file of this name in a folder one of Gaussians, whatever it holds? Then it stands among the
 * splat files. */
bool kiln_foreign_is_splats(const char *name);
/* Does the file of such a kind stand for the scenes of readers beside it, which are parts of it? A
 * tileset does for its GLBs. */
bool kiln_foreign_holds_suffix(const kiln_foreign *f, const char *suffix);

const char *kiln_foreign_what(const kiln_foreign *f); /* for "'PATH' is ..." */
const char *kiln_foreign_help(const kiln_foreign *f); /* what to do, a sentence without its stop */
kiln_foreign_role kiln_foreign_role_of(const kiln_foreign *f);

/* KILN_E_INPUT with the sentence about such a file. */
kiln_status kiln_foreign_refuse(const char *path, const kiln_foreign *f,
                                kiln_error *err) KILN_MUST_CHECK;
/* The same of a file whose reader found out what it is: name is that of a row. */
kiln_status kiln_foreign_refuse_named(const char *path, const char *name,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Prints the kinds, one a line: "(not read)", names of files, what it is and what helps. */
void kiln_foreign_list(void);

#endif
