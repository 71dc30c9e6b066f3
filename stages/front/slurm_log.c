/* slurm_log -- see the header. */
#include "stages/front/slurm_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL_MAX = 65536 };

/* ---- the text -------------------------------------------------------------------------------- */

/* Appends what the file holds behind `from`, of that the last TAIL_MAX bytes, and a NUL. Nothing
 * where it is no file. */
static kiln_status read_log_tail(int fd, uint64_t from, kiln_buffer *out, kiln_error *err)
{
    static char bytes[TAIL_MAX];
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || (uint64_t)s.st_size <= from) return KILN_OK;
    const uint64_t size = (uint64_t)s.st_size;
    const off_t at = (off_t)(size - from > TAIL_MAX ? size - TAIL_MAX : from);
    const ssize_t n = pread(fd, bytes, TAIL_MAX, at);
    if (n <= 0) return KILN_OK;
    for (ssize_t i = 0; i < n; i++)
        if (!bytes[i]) bytes[i] = '?'; /* a text ends at its NUL */
    KILN_TRY(kiln_buffer_put(out, bytes, (size_t)n, err));
    return kiln_buffer_put(out, NULL, 1, err); /* a NUL */
}

static int open_logs(const kiln_slurm_folder *f, const char *chain)
{
    char name[96];
    (void)snprintf(name, sizeof name, "logs-%.64s", chain);
    return openat(f->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static kiln_status read_log_file(int in, const char *name, kiln_buffer *out, kiln_error *err)
{
    const int fd = openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return KILN_OK;
    const kiln_status st = read_log_tail(fd, 0, out, err);
    (void)close(fd); /* was only read */
    return st;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Drops what earlier runs of the job have written. */
static void keep_last_run(kiln_buffer *text)
{
    char *const from = (char *)text->data, *last = NULL;
    if (!from) return;
    for (char *line = from; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (!strncmp(line, KILN_SLURM_LOG_BEGIN, strlen(KILN_SLURM_LOG_BEGIN))) last = line;
    if (!last) return;
    text->size -= (size_t)(last - from);
    memmove(from, last, text->size);
}

kiln_status kiln_slurm_log_read(const kiln_slurm_folder *f, const char *chain, const char *id,
                                kiln_buffer *out, kiln_error *err)
{
    char end[64];
    kiln_status st = KILN_OK;
    const int fd = open_logs(f, chain);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0) (void)close(fd); /* was only read */
    if (!d) return KILN_OK;
    (void)snprintf(end, sizeof end, "-round-%.40s.log", id);
    for (const struct dirent *e = readdir(d); e && !out->size && st == KILN_OK; e = readdir(d))
        if (ends_with(e->d_name, end)) st = read_log_file(fd, e->d_name, out, err);
    (void)closedir(d); /* was only read */
    keep_last_run(out);
    return st;
}

/* ---- this job's own -------------------------------------------------------------------------- */

/* stderr is open for writing alone. */
static int open_own_log(void) { return open("/proc/self/fd/2", O_RDONLY | O_NONBLOCK | O_CLOEXEC); }

uint64_t kiln_slurm_log_own_size(void)
{
    struct stat s;
    return fstat(STDERR_FILENO, &s) == 0 && S_ISREG(s.st_mode) ? (uint64_t)s.st_size : 0;
}

kiln_status kiln_slurm_log_own(uint64_t from, kiln_buffer *out, kiln_error *err)
{
    const int fd = open_own_log();
    if (fd < 0) return KILN_OK;
    const kiln_status st = read_log_tail(fd, from, out, err);
    (void)close(fd); /* was only read */
    return st;
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* Of "slurmstepd-n1: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-29T15:00:00 DUE TO TIME LIMIT ***"
 * and the like. */
static kiln_slurm_cause cause_of_line(const char *line, size_t length)
{
    static const struct {
        const char *words;
        kiln_slurm_cause cause;
    } causes[] = {
        {"TIME LIMIT", KILN_SLURM_CAUSE_TIME},        {"oom_kill", KILN_SLURM_CAUSE_MEMORY},
        {"oom-kill", KILN_SLURM_CAUSE_MEMORY},        {"memory limit", KILN_SLURM_CAUSE_MEMORY},
        {"NODE FAILURE", KILN_SLURM_CAUSE_NODE},      {"PREEMPTION", KILN_SLURM_CAUSE_PREEMPTED},
        {"CANCELLED AT", KILN_SLURM_CAUSE_CANCELLED},
    };
    char text[400];
    (void)snprintf(text, sizeof text, "%.*s",
                   (int)(length < sizeof text ? length : sizeof text - 1), line);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strcasestr(text, causes[i].words)) return causes[i].cause;
    return KILN_SLURM_CAUSE_NONE;
}

kiln_slurm_cause kiln_slurm_log_cause(const char *text)
{
    static const char daemon[] = "slurmstepd"; /* "slurmstepd: error: ", "slurmstepd-n1: error: " */
    kiln_slurm_cause found = KILN_SLURM_CAUSE_NONE;
    while (*text) {
        const size_t n = strcspn(text, "\n");
        const kiln_slurm_cause cause =
            strncmp(text, daemon, strlen(daemon)) ? KILN_SLURM_CAUSE_NONE : cause_of_line(text, n);
        /* A job that is killed for its memory or its time is then cancelled, too. */
        if (cause && (!found || found == KILN_SLURM_CAUSE_CANCELLED)) found = cause;
        text += n + (text[n] == '\n');
    }
    return found;
}

kiln_status kiln_slurm_log_count(const kiln_slurm_folder *f, const char *chain, const char *stage,
                                 kiln_slurm_cause only, uint32_t *n, kiln_error *err)
{
    char begin[64];
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    *n = 0;
    const int fd = open_logs(f, chain);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0) (void)close(fd); /* was only read */
    if (!d) return KILN_OK;
    (void)snprintf(begin, sizeof begin, "%.40s-tasks-", stage);
    for (const struct dirent *e = readdir(d); e && st == KILN_OK; e = readdir(d)) {
        if (strncmp(e->d_name, begin, strlen(begin)) != 0) continue;
        text.size = 0;
        st = read_log_file(fd, e->d_name, &text, err);
        if (text.size && kiln_slurm_log_cause((const char *)text.data) == only) ++*n;
    }
    (void)closedir(d); /* was only read */
    kiln_buffer_release(&text);
    return st;
}

void kiln_slurm_log_sentence(const char *text, const char *name, char *out)
{
    const size_t n = strlen(name);
    *out = '\0';
    while (*text) {
        const size_t length = strcspn(text, "\n");
        if (length > n + 2 && !strncmp(text, name, n) && text[n] == ':' && text[n + 1] == ' ')
            (void)snprintf(out, KILN_SLURM_SENTENCE_MAX, "%.*s", (int)(length - n - 2),
                           text + n + 2);
        text += length + (text[length] == '\n');
    }
}
