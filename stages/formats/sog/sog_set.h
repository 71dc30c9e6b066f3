/* sog_set -- one meta.json of a SOG scene with its images: in a folder, or all in one ZIP archive
 * (.sog). */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_SET_H
#define KILN_STAGES_FORMATS_SOG_SOG_SET_H

#include "stages/formats/reader.h"
#include "stages/formats/sog/sog_rows.h"

typedef struct kiln_sog_set kiln_sog_set;

/* path: what to read, a meta.json or an archive, told apart by content; name: the user's file, for
 * sentences and for the folder that images lie in. Reads meta.json and the header of each image;
 * decodes nothing. KILN_E_INPUT: whatever is wrong with them, images of another size than their
 * sisters or too small for the count, and scenes that decode to more than a thousand times of what
 * they are. kiln_sog_set_free(*out). */
kiln_status kiln_sog_set_open(const char *path, const char *name, kiln_sog_set **out,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_sog_set_free(kiln_sog_set *s);
bool kiln_sog_set_is_archive(const kiln_sog_set *s); /* else images lie beside it */
/* What codes mean; unknown_tags and unknown_labels are 0. */
const kiln_sog_codes *kiln_sog_set_codes(const kiln_sog_set *s);
/* Host memory of decoding its largest image, and of an open set besides. */
uint64_t kiln_sog_set_image_ram(const kiln_sog_set *s);
uint64_t kiln_sog_set_ram(void);
/* Calls add for each image of a folder; see reader.h. */
kiln_status kiln_sog_set_members(const kiln_sog_set *s, kiln_member_fn *add, void *context,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Decodes the images, one on each thread, into a part of the spool (sog_rows.h) from byte `base` of
 * fd on. KILN_E_INPUT: a damaged image. */
kiln_status kiln_sog_set_spool(kiln_sog_set *s, int fd, uint64_t base, unsigned threads,
                               kiln_error *err) KILN_MUST_CHECK;

#endif
