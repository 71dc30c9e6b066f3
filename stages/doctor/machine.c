/* What programs may take of this machine besides GPUs: CPUs, memory, what the shell's limits
 * leave. */
#include "base/isa.h"
#include "base/option.h"
#include "kernels/ops.h"
#include "stages/doctor/doctor.h"
#include "stages/engine/memory/ram_free.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    FILES_LEAST = 256,      /* each worker takes one, sources and SQLite some tens */
    RAM_LITTLE = 512 << 20, /* bytes: a few units' worth */
};

static unsigned count_nodes(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/sys/devices/system/node");
    if (!dir) return 1;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += strncmp(e->d_name, "node", 4) == 0 && strspn(e->d_name + 4, "0123456789") > 0;
    (void)closedir(dir);
    return n ? n : 1;
}

static void look_at_cpus(kiln_doctor *d)
{
    const unsigned mine = kiln_cpus_count(), nodes = count_nodes();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const char *kernels = kiln_ops_cpu()->name;
    kiln_doctor_line(d, "CPU: %u of %ld may be used, %u memory node%s; kernels: %s", mine, online,
                     nodes, nodes == 1 ? "" : "s", kernels);
    kiln_doctor_set(d, "cpu",
                    json_pack("{s:i, s:i, s:i, s:s, s:b}", "usable", (int)mine, "online",
                              (int)online, "nodes", (int)nodes, "kernels", kernels, "avx2",
                              kiln_isa_avx2()));
}

static void look_at_memory(kiln_doctor *d)
{
    char total_text[32], free_text[32];
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0,
                   known = kiln_ram_free("");
    const uint64_t now = known < total ? known : total;
    kiln_doctor_line(
        d, "memory: %s, of which %s may be taken now, given other programs, cgroups and limits",
        kiln_size_text(total, total_text), kiln_size_text(now, free_text));
    kiln_doctor_set(
        d, "memory",
        json_pack("{s:I, s:I}", "total_bytes", (json_int_t)total, "free_bytes", (json_int_t)now));
    if (now < RAM_LITTLE)
        kiln_doctor_find(
            d, KILN_WARNING, KILN_OK,
            "only %s of memory may be taken now; end other programs, or raise the memory "
            "limit of this container or cgroup",
            free_text);
}

static json_t *limit_json(rlim_t l)
{
    return l == RLIM_INFINITY ? json_null() : json_integer((json_int_t)l);
}

static rlim_t soft_limit(int resource)
{
    struct rlimit l;
    return getrlimit(resource, &l) == 0 ? l.rlim_cur : RLIM_INFINITY;
}

static const char *limit_text(rlim_t l, char buf[32])
{
    if (l == RLIM_INFINITY) return strcpy(buf, "no limit");
    return kiln_size_text(l, buf);
}

static void look_at_limits(kiln_doctor *d)
{
    char file[32], space[32];
    const rlim_t files = soft_limit(RLIMIT_NOFILE), size = soft_limit(RLIMIT_FSIZE),
                 as = soft_limit(RLIMIT_AS);
    kiln_doctor_line(d, "limits: %llu open files; size of a file: %s; address space: %s",
                     (unsigned long long)files, limit_text(size, file), limit_text(as, space));
    kiln_doctor_set(d, "limits",
                    json_pack("{s:o, s:o, s:o}", "open_files", limit_json(files), "file_bytes",
                              limit_json(size), "address_space_bytes", limit_json(as)));
    if (files < FILES_LEAST)
        kiln_doctor_find(d, KILN_WARNING, KILN_OK,
                         "only %llu files may be open at a time; raise it with ulimit -n %d",
                         (unsigned long long)files, 4 * FILES_LEAST);
    if (size != RLIM_INFINITY)
        kiln_doctor_find(
            d, KILN_WARNING, KILN_OK,
            "no file may grow beyond %s, but a manifest is one file; lift the limit with "
            "ulimit -f unlimited",
            file);
    if (as != RLIM_INFINITY)
        kiln_doctor_find(d, KILN_WARNING, KILN_OK,
                         "the address space is limited to %s, but CUDA reserves more than a GPU's "
                         "memory of it; lift the limit "
                         "with ulimit -v unlimited",
                         space);
}

void kiln_doctor_machine(kiln_doctor *d)
{
    look_at_cpus(d);
    look_at_memory(d);
    look_at_limits(d);
}
