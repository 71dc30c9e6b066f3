/* zip_archive -- the entries of a ZIP archive from somebody else, all of them checked before the
 * first is read.
 *
 * The central directory alone says where entries lie and how long they are: writers that stream
 * leave both out of the local headers (general purpose bit 3). KILN_E_INPUT: no archive, cut short,
 * more than one disk, ZIP64, more than 1,024 entries, an entry that is encrypted, packed by another
 * method than 0 or 8, twice there, outside of the archive, over another one, or whose name leaves
 * the archive. zip.h has the layout. An archive may be read from several threads at once.
 */
#ifndef KILN_STAGES_FORMATS_SOG_ZIP_ARCHIVE_H
#define KILN_STAGES_FORMATS_SOG_ZIP_ARCHIVE_H

#include "base/status.h"

#include <stdint.h>

typedef struct {
    char *name;      /* as it stands: UTF-8, relative, '/' between components */
    uint64_t header; /* offset of its local header */
    uint64_t at;     /* offset of its data */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t method; /* KILN_ZIP_STORED or KILN_ZIP_DEFLATE */
} kiln_zip_entry;

typedef struct {
    int fd;
    char *path;              /* for sentences */
    kiln_zip_entry *entries; /* sorted by name, unique */
    uint32_t n;
} kiln_zip;

/* path: what to read; name: what sentences call it. kiln_zip_close(out), after a failure too. */
kiln_status kiln_zip_open(const char *path, const char *name, kiln_zip *out,
                          kiln_error *err) KILN_MUST_CHECK;
void kiln_zip_close(kiln_zip *z);
/* NULL when there is none. */
const kiln_zip_entry *kiln_zip_find(const kiln_zip *z, const char *name);
/* The first `bytes` of an entry, which has so many, into dst; all of them: its checksum is
 * verified. */
kiln_status kiln_zip_read(const kiln_zip *z, const kiln_zip_entry *e, void *dst, uint64_t bytes,
                          kiln_error *err) KILN_MUST_CHECK;
/* Host memory that kiln_zip_read takes, besides dst. */
enum { KILN_ZIP_READ_RAM = 256 << 10 };

#endif
