/* listener -- the socket on which the server is reached, and how many connections this process may
 * have. */
#ifndef KILN_STAGES_SERVE_LISTENER_H
#define KILN_STAGES_SERVE_LISTENER_H

#include "base/status.h"
#include "stages/serve/request_rules.h"

/* Listens on a numeric address (127.0.0.1, ::1, 0.0.0.0) and a port; 0: one that is free. Fills
 * *address. *fd is the caller's. KILN_E_USAGE: it is no numeric address, or none of this machine.
 * KILN_E_BUSY: the port is in use. KILN_E_IO. */
kiln_status kiln_listener_open(const char *listen, uint32_t port, kiln_serve_address *address,
                               int *fd, kiln_error *err) KILN_MUST_CHECK;
/* Is it a numeric address? KILN_E_USAGE. */
kiln_status kiln_listen_check(const char *listen, kiln_error *err) KILN_MUST_CHECK;
/* Says whether the address is one that other machines cannot reach. */
bool kiln_address_is_loopback(const char *listen);
/* Raises this process's limit of open files so far that so many connections fit, and returns how
 * many do. */
uint32_t kiln_connections_fit(uint32_t wanted);

#endif
