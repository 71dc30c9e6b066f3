/* convert_streams -- see the header. */
#include "stages/front/convert_streams.h"

#include "base/file.h"
#include "stages/engine/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 256 << 10 };

/* Another program may have made the stream one that does not wait; it shares the file with us. */
static void wait_for_stream(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    (void)poll(&p, 1, -1); /* an interrupt ends it, too */
}

static kiln_status read_piece(int fd, const char *what, void *to, size_t *n, kiln_error *err)
{
    ssize_t got;
    do {
        KILN_TRY(kiln_interrupt_check(err));
        got = read(fd, to, PIECE);
        if (got < 0 && errno == EAGAIN) wait_for_stream(fd, POLLIN);
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got < 0) return kiln_fail(err, KILN_E_IO, "cannot read %s: %s", what, strerror(errno));
    *n = (size_t)got;
    return KILN_OK;
}

static kiln_status write_output(const char *from, size_t n, kiln_error *err)
{
    for (size_t done = 0; done < n;) {
        KILN_TRY(kiln_interrupt_check(err));
        const ssize_t put = write(STDOUT_FILENO, from + done, n - done);
        if (put < 0 && errno == EAGAIN)
            wait_for_stream(STDOUT_FILENO, POLLOUT);
        else if (put < 0 && errno != EINTR)
            return kiln_fail(err, KILN_E_IO, "cannot write to standard output: %s",
                             strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    return KILN_OK;
}

static kiln_status copy_input(int fd, const char *path, kiln_error *err)
{
    static char piece[PIECE];
    uint64_t at = 0;
    size_t n;
    for (;;) {
        KILN_TRY(read_piece(STDIN_FILENO, "standard input", piece, &n, err));
        if (n == 0) break;
        KILN_TRY(kiln_file_write_at(fd, path, at, piece, n, err));
        at += n;
    }
    return at ? KILN_OK : kiln_fail(err, KILN_E_INPUT, "standard input is empty");
}

kiln_status kiln_convert_take_input(const char *path, kiln_error *err)
{
    int fd;
    if (isatty(STDIN_FILENO))
        return kiln_fail(err, KILN_E_USAGE,
                         "'-' is standard input, which is a terminal here; pipe a file into it");
    KILN_TRY(kiln_file_create(path, &fd, err));
    const kiln_status st = copy_input(fd, path, err);
    (void)close(fd); /* writes were checked, and the file is of no use behind this run */
    return st;
}

kiln_status kiln_convert_give_output(const char *path, kiln_error *err)
{
    static char piece[PIECE];
    size_t n = 1;
    int fd;
    KILN_TRY(kiln_file_open(path, &fd, err));
    kiln_status st = KILN_OK;
    while (st == KILN_OK && n > 0) {
        st = read_piece(fd, path, piece, &n, err);
        if (st == KILN_OK) st = write_output(piece, n, err);
    }
    (void)close(fd);
    return st;
}
