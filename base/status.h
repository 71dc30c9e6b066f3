/* status -- the return value of every function that can fail, and the message that goes with it.
 *
 * The lowest function that knows the facts writes the message with kiln_fail(). Functions above it
 * add context with kiln_note(). Only main prints it and turns the status into the exit code.
 * Wording: lower case, no full stop, what failed first, the subject in single quotes, then where,
 * then what to do.
 */
#ifndef KILN_BASE_STATUS_H
#define KILN_BASE_STATUS_H

#include "base/extern_c.h"

#include <stddef.h>

KILN_C_BEGIN

/* name, exit code of a program that ends with it, text */
#define KILN_STATUS_MAP(X)                                       \
    X(OK, 0, "done")                                             \
    X(E_USAGE, 2, "wrong command line")                          \
    X(E_INPUT, 3, "bad input")                                   \
    X(E_STALE, 4, "a needed stage is missing, stale or partial") \
    X(E_CAP, 5, "the memory cap is too small")                   \
    X(E_NOMEM, 5, "out of memory")                               \
    X(E_DEVICE, 6, "device failed")                              \
    X(E_PARTIAL, 7, "finished partially")                        \
    X(E_BUG, 70, "a bug of ours")                                \
    X(E_IO, 74, "read or write failed")                          \
    X(E_BUSY, 75, "held by another process")                     \
    X(E_INTERRUPTED, 130, "interrupted")                         \
    X(E_TERMINATED, 143, "terminated")                           \
    X(E_HANGUP, 129, "the terminal was closed")

typedef enum {
#define X(name, code, text) KILN_##name,
    KILN_STATUS_MAP(X)
#undef X
} kiln_status;

typedef struct {
    kiln_status status;
    char msg[1024]; /* of fixed size, so that it works without free memory */
} kiln_error;

#define KILN_MUST_CHECK __attribute__((warn_unused_result))
#define KILN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Writes the message and returns `status`. If err is NULL, only returns `status`. */
kiln_status kiln_fail(kiln_error *err, kiln_status status, const char *fmt, ...) KILN_PRINTF(3, 4);
/* As kiln_fail, but the message ends with " (FILE:LINE)", unless KILN_WHERE=0 is in the environment
 * (tests that compare messages set it). A build with DEBUG=1 uses this for kiln_fail, so that each
 * message says where it was made. */
kiln_status kiln_fail_at(const char *file, int line, kiln_error *err, kiln_status status,
                         const char *fmt, ...) KILN_PRINTF(5, 6);
#ifdef KILN_SAYS_WHERE
#define kiln_fail(...) kiln_fail_at(__FILE__, __LINE__, __VA_ARGS__)
#endif
/* Puts "context: " in front of the message. */
void kiln_note(kiln_error *err, const char *fmt, ...) KILN_PRINTF(2, 3);
/* Return the exit code of a program that ends with `status`, its general text, and its name
 * ("E_INPUT"). The strings are static. */
int kiln_exit_code(kiln_status status);
/* Whether it is one of those that a signal to the process makes of any work. */
int kiln_status_is_signal(kiln_status status);
const char *kiln_status_text(kiln_status status);
/* Writes the texts of all statuses with this exit code, joined by ", or ", into out[size]; "" for
 * an unknown code. */
void kiln_exit_text(int code, char *out, size_t size);
const char *kiln_status_name(kiln_status status);

#define KILN_TRY(call)                              \
    do {                                            \
        kiln_status kiln_try_ = (call);             \
        if (kiln_try_ != KILN_OK) return kiln_try_; \
    } while (0)
/* The same for functions with one exit: needs `kiln_status st` and a label `done` in scope. */
#define KILN_GO(call)                 \
    do {                              \
        st = (call);                  \
        if (st != KILN_OK) goto done; \
    } while (0)

KILN_C_END

#endif
