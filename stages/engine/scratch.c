/* Scratch folders: data that a stage puts on disk because memory has no room for it. A run after a kill finds it again.
 *
 * The folder is BAKE.scratch/STAGE-KEY beside the manifest. Below --scratch-dir it is BAKE-PLACE.scratch/STAGE-KEY, where PLACE is
 * a hash of the manifest's real path, because bakes may share that folder and every manifest may be called manifest.db. The key is
 * of what the stage computes. A folder with another key belongs to a run that will not be continued; it is removed when a new
 * folder is made. The last one is removed when the stage's output becomes current. */
#include "stages/engine/engine_internal.h"

#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)at;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static void remove_tree(const char *path)
{
    enum { DESCRIPTORS = 8 };
    if (nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        kiln_warn("the scratch folder '%s' could not be removed: %s", path, strerror(errno));
}

static kiln_status fail_long(const char *manifest, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "the path of the scratch folder for '%s' is too long", manifest);
}

kiln_status kiln_scratch_check(kiln_error *err)
{
    const char *dir = kiln_engine_values.scratch_dir;
    struct stat s;
    if (!dir || (stat(dir, &s) == 0 && S_ISDIR(s.st_mode))) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--scratch-dir takes a folder that is there, not '%s'; make it first, or correct the name",
                     dir);
}

/* Names the bake's folder below --scratch-dir, which bakes may share. */
static kiln_status shared_root(const char *manifest, const char *dir, char *out, kiln_error *err)
{
    char name[KILN_PATH_MAX], hex[33];
    char *real = realpath(manifest, NULL);
    if (!real) return kiln_fail(err, KILN_E_IO, "cannot find where '%s' is: %s", manifest, strerror(errno));
    const kiln_hash place = kiln_hash_of(real, strlen(real));
    free(real);
    if ((size_t)snprintf(name, sizeof name, "%s-%.16s.scratch", kiln_path_base(manifest), kiln_hash_hex(place, hex)) >= sizeof name)
        return fail_long(manifest, err);
    return kiln_path_join(out, KILN_PATH_MAX, dir, name, err);
}

/* Names the folder that holds the scratch folders of all stages. */
static kiln_status scratch_root(const kiln_manifest *m, char *out, kiln_error *err)
{
    const char *manifest = kiln_manifest_path(m), *dir = kiln_engine_values.scratch_dir;
    if (dir) return shared_root(manifest, dir, out, err);
    if ((size_t)snprintf(out, KILN_PATH_MAX, "%s.scratch", manifest) >= KILN_PATH_MAX) return fail_long(manifest, err);
    return KILN_OK;
}

static void folder_name(const char *stage, kiln_hash key, char out[96])
{
    char hex[33];
    (void)snprintf(out, 96, "%.60s-%.16s", stage, kiln_hash_hex(key, hex));
}

/* Removes the folders of this stage, except the one called `keep`; NULL: none is kept. */
static void drop_others(const kiln_run *r, const char *root, const char *keep)
{
    char path[KILN_PATH_MAX];
    const size_t n = strlen(r->program->name);
    const int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); /* nothing is removed through a link */
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d) (void)close(fd);
    if (!d) return;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strncmp(e->d_name, r->program->name, n) != 0 || e->d_name[n] != '-') continue;
        if (keep && !strcmp(e->d_name, keep)) continue;
        if (kiln_path_join(path, sizeof path, root, e->d_name, NULL) == KILN_OK) remove_tree(path);
    }
    (void)closedir(d);
}

/* Adds up what the files of a folder take. After a kill the folder holds some, which the run uses or overwrites. Preallocated space
 * counts, and so do bytes that the file system compresses. */
static kiln_status held_bytes(const char *path, uint64_t *out, kiln_error *err)
{
    enum { BLOCK = 512 }; /* of st_blocks */
    struct stat s;
    *out = 0;
    DIR *d = opendir(path);
    if (!d) return kiln_fail(err, KILN_E_IO, "cannot look into '%s': %s", path, strerror(errno));
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
        const uint64_t size = (uint64_t)s.st_size, taken = (uint64_t)s.st_blocks * BLOCK;
        *out += taken > size ? taken : size;
    }
    (void)closedir(d);
    return KILN_OK;
}

/* Refuses links inside the folder that holds `root`, the first root_length bytes of `path`. That folder is the user's; its content
 * may be somebody else's. */
