/* viewer_files -- see the header. */
#include "stages/serve/viewer_files.h"

#include "base/file.h"
#include "stages/serve/routes.h"
#include "stages/viewer/viewer_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "viewer/"
#define REPORT "report.html"

/* What files of this suffix are; the first one that fits. Others in the folder are not served. */
static const struct {
    const char *suffix, *type;
} types[] = {
    {"js", "text/javascript; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
};

static const char *type_of(const char *name)
{
    if (strncmp(name, "LICENSE", 7) == 0) return "text/plain; charset=utf-8";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(kiln_path_suffix(name), types[i].suffix) == 0) return types[i].type;
    return NULL;
}

static int is_served(const struct dirent *e)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t n = strlen(e->d_name);
    return n < KILN_VIEWER_NAME_MAX && strspn(e->d_name, plain) == n && e->d_name[0] != '.' &&
           type_of(e->d_name);
}

static kiln_status read_viewer_file(kiln_answer_pool *pool, const char *name, kiln_answer **out,
                                    kiln_error *err)
{
    kiln_reply reply = {.status = 200, .type = type_of(name), .policy = KILN_POLICY_PAGE};
    char *text;
    size_t size;
    KILN_TRY(kiln_viewer_read(name, &text, &size, err));
    reply.body = (kiln_buffer){.data = (unsigned char *)text, .size = size, .capacity = size};
    return kiln_answer_make(pool, &reply, out, err);
}

static kiln_status read_folder(kiln_answer_pool *pool, kiln_viewer_files *v, kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    struct dirent **found = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_viewer_path(NULL, folder, err));
    const int n = scandir(folder, &found, is_served, alphasort);
    for (int i = 0; i < n; i++) {
        if (st == KILN_OK && v->n < KILN_VIEWER_FILES_MAX) {
            memcpy(v->files[v->n].name, found[i]->d_name, strlen(found[i]->d_name) + 1);
            st = read_viewer_file(pool, found[i]->d_name, &v->files[v->n].answer, err);
            v->n += st == KILN_OK;
        }
        free(found[i]);
    }
    free(found);
    return st;
}

static kiln_answer *find_viewer_file(const kiln_viewer_files *v, const char *name)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (strcmp(v->files[i].name, name) == 0) return v->files[i].answer;
    return NULL;
}

kiln_status kiln_viewer_files_load(kiln_answer_pool *pool, kiln_viewer_files *out, kiln_error *err)
{
    char script[KILN_PATH_MAX], page[KILN_PATH_MAX];
    *out = (kiln_viewer_files){.n = 0};
    KILN_TRY(kiln_viewer_path(KILN_VIEWER_SCRIPT, script, err));
    KILN_TRY(kiln_viewer_path(KILN_VIEWER_PAGE, page, err));
    if (kiln_is_file(script) && kiln_is_file(page)) KILN_TRY(read_folder(pool, out, err));
    kiln_answer *own = find_viewer_file(out, KILN_VIEWER_PAGE);
    out->installed = own && find_viewer_file(out, KILN_VIEWER_SCRIPT);
    if (out->installed) {
        out->page = kiln_answer_use(own);
        return KILN_OK;
    }
    kiln_reply to_report = {.status = 302, .type = "text/plain; charset=utf-8", .location = REPORT};
    KILN_TRY(kiln_buffer_put(&to_report.body, REPORT "\n", sizeof REPORT, err));
    return kiln_answer_make(pool, &to_report, &out->page, err);
}

void kiln_viewer_files_release(kiln_viewer_files *v)
{
    for (uint32_t i = 0; i < v->n; i++) kiln_answer_drop(v->files[i].answer);
    kiln_answer_drop(v->page);
    *v = (kiln_viewer_files){.n = 0};
}

kiln_answer *kiln_viewer_files_find(const kiln_viewer_files *v, const char *path)
{
    if (path[0] == '\0') return v->page;
    return strncmp(path, FOLDER, sizeof FOLDER - 1) == 0
               ? find_viewer_file(v, path + sizeof FOLDER - 1)
               : NULL;
}
