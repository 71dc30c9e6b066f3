/* export_rounds -- see export_rounds.h. The parent's side of a writer. */
#include "stages/export/export_rounds.h"
#include "stages/export/bakes.h"
#include "stages/export/export_shared.h"
#include "stages/export/survey.h"
#include "stages/formats/ply/dropped_columns.h"
#include "stages/formats/folder_owner.h"
#include "stages/formats/rows.h"

#include "base/file.h"
#include "base/minmax.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/products/product_mark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    kiln_run *r;
    const kiln_writer_functions *f;
    kiln_export *e;
    kiln_export_places places;
    kiln_export_parent p;
    int scratch[KILN_SCRATCH_FILES]; /* without names: gone when they are closed */
    kiln_export_said *said;
    kiln_buffer plan;
} runner;

static void see_plan(runner *k)
{
    k->e->plan = k->plan.data;
    k->e->plan_bytes = k->plan.size;
}

/* ---- a list of units ------------------------------------------------------------------------- */

typedef struct {
    uint32_t number; /* of the round, or KILN_ROUND_SURVEY */
    const kiln_export_round *round;
    uint64_t n;
    kiln_unit *units;
    kiln_export_request *requests;
    kiln_buffer shared; /* what its workers know */
} list;

static uint64_t unit_ram(const runner *k, const kiln_export_round *round, uint64_t unit)
{
    const uint64_t from = k->e->from.ram;
    if (!round)
        return from + kiln_export_rows_ram(k->e, unit, k->f->survey | KILN_ROWS_MEANS) + (1 << 16);
    return from + round->ram(k->e, unit);
}

/* Counts over all formats of a run, because workers live on from one to the next. */
static uint32_t next_serial(void)
{
    static uint32_t serial;
    return ++serial;
}

static uint64_t unit_cost(const runner *k, const list *l, uint64_t unit)
{
    if (l->round && l->round->cost) return l->round->cost(k->e, unit);
    return !l->round || !l->round->units ? k->e->chunks[unit].chunk->count : 1;
}

static void fill_units(const runner *k, const list *l)
{
    const uint32_t serial = next_serial();
    const bool by_chunk = !l->round || !l->round->units;
    const uint64_t shared = kiln_shared_payload_ram(l->shared.size) + l->shared.size;
    for (uint64_t i = 0; i < l->n; i++) {
        l->requests[i] = (kiln_export_request){.unit = i, .round = l->number, .serial = serial};
        l->units[i] = (kiln_unit){
            .payload = &l->requests[i],
            .payload_bytes = sizeof l->requests[i],
            .shared_payload = l->shared.data,
            .shared_payload_bytes = l->shared.size,
            .cost = unit_cost(k, l, i),
            .ram = unit_ram(k, l->round, i) + shared,
            .ram_thread = l->round && l->round->ram_thread ? l->round->ram_thread(k->e, i) : 0,
            .volatile_result = true};
        if (by_chunk)
            (void)snprintf(l->units[i].name, sizeof l->units[i].name, "chunk %.150s",
                           k->e->chunks[i].chunk->name);
        else
            (void)snprintf(l->units[i].name, sizeof l->units[i].name, "%s %llu", l->round->what,
                           (unsigned long long)i);
    }
}

static kiln_status add_counts(const runner *k, const kiln_unit *u, kiln_error *err)
{
    json_t *counters, *one;
    size_t i;
    KILN_TRY(kiln_unit_counters(k->r, u, &counters, err));
    json_array_foreach(json_object_get(counters, "counts"), i, one)
    {
        if (i < KILN_EXPORT_COUNTS) k->said->counts[i] += (uint64_t)json_integer_value(one);
    }
    json_decref(counters);
    return KILN_OK;
}

static bool has_result(const kiln_unit *u)
{
    for (uint32_t i = 0; i < u->result.n; i++)
        if (strcmp(u->result.outputs[i].name, "result") == 0) return true;
    return false;
}

