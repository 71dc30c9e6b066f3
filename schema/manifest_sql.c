/* manifest_sql -- schema/manifest.sql inside the library, byte for byte, so that the page that people read is the text
 * that runs. The path is relative to the repository root, where every build runs; schema/schema.mk makes this object
 * depend on it. */
#include "schema/manifest_internal.h"

__asm__(".pushsection .rodata\n"
        ".global kiln_manifest_sql\n"
        ".type kiln_manifest_sql, @object\n"
        "kiln_manifest_sql:\n"
        ".incbin \"schema/manifest.sql\"\n"
        ".byte 0\n"
        ".size kiln_manifest_sql, . - kiln_manifest_sql\n"
        ".popsection\n");
