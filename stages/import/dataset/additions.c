/* additions -- see the header. The numbers are read by the option tables' own functions: one way to
 * write them, one set of checks. */
#include "stages/import/dataset/additions.h"

#include "base/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an item may move by. A process has one command line, so one of them is read at a time. */
static kiln_move now;
static const kiln_opt rows[] = {
    KILN_OPTION_NUMBER("translate", &now.translate, "X,Y,Z", "", .def = "0,0,0",
                       .range = KILN_MOVE_PLACES),
    KILN_OPTION_NUMBER("rotate", &now.rotate, "X,Y,Z", "", .def = "0,0,0"),
    KILN_OPTION_NUMBER("scale", &now.scale, "S", "", .def = "1", .range = KILN_MOVE_SCALES),
    KILN_OPTION_END,
};
enum { PARTS = 3 };
static bool are_inputs; /* kiln_additions_are_inputs */
void kiln_additions_are_inputs(void) { are_inputs = true; }

/* What stands in front of an item in a message. */
static const char *item_of(void) { return are_inputs ? "" : "--add "; }
const char *kiln_addition_of(void) { return are_inputs ? "" : " of --add"; }

static const kiln_cli parts = {.program = "--add", .options = rows};

/* The part that the last ';' of item[0..length) begins: its row and where its value starts. NULL:
 * it begins none. */
static const kiln_opt *last_part(const char *item, size_t length, const bool taken[PARTS],
                                 size_t *semicolon, size_t *value)
{
    size_t at = length;
    while (at > 0 && item[at - 1] != ';') at--;
    if (at == 0) return NULL;
    for (int i = 0; i < PARTS; i++) {
        const size_t n = strlen(rows[i].name);
        if (taken[i] || length - at <= n || memcmp(item + at, rows[i].name, n) != 0 ||
            item[at + n] != '=')
            continue;
        *semicolon = at - 1;
        *value = at + n + 1;
        return &rows[i];
    }
    return NULL;
}

static kiln_status take_part(const kiln_opt *row, const char *item, size_t value, size_t length,
                             kiln_error *err)
{
    char text[160];
    const int n = snprintf(text, sizeof text, "%.*s",
                           (int)(length - value < 150 ? length - value : 150), item + value);
    if (n <= 0)
        return kiln_fail(err, KILN_E_USAGE, "%s'%.200s': %s= needs a value", item_of(), item,
                         row->name);
    return kiln_opt_set(&parts, row->name, text, are_inputs ? item : "--add", err);
}

kiln_status kiln_addition_parse(const char *item, char path[KILN_PATH_MAX], kiln_move *move,
                                kiln_error *err)
{
    bool taken[PARTS] = {false};
    size_t length = strlen(item), semicolon, value;
    const kiln_opt *row;
    now = (kiln_move){.scale = 1};
    while ((row = last_part(item, length, taken, &semicolon, &value))) {
        KILN_TRY(take_part(row, item, value, length, err));
        taken[row - rows] = true;
        length = semicolon;
    }
    if (length == 0)
        return kiln_fail(err, KILN_E_USAGE, "%s'%.200s' names no file", item_of(), item);
    if (length >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_USAGE, "the file name of %s'%.200s' is too long", item_of(),
                         item);
    (void)snprintf(path, KILN_PATH_MAX, "%.*s", (int)length, item);
    *move = now;
    return KILN_OK;
}

/* What moves nothing behind a name that ends like a part: the same part again, as parts are read
 * from the end and each once. */
static const char *unmoved_part(const char *item)
{
    static const char *const nothing[PARTS] = {"translate=0,0,0", "rotate=0,0,0", "scale=1"};
    const bool none[PARTS] = {false};
    size_t semicolon, value;
    const kiln_opt *row = last_part(item, strlen(item), none, &semicolon, &value);
    return nothing[row ? row - rows : 0];
}

kiln_status kiln_addition_not_there(const char *item, const char *path, kiln_error *err)
{
    char file[KILN_PATH_MAX];
    if (strcmp(item, path) != 0 && kiln_is_file(item))
        return kiln_fail(err, KILN_E_USAGE,
                         "%s'%.400s' moves the file '%.400s', which is not there; the file of that "
                         "name is '%.400s;%s'",
                         item_of(), item, path, item, unmoved_part(item));
    (void)snprintf(file, sizeof file, "%s", path);
    for (char *at = strrchr(file, ';'); at; at = strrchr(file, ';')) {
        *at = '\0';
        if (kiln_is_file(file))
            return kiln_fail(err, KILN_E_USAGE,
                             "%s'%.1000s': ';%.200s' is none of ;translate=X,Y,Z ;rotate=X,Y,Z "
                             ";scale=S, each at most once",
                             item_of(), item, strrchr(path, ';') + 1);
    }
    return kiln_fail(err, KILN_E_INPUT, "cannot open '%s'%s: %s", path, kiln_addition_of(),
                     strerror(ENOENT));
}

