/* sha256 -- SHA-256 (FIPS 180-4) of a short text: what a Content-Security-Policy names a script and
 * a style by. Not for secrets. */
#ifndef KILN_STAGES_PAGE_SHA256_H
#define KILN_STAGES_PAGE_SHA256_H

#include <stddef.h>

void kiln_sha256(const void *data, size_t bytes, unsigned char out[32]);

#endif
