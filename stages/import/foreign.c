/* foreign -- see the header. */
#include "stages/import/foreign.h"

#include <stdio.h>

bool kiln_foreign_suffix(const char *name)
{
    (void)name;
    return false;
}

bool kiln_foreign_format(const char *path, const unsigned char *head, size_t len, char what[KILN_FOREIGN_NAME])
{
    (void)path, (void)head, (void)len;
    what[0] = '\0';
    return false;
}

kiln_status kiln_foreign_refuse(const char *path, const char *what, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' is %s, which kiln-import does not read yet; convert it to PLY first, with splat-transform or SuperSplat",
                     path, what);
}
