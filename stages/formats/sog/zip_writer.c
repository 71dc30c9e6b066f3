/* zip_writer -- see the header. */
#include "stages/formats/sog/zip_writer.h"

#include "base/endian.h"
#include "base/file.h"
#include "stages/formats/sog/zip.h"

#include <string.h>
#include <zlib.h>

enum { NEEDED = 10, MADE_BY = 3 << 8 | NEEDED }; /* 1.0; 3: Unix, whose attributes are the mode */
enum { FIRST_OF_1980 = 0 << 9 | 1 << 5 | 1 };
static const uint32_t MODE = 0100644u << 16;

static kiln_status append_zip_bytes(kiln_zip_writer *z, const void *data, uint64_t bytes,
                                    kiln_error *err)
{
    KILN_TRY(kiln_file_write_at(z->fd, z->path, z->at, data, bytes, err));
    z->at += bytes;
    return KILN_OK;
}

void kiln_zip_writer_init(kiln_zip_writer *z, int fd, const char *path)
{
    *z = (kiln_zip_writer){.fd = fd, .path = path};
}

/* What local header and directory say alike, 26 bytes. */
static unsigned char *put_common(unsigned char *p, uint32_t crc, uint32_t size, const char *name)
{
    p = kiln_put_u16(kiln_put_u16(kiln_put_u16(p, NEEDED), 0), KILN_ZIP_STORED);
    p = kiln_put_u16(kiln_put_u16(p, 0), FIRST_OF_1980);
    p = kiln_put_u32(kiln_put_u32(kiln_put_u32(p, crc), size), size);
    return kiln_put_u16(kiln_put_u16(p, (uint32_t)strlen(name)), 0);
}

/* Makes the entry and writes its local header. */
static kiln_status begin_entry(kiln_zip_writer *z, const char *name, uint64_t bytes, uint32_t crc,
                               kiln_error *err)
{
    unsigned char local[KILN_ZIP_LOCAL_BYTES];
    const size_t length = strlen(name);
    if (z->n == KILN_ZIP_WRITER_ENTRIES || length >= KILN_ZIP_WRITER_NAME)
        return kiln_fail(err, KILN_E_BUG,
                         "a ZIP archive with an entry too many, or of too long a name: '%s'", name);
    if (z->at + KILN_ZIP_LOCAL_BYTES + length + bytes >= UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' would reach 4 GiB with '%s', %llu bytes; a ZIP archive that all "
                         "readers take is smaller",
                         z->path, name, (unsigned long long)bytes);
    memcpy(z->entries[z->n].name, name, length + 1);
    z->entries[z->n].crc = crc;
    z->entries[z->n].size = (uint32_t)bytes;
    z->entries[z->n].header = (uint32_t)z->at;
    z->n++;
    (void)put_common(kiln_put_u32(local, KILN_ZIP_LOCAL), crc, (uint32_t)bytes, name);
    KILN_TRY(append_zip_bytes(z, local, sizeof local, err));
    return append_zip_bytes(z, name, length, err);
}

kiln_status kiln_zip_writer_add(kiln_zip_writer *z, const char *name, const void *data,
                                uint64_t bytes, kiln_error *err)
{
    KILN_TRY(begin_entry(z, name, bytes, (uint32_t)crc32_z(0, data, bytes), err));
    return append_zip_bytes(z, data, bytes, err);
}

kiln_status kiln_zip_writer_end(kiln_zip_writer *z, kiln_error *err)
{
    const uint64_t directory = z->at;
    unsigned char entry[KILN_ZIP_ENTRY_BYTES], end[KILN_ZIP_END_BYTES];
    for (uint32_t i = 0; i < z->n; i++) {
        const char *name = z->entries[i].name;
        unsigned char *p = put_common(kiln_put_u16(kiln_put_u32(entry, KILN_ZIP_ENTRY), MADE_BY),
                                      z->entries[i].crc, z->entries[i].size, name);
        p = kiln_put_u16(kiln_put_u16(kiln_put_u16(p, 0), 0), 0);
        kiln_put_u32(kiln_put_u32(p, MODE), z->entries[i].header);
        KILN_TRY(append_zip_bytes(z, entry, sizeof entry, err));
        KILN_TRY(append_zip_bytes(z, name, strlen(name), err));
    }
    if (z->at + KILN_ZIP_END_BYTES >= UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' would reach 4 GiB; a ZIP archive that all readers take is smaller",
                         z->path);
    unsigned char *p = kiln_put_u16(
        kiln_put_u16(kiln_put_u16(kiln_put_u16(kiln_put_u32(end, KILN_ZIP_END), 0), 0), z->n),
        z->n);
    kiln_put_u16(kiln_put_u32(kiln_put_u32(p, (uint32_t)(z->at - directory)), (uint32_t)directory),
                 0);
    return append_zip_bytes(z, end, sizeof end, err);
}
