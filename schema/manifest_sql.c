/* manifest_sql -- schema/manifest.sql and schema/part.sql inside the library, byte for byte, so
 * that the pages that people read are the text that runs. schema.mk makes this object depend on the
 * files. */
#include "base/embed.h"
#include "schema/manifest_internal.h"

KILN_EMBED("kiln_manifest_sql", "schema/manifest.sql");
KILN_EMBED("kiln_part_sql", "schema/part.sql");
