/* `kiln convert` -- a file of any format that is read becomes one of any format that is written,
 * and nothing else stays.
 *
 * The rows are read as kiln-import reads them and written as kiln-export writes the layer `source`
 * (stages/convert), so the bytes are theirs, and so are formats, filters and sentences. A format
 * that also holds cameras gets them from a bake: kiln-import into a manifest of its own, then
 * kiln-export, in this process. So does a cut of the levels of detail (--count), with kiln-knn,
 * kiln-chunk and kiln-lod in between. That and streams take a folder, OUT.tmp.kiln-HOST-PID,
 * removed on every way out; what a killed convert has left goes when OUT is made again. */
#include "stages/front/convert_streams.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/memory/ram.h"
#include "stages/engine/parent/options.h"
#include "stages/engine/program.h"
#include "stages/chunk/cells.h"
#include "stages/convert/convert_run.h"
#include "stages/convert/convert_target.h"
#include "stages/export/export_options.h"
#include "stages/export/export_told.h"
#include "stages/export/level_cut.h"
#include "stages/formats/reader.h"
#include "stages/front/convert_options.h"
#include "stages/front/front.h"
#include "stages/import/dataset/additions.h"
#include "stages/import/import_options.h"
#include "stages/import/own_cameras.h"
#include "stages/lod/lod_units.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What makes levels of detail of what was imported. */
enum { N_BETWEEN = 3 };
static const struct {
    const kiln_stage_program *stage;
    const char *option; /* NULL: none */
} between[N_BETWEEN] = {
    {&kiln_stage_knn, NULL}, {&kiln_stage_chunk, "--layer=source"}, {&kiln_stage_lod, NULL}};

/* Without --ram: a chunk of 65,536 rows of degree 3 takes 204 MiB to be merged. */
#define RAM_OF_LEVELS "512M"

typedef struct {
    kiln_cli cli;
    kiln_parsed parsed;
    unsigned n; /* files that are read: all positionals but the last */
    const kiln_writer *writer;
    const kiln_reader *input;   /* what standard input is said to be; NULL: nothing is said */
    char out[KILN_PATH_MAX];    /* of kiln_convert_target; of standard output a file in `folder` */
    char beside[KILN_PATH_MAX]; /* the path that `folder` lies beside */
    size_t there;               /* how much of it was there, once `parents` are made */
    char folder[KILN_PATH_MAX]; /* "" until it is made */
    char manifest[KILN_PATH_MAX];
    /* cuts: a part of the levels of detail is written, which takes chunks */
    bool to_stream, parents, bakes, cuts;
    kiln_words import, export; /* where it bakes; else `import` is all of it */
    kiln_words between[N_BETWEEN];
} conversion;

static bool is_stream(const char *word) { return strcmp(word, "-") == 0; }

/* ---- what is refused before anything is done ------------------------------------------------- */

/* A letter of splat-transform that means another thing: to move a scene by it would be wrong
 * without a word. */
static kiln_status refuse_letters(int argc, char **argv, kiln_error *err)
{
    static const struct {
        const char *letter, *name;
    } others[] = {
        {"-t", "translate"}, {"-r", "rotate"}, {"-B", "filter-box"}, {"-S", "filter-sphere"}};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (!strcmp(argv[i], others[k].letter))
                return kiln_fail(err, KILN_E_USAGE,
                                 "%s of splat-transform counts in a frame that is turned by 180 "
                                 "degrees about z, with x and y of other "
                                 "signs; --%s takes the numbers of a PLY",
                                 others[k].letter, others[k].name);
    return KILN_OK;
}

static kiln_status refuse_levels(const conversion *c, kiln_error *err)
{
    const kiln_writer *w = c->writer;
    kiln_buffer scene = {0};
    if (!(w->holds & KILN_NEEDS_LEVELS)) return KILN_OK;
    kiln_status st = kiln_word_quote(&scene, c->parsed.positional[0], err);
    if (st == KILN_OK)
        st = kiln_fail(err, KILN_E_USAGE,
                       "the format %s is made of levels of detail, and those take a bake: kiln "
                       "pipeline %.*s --export %s",
                       w->name, (int)scene.size, (const char *)scene.data, w->name);
    kiln_buffer_release(&scene);
    return st;
}