/* One chunk's numbers into the list of chunks and the ranges. */
static kiln_status take_survey(runner *k, uint64_t unit, const void *data, size_t bytes,
                               kiln_error *err)
{
    kiln_chunk_survey s;
    if (bytes != sizeof s) return kiln_fail(err, KILN_E_BUG, "a survey of %zu bytes", bytes);
    memcpy(&s, data, sizeof s);
    k->e->chunks[unit].n = s.n;
    kiln_survey_add(&k->e->survey, &s.of);
    return KILN_OK;
}

static kiln_status take_result(runner *k, const list *l, uint64_t unit, kiln_error *err)
{
    const kiln_unit *u = &l->units[unit];
    void *data = NULL;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    see_plan(k); /* the gather before may have moved it */
    if (has_result(u)) KILN_TRY(kiln_unit_data(k->r, u, "result", &data, &bytes, err));
    if (!l->round)
        st = take_survey(k, unit, data, bytes, err);
    else if (l->number == KILN_ROUND_LOSS)
        st = kiln_loss_take(&k->said->loss, data, bytes, err);
    else if (l->round->gather)
        st = l->round->gather(&k->p, unit, data, bytes, err);
    if (st == KILN_OK && l->number < KILN_ROUND_SURVEY) st = add_counts(k, u, err);
    free(data);
    return st;
}

static void release_list(list *l)
{
    if (l->units) kiln_units_release(l->units, l->n);
    free(l->units);
    free(l->requests);
    kiln_buffer_release(&l->shared);
    *l = (list){0};
}

static kiln_status make_list(runner *k, list *l, kiln_error *err)
{
    see_plan(k);
    KILN_TRY(kiln_export_pack(k->e, &k->places, &l->shared, err));
    KILN_TRY(KILN_ALLOC(&l->units, l->n, "units", err));
    KILN_TRY(KILN_ALLOC(&l->requests, l->n, "units", err));
    fill_units(k, l);
    return KILN_OK;
}

static kiln_status gather_list(runner *k, const list *l, kiln_error *err)
{
    for (uint64_t i = 0; i < l->n; i++) KILN_TRY(take_result(k, l, i, err));
    see_plan(k);
    return l->round && l->round->end ? l->round->end(&k->p, err) : KILN_OK;
}

static bool is_on_cpu(const runner *k, const kiln_export_round *round)
{
    return !round || !(round->computes || (round->stays && k->e->apart));
}

static kiln_status run_list(runner *k, list *l, const char *what, kiln_error *err)
{
    kiln_status st = KILN_OK;
    if (l->n == 0) return KILN_OK;
    KILN_GO(make_list(k, l, err));
    kiln_run_on_cpu(k->r, is_on_cpu(k, l->round));
    KILN_GO(kiln_run_units(k->r, what, l->units, l->n, err));
    KILN_GO(gather_list(k, l, err));
done:
    release_list(l);
    return st;
}

/* The list stays open until end_beside. */
static kiln_status begin_beside(runner *k, list *l, kiln_error *err)
{
    if (l->n == 0) return KILN_OK;
    KILN_TRY(make_list(k, l, err));
    kiln_run_on_cpu(k->r, true);
    return kiln_run_units_beside(k->r, l->round->what, l->units, l->n, err);
}

static kiln_status end_beside(runner *k, list *l, kiln_error *err)
{
    kiln_status st = KILN_OK;
    if (l->n == 0) return KILN_OK;
    KILN_GO(kiln_run_units_join(k->r, err));
    KILN_GO(gather_list(k, l, err));
done:
    release_list(l);
    return st;
}

static kiln_status survey_chunks(runner *k, kiln_error *err)
{
    list l = {.number = KILN_ROUND_SURVEY, .n = k->e->n_chunks};
    kiln_survey_begin(&k->e->survey);
    if (!kiln_survey_is_needed(k->e, k->f->survey)) {
        kiln_survey_of_bounds(k->e, &k->e->survey);
        return KILN_OK;
    }
    KILN_TRY(run_list(k, &l, "measuring", err));
    kiln_export_count_rows(k->e);
    return KILN_OK;
}

static uint64_t units_of(const runner *k, const kiln_export_round *round)
{
    return round->units ? round->units(k->e) : k->e->n_chunks;
}

