/* foreign_picture -- reads a picture whose path a manifest names, which may be a stranger's.
 *
 * A path may lead to any file of this machine, to a pipe that never answers, or to a file that
 * changes while it is read. So a file is opened without following a link in its last name and
 * without waiting, must be a regular one of at most KILN_FOREIGN_BYTES, and is copied into memory.
 * What is hashed and what is decoded are that same copy. */
#ifndef KILN_STAGES_REPORT_FOREIGN_PICTURE_H
#define KILN_STAGES_REPORT_FOREIGN_PICTURE_H

#include "schema/manifest.h"
#include "stages/image/image.h"

#define KILN_FOREIGN_BYTES ((uint64_t)256 << 20)
#define KILN_FOREIGN_PIXELS ((uint64_t)1 << 27)

/* Reads a file that import read and whose content it hashed. *why NULL: *out holds the picture;
 * else a static sentence that says why there is none, which is no failure. Any thread.
 * KILN_E_NOMEM, KILN_E_IO: the copy cannot be made. */
kiln_status kiln_foreign_photo(const char *path, const kiln_source_file *files, uint32_t n_files,
                               kiln_picture *out, const char **why,
                               kiln_error *err) KILN_MUST_CHECK;
/* Reads a picture that kiln-render wrote in the folder of the manifest, or below; path as
 * kiln_image has it. Others are not opened: nothing in the manifest tells what they should hold. */
kiln_status kiln_foreign_render(const char *manifest, const char *path, kiln_picture *out,
                                const char **why, kiln_error *err) KILN_MUST_CHECK;

#endif
