/* The file is small beside the units that it speaks of, and is read whole. It may lie beside a
 * stranger's manifest: nothing in it is trusted before it is checked, and a link or a pipe of its
 * name is refused. */
#include "schema/claim.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/manifest_internal.h"
#include "schema/placing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BYTES_MAX = 64 << 20 };
static const char first_line[] = "splatkiln-claim 1";

static kiln_status claim_path(const char *manifest, char out[KILN_PATH_MAX], kiln_error *err)
{
    char real[KILN_PATH_MAX];
    /* else its folder is not there */
    const bool known = kiln_manifest_real_path(manifest, real, NULL) == KILN_OK;
    const int n = snprintf(out, KILN_PATH_MAX, "%s.claim", known ? real : manifest);
    if (n > 0 && n < KILN_PATH_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the path of the claim beside '%.200s...' is too long",
                     manifest);
}

void kiln_claim_release(kiln_claim *c)
{
    free(c->due);
    free(c->decisions);
    *c = (kiln_claim){0};
}

/* ---- reading --------------------------------------------------------------------------------- */
static bool read_claim_number(const char *text, uint64_t *out)
{
    char *end;
    if (!*text || strspn(text, "0123456789") != strlen(text)) return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && !*end;
}

static bool read_word(const char *text, char *out, size_t size)
{
    const size_t n = strlen(text);
    if (n == 0 || n >= size) return false;
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 32 || *p == 127) return false;
    memcpy(out, text, n + 1);
    return true;
}

/* It becomes a part of file names and of commands, so nothing else gets through. */
static bool is_stage_name(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_")] == '\0' && *name != '-';
}

/* Makes room for row n; rows are doubled. */
static kiln_status more_rows(void **rows, uint64_t n, size_t size, kiln_error *err)
{
    void *more;
    if (n & (n - 1)) return KILN_OK; /* has room up to the next power of two */
    KILN_TRY(kiln_alloc(&more, n ? 2 * n : 1, size, "a claim", err));
    if (n) memcpy(more, *rows, n * size);
    free(*rows);
    *rows = more;
    return KILN_OK;
}

static kiln_status add_due(kiln_claim *c, char *text, bool *sound, kiln_error *err)
{
    kiln_claim_range range;
    char *dash = strchr(text, '-');
    *sound = false;
    if (!dash) return KILN_OK;
    *dash = '\0';
    if (!read_claim_number(text, &range.first) || !read_claim_number(dash + 1, &range.last) ||
        range.first > range.last)
        return KILN_OK;
    if (range.last >= c->n_units || (c->n_due && c->due[c->n_due - 1].last >= range.first))
        return KILN_OK;
    KILN_TRY(more_rows((void **)&c->due, c->n_due, sizeof *c->due, err));
    c->due[c->n_due++] = range;
    *sound = true;
    return KILN_OK;
}

static kiln_status add_decision(kiln_claim *c, char *text, bool *sound, kiln_error *err)
{
    kiln_decision d;
    char *blank = strchr(text, ' ');
    *sound = false;
    if (!blank || c->n_decisions == KILN_DECISIONS_MAX) return KILN_OK;
    *blank = '\0';
    if (!read_word(text, d.name, sizeof d.name) || !read_claim_number(blank + 1, &d.value))
        return KILN_OK;
    KILN_TRY(more_rows((void **)&c->decisions, c->n_decisions, sizeof *c->decisions, err));
    c->decisions[c->n_decisions++] = d;
    *sound = true;
    return KILN_OK;
}

/* `units` stands before `due`, whose numbers are below it. An unknown word is of a newer version:
 * refused. */
