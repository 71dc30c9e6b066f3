/* kiln-export -- writes the bake, or a part of it, for other renderers.
 *
 * A file is made beside its place and renamed when it is whole. With its default place it is kept like any output: the
 * next run looks whether it still lies there as it was written (size, time, inode) and has nothing to do. With -o it is
 * written once and nothing is remembered. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/json_text.h"
#include "stages/export/row_ranks.h"
#include "stages/export/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    uint32_t format, layer, order;
    const char *chunks, *output;
    bool keep_origin, list_formats;
} o;

#define WRITER(id, ...) "|" #id
static const char formats[] = /* "|ply|chunks": an option's range is all but the first bar */
#include "stages/export/writers.def"
    ;
#undef WRITER
#define WRITER(id, suffixes, default_name, holds, what) #id ": " what "; "
static const char format_help[] =
#include "stages/export/writers.def"
    "by the suffix of -o where that has one";
#undef WRITER

static const kiln_opt options[] = {
    {"format", 'f', KILN_OPT_ENUM, &o.format, "FORMAT", "ply", formats + 1, format_help, KILN_KEYED},
    {"layer", 0, KILN_OPT_ENUM, &o.layer, "LAYER", "baked", kiln_drawable_names + 1, "what to write; baked: what was chunked",
     KILN_KEYED},
    {"order", 0, KILN_OPT_ENUM, &o.order, "ORDER", "source", "source|baked",
     "order of the rows of a PLY: as in the source, or chunk after chunk", KILN_KEYED},
    {"chunks", 0, KILN_OPT_TEXT, &o.chunks, "LIST", NULL, NULL, "only these: names separated by commas, or #INDEX", KILN_KEYED},
    {"keep-origin", 0, KILN_OPT_BOOL, &o.keep_origin, NULL, NULL, NULL,
     "if the scene has an origin other than 0, write float coordinates relative to it, not absolute doubles", KILN_KEYED},
    {"output", 'o', KILN_OPT_PATH, &o.output, "PATH", NULL, NULL,
     "a file (its suffix chooses the format) or a folder; else it goes to export/ beside the manifest", KILN_ONCE},
    {"list-formats", 0, KILN_OPT_BOOL, &o.list_formats, NULL, NULL, NULL, "name the formats that are written, and end", KILN_ALONE},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const kiln_cli cli = {.program = "kiln-export",
                             .summary = "writes the baked scene for other renderers",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

/* ---- the worker ------------------------------------------------------------------------------------------------------------- */

/* Payload of a unit; its shared, which all share: target and temporary, each ended by NUL, and one bit per chunk of the layer:
 * chosen. */
typedef struct {
    char writer[16];
    kiln_layer_kind layer_kind;
    kiln_hash layer;
    uint64_t n_rows, first_row, n_source_rows;
    uint32_t chunk, n_chunks;
    bool source_order, keep_origin;
} request;

typedef struct {
    char target[KILN_PATH_MAX], temporary[KILN_PATH_MAX];
    kiln_scene scene;
    kiln_layer *layer;
    uint8_t *chosen;
    kiln_export e;
    const kiln_writer *writer;
    void *state;
} worker_state;

static void free_state(void *state)
{
    worker_state *s = state;
    if (!s) return;
    if (s->state) s->writer->functions->close(s->state);
    free(s->chosen);
    kiln_layer_free(s->layer);
    free(s);
}

/* What lies behind the request. */
static kiln_status take_shared(worker_state *s, const request *q, const char *shared, size_t bytes, kiln_error *err)
{
    size_t target = strnlen(shared, bytes), temporary = target < bytes ? strnlen(shared + target + 1, bytes - target - 1) : 0;
    size_t bits = target + temporary + 2;
    if (target >= sizeof s->target || temporary >= sizeof s->temporary || bits + (q->n_chunks + 7) / 8 != bytes)
        return kiln_fail(err, KILN_E_BUG, "an export request with %zu bytes behind it", bytes);
    memcpy(s->target, shared, target + 1);
    memcpy(s->temporary, shared + target + 1, temporary + 1);
    KILN_TRY(KILN_ALLOC(&s->chosen, q->n_chunks, "the choice of chunks", err));
    for (uint32_t c = 0; c < q->n_chunks; c++) s->chosen[c] = (uint8_t)shared[bits + c / 8] >> c % 8 & 1;
    return KILN_OK;
}

static kiln_status fill_state(worker_state *s, kiln_worker *w, const request *q, const char *shared, size_t bytes, kiln_error *err)
{
    kiln_manifest *m;
    s->writer = kiln_writer_named(q->writer);
    if (!s->writer) return kiln_fail(err, KILN_E_BUG, "no writer is called '%s'", q->writer);
    KILN_TRY(take_shared(s, q, shared, bytes, err));
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_scene_get(m, &s->scene, err));
    KILN_TRY(kiln_layer_get_digest(m, kiln_layer_kinds[q->layer_kind].name, q->layer, &s->layer, err));
    if (s->layer->n_chunks != q->n_chunks)
        return kiln_fail(err, KILN_E_BUG, "the layer has %u chunks, not %u", s->layer->n_chunks, q->n_chunks);
    s->e = (kiln_export){.scene = &s->scene,
                         .layer = s->layer,
                         .chosen = s->chosen,
                         .n_rows = q->n_rows,
                         .source_order = q->source_order,
                         .n_source_rows = q->n_source_rows,
                         .keep_origin = q->keep_origin,
                         .target = s->target,
                         .temporary = s->temporary};
    return s->writer->functions->open(&s->e, m, &s->state, err);
}

static kiln_status unit(kiln_worker *w, const char *name, const void *payload, size_t bytes, kiln_error *err)
{
    request q;
    worker_state *s = kiln_worker_state(w);
    (void)name;
    if (bytes < sizeof q) return kiln_fail(err, KILN_E_BUG, "an export request of %zu bytes", bytes);
    memcpy(&q, payload, sizeof q);
    if (!s) {
        KILN_TRY(KILN_ALLOC(&s, 1, "export", err));
        kiln_status st = fill_state(s, w, &q, (const char *)payload + sizeof q, bytes - sizeof q, err);
        if (st != KILN_OK) {
            free_state(s);
            return st;
        }
        kiln_worker_set_state(w, s, free_state);
    }
    return s->writer->functions->write(s->state, q.chunk, q.first_row, err);
}

/* ---- what is chosen ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const kiln_writer *writer;
    kiln_scene scene;
    kiln_layer *layer;
    uint8_t *chosen;
    uint32_t n_chosen;
    char target[KILN_PATH_MAX], temporary[KILN_PATH_MAX];
    kiln_export e;
} job;

static kiln_status choose_one(job *j, const char *name, kiln_error *err)
{
    char *end = NULL;
    unsigned long index = name[0] == '#' ? strtoul(name + 1, &end, 10) : 0;
    for (uint32_t c = 0; c < j->layer->n_chunks; c++) {
        bool this_one = end && end != name + 1 && *end == '\0' ? c == index : strcmp(j->layer->chunks[c].name, name) == 0;
        if (!this_one) continue;
        j->chosen[c] = 1;
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_USAGE, "--chunks: the layer '%s' has no chunk '%s'; it has %u, from '%s' on", j->layer->kind, name,
                     j->layer->n_chunks, j->layer->n_chunks ? j->layer->chunks[0].name : "");
}

static kiln_status choose_chunks(job *j, kiln_error *err)
{
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&j->chosen, j->layer->n_chunks, "the choice of chunks", err));
    if (!o.chunks) memset(j->chosen, 1, j->layer->n_chunks);
    char *list = o.chunks ? strdup(o.chunks) : NULL, *at = list;
    if (o.chunks && !list) return kiln_fail(err, KILN_E_NOMEM, "out of memory");
    for (char *name = at ? strsep(&at, ",") : NULL; name && st == KILN_OK; name = strsep(&at, ",")) st = choose_one(j, name, err);
    free(list);
    for (uint32_t c = 0; c < j->layer->n_chunks; c++) {
        j->n_chosen += j->chosen[c];
        j->e.n_rows += j->chosen[c] ? j->layer->chunks[c].count : 0;
    }
    return st;
}

static kiln_status choose_target(kiln_run *r, job *j, kiln_error *err)
{
    char folder[KILN_PATH_MAX], name[64];
    const char *manifest = kiln_manifest_path(kiln_run_manifest(r));
    const bool to_folder = o.output && o.output[0] && (!kiln_path_base(o.output)[0] || kiln_is_dir(o.output));
    if (o.output && !to_folder) KILN_TRY(kiln_writer_for(o.output, j->writer, kiln_opt_given(&cli, "format"), &j->writer, err));
    const bool one_file = !j->writer->functions->last_file;
    if (o.output) {
        snprintf(folder, sizeof folder, "%s", o.output);
        if (one_file && to_folder)
            KILN_TRY(kiln_path_join(j->target, sizeof j->target, folder, j->writer->default_name, err));
        else
            snprintf(j->target, sizeof j->target, "%s", folder);
    } else {
        snprintf(folder, sizeof folder, "%.*s", (int)(kiln_path_base(manifest) - manifest), manifest);
        snprintf(name, sizeof name, "export/%s", j->writer->default_name);
        KILN_TRY(kiln_path_inside(j->target, sizeof j->target, folder[0] ? folder : ".", name, "-o", err));
    }
    if (snprintf(j->temporary, sizeof j->temporary, "%s.tmp.%ld", j->target, (long)getpid()) >= (int)sizeof j->temporary)
        return kiln_fail(err, KILN_E_USAGE, "the path '%s' is too long", j->target);
    return one_file ? kiln_file_replaceable(j->target, err) : KILN_OK;
}

static kiln_status prepare(kiln_run *r, job *j, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    const kiln_layer_kind kind = kiln_layer_kind_chosen(kiln_drawable_names, o.layer);
    j->writer = &kiln_writers[o.format];
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need(r, kiln_layer_kinds[kind].stage, err));
    KILN_TRY(kiln_scene_get(m, &j->scene, err));
    if (kind == KILN_LAYER_initial && j->scene.kind == KILN_SCENE_SPLATS)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has Gaussians from the start and no layer 'initial'; use --layer source",
                         kiln_manifest_path(m));
    KILN_TRY(kiln_layer_current(m, kind, &j->layer, err));
    j->e = (kiln_export){.scene = &j->scene,
                         .layer = j->layer,
                         .source_order = o.order == 0,
                         .keep_origin = o.keep_origin,
                         .target = j->target,
                         .temporary = j->temporary};
    if (j->e.source_order) KILN_TRY(kiln_source_rows(m, &j->scene, &j->e.n_source_rows, err));
    KILN_TRY(choose_chunks(j, err));
    j->e.chosen = j->chosen;
    KILN_TRY(choose_target(r, j, err));
    const kiln_chunk *sample = kiln_export_sample(&j->e);
    return sample ? kiln_writer_check_kind(j->writer, kiln_chunk_plane(sample, "log_scales") != NULL, err) : KILN_OK;
}

static kiln_hash input_key(kiln_run *r, const job *j)
{
    KILN_KEY_LISTS(kiln_scene, 14904); /* what a writer reads of it */
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_hash(h, "layer", j->layer->digest);
    kiln_key_text(h, "notes", j->scene.notes); /* columns and comments of the source */
    kiln_key_text(h, "name", j->scene.name);
    kiln_key_text(h, "up_axis", j->scene.up_axis);
    kiln_key_u64(h, "antialiased", j->scene.antialiased);
    kiln_key_bytes(h, "origin", j->scene.origin, sizeof j->scene.origin);
    return kiln_key_end(h);
}

