/* slurm_recall -- see the header. The file:
 *
 *   splatkiln-slurm 1
 *   bake /shared/city/bake
 *   tasks 64
 *   concurrent 16
 *   sbatch --gres=gpu:1       a line for each word of each list of slurm_settings.h
 *   end
 */
#include "stages/front/slurm_recall.h"

#include "base/file.h"
#include "schema/hash.h"
#include "stages/front/open_round.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECALL_MAX = 65536, LIST_WORDS_MAX = 1024 };
static const char first_line[] = "splatkiln-slurm 1";

/* ---- the folder ------------------------------------------------------------------------------ */

/* Where the caller's own state is; false: the environment does not say. */
static bool find_state_home(char home[KILN_PATH_MAX])
{
    const char *const state = getenv("XDG_STATE_HOME"), *const user = getenv("HOME");
    if (state && *state == '/')
        return kiln_path_join(home, KILN_PATH_MAX, "", state, NULL) == KILN_OK;
    return user && *user == '/' &&
           kiln_path_join(home, KILN_PATH_MAX, user, ".local/state", NULL) == KILN_OK;
}

static bool lies_in(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return n > 1 && strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The caller owns it, and nobody else can write to it. */
static bool is_own(int fd, mode_t kind)
{
    struct stat s;
    return fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == kind && s.st_uid == geteuid() &&
           (s.st_mode & 022) == 0;
}

/* Opens a folder of `in` without following a link. make: makes it. *fd -1: it is not there. */
static kiln_status open_own_folder(int in, const char *name, bool make, int *fd, kiln_error *err)
{
    if (make && mkdirat(in, name, 0700) != 0 && errno != EEXIST)
        return kiln_fail(err, KILN_E_IO,
                         "cannot make the folder '%s' for what kiln slurm remembers: %s", name,
                         strerror(errno));
    *fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT && !make) return KILN_OK;
    if (*fd >= 0 && is_own(*fd, S_IFDIR)) return KILN_OK;
    if (*fd >= 0) (void)close(*fd); /* was only read */
    *fd = -1;
    return kiln_fail(
        err, KILN_E_INPUT,
        "the folder '%s' is a link, belongs to another user, or others may write to it", name);
}

/* *fd -1: there is none. */
static kiln_status open_recall_folder(const char *out, const char *scene, bool make, int *fd,
                                      kiln_error *err)
{
    char home[KILN_PATH_MAX], real[PATH_MAX], real_scene[PATH_MAX];
    int splatkiln;
    *fd = -1;
    if (!find_state_home(home))
        return make ? kiln_fail(err, KILN_E_IO, "neither XDG_STATE_HOME nor HOME names a folder")
                    : KILN_OK;
    if (make) {
        KILN_TRY(kiln_make_parents(home, err));
        if (mkdir(home, 0700) != 0 && errno != EEXIST)
            return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s", home,
                             strerror(errno));
    }
    const int root = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 && !make && errno == ENOENT) return KILN_OK;
    if (root < 0 || !realpath(home, real)) {
        const int why = errno;
        if (root >= 0) (void)close(root); /* was only read */
        return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", home, strerror(why));
    }
    const bool inside = lies_in(real, out) || (scene && *scene && realpath(scene, real_scene) &&
                                               lies_in(real, real_scene));
    kiln_status st =
        inside ? kiln_fail(err, KILN_E_INPUT, "'%s' lies in the scene or in the bake", home)
               : KILN_OK;
    if (st == KILN_OK) st = open_own_folder(root, "splatkiln", make, &splatkiln, err);
    (void)close(root); /* was only read */
    if (st != KILN_OK || splatkiln < 0) return st;
    st = open_own_folder(splatkiln, "slurm", make, fd, err);
    (void)close(splatkiln); /* was only read */
    return st;
}

static void recall_name(const char *out, char name[33])
{
    kiln_hash_hex(kiln_hash_of(out, strlen(out)), name);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_tasks(const char *text, uint32_t least, uint32_t *out)
{
    const size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 6 || text[n]) return false;
    *out = (uint32_t)strtoul(text, NULL, 10);
    return *out >= least && *out <= KILN_ROUND_TASKS_MAX;
}

static kiln_status read_recall_line(const char *line, const char *out, kiln_slurm_settings *recall,
                                    bool *sound, kiln_error *err)
{
    static const char bake[] = "bake ", tasks[] = "tasks ", concurrent[] = "concurrent ";
    kiln_slurm_list list;
    const char *word;
    *sound = true;
    if (kiln_slurm_list_find(line, ' ', &list, &word) && recall->list[list].n < LIST_WORDS_MAX)
        return kiln_words_add(&recall->list[list], word, err);
    *sound = (!strncmp(line, bake, strlen(bake)) && !strcmp(line + strlen(bake), out)) ||
             (!strncmp(line, tasks, strlen(tasks)) &&
              read_tasks(line + strlen(tasks), 1, &recall->tasks)) ||
             (!strncmp(line, concurrent, strlen(concurrent)) &&
              read_tasks(line + strlen(concurrent), 0, &recall->concurrent));
    return KILN_OK;
}