/* Rows are in the order of chunks where there are some: in a bake. */
static kiln_status refuse_order(const conversion *c, kiln_error *err)
{
    enum { SOURCE };
    kiln_buffer scene = {0};
    if (kiln_export_given.order == SOURCE || c->cuts) return KILN_OK;
    kiln_status st = kiln_word_quote(&scene, c->parsed.positional[0], err);
    if (st == KILN_OK)
        st = kiln_fail(err, KILN_E_USAGE,
                       "--order baked is the order of chunks, and those take a bake: kiln pipeline "
                       "%.*s --export ply --order baked",
                       (int)scene.size, (const char *)scene.data);
    kiln_buffer_release(&scene);
    return st;
}

static unsigned count_streams(const conversion *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) n += is_stream(c->parsed.positional[i]);
    return n;
}

static kiln_status check_streams(const conversion *c, kiln_error *err)
{
    const unsigned n = count_streams(c);
    if (n > 1)
        return kiln_fail(err, KILN_E_USAGE,
                         "standard input, '-', is one file; it is named %u times", n);
    if (n == 0 && kiln_convert_given.import_format)
        return kiln_fail(err, KILN_E_USAGE,
                         "--import-format is for standard input, '-'; of a file the name and the "
                         "content say the format");
    if (c->to_stream && kiln_common_values.json)
        return kiln_fail(err, KILN_E_USAGE,
                         "--json prints its report to standard output, where the scene goes; name "
                         "a file as OUT");
    if (c->to_stream && c->writer->functions->place != KILN_PLACE_FILE)
        return kiln_fail(
            err, KILN_E_USAGE,
            "the format %s is a folder, which standard output cannot take; name a folder",
            c->writer->name);
    return KILN_OK;
}

/* ---- folders above OUT ----------------------------------------------------------------------- */

/* How much of a path is there: the length of its longest beginning that is. */
static size_t length_there(const char *path)
{
    char above[KILN_PATH_MAX];
    struct stat s;
    for (size_t n = strlen(path); n > 0; n--) {
        if (path[n] != '\0' && path[n] != '/') continue;
        (void)snprintf(above, sizeof above, "%.*s", (int)n, path);
        if (lstat(above, &s) == 0) return n;
    }
    return 0;
}

/* Those that were made for an OUT that did not come about, or for scratch; one that has something
 * in it stays. */
static void remove_parents(const char *path, size_t there)
{
    char above[KILN_PATH_MAX];
    for (size_t n = strlen(path); n-- > there + 1;) {
        if (path[n] != '/' || path[n - 1] == '/') continue;
        (void)snprintf(above, sizeof above, "%.*s", (int)n, path);
        (void)rmdir(above);
    }
}

/* ---- the folder for what has no other place -------------------------------------------------- */

/* Fills `beside`, by whose name the folder is found again. */
static kiln_status name_place(conversion *c, kiln_error *err)
{
    const char *const target = c->to_stream ? c->writer->default_name : c->out;
    const char *temporary = getenv("TMPDIR"), *scratch = kiln_convert_given.scratch_dir;
    if (!scratch && c->to_stream) scratch = temporary && *temporary ? temporary : "/tmp";
    if (scratch)
        return kiln_path_join(c->beside, sizeof c->beside, scratch, kiln_path_base(target), err);
    (void)snprintf(c->beside, sizeof c->beside, "%s", target);
    return KILN_OK;
}