/* ---- the written file ---------------------------------------------------------------------------------------------------------
 */

/* What a file looked like when we had written it: the counters of a unit without outputs, found by the file's place. */
static kiln_hash record_key(kiln_run *r)
{
    kiln_hasher *h = kiln_run_key_bare(r, "written file");
    kiln_key_u64(h, "format", o.format);
    return kiln_key_end(h);
}

static kiln_status last_file(const job *j, char out[KILN_PATH_MAX], kiln_error *err)
{
    const char *last = j->writer->functions->last_file;
    if (last) return kiln_path_join(out, KILN_PATH_MAX, j->target, last, err);
    snprintf(out, KILN_PATH_MAX, "%s", j->target);
    return KILN_OK;
}

static kiln_status describe_file(const job *j, char out[256], kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_file_info info;
    KILN_TRY(last_file(j, path, err));
    KILN_TRY(kiln_file_stat(path, &info, err));
    snprintf(out, 256, "{\"size\":%llu,\"mtime_ns\":%lld,\"inode\":%llu}", (unsigned long long)info.size, (long long)info.mtime_ns,
             (unsigned long long)info.inode);
    return KILN_OK;
}

static kiln_status is_intact(kiln_run *r, const job *j, bool *intact, kiln_error *err)
{
    char path[KILN_PATH_MAX], now[256];
    kiln_unit_result record = {0};
    bool found = false;
    *intact = false;
    KILN_TRY(last_file(j, path, err));
    if (!kiln_is_file(path)) return KILN_OK;
    KILN_TRY(describe_file(j, now, err));
    KILN_TRY(kiln_unit_find(kiln_run_manifest(r), record_key(r), &found, &record, err));
    *intact = found && strcmp(record.counters, now) == 0 &&
              (!j->writer->functions->complete || j->writer->functions->complete(j->target));
    kiln_unit_result_release(&record);
    return KILN_OK;
}

