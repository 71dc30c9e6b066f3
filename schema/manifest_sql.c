/* manifest_sql -- schema/manifest.sql and schema/part.sql inside the library, byte for byte, so that the pages that people read are
 * the text that runs. The paths are relative to the repository root, where every build runs; schema/schema.mk makes this object
 * depend on them. */
#include "schema/manifest_internal.h"

#define TEXT(symbol, path)                             \
    __asm__(".pushsection .rodata\n"                   \
            ".global " symbol "\n"                     \
            ".type " symbol ", @object\n" symbol ":\n" \
            ".incbin \"" path "\"\n"                   \
            ".byte 0\n"                                \
            ".size " symbol ", . - " symbol "\n"       \
            ".popsection\n")

TEXT("kiln_manifest_sql", "schema/manifest.sql");
TEXT("kiln_part_sql", "schema/part.sql");