/* What a unit of a round takes at most, by the plan as it is. */
static uint64_t round_ram(const runner *k, const kiln_export_round *round)
{
    uint64_t most = 0;
    if (round->foresee) return k->e->from.ram + round->foresee(k->e);
    const uint64_t n = units_of(k, round);
    for (uint64_t i = 0; i < n; i++) most = kiln_max_u64(most, round->ram(k->e, i));
    return k->e->from.ram + most;
}

/* The engine keeps results of all lists until the run ends. */
static void foresee_rounds(runner *k)
{
    uint64_t n = k->e->n_chunks, most = 0; /* and the survey */
    see_plan(k);
    for (uint32_t i = 0; i < k->f->n_rounds; i++) {
        n += units_of(k, &k->f->rounds[i]);
        most = kiln_max_u64(most, round_ram(k, &k->f->rounds[i]));
    }
    kiln_run_foresee_ram(k->r, most + kiln_export_shared_ram(k->e, k->plan.size), n);
}

/* Whether the format has a round that would go on beside those that compute. */
static bool has_beside(runner *k)
{
    bool has = false;
    k->e->apart = true; /* or such a round has no units */
    for (uint32_t i = 0; i < k->f->n_rounds; i++)
        has = has || (k->f->rounds[i].beside && units_of(k, &k->f->rounds[i]));
    k->e->apart = false;
    return has;
}

/* Where the first rounds are on the CPU and later ones compute, GPUs open while the first run. */
static void open_ahead(runner *k)
{
    bool computes = k->said->loss.most > 0 && k->f->reader;
    k->e->apart = false;
    see_plan(k);
    for (uint32_t i = 0; i < k->f->n_rounds; i++)
        computes = computes || (k->f->rounds[i].computes && units_of(k, &k->f->rounds[i]));
    if (!computes || k->f->n_rounds == 0 || k->f->rounds[0].computes) return;
    kiln_run_on_cpu(k->r, true);
    const bool beside = has_beside(k);
    k->e->apart = kiln_run_open_ahead(k->r) && beside;
}

static kiln_status run_round(runner *k, uint32_t number, list *beside, kiln_error *err)
{
    const kiln_export_round *round = &k->f->rounds[number];
    list l = {.number = number, .round = round};
    if (is_on_cpu(k, round)) KILN_TRY(end_beside(k, beside, err));
    see_plan(k);
    l.n = units_of(k, round);
    if (!round->beside || !k->e->apart) return run_list(k, &l, round->what, err);
    *beside = l;
    return begin_beside(k, beside, err);
}

static kiln_status run_rounds(runner *k, kiln_error *err)
{
    list beside = {0};
    kiln_status st = KILN_OK;
    if (!k->f->foresee) foresee_rounds(k);
    open_ahead(k);
    for (uint32_t i = 0; i < k->f->n_rounds; i++) KILN_GO(run_round(k, i, &beside, err));
    KILN_GO(end_beside(k, &beside, err));
done:
    if (st != KILN_OK) kiln_run_units_drop(k->r);
    release_list(&beside);
    return st;
}

/* ---- the target ------------------------------------------------------------------------------ */

static kiln_status open_target(runner *k, kiln_error *err)
{
    for (int i = 0; k->f->scratch && i < KILN_SCRATCH_FILES; i++)
        KILN_TRY(kiln_scratch_unnamed(k->e->target, &k->scratch[i], k->places.scratch[i], err));
    if (k->f->place == KILN_PLACE_SHARED) return KILN_OK;
    KILN_TRY(kiln_make_parents(k->e->target, err));
    if (k->f->place == KILN_PLACE_FILE) {
        kiln_leftovers_drop(k->e->target);
        return kiln_file_create(k->e->temporary, &k->p.fd, err);
    }
    kiln_leftover_folders_drop(k->e->target);
    if (mkdir(k->e->temporary, 0777) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s", k->e->temporary,
                     strerror(errno));
}

static kiln_status sync_path(const char *path, int flags, kiln_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", path, strerror(errno));
    const int failed = fsync(fd) != 0 ? errno : 0;
    (void)close(fd);
    return failed ? kiln_file_write_failed(path, failed, err) : KILN_OK;
}