static kiln_status make(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const job *j = context;
    char now[256];
    kiln_unit_result record = {.counters = now};
    KILN_TRY(describe_file(j, now, err));
    KILN_TRY(kiln_unit_forget(m, record_key(r), err));
    KILN_TRY(kiln_unit_store(m, record_key(r), "export", "written file", &record, NULL, 0, err));
    return kiln_run_uses(r, record_key(r), err);
}

/* ---- the run ------------------------------------------------------------------------------------------------------------------
 */

static void fill_request(const job *j, request *q)
{
    memset(q, 0, sizeof *q);
    snprintf(q->writer, sizeof q->writer, "%s", j->writer->name);
    q->layer_kind = kiln_layer_kind_find(j->layer->kind);
    q->layer = j->layer->digest;
    q->n_rows = j->e.n_rows;
    q->n_chunks = j->layer->n_chunks;
    q->source_order = j->e.source_order;
    q->n_source_rows = j->e.n_source_rows;
    q->keep_origin = j->e.keep_origin;
}

static kiln_status make_shared(const job *j, kiln_buffer *shared, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(shared, j->target, strlen(j->target) + 1, err));
    KILN_TRY(kiln_buffer_put(shared, j->temporary, strlen(j->temporary) + 1, err));
    for (uint32_t c = 0; c < j->layer->n_chunks; c += 8) {
        uint8_t bits = 0;
        for (uint32_t k = 0; k < 8 && c + k < j->layer->n_chunks; k++) bits |= (uint8_t)(j->chosen[c + k] << k);
        KILN_TRY(kiln_buffer_put(shared, &bits, 1, err));
    }
    return KILN_OK;
}

