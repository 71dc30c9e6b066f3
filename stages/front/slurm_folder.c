/* slurm_folder -- see the header. */
#include "stages/front/slurm_folder.h"

#include "stages/engine/stage_graph.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ended[] = "ended", cancelled[] = "cancelled";

/* ---- the folders ----------------------------------------------------------------------------- */

/* Opens a folder in a folder; link or file: refused. make: makes it. *fd -1 where it is not
 * there. */
static kiln_status open_folder_at(int in, const char *path, const char *name, bool make, int *fd,
                                  kiln_error *err)
{
    if (make && mkdirat(in, name, 0777) != 0 && errno != EEXIST)
        return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s/%s': %s", path, name,
                         strerror(errno));
    *fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd >= 0 || (errno == ENOENT && !make)) return KILN_OK;
    if (errno == ENOTDIR || errno == ELOOP)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s/%s' is a link or a file, but kiln slurm needs a folder there; remove it", path,
            name);
    return kiln_fail(err, KILN_E_IO, "cannot open the folder '%s/%s': %s", path, name,
                     strerror(errno));
}

/* Slurm would write logs elsewhere (sbatch(1), "filename pattern"), and squeue's answer has a line
 * for each job. */
static kiln_status check_folder_name(const char *path, kiln_error *err)
{
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127 || *c == '\\')
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' has a line break, another control character or a \\ in its "
                             "path, which Slurm cannot handle; give "
                             "another folder with --out",
                             path);
    return KILN_OK;
}

static kiln_status find_out(const char *out, bool make, char real[PATH_MAX], bool *there,
                            kiln_error *err)
{
    *there = realpath(out, real) != NULL;
    if (*there || (!make && (errno == ENOENT || errno == ENOTDIR))) return KILN_OK;
    if (make && errno == ENOENT) {
        KILN_TRY(kiln_make_parents(out, err));
        if (mkdir(out, 0777) == 0 || errno == EEXIST) *there = realpath(out, real) != NULL;
    }
    return *there
               ? KILN_OK
               : kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s", out, strerror(errno));
}

kiln_status kiln_slurm_folder_open(const char *out, bool make, kiln_slurm_folder *f, bool *there,
                                   kiln_error *err)
{
    char real[PATH_MAX];
    kiln_status st;
    *f = (kiln_slurm_folder){.fd = -1, .parts_fd = -1, .lock_fd = -1};
    KILN_TRY(find_out(out, make, real, there, err));
    if (!*there) return KILN_OK;
    KILN_TRY(check_folder_name(real, err));
    KILN_TRY(kiln_path_join(f->path, sizeof f->path, real, "slurm", err));
    KILN_TRY(kiln_path_join(f->parts, sizeof f->parts, f->path, "parts", err));
    KILN_TRY(kiln_path_join(f->manifest, sizeof f->manifest, real, "manifest.db", err));
    const int root = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open the folder '%s': %s", real, strerror(errno));
    KILN_GO(open_folder_at(root, real, "slurm", make, &f->fd, err));
    if (f->fd >= 0) KILN_GO(open_folder_at(f->fd, f->path, "parts", make, &f->parts_fd, err));
    *there = f->fd >= 0 && f->parts_fd >= 0;
done:
    (void)close(root); /* was only read */
    return st;
}

void kiln_slurm_folder_close(kiln_slurm_folder *f)
{
    kiln_slurm_unlock(f);
    if (f->parts_fd >= 0) (void)close(f->parts_fd); /* were only read */
    if (f->fd >= 0) (void)close(f->fd);
    f->fd = f->parts_fd = -1;
}

/* ---- the lock -------------------------------------------------------------------------------- */

kiln_status kiln_slurm_lock(kiln_slurm_folder *f, kiln_error *err)
{
    struct stat s;
    f->lock_fd =
        openat(f->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (f->lock_fd < 0 && errno != ELOOP && errno != EISDIR && errno != ENXIO)
        return kiln_fail(err, KILN_E_IO, "cannot open '%s/lock': %s", f->path, strerror(errno));
    if (f->lock_fd < 0 || fstat(f->lock_fd, &s) != 0 || !S_ISREG(s.st_mode))
        return kiln_fail(err, KILN_E_INPUT, "'%s/lock' is not a plain file: remove it", f->path);
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return kiln_fail(err, KILN_E_BUSY, "another kiln slurm is submitting jobs of this bake");
    return KILN_OK;
}

void kiln_slurm_unlock(kiln_slurm_folder *f)
{
    if (f->lock_fd >= 0) (void)close(f->lock_fd); /* nothing was written */
    f->lock_fd = -1;
}

/* ---- logs ------------------------------------------------------------------------------------ */

kiln_status kiln_slurm_logs_make(const kiln_slurm_folder *f, const char *chain, kiln_error *err)
{
    char name[96];
    (void)snprintf(name, sizeof name, "logs-%.64s", chain);
    if (mkdirat(f->fd, name, 0777) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s/%s': %s", f->path, name,
                     strerror(errno));
}

kiln_status kiln_slurm_logs_check(const kiln_slurm_folder *f, const char *chain, kiln_error *err)
{
    char name[96];
    struct stat s;
    (void)snprintf(name, sizeof name, "logs-%.64s", chain);
    if (fstatat(f->fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode)) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s/%s', the folder of the logs, is missing; run the same kiln slurm to make another",
        f->path, name);
}