static kiln_status refuse_links(const char *path, size_t root_length, kiln_error *err)
{
    char folder[KILN_PATH_MAX], again[KILN_PATH_MAX];
    size_t n = root_length;
    while (n > 0 && path[n - 1] != '/') n--;
    memcpy(folder, path, n);
    folder[n] = '\0';
    return kiln_path_inside(again, sizeof again, folder, path + n, "--scratch-dir", err);
}

kiln_status kiln_run_scratch_room(kiln_run *r, uint64_t need_bytes, kiln_error *err)
{
    struct statvfs fs;
    uint64_t held;
    char needed[32], held_text[32], free_text[32];
    KILN_TRY(held_bytes(r->scratch, &held, err));
    if (statvfs(r->scratch, &fs) != 0) return kiln_fail(err, KILN_E_IO, "cannot look at '%s': %s", r->scratch, strerror(errno));
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (need_bytes <= held || need_bytes - held <= free_bytes) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "scratch needs %s below '%s', which holds %s, and %s are free; make room, name another folder with "
                     "--scratch-dir, or give more memory with --ram",
                     kiln_size_text(need_bytes, needed), r->scratch, kiln_size_text(held, held_text),
                     kiln_size_text(free_bytes, free_text));
}

kiln_status kiln_run_scratch(kiln_run *r, kiln_hash key, char *path, kiln_error *err)
{
    char root[KILN_PATH_MAX], name[96];
    if (!r->manifest) return kiln_fail(err, KILN_E_BUG, "scratch needs a manifest");
    KILN_TRY(scratch_root(r->manifest, root, err));
    folder_name(r->program->name, key, name);
    KILN_TRY(kiln_path_join(path, KILN_PATH_MAX, root, name, err));
    KILN_TRY(refuse_links(path, strlen(root), err));
    drop_others(r, root, name);
    char inside[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(inside, sizeof inside, path, "x", err));
    KILN_TRY(kiln_make_parents(inside, err));
    memcpy(r->scratch, path, sizeof r->scratch);
    return KILN_OK;
}

void kiln_run_drop_scratch(kiln_run *r)
{
    char root[KILN_PATH_MAX];
    if (!r->manifest || scratch_root(r->manifest, root, NULL) != KILN_OK) return;
    drop_others(r, root, NULL);
    (void)rmdir(root); /* empty now, unless another stage has something there */
    r->scratch[0] = '\0';
}

void kiln_run_tidy_scratch(kiln_run *r)
{
    char root[KILN_PATH_MAX];
    if (!*r->scratch || scratch_root(r->manifest, root, NULL) != KILN_OK) return;
    if (rmdir(r->scratch) == 0) (void)rmdir(root); /* either stays when there is something in it */
}

kiln_status kiln_worker_scratch(kiln_worker *w, const char *stage, kiln_hash key, char *path, kiln_error *err)
{
    char root[KILN_PATH_MAX], name[96];
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(scratch_root(m, root, err));
    folder_name(stage, key, name);
    return kiln_path_join(path, KILN_PATH_MAX, root, name, err);
}

/* Gives the nearest existing folder above a path. */
static void folder_above(const char *path, char out[KILN_PATH_MAX])
{
    (void)snprintf(out, KILN_PATH_MAX, "%s", path);
    do {
        char *slash = strrchr(out, '/');
        if (!slash || slash == out) {
            (void)snprintf(out, KILN_PATH_MAX, slash ? "/" : ".");
            return;
        }
        *slash = '\0';
    } while (!kiln_is_dir(out));
}

kiln_status kiln_scratch_unnamed(const char *manifest, int *fd, char path[64], kiln_error *err)
{
    char folder[KILN_PATH_MAX], name[64], file[KILN_PATH_MAX];
    *fd = -1;
    if (kiln_engine_values.scratch_dir)
        (void)snprintf(folder, sizeof folder, "%s", kiln_engine_values.scratch_dir);
    else
        folder_above(manifest, folder);
    (void)snprintf(name, sizeof name, "kiln-scratch.tmp.%ld", (long)getpid());
    KILN_TRY(kiln_path_join(file, sizeof file, folder, name, err));
    KILN_TRY(kiln_file_create(file, fd, err));
    if (unlink(file) != 0) kiln_warn("the scratch file '%s' could not be removed: %s", file, strerror(errno));
    (void)snprintf(path, 64, "/proc/%ld/fd/%d", (long)getpid(), *fd);
    return KILN_OK;
}