/* One of each chosen chunk, in their order; n of them. */
static void fill_units(const job *j, const kiln_buffer *shared, kiln_unit *units, request *payloads)
{
    const uint64_t ram = j->writer->functions->ram(&j->e) + kiln_shared_payload_ram(shared->size);
    uint64_t first_row = 0;
    uint32_t n = 0;
    for (uint32_t c = 0; c < j->layer->n_chunks; c++) {
        const kiln_chunk *chunk = &j->layer->chunks[c];
        if (!j->chosen[c]) continue;
        fill_request(j, &payloads[n]);
        payloads[n].chunk = c;
        payloads[n].first_row = first_row;
        units[n] = (kiln_unit){.payload = &payloads[n],
                               .payload_bytes = sizeof payloads[n],
                               .shared_payload = shared->data,
                               .shared_payload_bytes = shared->size,
                               .cost = chunk->count,
                               .ram = ram,
                               .volatile_result = true};
        (void)snprintf(units[n].name, sizeof units[n].name, "chunk %s", chunk->name);
        first_row += chunk->count;
        n++;
    }
}

static kiln_status write_chunks(kiln_run *r, const job *j, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_unit *units = NULL;
    request *payloads = NULL;
    kiln_buffer shared = {0};
    KILN_GO(make_shared(j, &shared, err));
    KILN_GO(KILN_ALLOC(&units, j->n_chosen, "units", err));
    KILN_GO(KILN_ALLOC(&payloads, j->n_chosen, "units", err));
    fill_units(j, &shared, units, payloads);
    KILN_GO(kiln_run_units(r, "exporting", units, j->n_chosen, err));
done:
    if (units) kiln_units_release(units, j->n_chosen);
    free(payloads);
    free(units);
    kiln_buffer_release(&shared);
    return st;
}

