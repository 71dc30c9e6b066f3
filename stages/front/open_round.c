/* open_round -- see the header. The folder is read as a whole instead of asking for each part: a
 * network file system may remember for half a minute that a name was not there. */
#include "stages/front/open_round.h"

#include "base/memory.h"
#include "schema/claim.h"
#include "stages/engine/stage_graph.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the claim ------------------------------------------------------------------------------- */

static kiln_status copy_claim(const char *manifest, const kiln_claim *c, kiln_open_round *out,
                              kiln_error *err)
{
    const kiln_stage_info *stage = kiln_stage_find(c->stage);
    const char *const cure = "; kiln-STAGE MANIFEST --break-claim of any stage removes it";
    if (!stage)
        return kiln_fail(err, KILN_E_INPUT,
                         "the claim beside '%s' names '%s', which is not a stage%s", manifest,
                         c->stage, cure);
    if (c->tasks > KILN_ROUND_TASKS_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "the claim beside '%s' has %u tasks, but at most %d are possible; kiln-%s "
                         "--plan --tasks N stores another number",
                         manifest, c->tasks, KILN_ROUND_TASKS_MAX, stage->name);
    out->there = true;
    out->stage = stage->name;
    out->units = c->n_units;
    for (uint64_t i = 0; i < c->n_due; i++) out->due += c->due[i].last - c->due[i].first + 1;
    /* others would start and find nothing to do */
    out->tasks = out->due < c->tasks ? (uint32_t)out->due : c->tasks;
    kiln_hash_hex(c->plan, out->key);
    (void)snprintf(out->what, sizeof out->what, "%s", c->what);
    return KILN_OK;
}

kiln_status kiln_open_round_read(const char *manifest, kiln_open_round *out, kiln_error *err)
{
    kiln_claim claim;
    bool there;
    *out = (kiln_open_round){.stage = ""};
    kiln_status st = kiln_claim_read(manifest, &there, &claim, err);
    if (st == KILN_OK && there) st = copy_claim(manifest, &claim, out, err);
    kiln_claim_release(&claim);
    return st;
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* I of STAGE-KEY-I-of-N.part, which kiln_part_name makes; 0: another name. */
static uint32_t task_of_part(const kiln_open_round *round, const char *name)
{
    char own[160];
    /* two hyphens; its size counts the NUL */
    const size_t head = strlen(round->stage) + sizeof round->key + 1;
    if (strlen(name) <= head || name[head] < '1' || name[head] > '9') return 0;
    const unsigned long task = strtoul(name + head, NULL, 10);
    if (task > round->tasks) return 0;
    (void)snprintf(own, sizeof own, "%s-%s-%lu-of-%u.part", round->stage, round->key, task,
                   round->tasks);
    return strcmp(own, name) ? 0 : (uint32_t)task;
}

static kiln_status mark_parts(const kiln_open_round *round, int fd, const char *path, bool *has,
                              kiln_error *err)
{
    /* with a position of its own */
    const int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    struct stat s;
    if (!d) {
        const int why = errno;
        if (again >= 0) (void)close(again); /* nothing was written */
        return kiln_fail(err, KILN_E_IO, "cannot list the parts in '%s': %s", path, strerror(why));
    }
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        const uint32_t task = task_of_part(round, e->d_name);
        if (task && fstatat(fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode))
            has[task - 1] = true;
    }
    (void)closedir(d); /* was only read */
    return KILN_OK;
}

kiln_status kiln_open_round_missing(const kiln_open_round *round, int fd, const char *path,
                                    kiln_task_list *out, kiln_error *err)
{
    bool *has = NULL;
    kiln_status st;
    *out = (kiln_task_list){0};
    KILN_GO(KILN_ALLOC(&has, round->tasks, "the tasks of a round", err));
    KILN_GO(KILN_ALLOC(&out->task, round->tasks, "the tasks of a round", err));
    KILN_GO(mark_parts(round, fd, path, has, err));
    for (uint32_t i = 0; i < round->tasks; i++)
        if (!has[i]) out->task[out->n++] = i + 1;
done:
    free(has);
    if (st != KILN_OK) kiln_task_list_release(out);
    return st;
}

void kiln_task_list_release(kiln_task_list *l)
{
    free(l->task);
    *l = (kiln_task_list){0};
}
