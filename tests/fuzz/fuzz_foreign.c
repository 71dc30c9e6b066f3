/* fuzz_foreign -- files that are known and not read: bytes under each suffix. The same bytes are
 * the same kind a second time, whatever lies behind the head; each kind has a sentence that
 * fits. */
#include "tests/fuzz/fuzz.h"

#include "stages/files/foreign.h"

#include <stdlib.h>
#include <string.h>

/* An exact copy, so that a look behind the head is found. */
static void look(const char *path, const uint8_t *data, size_t size)
{
    kiln_error err = {0};
    int sure, again;
    const size_t len = size < KILN_PROBE_BYTES ? size : KILN_PROBE_BYTES;
    unsigned char *head = malloc(len ? len : 1);
    HOLDS(head);
    if (len) memcpy(head, data, len);
    const kiln_foreign *f = kiln_foreign_find(path, head, len, &sure);
    HOLDS(sure >= 0 && sure <= 100 && kiln_foreign_find(path, head, len, &again) == f &&
          again == sure);
    HOLDS((sure > 0) == (f != NULL));
    if (f)
        HOLDS(kiln_foreign_refuse(path, f, &err) == KILN_E_INPUT &&
              strlen(err.msg) < sizeof err.msg - 1);
    free(head);
}

void kiln_fuzz_foreign(const void *argument, const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"a", "a.rad", "a.lcc", "a.usdz", "a.pt"};
    (void)argument;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) look(paths[i], data, size);
}
