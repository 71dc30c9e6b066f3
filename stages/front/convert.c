/* `kiln convert` -- a file of any format that is read becomes one of any format that is written, and nothing else stays.
 *
 * It is kiln-import into a manifest of its own and kiln-export of the layer `source`, in this process, so the bytes are theirs, and
 * so are formats, filters and sentences: there is no second way from rows to rows. The manifest lies in a folder beside OUT,
 * OUT.tmp.PID, which is removed on every way out; what a killed convert has left goes when OUT is made again. */
#include "stages/front/convert_streams.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/program.h"
#include "stages/formats/writer.h"
#include "stages/front/convert_options.h"
#include "stages/front/front.h"
#include "stages/products/product_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    kiln_cli cli;
    kiln_parsed parsed;
    const char *out;                                       /* as it was typed */
    char folder[KILN_PATH_MAX];                            /* of the manifest; "" until it is made */
    char manifest[KILN_PATH_MAX], streamed[KILN_PATH_MAX]; /* streamed: what goes to standard output; "" */
    char target[KILN_PATH_MAX];                            /* OUT without slashes at its end, or `streamed` */
    kiln_words import, export;
} conversion;

static bool is_stream(const char *word) { return strcmp(word, "-") == 0; }

/* ---- what is refused before anything is done -----------------------------------------------------------------------------------
 */

/* A letter of splat-transform that means another thing: to move a scene by it would be wrong without a word. */
static kiln_status refuse_letters(int argc, char **argv, kiln_error *err)
{
    static const struct {
        const char *letter, *name;
    } others[] = {{"-t", "translate"}, {"-r", "rotate"}, {"-B", "filter-box"}, {"-S", "filter-sphere"}};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (!strcmp(argv[i], others[k].letter))
                return kiln_fail(
                    err, KILN_E_USAGE,
                    "%s of splat-transform counts in a frame that is turned by 180 degrees about z, with x and y of other "
                    "signs; --%s takes the numbers of a PLY",
                    others[k].letter, others[k].name);
    return KILN_OK;
}

static kiln_status choose_writer(const conversion *c, const kiln_writer **out, kiln_error *err)
{
    const kiln_writer *list[KILN_WRITERS_MAX];
    const bool given = kiln_opt_given(&c->cli, "format");
    uint32_t n;
    KILN_TRY(kiln_writers_parse(kiln_convert_format(), list, &n, err));
    if (n > 1) return kiln_fail(err, KILN_E_USAGE, "OUT is one file or folder, and --format names %u formats", n);
    *out = list[0];
    const bool to_folder = !kiln_path_base(c->out)[0] || kiln_is_dir(c->out);
    return is_stream(c->out) || to_folder ? KILN_OK : kiln_writer_for(c->out, list[0], given, out, err);
}

static kiln_status refuse_levels(const conversion *c, const kiln_writer *w, kiln_error *err)
{
    kiln_buffer scene = {0};
    if (!(w->holds & KILN_NEEDS_LEVELS)) return KILN_OK;
    kiln_status st = kiln_word_quote(&scene, c->parsed.positional[0], err);
    if (st == KILN_OK)
        st = kiln_fail(err, KILN_E_USAGE,
                       "the format %s is made of levels of detail, and those take a bake: kiln pipeline %.*s --export %s", w->name,
                       (int)scene.size, (const char *)scene.data, w->name);
    kiln_buffer_release(&scene);
    return st;
}

static kiln_status check_streams(const conversion *c, const kiln_writer *w, kiln_error *err)
{
    unsigned n = 0;
    for (unsigned i = 0; i + 1 < c->parsed.n_positional; i++) n += is_stream(c->parsed.positional[i]);
    if (n > 1) return kiln_fail(err, KILN_E_USAGE, "standard input, '-', is one file; it is named %u times", n);
    if (is_stream(c->out) && w->functions->place != KILN_PLACE_FILE)
        return kiln_fail(err, KILN_E_USAGE, "the format %s is a folder, which standard output cannot take; name a folder", w->name);
    return KILN_OK;
}

/* In a moment, not when all rows have been read. kiln-export asks again. */
static kiln_status check_convert_target(const conversion *c, const kiln_writer *w, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_product_guard *g;
    if (is_stream(c->out) || w->functions->place != KILN_PLACE_FILE) return KILN_OK;
    (void)snprintf(path, sizeof path, "%s", c->out);
    if (!kiln_path_base(c->out)[0] || kiln_is_dir(c->out))
        KILN_TRY(kiln_path_join(path, sizeof path, c->out, w->default_name, err));
    kiln_status st = KILN_OK;
    for (unsigned i = 0; i + 1 < c->parsed.n_positional && st == KILN_OK; i++) {
        KILN_TRY(kiln_product_guard_open(NULL, kiln_opt_given(&c->cli, "overwrite"), &g, err));
        if (kiln_is_file(c->parsed.positional[i])) kiln_product_guard_scene(g, c->parsed.positional[i], "");
        st = kiln_product_guard_check(g, path, NULL, err);
        kiln_product_guard_close(g);
    }
    return st;
}

/* ---- the command lines ---------------------------------------------------------------------------------------------------------
 */

