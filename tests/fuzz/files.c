/* files -- inputs as files without a disk: one in memory for what reads a file by its path, and a
 * folder for what reads several or asks where it is. Both are kept between inputs, because making
 * them costs more than most harnesses. */
#include "tests/fuzz/fuzz.h"

#include "tests/unit/test_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_whole(int fd, const void *data, size_t size)
{
    HOLDS(ftruncate(fd, (off_t)size) == 0);
    HOLDS(pwrite(fd, data, size, 0) == (ssize_t)size);
}

const char *kiln_fuzz_path(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[40];
    if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
    HOLDS(fd >= 0);
    write_whole(fd, data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static char folder[TEST_FOLDER_MAX];
static void remove_folder(void) { (void)test_folder_remove(folder); }

const char *kiln_fuzz_folder(void)
{
    if (folder[0]) return folder;
    HOLDS(test_folder_new(folder, "fuzz") == 0);
    HOLDS(atexit(remove_folder) == 0);
    return folder;
}

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        HOLDS(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

const char *kiln_fuzz_file(const char *below, const char *name, const void *data, size_t size)
{
    static char path[600];
    const int n = snprintf(path, sizeof path, "%s/%s/%s", kiln_fuzz_folder(), below, name);
    HOLDS(n > 0 && (size_t)n < sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        make_parents(path);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    }
    HOLDS(fd >= 0);
    write_whole(fd, data, size);
    close(fd);
    return path;
}