static kiln_status read_line(kiln_claim *c, const char *word, char *value, bool *sound,
                             kiln_error *err)
{
    uint64_t n = 0;
    *sound = true;
    if (!strcmp(word, "due")) return add_due(c, value, sound, err);
    if (!strcmp(word, "decision")) return add_decision(c, value, sound, err);
    if (!strcmp(word, "stage"))
        *sound = read_word(value, c->stage, sizeof c->stage) && is_stage_name(c->stage);
    else if (!strcmp(word, "plan"))
        *sound = kiln_hash_parse(value, &c->plan);
    else if (!strcmp(word, "host"))
        *sound = read_word(value, c->host, sizeof c->host);
    else if (!strcmp(word, "start"))
        *sound = read_word(value, c->start, sizeof c->start);
    else if (!strcmp(word, "what"))
        *sound = read_word(value, c->what, sizeof c->what);
    else if (!strcmp(word, "units"))
        /* `due` was checked against it */
        *sound = c->n_due == 0 && read_claim_number(value, &c->n_units);
    else if (!strcmp(word, "pid"))
        *sound = read_claim_number(value, &n) && n <= INT32_MAX && (c->pid = (int64_t)n, true);
    else if (!strcmp(word, "tasks"))
        *sound = read_claim_number(value, &n) && n > 0 && n <= KILN_TASKS_MAX &&
                 (c->tasks = (uint32_t)n, true);
    else
        *sound = false;
    return KILN_OK;
}

static bool is_complete(const kiln_claim *c)
{
    return *c->stage && *c->host && *c->start && *c->what && c->tasks && c->n_due &&
           !kiln_hash_is_zero(c->plan);
}

static kiln_status parse_claim(const char *path, char *text, size_t size, kiln_claim *c,
                               kiln_error *err)
{
    bool sound = memchr(text, '\0', size) == NULL, ended = false;
    unsigned line = 1;
    char *next = NULL;
    for (char *at = text; sound && !ended && at && *at; at = next, line++) {
        char *end = strchr(at, '\n');
        next = end ? end + 1 : NULL;
        if (end) *end = '\0';
        ended = end && !strcmp(at, "end");
        if (ended) break;
        char *value = strchr(at, ' ');
        sound = end && value && (line > 1 || !strcmp(at, first_line));
        if (!sound || line == 1) continue;
        *value++ = '\0';
        KILN_TRY(read_line(c, at, value, &sound, err));
    }
    if (sound && ended && next && !*next && is_complete(c)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' is not the claim of a plan%s; kiln-STAGE MANIFEST --break-claim of any "
                     "stage removes it",
                     path, sound ? ", or is cut short" : "");
}

kiln_status kiln_claim_read(const char *manifest, bool *there, kiln_claim *out, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    unsigned char *text = NULL;
    size_t size;
    struct stat s;
    *out = (kiln_claim){0};
    *there = false;
    KILN_TRY(claim_path(manifest, path, err));
    if (lstat(path, &s) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return KILN_OK;
        return kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", path, strerror(errno));
    }
    *there = true;
    if (!S_ISREG(s.st_mode))
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' is not a regular file, so it cannot be the claim of a plan; remove it", path);
    KILN_TRY(kiln_file_read(path, BYTES_MAX, &text, &size, err));
    const kiln_status st = parse_claim(path, (char *)text, size, out, err);
    free(text);
    if (st != KILN_OK) kiln_claim_release(out);
    return st;
}

bool kiln_claim_stands(const char *manifest)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    return claim_path(manifest, path, NULL) == KILN_OK && lstat(path, &s) == 0;
}