static kiln_status name_places(conversion *c, const kiln_writer *w, kiln_error *err)
{
    char base[KILN_PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    (void)snprintf(c->target, sizeof c->target, "%s", c->out);
    for (size_t n = strlen(c->target); n > 1 && c->target[n - 1] == '/';) c->target[--n] = '\0';
    const char *name = is_stream(c->out) ? w->default_name : kiln_path_base(c->target);
    if (kiln_convert_given.scratch_dir)
        KILN_TRY(kiln_path_join(base, sizeof base, kiln_convert_given.scratch_dir, name, err));
    else if (is_stream(c->out))
        KILN_TRY(kiln_path_join(base, sizeof base, temporary && *temporary ? temporary : "/tmp", name, err));
    else
        (void)snprintf(base, sizeof base, "%s", c->target);
    KILN_TRY(kiln_make_parents(base, err));
    kiln_leftover_folders_drop(base);
    KILN_TRY(kiln_temporary_path(base, c->folder, err));
    KILN_TRY(kiln_path_join(c->manifest, sizeof c->manifest, c->folder, "manifest.db", err));
    if (!is_stream(c->out)) return KILN_OK;
    return kiln_path_join(c->streamed, sizeof c->streamed, c->folder, w->default_name, err);
}

static kiln_status input_path(const conversion *c, unsigned i, char out[KILN_PATH_MAX], kiln_error *err)
{
    if (is_stream(c->parsed.positional[i])) return kiln_path_join(out, KILN_PATH_MAX, c->folder, "stdin", err);
    (void)snprintf(out, KILN_PATH_MAX, "%s", c->parsed.positional[i]);
    return KILN_OK;
}

static kiln_status make_words(conversion *c, const kiln_writer *w, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_words_add(&c->import, KILN_CONVERT, err));
    KILN_TRY(kiln_convert_pass(&c->cli, &kiln_stage_import, &c->import, err));
    for (unsigned i = 1; i + 1 < c->parsed.n_positional; i++) {
        KILN_TRY(input_path(c, i, path, err));
        KILN_TRY(kiln_words_addf(&c->import, err, "--add=%s", path));
    }
    KILN_TRY(kiln_words_add(&c->import, "--", err));
    KILN_TRY(input_path(c, 0, path, err));
    KILN_TRY(kiln_words_add(&c->import, path, err));
    KILN_TRY(kiln_words_add(&c->import, c->manifest, err));
    KILN_TRY(kiln_words_add(&c->export, KILN_CONVERT, err));
    KILN_TRY(kiln_convert_pass(&c->cli, &kiln_stage_export, &c->export, err));
    KILN_TRY(kiln_words_add(&c->export, "--layer=source", err));
    KILN_TRY(kiln_words_addf(&c->export, err, "--output=%s", c->streamed[0] ? c->streamed : c->out));
    if (c->streamed[0]) KILN_TRY(kiln_words_addf(&c->export, err, "--format=%s", w->name));
    KILN_TRY(kiln_words_add(&c->export, "--", err));
    return kiln_words_add(&c->export, c->manifest, err);
}

/* ---- running -------------------------------------------------------------------------------------------------------------------
 */

/* The stage under our name, by which its sentences begin. */
static int run_stage(const kiln_stage_program *stage, const kiln_words *words)
{
    static kiln_stage_program ours[2];
    static kiln_cli clis[2];
    const unsigned which = stage == &kiln_stage_export;
    clis[which] = *stage->cli;
    clis[which].program = KILN_CONVERT;
    ours[which] = *stage;
    ours[which].cli = &clis[which];
    const int code = kiln_program_main(&ours[which], (int)words->n, words->word);
    kiln_memory_trim();
    return code;
}

static kiln_status make_folder(conversion *c, kiln_error *err)
{
    if (mkdir(c->folder, 0700) == 0) return KILN_OK;
    const int why = errno;
    kiln_status st =
        kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s; --scratch-dir names another place", c->folder, strerror(why));
    c->folder[0] = '\0';
    return st;
}

static kiln_status run_conversion(conversion *c, int *code, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(make_folder(c, err));
    for (unsigned i = 0; i + 1 < c->parsed.n_positional; i++) {
        if (!is_stream(c->parsed.positional[i])) continue;
        KILN_TRY(input_path(c, i, path, err));
        KILN_TRY(kiln_convert_take_input(path, err));
    }
    kiln_program_keep_workers(true);
    *code = run_stage(&kiln_stage_import, &c->import);
    kiln_program_keep_workers(false);
    if (*code == 0) *code = run_stage(&kiln_stage_export, &c->export);
    kiln_program_stop_workers();
    return *code == 0 && c->streamed[0] ? kiln_convert_give_output(c->streamed, err) : KILN_OK;
}

static kiln_status plan_conversion(conversion *c, kiln_error *err)
{
    const kiln_writer *w;
    c->out = c->parsed.positional[c->parsed.n_positional - 1];
    KILN_TRY(choose_writer(c, &w, err));
    KILN_TRY(refuse_levels(c, w, err));
    KILN_TRY(check_streams(c, w, err));
    KILN_TRY(check_convert_target(c, w, err));
    KILN_TRY(name_places(c, w, err));
    return make_words(c, w, err);
}

/* A terminal that is closed ends it like SIGTERM. */
static void on_hangup(int signal)
{
    (void)signal;
    (void)raise(SIGTERM);
}

kiln_status kiln_front_convert(int argc, char **argv, int *code, kiln_error *err)
{
    conversion *c;
    KILN_TRY(refuse_letters(argc, argv, err));
    KILN_TRY(KILN_ALLOC(&c, 1, "a conversion", err));
    kiln_status st = kiln_convert_cli(&c->cli, err);
    if (st == KILN_OK) st = kiln_cli_parse(&c->cli, argc, argv, &c->parsed, err);
    if (st == KILN_OK && !c->parsed.done) {
        kiln_interrupt_watch("nothing is left of it");
        (void)signal(SIGHUP, on_hangup);
        st = plan_conversion(c, err);
        if (st == KILN_OK) st = run_conversion(c, code, err);
        if (c->folder[0]) kiln_folder_drop(c->folder);
    }
    kiln_words_release(&c->import);
    kiln_words_release(&c->export);
    free(c);
    return st;
}
