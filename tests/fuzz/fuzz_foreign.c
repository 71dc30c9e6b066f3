/* fuzz_foreign -- formats that are named and not read: bytes under each suffix. What is named has a name that fits, the same one a
 * second time. */
#include "tests/fuzz/fuzz.h"

#include "stages/import/foreign.h"

#include <stdlib.h>
#include <string.h>

/* An exact copy, so that a look behind the head is found. */
static void look(const char *path, const uint8_t *data, size_t size)
{
    enum { HEAD = 512 }; /* what readers.c reads */
    char what[KILN_FOREIGN_NAME], again[KILN_FOREIGN_NAME];
    const size_t len = size < HEAD ? size : HEAD;
    unsigned char *head = malloc(len ? len : 1);
    HOLDS(head);
    if (len) memcpy(head, data, len);
    const int sure = kiln_foreign_format(path, head, len, what);
    HOLDS(sure >= 0 && sure <= 100 && kiln_foreign_format(path, head, len, again) == sure && strcmp(what, again) == 0);
    HOLDS((sure > 0) == (what[0] != '\0') && strlen(what) < KILN_FOREIGN_NAME - 1);
    free(head);
}

void kiln_fuzz_foreign(const void *argument, const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"a", "a.rad", "a.lcc", "a.usdz"};
    (void)argument;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) look(paths[i], data, size);
}
