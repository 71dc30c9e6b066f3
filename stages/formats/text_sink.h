/* text_sink -- where a long text goes piece by piece, so that it is never in memory as a whole; and
 * files that are such places. */
#ifndef KILN_STAGES_FORMATS_TEXT_SINK_H
#define KILN_STAGES_FORMATS_TEXT_SINK_H

#include "base/memory.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Takes the next piece of the text. */
typedef kiln_status kiln_text_sink_fn(void *context, const char *text, size_t bytes,
                                      kiln_error *err);

/* Counts the bytes: context is a uint64_t. */
kiln_text_sink_fn kiln_text_count;

/* Text on its way to an open file. */
typedef struct {
    int fd;
    const char *path;  /* of it, for sentences */
    uint64_t at;       /* where the next byte goes that does not wait */
    kiln_buffer waits; /* owned: kiln_text_file_release */
} kiln_text_file;
kiln_text_sink_fn kiln_text_file_put; /* context is a kiln_text_file */
/* Writes what waits. */
kiln_status kiln_text_file_flush(kiln_text_file *f, kiln_error *err) KILN_MUST_CHECK;
void kiln_text_file_release(kiln_text_file *f);

#endif
