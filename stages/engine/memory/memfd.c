/* Sealed memfds: files in memory that one process fills and another maps. */
#include "stages/engine/memory/memfd.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

kiln_status kiln_no_descriptor(const char *what, kiln_error *err)
{
    struct rlimit most = {0};
    (void)getrlimit(RLIMIT_NOFILE, &most); /* 0 then, which is a number for people only */
    return kiln_fail(err, KILN_E_IO,
                     "cannot %s: too many files are open; raise ulimit -n, which is %llu, or the "
                     "system's fs.file-max",
                     what, (unsigned long long)most.rlim_cur);
}

kiln_status kiln_memfd_new(int *fd, kiln_error *err)
{
    *fd = memfd_create("kiln", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0 && (errno == EMFILE || errno == ENFILE))
        return kiln_no_descriptor("make a shared memory file", err);
    if (*fd < 0)
        return kiln_fail(err, KILN_E_NOMEM, "cannot make a shared memory file: %s",
                         strerror(errno));
    return KILN_OK;
}

kiln_status kiln_memfd_write(int fd, uint64_t at, const void *data, size_t bytes, kiln_error *err)
{
    size_t done;
    const int why = kiln_file_pwrite(fd, at, data, bytes, &done);
    if (why == 0) return KILN_OK;
    /* ulimit -f counts here too */
    if (why == EFBIG) return kiln_file_write_failed("shared memory", why, err);
    return kiln_fail(err, KILN_E_NOMEM, "cannot put %zu bytes into shared memory: %s", bytes - done,
                     strerror(why));
}

kiln_status kiln_memfd_seal(int fd, kiln_error *err)
{
    /* not F_SEAL_WRITE: the kernel refuses it with EBUSY while anything holds one of the file's
     * pages for a moment */
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
    if (fstat(fd, &s) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot access shared memory: %s", strerror(errno));
    if (bytes == 0 || (uint64_t)s.st_size != bytes)
        return kiln_fail(err, KILN_E_BUG,
                         "shared memory of %lld bytes came, but %llu were announced",
                         (long long)s.st_size, (unsigned long long)bytes);
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
        return kiln_fail(err, KILN_E_NOMEM, "cannot map %llu bytes of shared memory: %s",
                         (unsigned long long)bytes, strerror(errno));
    *data = map;
    return KILN_OK;
}
