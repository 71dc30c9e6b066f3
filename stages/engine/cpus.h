/* cpus -- which CPUs are near a GPU, so that a worker's threads and memory are on the side of the machine that its GPU hangs on.
 *
 * Lists are the kernel's: "0-15,64-79". sysfs is its root, "/sys"; tests have their own. What cannot be read is not known, and a
 * worker then runs anywhere: it is slower at worst.
 *
 * Source: Linux, Documentation/ABI/testing/sysfs-bus-pci (numa_node, local_cpulist); cpuset(7), "List format".
 */
#ifndef KILN_STAGES_CPUS_H
#define KILN_STAGES_CPUS_H

#include <stddef.h>

enum { KILN_CPUS_TEXT = 1024 };

/* The memory node of a PCI address such as "0000:1b:00.0"; -1: not known, or the machine has but one. */
int kiln_cpus_node(const char *sysfs, const char *pci);
/* The CPUs near it that this process may use, into out; "" when they are not known, none of them may be used, or the list does
 * not fit. */
void kiln_cpus_near(const char *sysfs, const char *pci, char *out, size_t size);
/* Lets this thread, and those that it starts, run on these only; "" and what cannot be done change nothing. Safe between fork and
 * exec. */
void kiln_cpus_bind(const char *list);
/* How many CPUs this process may use; at least 1. */
unsigned kiln_cpus_count(void);

#endif
