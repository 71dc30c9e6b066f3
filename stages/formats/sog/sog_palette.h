/* sog_palette -- rounds 4 and 5 of the SOG writer (sog_write.c): the palette of harmonics, made of
 * the sample of all rows, and the entry of it that each row gets. Functions are those of a
 * kiln_export_round, of scenes that have harmonics. */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_PALETTE_H
#define KILN_STAGES_FORMATS_SOG_SOG_PALETTE_H

#include "stages/formats/writer.h"

/* The one unit: the sample in scratch becomes palette, centroids and index there; the result is the
 * plan with the palette's size and, if the rows had more than few values, the codebook of its
 * entries. */
uint64_t kiln_sog_palette_ram(const kiln_export *e, uint64_t unit);
uint64_t kiln_sog_palette_ram_thread(const kiln_export *e, uint64_t unit);
kiln_status kiln_sog_palette_make(kiln_export_worker *x, uint64_t unit,
                                  kiln_error *err) KILN_MUST_CHECK;
/* A chunk: its rows in scratch become labels there. */
uint64_t kiln_sog_label_ram(const kiln_export *e, uint64_t unit);
uint64_t kiln_sog_label_ram_thread(const kiln_export *e, uint64_t unit);
kiln_status kiln_sog_label_chunk(kiln_export_worker *x, uint64_t unit,
                                 kiln_error *err) KILN_MUST_CHECK;

#endif
