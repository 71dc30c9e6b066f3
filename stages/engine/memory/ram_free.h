/* ram_free -- how much host memory this process may take now. Bytes. Any thread may ask. */
#ifndef KILN_STAGES_ENGINE_MEMORY_RAM_FREE_H
#define KILN_STAGES_ENGINE_MEMORY_RAM_FREE_H

#include <stdint.h>

/* Returns how much memory may be taken now or UINT64_MAX if the system does not say. root: "", or
 * for tests a folder that stands for the root of /proc and /sys. */
uint64_t kiln_ram_free(const char *root);
/* For people: what limits the free memory, and what can be done about it. Both are constant
 * texts. */
typedef struct {
    const char *what, *advice;
} kiln_ram_bound;
/* The same, and says in *by which limit is the tightest. */
uint64_t kiln_ram_free_by(const char *root, kiln_ram_bound *by);

#endif
