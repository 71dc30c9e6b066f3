/* request_rules -- what a request must look like before anything is looked up for it: whom it
 * addresses, where it comes from, and which of our addresses it names. Pure functions; any thread.
 *
 * Why Host: a page of another site whose name has been made to lead to 127.0.0.1 (DNS rebinding)
 * reaches this server with the name of that site as Host. Why Origin: browsers name in it the page
 * that a script belongs to. Why no percent-encoding: none of our addresses needs it, so there is
 * nothing to decode twice or differently. */
#ifndef KILN_STAGES_SERVE_REQUEST_RULES_H
#define KILN_STAGES_SERVE_REQUEST_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char listen[64]; /* numeric address that the server listens on: "127.0.0.1", "::1" */
    bool any;        /* it is 0.0.0.0 or :: */
    uint16_t port;
} kiln_serve_address;

/* Says whether a Host header may be answered: 127.0.0.1, localhost, [::1] or the address that is
 * listened on, each with the port. If every address is listened on, any numeric address with the
 * port: a name is what rebinding needs. */
bool kiln_host_is_ours(const kiln_serve_address *a, const char *host);
/* Says whether an Origin header is that of the pages behind this Host header. */
bool kiln_origin_is_ours(const char *origin, const char *host);

enum { KILN_TARGET_MAX = 512 /* bytes of a path */ };

/* Says whether the path of a request is at most KILN_TARGET_MAX letters, digits, '/', '.', '_' and
 * '-', without two dots or slashes in a row. */
bool kiln_target_is_plain(const char *path);

/* What stands in a path in place of a pattern's wildcards. Pointers lead into the path. */
typedef struct {
    uint32_t number;    /* of '#' */
    const char *digest; /* of '@': 32 hexadecimal digits, without a NUL behind them */
    const char *name;   /* of '*', to the end of the path */
} kiln_path_parts;

/* Compares the path behind the token's slash with a pattern: '#' is a decimal number below 2^32
 * without leading zeros, '@' is 32 lower-case hexadecimal digits, '*' at the end is a name without
 * a slash; everything else is itself. */
bool kiln_path_matches(const char *pattern, const char *path, kiln_path_parts *parts);

#endif
