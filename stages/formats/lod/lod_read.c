/* lod_read -- streamed SOG: lod-meta.json and the SOG scenes (sog_read.c) that it names, of which
 * one level of detail is read.
 *
 * Rows are those of the level, file after file in the order of filenames, and behind them the
 * environment's, which every level has. Level 0 is the finest. Sets are often passed on without it,
 * because it is most of the bytes: the finest level whose files are all there is taken, or the one
 * that --lod names. What a leaf lacks at a level it has none of: the level before does not stand
 * in.
 *
 * The spool is lod_head and then a part (sog_rows.h) for each file. All that is read later comes
 * out of it: files besides lod-meta.json are looked at by the first open, by members and by spool
 * alone.
 */
#include "stages/formats/reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/files/json_file.h"
#include "stages/formats/lod/lod.h"
#include "stages/formats/lod/lod_tree.h"
#include "stages/formats/sog/sog_notes.h"
#include "stages/formats/sog/sog_rows.h"
#include "stages/formats/sog/sog_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    uint32_t level, has_environment;
    kiln_source_info info; /* with what the pixels said */
} lod_head;

/* A file of the level, or the environment. */
typedef struct {
    const char *file; /* of the tree */
    uint64_t n;       /* its rows, used or not */
    uint64_t base;    /* in the spool */
} part;

/* Rows [row, row + n) of the source are those of a part from `first` on. */
typedef struct {
    uint64_t row, first, n;
    uint32_t part;
} run;

typedef struct {
    char name[KILN_PATH_MAX], folder[KILN_PATH_MAX];
    kiln_lod_tree tree;
    lod_head head;
    part *parts;
    uint32_t n_parts;
    run *runs;
    uint32_t n_runs;
    int fd;              /* of the spool */
    kiln_sog_rows *rows; /* of one part, the last that was read */
    uint32_t rows_part;
} lod_source;

static int probe_lod(const unsigned char *head, size_t len, const char *path)
{
    return kiln_sog_json_score(head, len, "\"" KILN_LOD_KEY_LEVELS "\"", "0123456789", path,
                               KILN_LOD_META);
}

static void close_lod(kiln_source *source)
{
    lod_source *s = (lod_source *)source;
    if (!s) return;
    kiln_sog_rows_free(s->rows);
    kiln_lod_tree_release(&s->tree);
    free(s->parts);
    free(s->runs);
    if (s->fd >= 0) close(s->fd);
    free(s);
}

/* ---- which level ----------------------------------------------------------------------------- */

typedef struct {
    bool is_there[KILN_LOD_LEVELS_MAX]; /* all files of the level are, and it is not empty */
    uint32_t n_missing;                 /* files */
    char missing[256];                  /* the first of them */
} levels;

static bool is_file_there(const lod_source *s, const char *file)
{
    char path[KILN_PATH_MAX];
    return kiln_path_join(path, sizeof path, s->folder, file, NULL) == KILN_OK &&
           kiln_is_file(path);
}

static void name_missing(levels *l, const char *file)
{
    enum { NAMED = 4 };
    const size_t at = strlen(l->missing);
    if (l->n_missing <= NAMED)
        snprintf(l->missing + at, sizeof l->missing - at, "%s%.60s", at ? ", " : "",
                 l->n_missing < NAMED ? file : "...");
    l->n_missing++;
}

static kiln_status look_at_levels(const lod_source *s, levels *out, kiln_error *err)
{
    unsigned char *is_there = NULL;
    *out = (levels){.n_missing = 0};
    KILN_TRY(KILN_ALLOC(&is_there, s->tree.n_files, "files", err));
    for (uint32_t f = 0; f < s->tree.n_files; f++) {
        is_there[f] = is_file_there(s, s->tree.files[f]);
        if (!is_there[f]) name_missing(out, s->tree.files[f]);
    }
    for (uint32_t i = 0; i < s->tree.n_levels; i++) out->is_there[i] = s->tree.counts[i] > 0;
    for (uint32_t i = 0; i < s->tree.n_ranges; i++)
        out->is_there[s->tree.ranges[i].level] &= is_there[s->tree.ranges[i].file];
    free(is_there);
    return KILN_OK;
}

static void add_lod_remark(kiln_source_info *info, const char *text)
{
    const size_t at = strlen(info->remarks);
    snprintf(info->remarks + at, sizeof info->remarks - at, "%s%s", at ? "; " : "", text);
}

/* Nothing is said of a whole set whose finest level is read, and a level of a whole one is what the
 * user chose. */
