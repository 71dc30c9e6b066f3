/* Messages over a SOCK_SEQPACKET pair with at most one descriptor each. */
#include "stages/engine/worker/protocol.h"

#include "stages/engine/memory/memfd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

kiln_status kiln_message_send(int fd, const kiln_message *m, int memfd, kiln_error *err)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof *m};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    if (memfd >= 0) {
        head.msg_control = control.bytes;
        head.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&head);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &memfd, sizeof memfd);
    }
    ssize_t sent;
    do {
        sent = sendmsg(fd, &head, MSG_NOSIGNAL); /* a dead peer is an error here, not a signal */
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return kiln_fail(err, KILN_E_TERMINATED, "the other process has ended");
    if (sent != (ssize_t)sizeof *m)
        return kiln_fail(err, KILN_E_IO, "cannot send a message between parent and worker: %s",
                         strerror(errno));
    return KILN_OK;
}

static int take_descriptor(struct msghdr *head)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

kiln_status kiln_message_receive(int fd, kiln_message *m, int *memfd, bool *closed, kiln_error *err)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = m, .iov_len = sizeof *m};
    struct msghdr head = {.msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof control.bytes};
    *memfd = -1;
    *closed = false;
    ssize_t got;
    int resets = 0;
    /* ECONNRESET comes once if the peer ended without reading all, before the messages that it had
     * sent */
    do {
        got = recvmsg(fd, &head, MSG_CMSG_CLOEXEC);
    } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    if (got == 0 || (got < 0 && errno == ECONNRESET)) {
        *closed = true;
        return KILN_OK;
    }
    if (got < 0)
        return kiln_fail(err, KILN_E_IO, "cannot receive a message between parent and worker: %s",
                         strerror(errno));
    /* a message has one descriptor or none, so there was no number left for it */
    if (head.msg_flags & MSG_CTRUNC) return kiln_no_descriptor("receive shared memory", err);
    *memfd = take_descriptor(&head);
    if (got != (ssize_t)sizeof *m || m->version != KILN_PROTOCOL_VERSION ||
        (m->bytes > 0) != (*memfd >= 0)) {
        if (*memfd >= 0) (void)close(*memfd);
        *memfd = -1;
        return kiln_fail(
            err, KILN_E_BUG,
            "parent and worker do not understand each other (message of %zd bytes, version %u); "
            "was the program replaced while it ran?",
            got, m->version);
    }
    m->text[sizeof m->text - 1] = '\0';
    return KILN_OK;
}