static kiln_status sync_folder(const char *path, kiln_error *err) // NOLINT(misc-no-recursion)
{
    kiln_status st = KILN_OK;
    char file[KILN_PATH_MAX];
    DIR *folder = opendir(path);
    if (!folder) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", path, strerror(errno));
    for (struct dirent *d = readdir(folder); d && st == KILN_OK; d = readdir(folder)) {
        if (d->d_name[0] == '.') continue;
        st = kiln_path_join(file, sizeof file, path, d->d_name, err);
        if (st == KILN_OK)
            st = kiln_is_real_folder(file) ? sync_folder(file, err) : sync_path(file, 0, err);
    }
    closedir(folder);
    return st == KILN_OK ? sync_path(path, O_DIRECTORY, err) : st;
}

/* For file systems that cannot exchange names: for a moment none has it. The old folder, its
 * temporary name with .old, is no leftover that the next run drops, because it may be all that is
 * left. */
static kiln_status replace_folder(const char *from, const char *to, kiln_error *err)
{
    char old[KILN_PATH_MAX];
    if (snprintf(old, sizeof old, "%s.old", from) >= (int)sizeof old)
        return kiln_fail(err, KILN_E_USAGE, "the path '%s' is too long", from);
    if (rename(to, old) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", to, old,
                         strerror(errno));
    if (rename(from, to) != 0) {
        const int why = errno;
        (void)rename(old, to);
        return kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", from, to, strerror(why));
    }
    kiln_folder_drop(old);
    return KILN_OK;
}

static kiln_status note_folder(const runner *k, kiln_error *err)
{
    char first[KILN_PATH_MAX];
    if (kiln_hash_is_zero(k->e->seen.bake)) return KILN_OK;
    KILN_TRY(kiln_path_join(first, sizeof first, k->e->temporary, k->f->last_file, err));
    kiln_product_note_export(first, k->e->target, k->e->seen.bake);
    return KILN_OK;
}

/* A folder of ours that has come since it was looked at. */
static bool keeps_folder(const runner *k)
{
    const kiln_product_seen *const seen = &k->e->seen;
    return !seen->overwrite && !k->e->replace &&
           (seen->keeps_ours ||
            kiln_product_folder_mark_of(k->e->target, seen->bake) == KILN_MARK_OTHERS);
}

static kiln_status give_name(const runner *k, kiln_error *err)
{
    const char *const from = k->e->temporary, *const to = k->e->target;
    if (k->f->place == KILN_PLACE_SHARED) return KILN_OK;
    if (k->f->place == KILN_PLACE_FILE) {
        KILN_TRY(sync_path(from, 0, err));
        return kiln_product_put(from, to, &k->e->seen, err);
    }
    KILN_TRY(note_folder(k, err));
    KILN_TRY(sync_folder(from, err));
    /* once more: it was empty of others when the export began */
    KILN_TRY(kiln_folder_check(k->f, to, k->e->replace, err));
    if (rename(from, to) == 0) return KILN_OK;
    if ((errno == ENOTEMPTY || errno == EEXIST) && keeps_folder(k))
        return kiln_product_refuse_made(to, err);
    /* a folder that is there and not empty: the two change places, so that a whole one has the name
     * at any moment */
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) != 0) {
        if (errno == EINVAL || errno == ENOSYS) return replace_folder(from, to, err);
        return kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", from, to,
                         strerror(errno));
    }
    kiln_folder_drop(from);
    return KILN_OK;
}

static void abandon_export(const runner *k)
{
    if (k->f->abandon) k->f->abandon(k->e);
    if (k->f->place == KILN_PLACE_FILE) (void)unlink(k->e->temporary); /* perhaps never made */
    if (k->f->place == KILN_PLACE_FOLDER) kiln_folder_drop(k->e->temporary);
}

/* ---- the loss -------------------------------------------------------------------------------- */

static uint64_t loss_ram(const kiln_export *e, uint64_t unit)
{
    (void)unit;
    return kiln_loss_ram(e);
}