static kiln_status write_export(kiln_run *r, const job *j, kiln_error *err)
{
    kiln_status st = j->writer->functions->begin(&j->e, err);
    if (st == KILN_OK) st = write_chunks(r, j, err);
    if (st == KILN_OK) st = j->writer->functions->finish(&j->e, err);
    if (st != KILN_OK) j->writer->functions->abandon(&j->e);
    return st;
}

static kiln_status report(kiln_run *r, const job *j, kiln_error *err)
{
    json_t *facts = json_pack("{s:o, s:s, s:s, s:I, s:I}", "path", kiln_json_string(j->target), "format", j->writer->name, "layer",
                              j->layer->kind, "rows", (json_int_t)j->e.n_rows, "chunks", (json_int_t)j->n_chosen);
    int failed = facts ? json_object_update(kiln_run_report(r), facts) : -1;
    json_decref(facts);
    return failed ? kiln_fail(err, KILN_E_NOMEM, "out of memory while reporting") : KILN_OK;
}

static kiln_status export_layer(kiln_run *r, job *j, kiln_error *err)
{
    bool fresh = false, intact = false;
    KILN_TRY(prepare(r, j, err));
    kiln_hash key = input_key(r, j);
    if (!kiln_run_is_once(r)) {
        KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
        if (fresh) KILN_TRY(is_intact(r, j, &intact, err));
        if (fresh && intact) return kiln_run_nothing_to_do(r, err);
    }
    KILN_TRY(write_export(r, j, err));
    KILN_TRY(report(r, j, err));
    if (!kiln_run_is_once(r)) KILN_TRY(kiln_run_commit(r, key, make, j, err));
    kiln_say("%llu rows of the layer '%s' written to '%s'", (unsigned long long)j->e.n_rows, j->layer->kind, j->target);
    return KILN_OK;
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    job *j = NULL;
    KILN_TRY(KILN_ALLOC(&j, 1, "export", err));
    kiln_status st = export_layer(r, j, err);
    kiln_layer_free(j->layer);
    free(j->chosen);
    free(j);
    return st;
}

int main(int argc, char **argv)
{
    static const kiln_stage_program program = {.name = "export",
                                               .cli = &cli,
                                               .open = KILN_OPEN_WRITE,
                                               .cpu_only = true,
                                               .lists = &o.list_formats,
                                               .list = kiln_writers_list,
                                               .run = run,
                                               .unit = unit};
    return kiln_program_main(&program, argc, argv);
}