static kiln_status parse_recall(char *text, const char *out, kiln_slurm_settings *recall,
                                bool *sound, kiln_error *err)
{
    char *at = text;
    *sound = true;
    for (unsigned n = 0; *sound; n++) {
        char *end = strchr(at, '\n');
        *sound = end != NULL;
        if (!end) return KILN_OK;
        *end = '\0';
        if (!strcmp(at, "end")) {
            *sound = n > 0 && recall->tasks && !end[1];
            return KILN_OK;
        }
        if (n == 0)
            *sound = !strcmp(at, first_line);
        else
            KILN_TRY(read_recall_line(at, out, recall, sound, err));
        at = end + 1;
    }
    return KILN_OK;
}

/* *text NULL: there is none. The caller frees it. */
static kiln_status read_own_file(int in, const char *name, char **text, kiln_error *err)
{
    *text = NULL;
    const int fd = openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return KILN_OK;
    kiln_status st =
        fd >= 0 && is_own(fd, S_IFREG)
            ? KILN_ALLOC(text, RECALL_MAX, "what kiln slurm remembers", err)
            : kiln_fail(
                  err, KILN_E_INPUT,
                  "the file '%s' is a link, belongs to another user, or others may write to it",
                  name);
    const ssize_t n = st == KILN_OK ? pread(fd, *text, RECALL_MAX - 1, 0) : 0;
    if (n < 0)
        st = kiln_fail(err, KILN_E_IO, "cannot read the file '%s': %s", name, strerror(errno));
    if (fd >= 0) (void)close(fd); /* was only read */
    return st;
}

static kiln_status read_recall(const char *out, const char *scene, kiln_slurm_settings *recall,
                               bool *known, kiln_error *err)
{
    char name[33], *text = NULL;
    int fd;
    bool sound = false;
    KILN_TRY(open_recall_folder(out, scene, false, &fd, err));
    if (fd < 0) return KILN_OK;
    recall_name(out, name);
    kiln_status st = read_own_file(fd, name, &text, err);
    (void)close(fd); /* was only read */
    if (st == KILN_OK && text) st = parse_recall(text, out, recall, &sound, err);
    if (st == KILN_OK && text && !sound)
        st = kiln_fail(err, KILN_E_INPUT, "the file '%s' was not written by kiln slurm", name);
    *known = st == KILN_OK && text;
    free(text);
    return st;
}

kiln_status kiln_slurm_recall_read(const char *out, const char *scene, kiln_slurm_settings *recall,
                                   bool *known, char *why, kiln_error *err)
{
    kiln_error reason = {0};
    *recall = (kiln_slurm_settings){0};
    *known = false;
    *why = '\0';
    const kiln_status st = read_recall(out, scene, recall, known, &reason);
    if (st == KILN_OK) return KILN_OK;
    kiln_slurm_settings_release(recall);
    *known = false;
    if (st == KILN_E_NOMEM) return kiln_fail(err, st, "%s", reason.msg);
    (void)snprintf(why, 512, "%.500s", reason.msg);
    return KILN_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static kiln_status print_recall_list(kiln_slurm_list list, const kiln_words *words, kiln_buffer *b,
                                     kiln_error *err)
{
    const char *name = kiln_slurm_list_name(list);
    if (words->n > LIST_WORDS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "--%s has too many words", name);
    for (size_t i = 0; i < words->n; i++) {
        if (strchr(words->word[i], '\n'))
            return kiln_fail(err, KILN_E_INPUT, "a word of --%s has a line break", name);
        KILN_TRY(kiln_buffer_printf(b, err, "%s %s\n", name, words->word[i]));
    }
    return KILN_OK;
}

static kiln_status print_recall(const char *out, const kiln_slurm_settings *recall, kiln_buffer *b,
                                kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(b, err, "%s\nbake %s\ntasks %u\n", first_line, out, recall->tasks));
    if (recall->concurrent)
        KILN_TRY(kiln_buffer_printf(b, err, "concurrent %u\n", recall->concurrent));
    for (int i = 0; i < KILN_SLURM_LISTS; i++)
        KILN_TRY(print_recall_list((kiln_slurm_list)i, &recall->list[i], b, err));
    KILN_TRY(kiln_buffer_printf(b, err, "end\n"));
    return b->size < RECALL_MAX
               ? KILN_OK
               : kiln_fail(err, KILN_E_INPUT, "the settings of the jobs are too long");
}

static kiln_status write_own_file(int in, const char *name, const kiln_buffer *b, kiln_error *err)
{
    char temporary[64];
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = (uint64_t)getpid();
    (void)snprintf(temporary, sizeof temporary, ".%.32s.%016llx", name, (unsigned long long)number);
    const int fd =
        openat(in, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : kiln_file_pwrite(fd, 0, b->data, b->size, NULL);
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    if (!error && renameat(in, temporary, in, name) != 0) error = errno;
    if (!error) return KILN_OK;
    if (fd >= 0) (void)unlinkat(in, temporary, 0); /* the write's own reason is the one to tell */
    return kiln_fail(err, KILN_E_IO, "cannot write the file '%s': %s", name, strerror(error));
}

kiln_status kiln_slurm_recall_write(const char *out, const char *scene,
                                    const kiln_slurm_settings *recall, kiln_error *err)
{
    char name[33];
    kiln_buffer b = {0};
    int fd = -1;
    kiln_status st;
    KILN_GO(open_recall_folder(out, scene, true, &fd, err));
    KILN_GO(print_recall(out, recall, &b, err));
    recall_name(out, name);
    KILN_GO(write_own_file(fd, name, &b, err));
done:
    if (fd >= 0) (void)close(fd); /* was only read */
    kiln_buffer_release(&b);
    return st;
}