static const kiln_export_round loss_round = {
    .what = "measuring the loss", .units = kiln_export_one_unit, .ram = loss_ram, .computes = true};

static kiln_status loss_takes(const runner *k, uint64_t *ram, kiln_error *err)
{
    uint64_t plan_bytes;
    *ram = 0;
    if (k->said->loss.most == 0 || !k->f->reader) return KILN_OK;
    KILN_TRY(kiln_loss_foresee(kiln_run_manifest(k->r), k->e, k->f, &k->said->loss, ram,
                               &plan_bytes, err));
    *ram += kiln_export_shared_ram(k->e, plan_bytes);
    return KILN_OK;
}

/* Before anything is written: pictures that have no room would be noticed at the end. */
static kiln_status need_loss(const runner *k, kiln_error *err)
{
    uint64_t ram;
    KILN_TRY(loss_takes(k, &ram, err));
    return ram ? kiln_run_need_ram(k->r, ram, loss_round.what, err) : KILN_OK;
}

static kiln_status check_loss(const kiln_loss *l, const char *target, kiln_error *err)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->psnr[i] < l->min_psnr)
            return kiln_fail(
                err, KILN_E_INPUT,
                "camera '%.300s' has %.2f dB, below --min-psnr %g: '%s' is not written",
                l->cameras[i].name, l->psnr[i], l->min_psnr, target);
    return KILN_OK;
}

