/* sog_notes -- what the two readers of SOG say alike: whose a JSON file is, and what codes say of a
 * source. */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_NOTES_H
#define KILN_STAGES_FORMATS_SOG_SOG_NOTES_H

#include "stages/formats/reader.h"
#include "stages/formats/sog/sog_rows.h"

/* Score of a probe: 90 for a JSON object in whose head the key (with its quotes) has a value that
 * begins with one of `first`, 40 for an object in a file of the usual name, else 0. */
int kiln_sog_json_score(const unsigned char *head, size_t len, const char *key, const char *first,
                        const char *path, const char *name);

/* Adds n_rows; raises the degree; takes antialiased, dialect and writer from the first; adds
 * notes. */
void kiln_sog_info_take(const kiln_sog_codes *c, kiln_source_info *info);
/* Adds notes of what the spool has counted. */
void kiln_sog_note_unknown(const kiln_sog_codes *c, kiln_source_info *info);
/* A sentence behind those already there. */
void kiln_sog_note(kiln_source_info *info, const char *fmt, ...) KILN_PRINTF(2, 3);

#endif