static void note_level(lod_source *s, const levels *l)
{
    kiln_source_info *info = &s->head.info;
    char lost[256] = "", level[160];
    size_t at = 0;
    for (uint32_t i = 0; i < s->tree.n_levels; i++)
        if (!l->is_there[i] && s->tree.counts[i] && at + 48 < sizeof lost)
            at += (size_t)snprintf(lost + at, sizeof lost - at, "%s%u (%llu Gaussians)",
                                   at ? ", " : "", i, (unsigned long long)s->tree.counts[i]);
    snprintf(level, sizeof level,
             "of the levels of detail 0 (the finest) to %u, level %u is read, %llu Gaussians",
             s->tree.n_levels - 1, s->head.level,
             (unsigned long long)s->tree.counts[s->head.level]);
    if (s->head.level && !at) add_lod_remark(info, level);
    if (at) kiln_sog_note(info, "%s", level);
    if (at)
        kiln_sog_note(info,
                      "the set is incomplete: without level %s, because %u file%s missing: %s",
                      lost, l->n_missing, l->n_missing == 1 ? " is" : "s are", l->missing);
}

static kiln_status choose_level(lod_source *s, uint32_t wish, kiln_error *err)
{
    levels l;
    KILN_TRY(look_at_levels(s, &l, err));
    if (wish >= s->tree.n_levels)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has the levels 0 to %u; choose one of them with --lod", s->name,
                         s->tree.n_levels - 1);
    s->head.level = wish;
    while (wish == 0 && s->head.level < s->tree.n_levels && !l.is_there[s->head.level])
        s->head.level++;
    if (s->head.level == s->tree.n_levels)
        return kiln_fail(err, KILN_E_INPUT,
                         "no level of '%s' is whole: %u of its %u files are missing: %s", s->name,
                         l.n_missing, s->tree.n_files, l.missing[0] ? l.missing : "it has none");
    if (!l.is_there[s->head.level])
        return kiln_fail(
            err, KILN_E_INPUT, "level %u of '%s' %s; leave --lod away for the finest that is there",
            s->head.level, s->name,
            s->tree.counts[s->head.level] ? "is not whole: files are missing" : "has no Gaussians");
    note_level(s, &l);
    if (!s->tree.environment) return KILN_OK;
    s->head.has_environment = is_file_there(s, s->tree.environment);
    if (!s->head.has_environment)
        kiln_sog_note(&s->head.info, "the environment is missing: %.200s", s->tree.environment);
    return KILN_OK;
}

/* ---- parts and runs -------------------------------------------------------------------------- */

static bool is_of_level(const lod_source *s, uint32_t range)
{
    return s->tree.ranges[range].level == s->head.level;
}

/* The files of the level, each once; ranges are in the order of files. */
static kiln_status list_parts(lod_source *s, kiln_error *err)
{
    uint32_t last = UINT32_MAX;
    KILN_TRY(KILN_ALLOC(&s->parts, (uint64_t)s->tree.n_files + 1, "files", err));
    for (uint32_t i = 0; i < s->tree.n_ranges; i++) {
        if (!is_of_level(s, i) || s->tree.ranges[i].file == last) continue;
        last = s->tree.ranges[i].file;
        s->parts[s->n_parts++] = (part){.file = s->tree.files[last]};
    }
    if (s->head.has_environment) s->parts[s->n_parts++] = (part){.file = s->tree.environment};
    return KILN_OK;
}

static kiln_status add_run(lod_source *s, uint32_t p, uint64_t first, uint64_t n, kiln_error *err)
{
    run *last = s->n_runs ? &s->runs[s->n_runs - 1] : NULL;
    const uint64_t row = last ? last->row + last->n : 0;
    if (first + n > s->parts[p].n)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has a leaf with the rows %llu to %llu of '%s', which has %llu",
                         s->name, (unsigned long long)first, (unsigned long long)(first + n),
                         s->parts[p].file, (unsigned long long)s->parts[p].n);
    if (last && last->part == p && last->first + last->n == first) {
        last->n += n;
        return KILN_OK;
    }
    KILN_TRY(kiln_grow((void **)&s->runs, s->n_runs, sizeof *s->runs, "leaves", err));
    s->runs[s->n_runs++] = (run){.row = row, .first = first, .n = n, .part = p};
    return KILN_OK;
}

/* The tree is read anew in each worker, before it is known to be the one that the spool was made
 * of. */
static kiln_status fail_changed_lod(const lod_source *s, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "'%s' changed while it was read", s->name);
}