kiln_status kiln_addition_text(const char *path, const kiln_move *move, kiln_buffer *out,
                               kiln_error *err)
{
    const bool none[PARTS] = {false};
    size_t semicolon, value;
    const bool all = last_part(path, strlen(path), none, &semicolon, &value) != NULL;
    const kiln_move nothing = {.scale = 1};
    const bool does[PARTS] = {
        memcmp(move->translate, nothing.translate, sizeof nothing.translate) != 0,
        memcmp(move->rotate, nothing.rotate, sizeof nothing.rotate) != 0, move->scale != 1};
    now = *move;
    KILN_TRY(kiln_buffer_printf(out, err, "%s", path));
    for (int i = 0; i < PARTS; i++) {
        char text[128];
        if (all || does[i])
            KILN_TRY(kiln_buffer_printf(out, err, ";%s=%s", rows[i].name,
                                        kiln_opt_text(&rows[i], text, sizeof text)));
    }
    return KILN_OK;
}

/* ---- the files ------------------------------------------------------------------------------- */

typedef struct {
    kiln_dataset *d;
    kiln_rows_file *file;
} member_context;

static kiln_status add_rows_member(void *context, const char *path, kiln_error *err)
{
    const member_context *c = context;
    kiln_rows_file *f = c->file;
    KILN_TRY(
        kiln_grow((void **)&f->members, f->n_members, sizeof *f->members, "files of a scene", err));
    snprintf(f->members[f->n_members++].text, sizeof f->members->text, "%s", path);
    return kiln_camera_set_add_source(&c->d->set, path, "rows", err);
}

kiln_status kiln_dataset_add_rows(kiln_dataset *d, const char *path, const kiln_move *move,
                                  kiln_error *err)
{
    kiln_source_info *info = NULL; /* too large for the stack */
    KILN_TRY(kiln_grow((void **)&d->more, d->n_more, sizeof *d->more, "files of rows", err));
    kiln_rows_file *f = &d->more[d->n_more++];
    *f = (kiln_rows_file){.move = *move};
    snprintf(f->path, sizeof f->path, "%s", path);
    KILN_TRY(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    kiln_status st = kiln_source_look(path, &d->read, &f->reader, info, err);
    f->kind = info->kind;
    f->n_rows = info->n_rows;
    free(info);
    if (st == KILN_OK) st = kiln_camera_set_add_source(&d->set, path, "rows", err);
    member_context c = {d, f};
    return st == KILN_OK && f->reader->members
               ? kiln_source_members(path, &d->read, add_rows_member, &c, err)
               : st;
}

kiln_status kiln_dataset_tell_added(kiln_dataset *d, const kiln_rows_file *f, kiln_error *err)
{
    char what[160];
    const bool points = f->kind == KILN_SCENE_POINTS;
    const char *moved = kiln_move_is_none(&f->move) ? "" : " and moved";
    if (f->n_rows == 0 && !points) /* KILN_PACKED_WHOLE */
        snprintf(what, sizeof what, "%s, packed, added%s", f->reader->name, moved);
    else
        snprintf(what, sizeof what, "%s, %llu %s%s, added%s", f->reader->name,
                 (unsigned long long)f->n_rows, points ? "point" : "Gaussian",
                 f->n_rows == 1 ? "" : "s", moved);
    return kiln_camera_set_add_finding(&d->set, f->path, points ? "points" : "splats", true, what,
                                       "", err);
}

kiln_status kiln_dataset_add_list(kiln_dataset *d, const char *list, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char path[KILN_PATH_MAX], *item;
    kiln_move move;
    if (!list) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&item, KILN_OPT_TEXT_MAX, "a list", err));
    while (kiln_opt_list_next(&list, item, KILN_OPT_TEXT_MAX)) {
        KILN_GO(kiln_addition_parse(item, path, &move, err));
        KILN_GO(kiln_dataset_add_rows(d, path, &move, err));
    }
done:
    free(item);
    return st;
}
