/* zip_writer -- a ZIP archive of files that are stored as they are, written to an open file from
 * its beginning.
 *
 * As plain as it can be, for readers that are not: method 0, sizes and CRC in the local headers, no
 * descriptors, no extra fields, no comment, so that the end record is the last 22 bytes; no ZIP64;
 * times are 1 January 1980. So the bytes depend on names and contents alone. zip.h has the layout,
 * zip_archive.h reads it.
 *
 * KILN_E_INPUT: an entry or the archive would need ZIP64, that is, reach 4 GiB. KILN_E_IO: it
 * cannot be written. A struct is used by one thread at a time. It owns nothing.
 */
#ifndef KILN_STAGES_FORMATS_SOG_ZIP_WRITER_H
#define KILN_STAGES_FORMATS_SOG_ZIP_WRITER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { KILN_ZIP_WRITER_ENTRIES = 16, KILN_ZIP_WRITER_NAME = 64 };

typedef struct {
    int fd;           /* stays the caller's */
    const char *path; /* for sentences; outlives the struct */
    uint64_t at;      /* bytes so far */
    uint32_t n;
    struct {
        char name[KILN_ZIP_WRITER_NAME];
        uint32_t crc, size, header; /* header: where its local header begins */
    } entries[KILN_ZIP_WRITER_ENTRIES];
} kiln_zip_writer;

void kiln_zip_writer_init(kiln_zip_writer *z, int fd, const char *path);
/* Adds a file; name: plain ASCII, shorter than KILN_ZIP_WRITER_NAME, not there yet. At most
 * KILN_ZIP_WRITER_ENTRIES. */
kiln_status kiln_zip_writer_add(kiln_zip_writer *z, const char *name, const void *data,
                                uint64_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* Writes the directory; the archive is whole and z->at bytes long. */
kiln_status kiln_zip_writer_end(kiln_zip_writer *z, kiln_error *err) KILN_MUST_CHECK;

#endif
