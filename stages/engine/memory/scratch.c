/* Scratch folders: data that a stage puts on disk because memory has no room for it, or because
 * tasks on other hosts read it. A run after a kill finds it again.
 *
 * The folder is BAKE.scratch/STAGE-KEY beside the manifest. Below --scratch-dir it is
 * BAKE-PLACE.scratch/STAGE-KEY, where PLACE is a hash of the manifest's real path, because bakes
 * may share that folder and every manifest may be called manifest.db. The key is of what the stage
 * computes. A folder with another key belongs to a run that will not be continued; it is removed
 * when a new folder is made. The last one is removed when the stage's output becomes current.
 *
 * What --plan makes for tasks must be where all hosts see it, and --scratch-dir may be a disk of
 * one host: it lies beside the manifest, or below --shared-dir in a folder named likewise. */
#include "stages/engine/memory/scratch.h"

#include "base/file.h"
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

static bool is_round(const kiln_engine_options *o) { return o->plan || o->part || o->gather; }

static kiln_status fail_long(const char *manifest, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "the path of the scratch folder for '%s' is too long",
                     manifest);
}

static kiln_status check_dir(const char *option, const char *dir, kiln_error *err)
{
    struct stat s;
    if (!dir || (stat(dir, &s) == 0 && S_ISDIR(s.st_mode))) return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "--%s takes a folder that exists, not '%s'; make it first, or correct the name", option,
        dir);
}

kiln_status kiln_scratch_check(const kiln_engine_options *o, kiln_error *err)
{
    KILN_TRY(check_dir("shared-dir", o->shared_dir, err));
    return check_dir("scratch-dir", o->scratch_dir, err);
}

/* Names the folder that holds the scratch folders of all stages. dir: --scratch-dir or
 * --shared-dir, which bakes may share, so that the name says whose it is; NULL: beside the
 * manifest. */
static kiln_status root_of(const char *manifest, const char *dir, char *out, kiln_error *err)
{
    char name[KILN_PATH_MAX], hex[33];
    if (!dir) {
        if ((size_t)snprintf(out, KILN_PATH_MAX, "%s.scratch", manifest) >= KILN_PATH_MAX)
            return fail_long(manifest, err);
        return KILN_OK;
    }
    char *real = realpath(manifest, NULL);
    if (!real)
        return kiln_fail(err, KILN_E_IO, "cannot find where '%s' is: %s", manifest,
                         strerror(errno));
    const kiln_hash place = kiln_hash_of(real, strlen(real));
    free(real);
    if ((size_t)snprintf(name, sizeof name, "%s-%.16s.scratch", kiln_path_base(manifest),
                         kiln_hash_hex(place, hex)) >= sizeof name)
        return fail_long(manifest, err);
    return kiln_path_join(out, KILN_PATH_MAX, dir, name, err);
}

static const char *chosen_dir(const kiln_engine_options *o)
{
    return is_round(o) ? o->shared_dir : o->scratch_dir;
}

static kiln_status scratch_root(const kiln_scratch_folder *s, char *out, kiln_error *err)
{
    return root_of(s->manifest, chosen_dir(s->options), out, err);
}

static void folder_name(const char *stage, kiln_hash key, char out[96])
{
    char hex[33];
    (void)snprintf(out, 96, "%.60s-%.16s", stage, kiln_hash_hex(key, hex));
}

/* Removes the folders of a stage, except the one called `keep`; NULL: none is kept. */
static void drop_others(const char *stage, const char *root, const char *keep)
{
    char path[KILN_PATH_MAX];
    const size_t n = strlen(stage);
    /* nothing is removed through a link */
    const int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d) (void)close(fd);
    if (!d) return;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strncmp(e->d_name, stage, n) != 0 || e->d_name[n] != '-') continue;
        if (keep && !strcmp(e->d_name, keep)) continue;
        if (kiln_path_join(path, sizeof path, root, e->d_name, NULL) == KILN_OK) remove_tree(path);
    }
    (void)closedir(d);
}

/* Adds up what the files of a folder take. After a kill the folder holds some, which the run uses
 * or overwrites. Preallocated space counts, and so do bytes that the file system compresses. */
static kiln_status held_bytes(const char *path, uint64_t *out, kiln_error *err)
{
    enum { BLOCK = 512 }; /* of st_blocks */
    struct stat s;
    *out = 0;
    DIR *d = opendir(path);
    if (!d) return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", path, strerror(errno));
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
            continue;
        const uint64_t size = (uint64_t)s.st_size, taken = (uint64_t)s.st_blocks * BLOCK;
        *out += taken > size ? taken : size;
    }
    (void)closedir(d);
    return KILN_OK;
}

