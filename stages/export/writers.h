/* writers -- the rows of writers[]: one per format, each in a file of its own. */
#ifndef KILN_STAGES_EXPORT_WRITERS_H
#define KILN_STAGES_EXPORT_WRITERS_H

#include "stages/export/writer.h"

extern const kiln_writer kiln_writer_ply;
extern const kiln_writer kiln_writer_chunks;

#endif
