/* Sets of CPUs: as text, and as the masks that the kernel takes. */
#include "stages/engine/devices/cpus.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Linux's own limit is 8192 (NR_CPUS); cpu_set_t alone holds 1024. */
enum { CPUS_MAX = 8192 };
typedef struct {
    cpu_set_t part[CPUS_MAX / CPU_SETSIZE];
} cpu_mask;

/* ---- lists ----------------------------------------------------------------------------------- */
static bool read_number(const char **at, unsigned *out)
{
    *out = 0;
    if (!isdigit((unsigned char)**at)) return false;
    for (; isdigit((unsigned char)**at); ++*at) {
        *out = 10 * *out + (unsigned)(**at - '0');
        if (*out >= CPUS_MAX) return false;
    }
    return true;
}

/* Reads "0-3,8". Returns false if it is no such list. Makes only calls that are safe between fork
 * and exec. */
static bool read_list(const char *text, cpu_mask *out)
{
    CPU_ZERO_S(sizeof *out, out->part);
    for (const char *at = text;; at++) {
        unsigned first, last;
        if (!read_number(&at, &first)) return false;
        last = first;
        if (*at == '-' && (at++, !read_number(&at, &last))) return false;
        for (unsigned cpu = first; cpu <= last; cpu++) CPU_SET_S(cpu, sizeof *out, out->part);
        if (*at == '\0' || *at == '\n') return true;
        if (*at != ',') return false;
    }
}

static void write_list(const cpu_mask *m, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!CPU_ISSET_S(cpu, sizeof *m, m->part)) continue;
        const unsigned first = cpu;
        while (cpu + 1 < CPUS_MAX && CPU_ISSET_S(cpu + 1, sizeof *m, m->part)) cpu++;
        const int n =
            first == cpu
                ? snprintf(out + used, size - used, "%s%u", used ? "," : "", first)
                : snprintf(out + used, size - used, "%s%u-%u", used ? "," : "", first, cpu);
        if (n < 0 || (size_t)n >= size - used) { /* half a list would name other CPUs */
            out[0] = '\0';
            return;
        }
        used += (size_t)n;
    }
}

/* ---- sysfs ----------------------------------------------------------------------------------- */
static bool read_file(const char *sysfs, const char *pci, const char *name, char *out, size_t size)
{
    char path[512];
    const int length = snprintf(path, sizeof path, "%s/bus/pci/devices/%s/%s", sysfs, pci, name);
    if (!*pci || length < 0 || (size_t)length >= sizeof path) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, out, size - 1);
    (void)close(fd); /* nothing was written */
    out[n > 0 ? n : 0] = '\0';
    return n > 0 && (size_t)n < size - 1;
}

int kiln_cpus_node(const char *sysfs, const char *pci)
{
    char text[32], *end;
    if (!read_file(sysfs, pci, "numa_node", text, sizeof text)) return -1;
    const long node = strtol(text, &end, 10);
    return end != text && node >= 0 && node < CPUS_MAX ? (int)node : -1;
}

void kiln_cpus_near(const char *sysfs, const char *pci, char *out, size_t size)
{
    char text[8 * KILN_CPUS_TEXT];
    cpu_mask near_it, mine;
    out[0] = '\0';
    if (!read_file(sysfs, pci, "local_cpulist", text, sizeof text) || !read_list(text, &near_it))
        return;
    if (sched_getaffinity(0, sizeof mine, mine.part) != 0) return;
    CPU_AND_S(sizeof mine, near_it.part, near_it.part, mine.part);
    write_list(&near_it, out, size);
}

void kiln_cpus_bind(const char *list)
{
    cpu_mask m;
    /* on failure it runs on any CPU, only slower */
    if (*list && read_list(list, &m)) (void)sched_setaffinity(0, sizeof m, m.part);
}

unsigned kiln_cpus_count(void)
{
    cpu_mask mine;
    CPU_ZERO_S(sizeof mine, mine.part);
    if (sched_getaffinity(0, sizeof mine, mine.part) == 0) {
        const int n = CPU_COUNT_S(sizeof mine, mine.part);
        if (n > 0) return (unsigned)n;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}