/* Refuses links inside the folder that holds `root`, the first root_length bytes of `path`. That
 * folder is the user's; its content may be somebody else's. */
static kiln_status refuse_links(const kiln_engine_options *o, const char *path, size_t root_length,
                                kiln_error *err)
{
    const char *option = is_round(o) ? "--shared-dir" : "--scratch-dir";
    char folder[KILN_PATH_MAX], again[KILN_PATH_MAX];
    size_t n = root_length;
    while (n > 0 && path[n - 1] != '/') n--;
    memcpy(folder, path, n);
    folder[n] = '\0';
    return kiln_path_inside(again, sizeof again, folder, path + n, option, err);
}

kiln_status kiln_scratch_folder_check(const kiln_scratch_folder *s, uint64_t need_bytes,
                                      kiln_error *err)
{
    struct statvfs fs;
    uint64_t held;
    char needed[32], held_text[32], free_text[32];
    KILN_TRY(held_bytes(s->path, &held, err));
    if (statvfs(s->path, &fs) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", s->path, strerror(errno));
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (need_bytes <= held || need_bytes - held <= free_bytes) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "scratch needs %s below '%s', which holds %s, but only %s are free; make "
                     "room, name another folder with %s",
                     kiln_size_text(need_bytes, needed), s->path, kiln_size_text(held, held_text),
                     kiln_size_text(free_bytes, free_text),
                     is_round(s->options) ? "--shared-dir"
                                          : "--scratch-dir, or give more memory with --ram");
}

kiln_status kiln_scratch_folder_make(kiln_scratch_folder *s, kiln_hash key, char *path,
                                     kiln_error *err)
{
    char root[KILN_PATH_MAX], name[96];
    if (!s->manifest) return kiln_fail(err, KILN_E_BUG, "scratch needs a manifest");
    KILN_TRY(scratch_root(s, root, err));
    folder_name(s->stage, key, name);
    KILN_TRY(kiln_path_join(path, KILN_PATH_MAX, root, name, err));
    KILN_TRY(refuse_links(s->options, path, strlen(root), err));
    if (s->use == KILN_SCRATCH_READ) return KILN_OK;
    drop_others(s->stage, root, name);
    char inside[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(inside, sizeof inside, path, "x", err));
    KILN_TRY(kiln_make_parents(inside, err));
    memcpy(s->path, path, sizeof s->path);
    return KILN_OK;
}

static void drop_in(const char *manifest, const char *dir, const char *stage)
{
    char root[KILN_PATH_MAX];
    if (root_of(manifest, dir, root, NULL) != KILN_OK) return;
    drop_others(stage, root, NULL);
    (void)rmdir(root); /* empty now, unless another stage has something there */
}

void kiln_scratch_drop_shared(const kiln_engine_options *o, const char *manifest, const char *stage)
{
    drop_in(manifest, NULL, stage);
    if (o->shared_dir) drop_in(manifest, o->shared_dir, stage);
}

/* A run and a plan that was given up may have had different folders. No claim stands, or it is this
 * run's. */
void kiln_scratch_folder_drop(kiln_scratch_folder *s)
{
    if (!s->manifest) return;
    kiln_scratch_drop_shared(s->options, s->manifest, s->stage);
    if (s->options->scratch_dir) drop_in(s->manifest, s->options->scratch_dir, s->stage);
    s->path[0] = '\0';
}

kiln_status kiln_scratch_folder_sync(const kiln_scratch_folder *s, kiln_error *err)
{
    char root[KILN_PATH_MAX];
    if (!*s->path) return KILN_OK;
    KILN_TRY(scratch_root(s, root, err));
    KILN_TRY(kiln_folder_sync(s->path, err));
    KILN_TRY(kiln_folder_sync(root, err));
    /* else beside the claim */
    return s->options->shared_dir ? kiln_folder_sync(s->options->shared_dir, err) : KILN_OK;
}

void kiln_scratch_folder_tidy(const kiln_scratch_folder *s)
{
    char root[KILN_PATH_MAX];
    if (!*s->path || scratch_root(s, root, NULL) != KILN_OK) return;
    if (rmdir(s->path) == 0) (void)rmdir(root); /* either stays when there is something in it */
}

kiln_status kiln_scratch_folder_path(const kiln_engine_options *o, const char *manifest,
                                     const char *stage, kiln_hash key, char *path, kiln_error *err)
{
    char root[KILN_PATH_MAX], name[96];
    KILN_TRY(root_of(manifest, chosen_dir(o), root, err));
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
    if (unlink(file) != 0)
        kiln_warn("the scratch file '%s' could not be removed: %s", file, strerror(errno));
    (void)snprintf(path, 64, "/proc/%ld/fd/%d", (long)getpid(), *fd);
    return KILN_OK;
}