/* Before the file gets its name. */
static kiln_status measure_loss(runner *k, kiln_error *err)
{
    list l = {.number = KILN_ROUND_LOSS, .round = &loss_round, .n = 1};
    char spool[64];
    int fd = -1;
    if (k->said->loss.most == 0) return KILN_OK;
    KILN_TRY(kiln_scratch_unnamed(k->e->target, &fd, spool, err));
    kiln_status st =
        kiln_loss_plan(kiln_run_manifest(k->r), k->e, k->f, spool, &k->said->loss, &k->plan, err);
    if (st == KILN_OK) st = run_list(k, &l, loss_round.what, err);
    (void)close(fd);
    return st == KILN_OK ? check_loss(&k->said->loss, k->e->target, err) : st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static kiln_status write_target(runner *k, kiln_error *err)
{
    KILN_TRY(open_target(k, err));
    if (k->f->begin) KILN_TRY(k->f->begin(&k->p, err));
    KILN_TRY(run_rounds(k, err));
    if (k->f->finish) KILN_TRY(k->f->finish(&k->p, err));
    KILN_TRY(measure_loss(k, err));
    return give_name(k, err);
}

/* PLY tells of its own, and chunks hold all planes. */
static kiln_status note_dropped(runner *k, kiln_error *err)
{
    kiln_buffer text = {0};
    uint32_t n = 0;
    if (k->places.writer->holds & KILN_HOLDS_BITS) return KILN_OK;
    kiln_status st = kiln_dropped_columns(k->e, &text, &n, err);
    if (st == KILN_OK && n) st = kiln_export_note(&k->p, err, "%s", (const char *)text.data);
    kiln_buffer_release(&text);
    return st;
}

static kiln_status prepare_rounds(runner *k, kiln_error *err)
{
    if (k->f->place == KILN_PLACE_FOLDER)
        KILN_TRY(kiln_folder_check(k->f, k->e->target, k->e->replace, err));
    KILN_TRY(need_loss(k, err));
    KILN_TRY(survey_chunks(k, err));
    if (k->e->n_rows == 0) return kiln_export_fail_empty(k->e, err);
    if (k->f->plan) KILN_TRY(k->f->plan(&k->p, err));
    return note_dropped(k, err);
}

kiln_status kiln_export_run(kiln_run *r, const kiln_writer *w, kiln_export *e,
                            kiln_export_said *said, kiln_error *err)
{
    runner k = {.r = r, .f = w->functions, .e = e, .places = {.writer = w}, .said = said};
    k.p = (kiln_export_parent){
        .e = e, .fd = -1, .plan = &k.plan, .notes = &said->notes, .remarks = &said->remarks};
    for (int i = 0; i < KILN_SCRATCH_FILES; i++) k.scratch[i] = -1;
    kiln_status st = prepare_rounds(&k, err);
    if (st == KILN_OK) {
        st = write_target(&k, err);
        if (st != KILN_OK) abandon_export(&k);
    }
    if (k.p.fd >= 0) (void)close(k.p.fd); /* synced through its name */
    for (int i = 0; i < KILN_SCRATCH_FILES; i++)
        if (k.scratch[i] >= 0) (void)close(k.scratch[i]);
    kiln_buffer_release(&k.plan);
    e->plan = NULL;
    e->plan_bytes = 0;
    return st;
}

/* What the survey and the rounds take, by a plan that is made of the bounds of the chunks. A format
 * that refuses these rows says so behind the survey. */
static void foresee_writing(runner *k)
{
    const list l = {.number = KILN_ROUND_SURVEY,
                    .n = kiln_survey_is_needed(k->e, k->f->survey) ? k->e->n_chunks : 0};
    kiln_error refused;
    uint64_t most = 0;
    for (uint64_t i = 0; i < l.n; i++) most = kiln_max_u64(most, unit_ram(k, NULL, i));
    kiln_run_foresee_ram(k->r, most + kiln_export_shared_ram(k->e, 0), l.n);
    if (k->f->foresee) {
        const uint64_t ram = k->e->from.ram + k->f->foresee(k->e);
        kiln_run_foresee_ram(k->r, ram, (uint64_t)k->f->n_rounds * k->e->n_chunks);
        return;
    }
    kiln_survey_of_bounds(k->e, &k->e->survey);
    if (!k->f->plan || k->f->plan(&k->p, &refused) == KILN_OK) foresee_rounds(k);
}

kiln_status kiln_export_foresee(kiln_run *r, const kiln_writer *w, const kiln_export *e,
                                const kiln_loss *loss, kiln_error *err)
{
    kiln_export guess = *e;
    kiln_export_said said = {.loss = *loss};
    runner k = {.r = r, .f = w->functions, .e = &guess, .places = {.writer = w}, .said = &said};
    uint64_t ram;
    k.p = (kiln_export_parent){
        .e = &guess, .fd = -1, .plan = &k.plan, .notes = &said.notes, .remarks = &said.remarks};
    foresee_writing(&k);
    const kiln_status st = loss_takes(&k, &ram, err);
    if (st == KILN_OK) kiln_run_foresee_ram(r, ram, 1);
    kiln_buffer_release(&k.plan);
    kiln_buffer_release(&said.notes);
    kiln_buffer_release(&said.remarks);
    return st;
}

kiln_status kiln_export_prepare(kiln_run *r, const kiln_writer *w, kiln_export *e, uint32_t number,
                                const kiln_export_round *round, kiln_buffer *plan, kiln_error *err)
{
    kiln_export_said said = {0};
    runner k = {
        .r = r, .f = w->functions, .e = e, .places = {.writer = w}, .said = &said, .plan = *plan};
    list l = {.number = number, .round = round};
    k.p = (kiln_export_parent){
        .e = e, .fd = -1, .plan = &k.plan, .notes = &said.notes, .remarks = &said.remarks};
    see_plan(&k);
    l.n = units_of(&k, round);
    const kiln_status st = run_list(&k, &l, round->what, err);
    *plan = k.plan;
    e->plan = NULL;
    e->plan_bytes = 0;
    return st;
}

kiln_status kiln_export_check(kiln_run *r, const kiln_writer *w, kiln_export *e,
                              const kiln_loss *loss, kiln_error *err)
{
    kiln_export_said said = {.loss = *loss};
    runner k = {.r = r, .f = w->functions, .e = e, .places = {.writer = w}, .said = &said};
    k.p = (kiln_export_parent){
        .e = e, .fd = -1, .plan = &k.plan, .notes = &said.notes, .remarks = &said.remarks};
    const kiln_status st = prepare_rounds(&k, err);
    kiln_buffer_release(&k.plan);
    kiln_buffer_release(&said.notes);
    kiln_buffer_release(&said.remarks);
    return st;
}