/* parts[].n are known. */
static kiln_status list_runs(lod_source *s, kiln_error *err)
{
    uint32_t p = 0;
    for (uint32_t i = 0; i < s->tree.n_ranges; i++) {
        const kiln_lod_range *r = &s->tree.ranges[i];
        if (!is_of_level(s, i)) continue;
        if (s->parts[p].file != s->tree.files[r->file]) p++;
        if (p >= s->n_parts) return fail_changed_lod(s, err);
        KILN_TRY(add_run(s, p, r->first, r->n, err));
    }
    if (s->head.has_environment)
        KILN_TRY(add_run(s, s->n_parts - 1, 0, s->parts[s->n_parts - 1].n, err));
    if (s->n_runs == 0) return fail_changed_lod(s, err);
    const run *last = &s->runs[s->n_runs - 1];
    s->head.info.n_rows = last->row + last->n;
    if (s->head.info.n_rows < UINT32_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' has %llu rows; ids have 32 bits, so at most 4294967294 can be read",
                     s->name, (unsigned long long)s->head.info.n_rows);
}

/* ---- open ------------------------------------------------------------------------------------ */

static kiln_status open_set(const lod_source *s, uint32_t p, kiln_sog_set **out, kiln_error *err)
{
    char path[KILN_PATH_MAX], real[KILN_PATH_MAX];
    const char *why;
    KILN_TRY(kiln_path_join(path, sizeof path, s->folder, s->parts[p].file, err));
    if (!kiln_member_find(s->folder, path, real, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s' of '%s' %s", path, s->name, why);
    return kiln_sog_set_open(real, path, out, err);
}

static void take_lod_codes(lod_source *s, uint32_t p, const kiln_sog_codes *c)
{
    kiln_source_info *info = &s->head.info;
    s->parts[p].n = c->n;
    s->parts[p].base = info->spool_bytes;
    info->spool_bytes += kiln_sog_plane(c, KILN_SOG_IMAGES, NULL);
    kiln_sog_info_take(c, info);
}

/* The parts as their files are. */
static kiln_status look_at_parts(lod_source *s, kiln_error *err)
{
    bool same = true;
    char text[100];
    s->head.info.spool_bytes = sizeof s->head;
    for (uint32_t p = 0; p < s->n_parts; p++) {
        kiln_sog_set *set;
        KILN_TRY(open_set(s, p, &set, err));
        const kiln_sog_codes *c = kiln_sog_set_codes(set);
        take_lod_codes(s, p, c);
        same &= c->antialiased == s->head.info.antialiased;
        if (s->head.has_environment && p + 1 == s->n_parts) {
            snprintf(text, sizeof text, "its environment of %llu Gaussians is read with it",
                     (unsigned long long)c->n);
            add_lod_remark(&s->head.info, text);
        }
        s->head.info.spool_ram = kiln_max_u64(s->head.info.spool_ram, kiln_sog_set_image_ram(set));
        kiln_sog_set_free(set);
    }
    if (!same)
        kiln_sog_note(&s->head.info,
                      "some of its files are antialiased and others not; the first decides");
    return KILN_OK;
}

static kiln_status open_files(lod_source *s, const kiln_source_at *at, kiln_error *err)
{
    kiln_file_info file;
    KILN_TRY(kiln_file_stat(at->path, &file, err));
    s->head.info.kind = KILN_SCENE_SPLATS;
    s->head.info.file_bytes = file.size;
    KILN_TRY(choose_level(s, at->options ? at->options->lod : 0, err));
    KILN_TRY(list_parts(s, err));
    return look_at_parts(s, err);
}

static kiln_status open_spool(lod_source *s, const kiln_source_at *at, kiln_error *err)
{
    KILN_TRY(kiln_file_open(at->spool, &s->fd, err));
    KILN_TRY(kiln_file_read_at(s->fd, s->name, 0, &s->head, sizeof s->head, err));
    KILN_TRY(list_parts(s, err));
    uint64_t base = sizeof s->head;
    for (uint32_t p = 0; p < s->n_parts; p++) {
        kiln_sog_codes c;
        KILN_TRY(kiln_file_read_at(s->fd, s->name, base, &c, sizeof c, err));
        s->parts[p].n = c.n;
        s->parts[p].base = base;
        base += kiln_sog_plane(&c, KILN_SOG_IMAGES, NULL);
    }
    return KILN_OK;
}

static kiln_status set_names(lod_source *s, const char *name, kiln_error *err)
{
    const size_t folder = (size_t)(kiln_path_base(name) - name);
    if (strlen(name) >= sizeof s->name)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.200s...' is too long", name);
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->folder, sizeof s->folder, "%.*s", folder ? (int)folder : 1, folder ? name : ".");
    return KILN_OK;
}

static kiln_status open_lod(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                            kiln_error *err)
{
    kiln_status st = KILN_OK;
    lod_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "SOG reader", err));
    s->fd = -1;
    KILN_GO(set_names(s, at->name, err));
    KILN_GO(kiln_lod_tree_read(at->path, at->name, &s->tree, err));
    KILN_GO(at->spool ? open_spool(s, at, err) : open_files(s, at, err));
    KILN_GO(list_runs(s, err));
    *info = s->head.info;
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_lod((kiln_source *)s);
    return st;
}

