/* ply_ascii -- rows of an ascii PLY as binary rows of this machine, in the layout of the header. */
#ifndef KILN_STAGES_FORMATS_PLY_PLY_ASCII_H
#define KILN_STAGES_FORMATS_PLY_PLY_ASCII_H

#include "stages/formats/ply/ply_header.h"

/* Bytes that kiln_ply_ascii_spool writes: the rows, and a byte that is 1 where text follows them
 * that no element explains. */
uint64_t kiln_ply_ascii_bytes(const kiln_ply_header *h);
/* Writes them to `out`, from its byte 0 on. fd: of the file that the sentences call `path`. Memory:
 * as kiln_text_rows_spool. KILN_E_INPUT: too few rows; a row with too few or too many values, or
 * with one that is no number or does not fit its type. */
kiln_status kiln_ply_ascii_spool(const kiln_ply_header *h, int fd, const char *path, int out,
                                 unsigned threads, kiln_error *err) KILN_MUST_CHECK;

#endif
