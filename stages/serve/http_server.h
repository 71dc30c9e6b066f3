/* http_server -- answers requests over HTTP. The only code that knows libmicrohttpd; kiln-serve
 * alone is linked with it.
 *
 * Threads. One of the library's takes all connections (epoll), checks requests and sends answers.
 * Two lanes (lane.h) make answers; a connection whose answer is being made rests. The caller's
 * thread ends slow connections by kiln_http_server_tick.
 *
 * Bounds. Connections: connections_max, further ones wait to be accepted. Of each: 16 KiB for its
 * request; 10 s for the head of a request, 30 s between two, 30 s and a second for each 64 KiB to
 * take an answer. Answers of all together: 512 MiB. Waiting for a lane: 1024 for data, 32 for
 * pictures and the report. Beyond the last two the answer is 503 with Retry-After. */
#ifndef KILN_STAGES_SERVE_HTTP_SERVER_H
#define KILN_STAGES_SERVE_HTTP_SERVER_H

#include "base/status.h"
#include "stages/serve/request_rules.h"

#include <stdbool.h>

typedef struct kiln_http_server kiln_http_server;

typedef struct {
    const char *manifest; /* borrowed until the server is stopped; so is token */
    bool allow_network;   /* on a network file system, too */
    /* that listens (listener.h); the server's from now on, after a failure, too: the process ends
     * then */
    int fd;
    kiln_serve_address address;
    const char *token;
    uint32_t connections_max;
    unsigned threads; /* for one picture or report */
} kiln_http_options;

/* Starts it. KILN_E_IO, KILN_E_NOMEM: something cannot be had. */
kiln_status kiln_http_server_start(const kiln_http_options *o, kiln_http_server **out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* else the address leads to the report */
bool kiln_http_server_has_viewer(const kiln_http_server *s);
/* Ends connections whose time is over; to be called a few times a second. */
void kiln_http_server_tick(kiln_http_server *s);
/* Waits for the answers that are being made, then closes everything. Accepts NULL. */
void kiln_http_server_stop(kiln_http_server *s);

#endif
