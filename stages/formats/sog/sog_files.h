/* sog_files -- rounds 3, 6 and 7 of the SOG writer (sog_write.c): codes from scratch become WebP
 * images there, then meta.json and the images become the files of a folder or the members of an
 * archive; and what such a folder has. Functions are those of a kiln_export_round, or of a
 * kiln_writer_functions. */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_FILES_H
#define KILN_STAGES_FORMATS_SOG_SOG_FILES_H

#include "stages/formats/writer.h"

/* An image: an ARGB picture of codes is encoded; the result is the length of its file, which goes
 * into the plan. */
uint64_t kiln_sog_images(const kiln_export *e);
uint64_t kiln_sog_image_ram(const kiln_export *e, uint64_t image);
uint64_t kiln_sog_image_cost(const kiln_export *e, uint64_t image);
kiln_status kiln_sog_image_encode(kiln_export_worker *x, uint64_t image,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_sog_image_take(kiln_export_parent *p, uint64_t image, const void *result,
                                size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* The one unit: all files. */
uint64_t kiln_sog_files_ram(const kiln_export *e, uint64_t unit);
kiln_status kiln_sog_files_write(kiln_export_worker *x, uint64_t unit,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Says whether a file may be of such a folder, by its name. */
bool kiln_sog_is_ours(const char *name);

#endif