/* ---- files of one line ----------------------------------------------------------------------- */

static kiln_status write_new_file(int in, const char *name, const char *line, int *error)
{
    const int fd = openat(in, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    *error = fd < 0 ? errno : kiln_file_pwrite(fd, 0, line, strlen(line), NULL);
    if (fd >= 0 && fsync(fd) != 0 && !*error) *error = errno;
    if (fd >= 0 && close(fd) != 0 && !*error) *error = errno;
    return *error ? KILN_E_IO : KILN_OK;
}

kiln_status kiln_slurm_note_put(const kiln_slurm_folder *f, const char *name, const char *line,
                                kiln_error *err)
{
    char path[KILN_PATH_MAX], temporary[128];
    uint64_t number = 0;
    int error = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = (uint64_t)getpid();
    (void)snprintf(temporary, sizeof temporary, ".%.64s.%016llx", name, (unsigned long long)number);
    kiln_status st = write_new_file(f->fd, temporary, line, &error);
    if (st == KILN_OK && renameat(f->fd, temporary, f->fd, name) != 0) {
        error = errno;
        st = KILN_E_IO;
    }
    if (st == KILN_OK) return KILN_OK;
    /* the write's own reason is the one to tell */
    if (error != EEXIST) (void)unlinkat(f->fd, temporary, 0);
    KILN_TRY(kiln_path_join(path, sizeof path, f->path, name, err));
    return kiln_file_write_failed(path, error, err);
}

bool kiln_slurm_note_there(const kiln_slurm_folder *f, const char *name)
{
    struct stat s;
    return fstatat(f->fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0;
}

kiln_status kiln_slurm_note_drop(const kiln_slurm_folder *f, const char *name, kiln_error *err)
{
    if (unlinkat(f->fd, name, 0) == 0 || errno == ENOENT) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot remove '%s/%s': %s", f->path, name, strerror(errno));
}

kiln_status kiln_slurm_note_read(const kiln_slurm_folder *f, const char *name, char *line,
                                 size_t size, bool *there, kiln_error *err)
{
    struct stat s;
    const int fd = openat(f->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    *there = fd >= 0 || errno != ENOENT;
    if (!*there) return KILN_OK;
    const bool regular = fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
    const ssize_t n = regular ? pread(fd, line, size - 1, 0) : -1;
    if (fd >= 0) (void)close(fd); /* was only read */
    line[n > 0 ? n : 0] = '\0';
    char *end = strchr(line, '\n');
    if (end) *end = '\0';
    if (n > 0 && end) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s/%s' is not a file that kiln slurm has written: remove it", f->path, name);
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* "CODE STAGE WHY"; false: it is another text. */
static bool parse_end(char *line, kiln_slurm_end *out)
{
    char *rest, stage[64];
    const unsigned long code = strtoul(line, &rest, 10);
    if (rest == line || *line < '0' || *line > '9' || code > 255 || *rest != ' ') return false;
    const size_t length = strcspn(++rest, " ");
    if (length >= sizeof stage) return false;
    (void)snprintf(stage, sizeof stage, "%.*s", (int)length, rest);
    const kiln_stage_info *info = kiln_stage_find(stage);
    if (!info) return false;
    rest += length;
    *out = (kiln_slurm_end){.there = true, .code = (int)code, .stage = info->name};
    (void)snprintf(out->why, sizeof out->why, "%s", rest + (*rest == ' '));
    return true;
}

kiln_status kiln_slurm_end_read(const kiln_slurm_folder *f, kiln_slurm_end *out, kiln_error *err)
{
    char line[KILN_SLURM_WHY_MAX + 64];
    bool there;
    *out = (kiln_slurm_end){.stage = ""};
    KILN_TRY(kiln_slurm_note_read(f, ended, line, sizeof line, &there, err));
    if (!there || parse_end(line, out)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s/%s' is not a file that kiln slurm has written: remove it", f->path,
                     ended);
}

kiln_status kiln_slurm_end_put(const kiln_slurm_folder *f, int code, const char *stage,
                               const char *why, kiln_error *err)
{
    char line[KILN_SLURM_WHY_MAX + 64];
    const int n = snprintf(line, sizeof line - 1, "%d %.31s%s%.*s", code, stage, *why ? " " : "",
                           KILN_SLURM_WHY_MAX - 1, why);
    for (char *c = line; *c; c++)
        if (*c == '\n') *c = ' '; /* the line's end is the file's */
    line[n] = '\n';
    line[n + 1] = '\0';
    return kiln_slurm_note_put(f, ended, line, err);
}

void kiln_slurm_partial_name(const char *stage, char out[64])
{
    (void)snprintf(out, 64, "partial-%.40s", stage);
}

kiln_status kiln_slurm_notes_clear(const kiln_slurm_folder *f, kiln_error *err)
{
    char name[64];
    KILN_TRY(kiln_slurm_note_drop(f, "begun", err));
    KILN_TRY(kiln_slurm_note_drop(f, "lost", err));
    KILN_TRY(kiln_slurm_note_drop(f, ended, err));
    KILN_TRY(kiln_slurm_note_drop(f, cancelled, err));
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++) {
        kiln_slurm_partial_name(s->name, name);
        KILN_TRY(kiln_slurm_note_drop(f, name, err));
    }
    return KILN_OK;
}