static kiln_status list_lod_members(kiln_source *source, kiln_member_fn *add, void *context,
                                    kiln_error *err)
{
    const lod_source *s = (const lod_source *)source;
    char path[KILN_PATH_MAX];
    for (uint32_t p = 0; p < s->n_parts; p++) {
        kiln_sog_set *set;
        KILN_TRY(kiln_path_join(path, sizeof path, s->folder, s->parts[p].file, err));
        KILN_TRY(add(context, path, err));
        KILN_TRY(open_set(s, p, &set, err));
        const kiln_status st = kiln_sog_set_members(set, add, context, err);
        kiln_sog_set_free(set);
        KILN_TRY(st);
    }
    return KILN_OK;
}

/* ---- spool and rows -------------------------------------------------------------------------- */

static kiln_status spool_part(lod_source *s, uint32_t p, int fd, unsigned threads, kiln_error *err)
{
    kiln_sog_set *set;
    KILN_TRY(open_set(s, p, &set, err));
    kiln_status st = KILN_OK;
    if (kiln_sog_set_codes(set)->n != s->parts[p].n)
        st = kiln_fail(err, KILN_E_INPUT,
                       "'%s' of '%s' has changed while it was read; import it again",
                       s->parts[p].file, s->name);
    if (st == KILN_OK) st = kiln_sog_set_spool(set, fd, s->parts[p].base, threads, err);
    if (st == KILN_OK) kiln_sog_note_unknown(kiln_sog_set_codes(set), &s->head.info);
    kiln_sog_set_free(set);
    return st;
}

static kiln_status spool_lod(kiln_source *source, int fd, unsigned threads, kiln_error *err)
{
    lod_source *s = (lod_source *)source;
    for (uint32_t p = 0; p < s->n_parts; p++) KILN_TRY(spool_part(s, p, fd, threads, err));
    return kiln_sog_spool_write(fd, s->name, 0, &s->head, sizeof s->head, err);
}

static kiln_status open_part(lod_source *s, uint32_t p, kiln_error *err)
{
    if (s->rows && s->rows_part == p) return KILN_OK;
    kiln_sog_rows_free(s->rows);
    s->rows = NULL;
    s->rows_part = p;
    return kiln_sog_rows_open(s->fd, s->name, s->parts[p].base, &s->rows, err);
}

/* The run that holds a row. */
static uint32_t find_run(const lod_source *s, uint64_t row)
{
    uint32_t lo = 0, hi = s->n_runs;
    while (hi - lo > 1) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (s->runs[middle].row <= row)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

static kiln_status read_lod_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset,
                                 kiln_rows *rows, uint64_t *next_offset, kiln_error *err)
{
    lod_source *s = (lod_source *)source;
    (void)offset;
    *next_offset = UINT64_MAX;
    rows->n = n;
    uint32_t r = find_run(s, first);
    for (uint64_t at = 0, k; at < n; at += k, r++) {
        const run *from = &s->runs[r];
        const uint64_t skipped = first + at - from->row;
        k = kiln_min_u64(from->n - skipped, n - at);
        KILN_TRY(open_part(s, from->part, err));
        KILN_TRY(kiln_sog_rows_read(s->rows, from->first + skipped, k, s->head.info.sh_degree, rows,
                                    at, err));
    }
    return KILN_OK;
}

/* jansson's tree of a leaf takes about 18 times its text; beside it stands the text, and later our
 * list of leaves. */
static uint64_t lod_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t tree = kiln_min_u64(24 * info->file_bytes, KILN_JSON_TREE_LIMIT);
    const uint64_t open = sizeof(lod_source) + tree + 2 * info->file_bytes;
    if (pass == KILN_PASS_SPOOL_THREAD) return info->spool_ram;
    return open +
           (pass == KILN_PASS_SPOOL ? kiln_sog_set_ram() + info->spool_ram : kiln_sog_rows_ram());
}

const kiln_reader kiln_reader_lod = {
    .name = "lod",
    .suffixes = "json",
    .summary = "streamed SOG of PlayCanvas: lod-meta.json with the SOG scenes of its levels, one "
               "of which is read (--lod)",
    .packed = KILN_PACKED_NEVER,
    .has_options = true,
    .ram = lod_reader_ram,
    .probe = probe_lod,
    .open = open_lod,
    .members = list_lod_members,
    .spool = spool_lod,
    .read = read_lod_rows,
    .close = close_lod,
};
