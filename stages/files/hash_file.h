/* hash_file -- the hash of a file's content. */
#ifndef KILN_STAGES_FILES_HASH_FILE_H
#define KILN_STAGES_FILES_HASH_FILE_H

#include "base/file.h"
#include "schema/manifest.h"

/* XXH3-128 of a file's content, streamed; host memory that this takes for each thread. The hash
 * goes over the bytes in their order, so threads share the reading and take turns at hashing: each
 * hashes the piece that it has just read. */
enum { KILN_HASH_RAM = 2 << 20 };
kiln_status kiln_hash_file(const char *path, kiln_hash *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_hash_file_with(const char *path, unsigned threads, kiln_hash *out,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
