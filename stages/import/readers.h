/* readers -- the rows of readers[]: one per format, each in a file of its own. */
#ifndef KILN_STAGES_IMPORT_READERS_H
#define KILN_STAGES_IMPORT_READERS_H

#include "stages/import/reader.h"

extern const kiln_reader kiln_reader_ply;
extern const kiln_reader kiln_reader_colmap_bin;
extern const kiln_reader kiln_reader_colmap_txt;

#endif
