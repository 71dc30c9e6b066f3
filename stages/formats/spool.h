/* spool -- makes a file of rows readable in any order, once an import, before anything else reads
 * its rows.
 *
 * Blocks of rows are read in any order by several workers, which a compressed stream, a picture and
 * a text do not allow. So
 *   1. a packed file (packing.h) is unpacked, as a stream in fixed memory;
 *   2. a reader that has a spool writes what it read once into a form of fixed places (reader.h).
 * Both go to scratch files without a name (kiln_scratch_unnamed), which are gone with the process;
 * workers open them through the parent. Most files need neither. Everything that is stored and said
 * is about the file that the user has.
 */
#ifndef KILN_STAGES_FORMATS_SPOOL_H
#define KILN_STAGES_FORMATS_SPOOL_H

#include "base/file.h"
#include "stages/engine/engine.h"
#include "stages/formats/reader.h"

/* Where a source is read, as it travels to workers. */
typedef struct {
    char path[KILN_PATH_MAX]; /* the user's file */
    char packing[16];         /* what packs it, "" nothing */
    char unpacked[64];        /* scratch with what was packed, "" none */
    char spool[64];           /* scratch of the reader's spool, "" none */
    kiln_read_options options;
} kiln_place;
/* Borrows from p. */
kiln_source_at kiln_place_at(const kiln_place *p);

/* A place, and the scratch files that live as long as these are open. */
typedef struct {
    kiln_place place;
    int unpacked_fd, spool_fd; /* -1: none */
} kiln_prepared;
enum { KILN_PREPARED_NONE = -1 };

/* Writes all of data to scratch at `offset`. path: the user's file. May be called from several
 * threads. KILN_E_IO with what is free and what to do. */
kiln_status kiln_spool_write(int fd, const char *path, uint64_t offset, const void *data,
                             uint64_t bytes, kiln_error *err) KILN_MUST_CHECK;

/* A file that is to be read. */
typedef struct {
    const kiln_reader *reader;
    const char *path;
    const kiln_read_options *options;
    /* how many times its size it may unpack to, if its header does not say (kiln_unpack_whole) */
    uint64_t max_inflated;
    kiln_file_info file; /* as it was hashed */
} kiln_source_wanted;

/* Fills *out for a file, running the units that are needed. manifest: beside which scratch lies.
 * Release also after a failure. KILN_E_INPUT: what the reader's open and spool refuse, or a damaged
 * stream. KILN_E_IO: no room for scratch. As kiln_run_units. */
kiln_status kiln_prepare(kiln_run *r, const char *manifest, const kiln_source_wanted *wanted,
                         kiln_prepared *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_prepared_release(kiln_prepared *p);

/* The units of kiln_prepare: payload, a kiln_spool_request; no output. */
typedef struct {
    kiln_place place;
    char reader[32];     /* whose spool fills place.spool; "": place.unpacked is filled */
    uint64_t file_bytes; /* of what is packed, as its header says; 0 unknown */
    uint64_t max_inflated;
    kiln_file_info file; /* as it was hashed */
} kiln_spool_request;
#define KILN_UNPACK_UNIT "unpacking"
#define KILN_SPOOL_UNIT "reading in order"
kiln_status kiln_spool_unit(kiln_worker *w, const kiln_spool_request *q,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
