/* own_program -- see the header. */
#include "base/own_program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

kiln_status kiln_own_program(char out[KILN_PATH_MAX], kiln_error *err)
{
    /* Not into out itself: UBSan asks whether that is NULL, and gcc then warns of the case in which
     * it is. */
    char file[KILN_PATH_MAX];
    const ssize_t n = readlink(SELF, file, sizeof file);
    if (n < 0) return kiln_fail(err, KILN_E_IO, "cannot read " SELF ": %s", strerror(errno));
    if ((size_t)n == sizeof file)
        return kiln_fail(err, KILN_E_IO, "the path of this program is longer than %zu bytes",
                         sizeof file - 1);
    memcpy(out, file, (size_t)n);
    out[n] = '\0';
    return KILN_OK;
}

kiln_status kiln_own_folder(char out[KILN_PATH_MAX], kiln_error *err)
{
    KILN_TRY(kiln_own_program(out, err));
    char *slash = strrchr(out, '/');
    if (!slash) return kiln_fail(err, KILN_E_IO, "cannot find the folder of '%s'", out);
    slash[slash == out] = '\0';
    return KILN_OK;
}