static kiln_status make_convert_folder(conversion *c, kiln_error *err)
{
    c->there = length_there(c->beside);
    c->parents = true;
    KILN_TRY(kiln_make_parents(c->beside, err));
    KILN_TRY(kiln_temporary_path(c->beside, c->folder, err));
    if (mkdir(c->folder, 0700) != 0) {
        const int why = errno;
        (void)kiln_fail(err, KILN_E_IO,
                        "cannot make the folder '%s': %s; --scratch-dir names another place",
                        c->folder, strerror(why));
        c->folder[0] = '\0';
        return KILN_E_IO;
    }
    KILN_TRY(kiln_path_join(c->manifest, sizeof c->manifest, c->folder, "manifest.db", err));
    return c->to_stream
               ? kiln_path_join(c->out, sizeof c->out, c->folder, c->writer->default_name, err)
               : KILN_OK;
}

static void drop_convert_folder(const conversion *c)
{
    if (c->folder[0]) kiln_folder_drop(c->folder);
    if (c->parents) remove_parents(c->beside, c->there);
}

/* ---- the command lines ----------------------------------------------------------------------- */

/* A format without a mark is known by its suffix. */
static kiln_status input_path(const conversion *c, unsigned i, char out[KILN_PATH_MAX],
                              kiln_error *err)
{
    char name[64] = "stdin";
    if (c->input && c->input->may_be)
        (void)snprintf(name, sizeof name, "stdin.%.*s", (int)strcspn(c->input->suffixes, ","),
                       c->input->suffixes);
    if (is_stream(c->parsed.positional[i]))
        return kiln_path_join(out, KILN_PATH_MAX, c->folder, name, err);
    (void)snprintf(out, KILN_PATH_MAX, "%s", c->parsed.positional[i]);
    return KILN_OK;
}

/* The program without a manifest, whose options are ours. */
static kiln_status make_words(conversion *c, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_words_add(&c->import, KILN_CONVERT, err));
    KILN_TRY(kiln_convert_pass(&c->cli, NULL, &c->import, err));
    if (c->to_stream) KILN_TRY(kiln_words_addf(&c->import, err, "--format=%s", c->writer->name));
    KILN_TRY(kiln_words_add(&c->import, "--", err));
    for (unsigned i = 0; i < c->n; i++) {
        KILN_TRY(input_path(c, i, path, err));
        KILN_TRY(kiln_words_add(&c->import, path, err));
    }
    return kiln_words_add(&c->import, c->out, err);
}

static kiln_status make_import_words(conversion *c, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_words_add(&c->import, KILN_CONVERT, err));
    KILN_TRY(kiln_convert_pass(&c->cli, &kiln_stage_import, &c->import, err));
    for (unsigned i = 1; i < c->n; i++) {
        KILN_TRY(input_path(c, i, path, err));
        KILN_TRY(kiln_words_addf(&c->import, err, "--add=%s", path));
    }
    KILN_TRY(kiln_words_add(&c->import, "--", err));
    KILN_TRY(input_path(c, 0, path, err));
    KILN_TRY(kiln_words_add(&c->import, path, err));
    return kiln_words_add(&c->import, c->manifest, err);
}

static kiln_status make_export_words(conversion *c, kiln_error *err)
{
    KILN_TRY(kiln_words_add(&c->export, KILN_CONVERT, err));
    KILN_TRY(kiln_convert_pass(&c->cli, &kiln_stage_export, &c->export, err));
    if (!c->cuts) KILN_TRY(kiln_words_add(&c->export, "--layer=source", err));
    KILN_TRY(kiln_words_addf(&c->export, err, "--output=%s", c->out));
    if (c->to_stream) KILN_TRY(kiln_words_addf(&c->export, err, "--format=%s", c->writer->name));
    KILN_TRY(kiln_words_add(&c->export, "--", err));
    return kiln_words_add(&c->export, c->manifest, err);
}

