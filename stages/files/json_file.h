/* json_file -- a JSON file from outside, parsed with the limits that a foreign file needs. */
#ifndef KILN_STAGES_FILES_JSON_FILE_H
#define KILN_STAGES_FILES_JSON_FILE_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file, and of memory that its values may take. The latter is enough for 100,000 frames
 * of a transforms.json with lenses of their own, and for a lod-meta.json of 130,000 leaves with one
 * level or 75,000 with five. */
enum { KILN_JSON_SIZE_LIMIT = 64 << 20, KILN_JSON_TREE_LIMIT = 512 << 20 };

/* The whole file as one value; json_decref(*out). A byte order mark is skipped; numbers are reals.
 * KILN_E_INPUT: empty, longer than 64 MiB, not UTF-8, nested deeper than 64, not JSON, a key twice,
 * a number too large, or values that may take more than 512 MiB (counted before anything is
 * parsed). */
kiln_status kiln_json_file_read(const char *path, json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* The same of a text that stands in the file `path` beside other things; its values may take
 * tree_limit bytes. */
kiln_status kiln_json_text_read(const char *path, const unsigned char *text, size_t size,
                                uint64_t tree_limit, json_t **out, kiln_error *err) KILN_MUST_CHECK;

/* numbers[n] of an array of exactly n finite numbers; rows x columns of an array of arrays. False
 * when it is not that. */
bool kiln_json_vector(const json_t *array, uint32_t n, double *numbers);
bool kiln_json_matrix(const json_t *array, uint32_t rows, uint32_t columns, double *numbers);

#endif
