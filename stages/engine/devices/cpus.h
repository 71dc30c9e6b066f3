/* cpus -- which CPUs are near a GPU. A worker runs on them, so that its threads and memory are on
 * the side of the machine to which its GPU is connected.
 *
 * Lists have the kernel's form: "0-15,64-79". sysfs: the path "/sys"; tests give another one.
 * Nothing here fails: if something cannot be read, the worker runs on any CPU and may be slower.
 *
 * Source: Linux, Documentation/ABI/testing/sysfs-bus-pci (numa_node, local_cpulist); cpuset(7),
 * "List format".
 */
#ifndef KILN_STAGES_ENGINE_DEVICES_CPUS_H
#define KILN_STAGES_ENGINE_DEVICES_CPUS_H

#include <stddef.h>

enum { KILN_CPUS_TEXT = 1024 };

/* Returns the memory node of a PCI address such as "0000:1b:00.0"; -1 if it is not known or the
 * machine has only one. */
int kiln_cpus_node(const char *sysfs, const char *pci);
/* Writes the CPUs near that address that this process may use into out; "" if they are not known,
 * none may be used, or the list does not fit. */
void kiln_cpus_near(const char *sysfs, const char *pci, char *out, size_t size);
/* Restricts this thread, and threads that it starts later, to these CPUs. Changes nothing for "" or
 * if the kernel refuses. Safe between fork and exec. */
void kiln_cpus_bind(const char *list);
/* Returns the number of CPUs that this process may use, at least 1. */
unsigned kiln_cpus_count(void);

#endif