/* They tell of their work, which is nobody's question here. */
static kiln_status make_between_words(conversion *c, kiln_error *err)
{
    for (int i = 0; i < N_BETWEEN && c->cuts; i++) {
        kiln_words *w = &c->between[i];
        KILN_TRY(kiln_words_add(w, KILN_CONVERT, err));
        KILN_TRY(kiln_convert_pass(&c->cli, between[i].stage, w, err));
        KILN_TRY(kiln_words_add(w, "--quiet", err));
        if (between[i].option) KILN_TRY(kiln_words_add(w, between[i].option, err));
        KILN_TRY(kiln_words_add(w, "--", err));
        KILN_TRY(kiln_words_add(w, c->manifest, err));
    }
    return KILN_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static const kiln_stage_program convert_program = {.name = "convert",
                                                   .flags = KILN_PROGRAM_OPENS_ITSELF |
                                                            KILN_PROGRAM_SERIAL,
                                                   .run = kiln_convert_run,
                                                   .unit = kiln_convert_unit};

/* Under our name, by which sentences begin. */
static int run_program(const kiln_stage_program *program, const kiln_cli *cli,
                       const kiln_words *words)
{
    static kiln_stage_program ours; /* the engine keeps them until its next start */
    static kiln_cli named;
    named = *cli;
    named.program = KILN_CONVERT;
    ours = *program;
    ours.cli = &named;
    ours.flags |= KILN_PROGRAM_PASSING;
    const int code = kiln_program_main(&ours, (int)words->n, words->word);
    kiln_memory_trim();
    return code;
}

/* The files of a folder that is shared with others stand in it before the last is written.
 * was_there: the folder, before. */
static void discard_shared(const conversion *c, bool was_there, int code)
{
    const kiln_writer_functions *w = c->writer->functions;
    if (!w->discard || code == kiln_exit_code(KILN_E_USAGE)) return; /* refused before it began */
    w->discard(c->out);
    if (!was_there) (void)rmdir(c->out);
}

/* Points have no levels. */
static kiln_status need_gaussians(const conversion *c, kiln_error *err)
{
    kiln_manifest *m;
    kiln_scene *scene;
    KILN_TRY(KILN_ALLOC(&scene, 1, "a scene", err));
    kiln_status st = kiln_manifest_open(c->manifest, KILN_OPEN_READ, "convert", true, &m, err);
    if (st == KILN_OK) {
        st = kiln_scene_get(m, scene, err);
        kiln_manifest_close(m);
    }
    if (st == KILN_OK && scene->kind != KILN_SCENE_SPLATS)
        st = kiln_fail(err, KILN_E_INPUT,
                       "'%s' holds points, and --level, --count and --percent are of Gaussians",
                       c->parsed.positional[0]);
    free(scene);
    return st;
}

/* What merging chunks takes at most, by the headers of the files, so that the first refusal of
 * --ram names enough for the levels, too. A folder, or a header that says nothing, may have any
 * number of rows. */
static kiln_status foresee_levels(const conversion *c, kiln_error *err)
{
    const kiln_read_options options = {.lod = kiln_import_given.lod};
    uint64_t rows = 0;
    uint32_t degree = 0;
    char path[KILN_PATH_MAX];
    kiln_source_info *info; /* too large for the stack */
    kiln_status st = KILN_OK;
    if (!c->cuts) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    for (unsigned i = 0; i < c->n && st == KILN_OK; i++) {
        const kiln_reader *reader;
        kiln_error unread;
        memset(info, 0, sizeof *info);
        st = input_path(c, i, path, err);
        const bool known = st == KILN_OK &&
                           kiln_source_look(path, &options, &reader, info, &unread) == KILN_OK &&
                           info->n_rows;
        rows += known ? info->n_rows : KILN_CHUNK_ROWS_MAX;
        degree = (uint32_t)kiln_max_u64(degree, known ? info->sh_degree : 3);
    }
    free(info);
    if (st == KILN_OK) kiln_ram_foresee_runs(kiln_lod_scene_ram(rows, degree));
    return st;
}

static kiln_status run_bake(conversion *c, int *code, kiln_error *err)
{
    KILN_TRY(make_import_words(c, err));
    KILN_TRY(make_between_words(c, err));
    KILN_TRY(make_export_words(c, err)); /* now, as the first stage overwrites what was parsed */
    if (!c->writer->functions->views) kiln_own_cameras_hush();
    KILN_TRY(foresee_levels(c, err));
    *code = run_program(&kiln_stage_import, kiln_stage_import.cli, &c->import);
    if (*code == 0 && c->cuts) {
        KILN_TRY(need_gaussians(c, err));
        kiln_say("levels of detail are made in a bake in '%s', which is removed afterwards",
                 c->folder);
    }
    for (int i = 0; i < N_BETWEEN && c->cuts && *code == 0; i++) {
        if (between[i].stage == &kiln_stage_lod) kiln_ram_foresee_runs(0); /* it knows its chunks */
        *code = run_program(between[i].stage, between[i].stage->cli, &c->between[i]);
    }
    if (*code != 0) return KILN_OK;
    const bool was_there = kiln_is_dir(c->out);
    *code = run_program(&kiln_stage_export, kiln_stage_export.cli, &c->export);
    if (*code != 0) discard_shared(c, was_there, *code);
    return KILN_OK;
}

/* "ply" is also what the files of the format compressed-ply are called. */
static bool says_format(const kiln_reader *said, const kiln_reader *found)
{
    return said == found || strcmp(said->name, found->suffixes) == 0;
}

/* Its content says another format than the user does. */
static kiln_status refuse_input(const conversion *c, const char *path, kiln_error *err)
{
    const kiln_read_options options = {0};
    const kiln_reader *found;
    kiln_source_info *info; /* too large for the stack */
    kiln_error why;
    KILN_TRY(KILN_ALLOC(&info, 1, "what standard input says of itself", err));
    const kiln_status st = kiln_source_look(path, &options, &found, info, &why);
    free(info);
    if (st == KILN_OK && says_format(c->input, found)) return KILN_OK;
    if (st != KILN_OK && !c->input->may_be) return KILN_OK; /* import says what is wrong */
    return kiln_fail(err, KILN_E_INPUT, "standard input is of %s%s, but --import-format says %s",
                     st == KILN_OK ? "the format " : "another format",
                     st == KILN_OK ? found->name : "", c->input->name);
}

/* path: without a suffix, by which a file of a format without a mark would be known. */
static kiln_status check_input(const conversion *c, const char *path, kiln_error *err)
{
    if (c->input && kiln_source_claim(path)) return refuse_input(c, path, err);
    if (c->input && c->input->may_be) return KILN_OK;
    const kiln_reader *const guess = kiln_source_guess(path);
    if (!guess) return KILN_OK;
    if (c->input)
        return kiln_fail(err, KILN_E_INPUT,
                         "standard input is no %s, as --import-format says; if it is a .%s, which "
                         "has no mark, say so: --import-format %s",
                         c->input->name, guess->suffixes, guess->name);
    return kiln_fail(err, KILN_E_INPUT,
                     "standard input is no splat or point file that we know; if it is a .%s, "
                     "which has no mark, say so: --import-format %s",
                     guess->suffixes, guess->name);
}

static kiln_status take_input(const conversion *c, const char *path, kiln_error *err)
{
    char bare[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(bare, sizeof bare, c->folder, "stdin", err));
    KILN_TRY(kiln_convert_take_input(bare, err));
    KILN_TRY(check_input(c, bare, err));
    if (rename(bare, path) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot rename '%s': %s", bare, strerror(errno));
}

static kiln_status take_inputs(const conversion *c, kiln_error *err)
{
    static char path[KILN_PATH_MAX]; /* messages go on to name it */
    for (unsigned i = 0; i < c->n; i++) {
        if (!is_stream(c->parsed.positional[i])) continue;
        KILN_TRY(input_path(c, i, path, err));
        kiln_log_rename(path, "standard input");
        return take_input(c, path, err);
    }
    return KILN_OK;
}

static kiln_status run_conversion(conversion *c, int *code, kiln_error *err)
{
    const bool with_folder = c->bakes || c->to_stream || count_streams(c) > 0;
    KILN_TRY(name_place(c, err));
    kiln_leftover_folders_drop(c->beside); /* also where this run needs none */
    if (with_folder) KILN_TRY(make_convert_folder(c, err));
    kiln_export_tell_converted(c->to_stream ? "standard output" : NULL);
    KILN_TRY(take_inputs(c, err));
    if (c->bakes) {
        KILN_TRY(run_bake(c, code, err));
    } else {
        KILN_TRY(make_words(c, err));
        *code = run_program(&convert_program, &c->cli, &c->import);
    }
    return *code == 0 && c->to_stream ? kiln_convert_give_output(c->out, err) : KILN_OK;
}

/* What moves one input stands behind those that are added to the first. */
static kiln_status refuse_moved_first(const char *word, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_move move;
    if (is_stream(word) || access(word, F_OK) == 0) return KILN_OK;
    KILN_TRY(kiln_addition_parse(word, path, &move, err));
    if (strcmp(word, path) == 0 || access(path, F_OK) != 0) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' is the first input, which no '%s' moves; --translate, --rotate and "
                     "--scale move all of them",
                     word, word + strlen(path));
}

static kiln_status plan_conversion(conversion *c, kiln_error *err)
{
    c->n = c->parsed.n_positional - 1;
    (void)snprintf(c->out, sizeof c->out, "%s", c->parsed.positional[c->n]);
    c->to_stream = is_stream(c->out);
    if (kiln_convert_given.import_format)
        c->input = kiln_reader_named(kiln_convert_given.import_format);
    KILN_TRY(kiln_convert_writer(c->to_stream ? "" : c->out, &c->writer, err));
    c->cuts = kiln_cut_is_asked(&kiln_export_given);
    c->bakes = c->writer->functions->views || c->cuts;
    if (!kiln_opt_given(&c->cli, "ram")) kiln_ram_default_grows();
    if (c->cuts && !kiln_opt_given(&c->cli, "ram"))
        KILN_TRY(kiln_opt_give(&c->cli, "ram", RAM_OF_LEVELS, err));
    KILN_TRY(refuse_levels(c, err));
    KILN_TRY(kiln_cut_check(&kiln_export_given, &c->writer, 1, err));
    KILN_TRY(refuse_order(c, err));
    KILN_TRY(check_streams(c, err));
    KILN_TRY(kiln_writer_check_machine(c->writer, err)); /* before a scene is read */
    const char *const *words = c->parsed.positional;
    KILN_TRY(refuse_moved_first(words[0], err));
    if (c->to_stream) return KILN_OK;
    KILN_TRY(kiln_convert_guard(words, c->n, words[c->n], c->bakes, err));
    return kiln_convert_target(words[c->n], words[0], c->writer, c->out, err);
}

/* So that the folder is removed on every way out: a reader that is gone (SIGPIPE) and ulimit -f
 * (SIGXFSZ) are errors of a write. */
static void watch_signals(void)
{
    kiln_interrupt_watch("nothing is left of it");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

kiln_status kiln_front_convert(int argc, char **argv, int *code, kiln_error *err)
{
    conversion *c;
    kiln_additions_are_inputs();
    KILN_TRY(refuse_letters(argc, argv, err));
    KILN_TRY(KILN_ALLOC(&c, 1, "a conversion", err));
    kiln_status st = kiln_convert_cli(&c->cli, err);
    if (st == KILN_OK) st = kiln_cli_parse(&c->cli, argc, argv, &c->parsed, err);
    if (st == KILN_OK && !c->parsed.done) {
        watch_signals();
        st = plan_conversion(c, err);
        const size_t there = length_there(c->out);
        if (st == KILN_OK) st = run_conversion(c, code, err);
        drop_convert_folder(c);
        if ((st != KILN_OK || *code != 0) && !c->to_stream) remove_parents(c->out, there);
    }
    kiln_words_release(&c->import);
    kiln_words_release(&c->export);
    for (int i = 0; i < N_BETWEEN; i++) kiln_words_release(&c->between[i]);
    free(c);
    return st;
}

int kiln_front_convert_worker(int argc, char **argv)
{
    static kiln_cli cli;
    static kiln_stage_program program;
    kiln_error err;
    program = convert_program;
    program.cli = &cli;
    if (kiln_convert_cli(&cli, &err) != KILN_OK) return kiln_exit_code(err.status);
    return kiln_program_main(&program, argc, argv);
}
