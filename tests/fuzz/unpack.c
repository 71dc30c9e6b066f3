/* unpack -- a file that is one compressed stream: at most a MiB of it, twice, to the same bytes. */
#include "tests/fuzz/fuzz.h"

#include "stages/files/packing.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1 << 20 };

static kiln_status unpack(const kiln_packing *p, const char *path, unsigned char *out, uint64_t *n)
{
    kiln_error err = {0};
    const int fd = memfd_create("unpacked", MFD_CLOEXEC);
    struct stat s;
    HOLDS(fd >= 0);
    const kiln_status st = kiln_unpack(p, path, fd, MOST, n, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
    HOLDS(fstat(fd, &s) == 0 && s.st_size <= MOST);
    if (st == KILN_OK) HOLDS((uint64_t)s.st_size == *n && pread(fd, out, *n, 0) == (ssize_t)*n);
    (void)close(fd);
    return st;
}

void kiln_fuzz_unpack(const void *argument, const uint8_t *data, size_t size)
{
    static unsigned char first[MOST], second[MOST];
    const char *path = kiln_fuzz_path(data, size);
    const kiln_packing *p = NULL;
    kiln_error err = {0};
    uint64_t n = 0, again = 0;
    (void)argument;
    HOLDS(kiln_packing_find(path, &p, &err) == KILN_OK);
    if (!p) return;
    const kiln_status st = unpack(p, path, first, &n);
    HOLDS(unpack(p, path, second, &again) == st);
    if (st == KILN_OK) HOLDS(n == again && memcmp(first, second, n) == 0);
}
