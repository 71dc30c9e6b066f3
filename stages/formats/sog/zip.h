/* zip -- what stands where in a ZIP archive without ZIP64, for reader and writer. Little-endian;
 * PKWARE APPNOTE.TXT 6.3.10, 4.3 and 4.4.
 *
 *   for each entry    local header, 30 bytes:
 *                        0 u32 "PK\3\4"   4 u16 version needed, bits, method  10 u16 time, date  14
 *                            u32 crc, packed, size
 *                       26 u16 bytes of the name, of the extra field
 *                     name, extra field, data
 *   directory         an entry, 46 bytes:
 *                        0 u32 "PK\1\2"   4 u16 made by, version needed, bits (0: encrypted), method  12 u16 time, date
 *                       16 u32 crc, packed, size  28 u16 bytes of the name, of the extra field, of
 *                                                 the comment
 *                       34 u16 disk, attributes  38 u32 attributes, offset of the local header
 *                     name, extra field, comment
 *   end record        22 bytes:
 *                        0 u32 "PK\5\6"   4 u16 disk, disk of the directory, entries here, entries
 *                       12 u32 bytes and offset of the directory  20 u16 bytes of the comment
 *                     comment, up to the end of the file
 */
#ifndef KILN_STAGES_FORMATS_SOG_ZIP_H
#define KILN_STAGES_FORMATS_SOG_ZIP_H

enum { KILN_ZIP_LOCAL_BYTES = 30, KILN_ZIP_ENTRY_BYTES = 46, KILN_ZIP_END_BYTES = 22 };
/* their first four bytes */
enum { KILN_ZIP_LOCAL = 0x04034b50, KILN_ZIP_ENTRY = 0x02014b50, KILN_ZIP_END = 0x06054b50 };
/* methods */
enum { KILN_ZIP_STORED = 0, KILN_ZIP_DEFLATE = 8 };

#endif
