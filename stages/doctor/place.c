/* Where the bake lies: room on the disk, the file system, the manifest itself, its lock, scratch
 * that was left. */
#include "base/file.h"
#include "base/option.h"
#include "schema/claim.h"
#include "schema/manifest.h"
#include "stages/doctor/doctor.h"
#include "stages/engine/json_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { DISK_LITTLE = 1 << 30 }; /* bytes: less than a common bake takes */

/* ---- the disk -------------------------------------------------------------------------------- */
/* The type of the mount that holds an absolute path; the last of those with the longest name hides
 * the others. */
static void find_type(const char *path, char *type, size_t size)
{
    size_t best = 0;
    const struct mntent *e;
    FILE *f = setmntent("/proc/self/mounts", "re");
    (void)snprintf(type, size, "unknown file system");
    if (!f) return;
    while ((e = getmntent(f))) {
        const size_t n = strcmp(e->mnt_dir, "/") == 0 ? 0 : strlen(e->mnt_dir);
        if (n < best || strncmp(path, e->mnt_dir, n) != 0 || (path[n] != '/' && path[n] != '\0'))
            continue;
        best = n;
        (void)snprintf(type, size, "%s", e->mnt_type);
    }
    (void)endmntent(f);
}

static void look_at_disk(kiln_doctor *d, const char *folder)
{
    struct statvfs fs;
    char type[64], left_text[32], total_text[32], *path = realpath(folder, NULL);
    if (!path || statvfs(path, &fs) != 0) {
        kiln_doctor_find(d, KILN_ILL, KILN_E_IO, "cannot access folder '%s': %s", folder,
                         strerror(errno));
        free(path);
        return;
    }
    const uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize,
                   total = (uint64_t)fs.f_blocks * fs.f_frsize;
    find_type(path, type, sizeof type);
    kiln_doctor_line(d, "disk: %s of %s free in '%s' (%s)", kiln_size_text(left, left_text),
                     kiln_size_text(total, total_text), path, type);
    kiln_doctor_set(d, "disk",
                    json_pack("{s:o, s:s, s:I, s:I}", "folder", kiln_json_string(path), "type",
                              type, "free_bytes", (json_int_t)left, "total_bytes",
                              (json_int_t)total));
    if (left < DISK_LITTLE)
        kiln_doctor_find(d, KILN_WARNING, KILN_OK,
                         "only %s are free in '%s'; make room, for example with kiln-gc, which "
                         "drops what a bake does not need any "
                         "more",
                         left_text, path);
    if (fs.f_flag & ST_RDONLY)
        kiln_doctor_find(d, KILN_WARNING, KILN_OK,
                         "'%s' is read-only; bakes there can only be viewed and exported", path);
    free(path);
}

/* ---- the manifest ---------------------------------------------------------------------------- */
/* A lock goes with its process, the file stays when that is killed. */
static void look_at_lock(kiln_doctor *d, const char *manifest)
{
    char path[KILN_PATH_MAX];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if ((size_t)snprintf(path, sizeof path, "%s.lock", manifest) >= sizeof path) return;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    const bool asked = fcntl(fd, F_OFD_GETLK, &whole) == 0;
    (void)close(fd);
    if (asked && whole.l_type == F_UNLCK)
        kiln_doctor_find(d, KILN_NOTE, KILN_OK,
                         "'%s' belongs to a process that was killed; it locks nothing, and the "
                         "next stage takes it "
                         "over",
                         path);
    else
        kiln_doctor_find(d, KILN_NOTE, KILN_OK, "'%s' is being written by another process now",
                         manifest);
}

static bool has_claim(const char *manifest)
{
    kiln_claim claim = {0};
    bool there = false;
    const kiln_status st = kiln_claim_read(manifest, &there, &claim, NULL);
    kiln_claim_release(&claim);
    return st != KILN_OK || there; /* one that cannot be read stands, too */
}

static void look_at_scratch(kiln_doctor *d, const char *manifest)
{
    char path[KILN_PATH_MAX];
    unsigned n = 0;
    if ((size_t)snprintf(path, sizeof path, "%s.scratch", manifest) >= sizeof path) return;
    DIR *dir = opendir(path);
    if (!dir) return;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) n += e->d_name[0] != '.';
    (void)closedir(dir);
    if (n && has_claim(manifest))
        kiln_doctor_find(d, KILN_NOTE, KILN_OK,
                         "'%s' holds data of a plan for tasks on other hosts; the gather that ends "
                         "the stage removes it, or "
                         "--break-claim of any stage",
                         path);
    else if (n)
        kiln_doctor_find(d, KILN_NOTE, KILN_OK,
                         "'%s' holds scratch of %u stage%s that did not finish; run the same "
                         "command to continue from it, or "
                         "remove the folder to give it up",
                         path, n, n == 1 ? "" : "s");
}

/* On a network file system it opens only when that is allowed. */
static void look_at_manifest(kiln_doctor *d, const char *path)
{
    kiln_manifest *m = NULL;
    kiln_error err = {0}, refused = {0};
    kiln_status st = kiln_manifest_open(path, KILN_OPEN_READ, "doctor", true, &m, &err);
    kiln_manifest_close(m);
    if (st != KILN_OK) {
        kiln_doctor_find(d, KILN_ILL, st, "%s", err.msg);
        return;
    }
    kiln_doctor_line(d, "manifest: '%s' opens; kiln-verify checks every byte of it", path);
    kiln_doctor_set(d, "manifest", kiln_json_string(path));
    m = NULL;
    st = kiln_manifest_open(path, KILN_OPEN_READ, "doctor", false, &m, &refused);
    kiln_manifest_close(m);
    if (st != KILN_OK) kiln_doctor_find(d, KILN_WARNING, KILN_OK, "%s", refused.msg);
}

void kiln_doctor_place(kiln_doctor *d, const char *manifest)
{
    char folder[KILN_PATH_MAX] = ".";
    const char *slash = manifest ? strrchr(manifest, '/') : NULL;
    if (slash)
        (void)snprintf(folder, sizeof folder, "%.*s",
                       slash == manifest ? 1 : (int)(slash - manifest), manifest);
    look_at_disk(d, folder);
    if (!manifest) return;
    look_at_manifest(d, manifest);
    look_at_lock(d, manifest);
    look_at_scratch(d, manifest);
}