bool kiln_claim_has_due(const kiln_claim *c, uint64_t position)
{
    uint64_t low = 0, high = c->n_due;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (c->due[middle].last < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n_due && c->due[low].first <= position;
}

/* ---- writing --------------------------------------------------------------------------------- */
static void fill_in(kiln_claim *c)
{
    const time_t now = time(NULL);
    struct tm utc;
    c->pid = (int64_t)getpid();
    if (gethostname(c->host, sizeof c->host - 1) != 0 || !*c->host) strcpy(c->host, "unknown");
    c->host[sizeof c->host - 1] = '\0';
    strcpy(c->start, "unknown");
    if (gmtime_r(&now, &utc)) (void)strftime(c->start, sizeof c->start, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static kiln_status print(const kiln_claim *c, kiln_buffer *b, kiln_error *err)
{
    char hex[33];
    KILN_TRY(kiln_buffer_printf(b, err,
                                "%s\nstage %s\nplan %s\nhost %s\npid %" PRId64
                                "\nstart %s\ntasks %" PRIu32 "\nunits %" PRIu64 "\n",
                                first_line, c->stage, kiln_hash_hex(c->plan, hex), c->host, c->pid,
                                c->start, c->tasks, c->n_units));
    for (uint64_t i = 0; i < c->n_due; i++)
        KILN_TRY(kiln_buffer_printf(b, err, "due %" PRIu64 "-%" PRIu64 "\n", c->due[i].first,
                                    c->due[i].last));
    for (uint32_t i = 0; i < c->n_decisions; i++)
        KILN_TRY(kiln_buffer_printf(b, err, "decision %s %" PRIu64 "\n", c->decisions[i].name,
                                    c->decisions[i].value));
    return kiln_buffer_printf(b, err, "what %s\nend\n", c->what);
}

static kiln_status sync_folder_of(const char *path, kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    KILN_TRY(kiln_folder_of(path, folder, err));
    return kiln_folder_sync(folder, err);
}

/* Those of killed processes: who writes a claim has the lock, so no other process is at it. */
static kiln_status drop_temporaries(const char *path, kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    KILN_TRY(kiln_folder_of(path, folder, err));
    kiln_place_leftovers_drop(folder, kiln_path_base(path), ".claim.tmp.", true);
    return KILN_OK;
}

kiln_status kiln_claim_write(const char *manifest, kiln_claim *c, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_buffer b = {0};
    kiln_status st;
    fill_in(c);
    KILN_GO(claim_path(manifest, path, err));
    KILN_GO(drop_temporaries(path, err));
    KILN_GO(print(c, &b, err));
    if (b.size > BYTES_MAX) {
        st = kiln_fail(err, KILN_E_INPUT,
                       "the list of due units is too long for '%s'; run the stage on one host",
                       path);
        goto done;
    }
    KILN_GO(kiln_file_write(path, b.data, b.size, err));
    KILN_GO(sync_folder_of(path, err));
done:
    kiln_buffer_release(&b);
    return st;
}

kiln_status kiln_claim_remove(const char *manifest, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(claim_path(manifest, path, err));
    if (unlink(path) != 0 && errno != ENOENT)
        return kiln_fail(err, KILN_E_IO, "cannot remove the claim '%s': %s", path, strerror(errno));
    return sync_folder_of(path, err);
}

kiln_status kiln_claim_break(const char *manifest, const char *stage, kiln_claim_broken_fn *also,
                             kiln_error *err)
{
    kiln_lock lock;
    kiln_claim claim = {0};
    bool there = false;
    KILN_TRY(kiln_lock_take(manifest, stage, &lock, err));
    /* the stage's next run removes what it left */
    if (kiln_claim_read(manifest, &there, &claim, NULL) != KILN_OK) there = false;
    const kiln_status st = kiln_claim_remove(manifest, err);
    if (st == KILN_OK && there && also) also(manifest, &claim);
    kiln_claim_release(&claim);
    kiln_lock_release(&lock);
    return st;
}

kiln_status kiln_claim_set_tasks(const char *manifest, const char *stage, kiln_hash plan,
                                 uint32_t tasks, kiln_error *err)
{
    kiln_lock lock;
    kiln_claim c = {0};
    bool there = false;
    KILN_TRY(kiln_lock_take(manifest, stage, &lock, err));
    kiln_status st = kiln_claim_read(manifest, &there, &c, err);
    if (st == KILN_OK && (!there || !kiln_hash_equal(c.plan, plan)))
        st = kiln_fail(err, KILN_E_STALE,
                       "the plan of '%s' has changed since this run began; run it again", manifest);
    c.tasks = tasks;
    if (st == KILN_OK) st = kiln_claim_write(manifest, &c, err);
    kiln_claim_release(&c);
    kiln_lock_release(&lock);
    return st;
}

kiln_status kiln_claim_refuse(const char *manifest, kiln_error *err)
{
    kiln_claim c;
    bool there;
    kiln_status st = kiln_claim_read(manifest, &there, &c, err);
    const char *scene = strcmp(c.stage, "import") ? "" : " SCENE";
    if (st == KILN_OK && there)
        st = kiln_fail(err, KILN_E_BUSY,
                       "'%s' is claimed: kiln-%s --plan (host %s, pid %" PRId64
                       ", %s) has shared out units that tasks compute from its present state; "
                       "bring them in with kiln-%s%s '%.200s' --gather "
                       "DIR, or give them up with kiln-%s%s '%.200s' --break-claim",
                       manifest, c.stage, c.host, c.pid, c.start, c.stage, scene, manifest, c.stage,
                       scene, manifest);
    kiln_claim_release(&c);
    return st;
}
