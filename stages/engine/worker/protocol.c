/* Messages over a SOCK_SEQPACKET pair with at most one descriptor each, and the sealed memfds that carry the bulk. */
#include "stages/engine/worker/protocol.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return kiln_fail(err, KILN_E_TERMINATED, "the other process is gone");
    if (sent != (ssize_t)sizeof *m)
        return kiln_fail(err, KILN_E_IO, "cannot send a message between parent and worker: %s", strerror(errno));
    return KILN_OK;
}

static int take_descriptor(struct msghdr *head)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

kiln_status kiln_no_descriptor(const char *what, kiln_error *err)
{
    struct rlimit most = {0};
    (void)getrlimit(RLIMIT_NOFILE, &most); /* 0 then, which is a number for people only */
    return kiln_fail(err, KILN_E_IO,
                     "cannot %s: too many files are open; ulimit -n, which is %llu, has to be higher, or the system's fs.file-max",
                     what, (unsigned long long)most.rlim_cur);
}

kiln_status kiln_message_receive(int fd, kiln_message *m, int *memfd, bool *closed, kiln_error *err)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = m, .iov_len = sizeof *m};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    *memfd = -1;
    *closed = false;
    ssize_t got;
    int resets = 0;
    do { /* ECONNRESET comes once if the peer ended without reading all, before the messages that it had sent */
        got = recvmsg(fd, &head, MSG_CMSG_CLOEXEC);
    } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    if (got == 0 || (got < 0 && errno == ECONNRESET)) {
        *closed = true;
        return KILN_OK;
    }
    if (got < 0) return kiln_fail(err, KILN_E_IO, "cannot receive a message between parent and worker: %s", strerror(errno));
    if (head.msg_flags & MSG_CTRUNC) /* a message has one descriptor or none, so there was no number left for it */
        return kiln_no_descriptor("receive shared memory", err);
    *memfd = take_descriptor(&head);
    if (got != (ssize_t)sizeof *m || m->version != KILN_PROTOCOL_VERSION || (m->bytes > 0) != (*memfd >= 0)) {
        if (*memfd >= 0) (void)close(*memfd);
        *memfd = -1;
        return kiln_fail(err, KILN_E_BUG,
                         "parent and worker do not understand each other (message of %zd bytes, version %u); "
                         "was the program replaced while it ran?",
                         got, m->version);
    }
    m->text[sizeof m->text - 1] = '\0';
    return KILN_OK;
}

kiln_status kiln_memfd_new(int *fd, kiln_error *err)
{
    *fd = memfd_create("kiln", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0 && (errno == EMFILE || errno == ENFILE)) return kiln_no_descriptor("make a shared memory file", err);
    if (*fd < 0) return kiln_fail(err, KILN_E_NOMEM, "cannot make a shared memory file: %s", strerror(errno));
    return KILN_OK;
}

kiln_status kiln_memfd_write(int fd, uint64_t at, const void *data, size_t bytes, kiln_error *err)
{
    size_t done;
    const int why = kiln_file_pwrite(fd, at, data, bytes, &done);
    if (why == 0) return KILN_OK;
    if (why == EFBIG) return kiln_file_write_failed("shared memory", why, err); /* ulimit -f counts here too */
    return kiln_fail(err, KILN_E_NOMEM, "cannot put %zu bytes into shared memory: %s", bytes - done, strerror(why));
}

kiln_status kiln_memfd_seal(int fd, kiln_error *err)
{
    /* not F_SEAL_WRITE: the kernel refuses it with EBUSY while anything holds one of the file's pages for a moment */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot seal a shared memory file: %s", strerror(errno));
    return KILN_OK;
}

uint64_t kiln_memfd_holds(int fd)
{
    enum { BLOCK = 512 }; /* of st_blocks, whatever the file system's are */
    struct stat s;
    return fstat(fd, &s) == 0 ? BLOCK * (uint64_t)s.st_blocks : 0;
}

static kiln_status check_size(int fd, uint64_t bytes, kiln_error *err)
{
    struct stat s;
    if (fstat(fd, &s) != 0) return kiln_fail(err, KILN_E_IO, "cannot look at shared memory: %s", strerror(errno));
    if (bytes == 0 || (uint64_t)s.st_size != bytes)
        return kiln_fail(err, KILN_E_BUG, "shared memory of %lld bytes came where %llu were announced", (long long)s.st_size,
                         (unsigned long long)bytes);
    return KILN_OK;
}

kiln_status kiln_memfd_copy(int fd, uint64_t bytes, void **data, kiln_error *err)
{
    *data = NULL;
    KILN_TRY(check_size(fd, bytes, err));
    KILN_TRY(kiln_alloc(data, bytes, 1, "a small result", err));
    const kiln_status st = kiln_file_read_at(fd, "shared memory", 0, *data, bytes, err);
    if (st != KILN_OK) {
        free(*data);
        *data = NULL;
    }
    return st;
}

kiln_status kiln_memfd_map(int fd, uint64_t bytes, void **data, kiln_error *err)
{
    *data = NULL;
    KILN_TRY(check_size(fd, bytes, err));
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return kiln_fail(err, KILN_E_NOMEM, "cannot map %llu bytes of shared memory: %s", (unsigned long long)bytes,
                         strerror(errno));
    *data = map;
    return KILN_OK;
}
