/* listener -- see the header. */
#include "stages/serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, OTHER_FILES = 96 /* manifest, log, pictures, epoll, pipes */ };

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} place;

static bool read_place(const char *listen, uint32_t port, place *out, socklen_t *size)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, listen, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons((uint16_t)port);
        *size = sizeof out->v4;
        return true;
    }
    if (inet_pton(AF_INET6, listen, &out->v6.sin6_addr) != 1) return false;
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons((uint16_t)port);
    *size = sizeof out->v6;
    return true;
}

kiln_status kiln_listen_check(const char *listen, kiln_error *err)
{
    place p;
    socklen_t size;
    if (read_place(listen, 0, &p, &size)) return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "--listen takes a numeric address such as 127.0.0.1, 192.168.1.7, 0.0.0.0 or ::1, not '%s'",
        listen);
}

bool kiln_address_is_loopback(const char *listen)
{
    place p;
    socklen_t size;
    if (!read_place(listen, 0, &p, &size)) return false;
    if (p.any.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&p.v6.sin6_addr);
    return ntohl(p.v4.sin_addr.s_addr) >> 24 == 127;
}

static bool is_any(const place *p)
{
    if (p->any.sa_family == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&p->v6.sin6_addr);
    return p->v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

static kiln_status fail(const char *listen, uint32_t port, int error, kiln_error *err)
{
    if (error == EADDRINUSE)
        return kiln_fail(err, KILN_E_BUSY,
                         "port %u of %s is in use by another program; choose another one with "
                         "--port, or leave out --port",
                         port, listen);
    if (error == EADDRNOTAVAIL)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--listen %s is not an address of this machine; `ip address` lists those that it has",
            listen);
    if (error == EACCES)
        return kiln_fail(
            err, KILN_E_USAGE,
            "port %u needs root; choose one from 1024 on with --port, or leave out --port", port);
    return kiln_fail(err, KILN_E_IO, "cannot listen on %s, port %u: %s", listen, port,
                     strerror(error));
}

static int try_listen(const place *p, socklen_t size, int fd, kiln_serve_address *address)
{
    const int on = 1;
    place own;
    socklen_t own_size = sizeof own;
    /* so that the port of a server that has just ended can be had again */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return errno;
    if (bind(fd, &p->any, size) != 0 || listen(fd, BACKLOG) != 0) return errno;
    if (getsockname(fd, &own.any, &own_size) != 0) return errno;
    address->port = ntohs(own.any.sa_family == AF_INET6 ? own.v6.sin6_port : own.v4.sin_port);
    return 0;
}

kiln_status kiln_listener_open(const char *listen, uint32_t port, kiln_serve_address *address,
                               int *fd, kiln_error *err)
{
    place p;
    socklen_t size;
    *fd = -1;
    *address = (kiln_serve_address){.port = 0};
    if (!read_place(listen, port, &p, &size)) return kiln_listen_check(listen, err);
    (void)inet_ntop(p.any.sa_family,
                    p.any.sa_family == AF_INET6 ? (const void *)&p.v6.sin6_addr
                                                : (const void *)&p.v4.sin_addr,
                    address->listen, sizeof address->listen); /* is large enough for any */
    address->any = is_any(&p);
    *fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0) return fail(listen, port, errno, err);
    const int error = try_listen(&p, size, *fd, address);
    if (error == 0) return KILN_OK;
    (void)close(*fd);
    *fd = -1;
    return fail(listen, port, error, err);
}

uint32_t kiln_connections_fit(uint32_t wanted)
{
    struct rlimit files, more;
    const rlim_t need = (rlim_t)wanted + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
    more = files;
    more.rlim_cur = files.rlim_max < need ? files.rlim_max : need;
    if (files.rlim_cur < need && setrlimit(RLIMIT_NOFILE, &more) == 0) files = more;
    if (files.rlim_cur >= need) return wanted;
    return files.rlim_cur > OTHER_FILES ? (uint32_t)(files.rlim_cur - OTHER_FILES) : 1;
}
