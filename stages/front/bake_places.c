/* bake_places -- see the header. */
#include "stages/front/bake_places.h"

#include "base/memory.h"
#include "stages/files/packing.h"
#include "stages/front/chosen_stages.h"

#include <stdio.h>
#include <string.h>

/* A word that programs take for a path, not for an option. */
static kiln_status as_path(const char **word, kiln_error *err)
{
    char *copy;
    if ((*word)[0] != '-') return KILN_OK;
    const size_t n = strlen(*word) + 3;
    KILN_TRY(KILN_ALLOC(&copy, n, "a path", err));
    (void)snprintf(copy, n, "./%s", *word);
    *word = copy;
    return KILN_OK;
}

static kiln_status bake_of(const char *scene, size_t length, char *out, kiln_error *err)
{
    const int n = snprintf(out, KILN_PATH_MAX, "%.*s.bake", (int)length, scene);
    if (n < 0 || n >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.60s...' is too long", scene);
    return KILN_OK;
}

/* bake/ in a scene's folder; beside a scene's file FILE.bake, with the file's suffixes dropped.
 * Where only the last one was dropped before, a bake of that name goes on. */
static kiln_status default_out(const char *scene, bool is_demo, char *out, kiln_error *err)
{
    if (kiln_is_dir(scene) || is_demo)
        return kiln_path_join(out, KILN_PATH_MAX, scene, "bake", err);
    char name[KILN_PATH_MAX];
    const char *suffix = kiln_path_suffix(scene);
    const size_t before = strlen(scene) - (*suffix ? strlen(suffix) + 1 : 0),
                 length = kiln_scene_stem(scene, name);
    KILN_TRY(bake_of(scene, before, out, err));
    return length == before || kiln_is_dir(out) ? KILN_OK : bake_of(scene, length, out, err);
}

static kiln_status refuse_slash(const char *scene, kiln_error *err)
{
    char file[KILN_PATH_MAX];
    size_t n = strlen(scene);
    if (scene[n - 1] != '/' || kiln_is_dir(scene)) return KILN_OK;
    while (n > 1 && scene[n - 1] == '/') n--;
    (void)snprintf(file, sizeof file, "%.*s", (int)n, scene);
    if (!kiln_is_file(file)) return KILN_OK; /* import says that it is not there */
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' is a file, not a folder; give it without the slash: '%s'", scene, file);
}

/* A file has the name of the bake's folder: often -o names the file that is wanted. */
static kiln_status refuse_file(const char *out, kiln_error *err)
{
    if (!kiln_is_file(out)) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' is there and is a file, and -o, --out names the folder of a bake; "
                     "choose another place; kiln convert "
                     "IN OUT writes a file in another format",
                     out);
}

kiln_status kiln_bake_places(const kiln_parsed *parsed, kiln_bake *b, kiln_error *err)
{
    const char *out = b->asked->out;
    b->scene = parsed->n_positional ? parsed->positional[0]
               : b->asked->scene    ? b->asked->scene
               : b->asked->demo     ? KILN_DEMO_FOLDER
                                    : NULL;
    const bool scene_needed = kiln_bake_runs(b, "import") || !out;
    if (!b->scene && scene_needed)
        return kiln_fail(
            err, KILN_E_USAGE,
            "no scene is given; give the folder or the file that holds it: " KILN_PIPELINE
            " SCENE; or bake a demo: " KILN_PIPELINE " --demo");
    if (b->scene && *b->scene) KILN_TRY(refuse_slash(b->scene, err));
    if (b->scene) KILN_TRY(as_path(&b->scene, err));
    if (out) KILN_TRY(as_path(&out, err));
    if (out)
        KILN_TRY(kiln_path_join(b->out, sizeof b->out, "", out, err));
    else
        KILN_TRY(default_out(b->scene, b->asked->demo, b->out, err));
    KILN_TRY(refuse_file(b->out, err));
    return kiln_path_join(b->manifest, sizeof b->manifest, b->out, "manifest.db", err);
}
