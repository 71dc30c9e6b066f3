/* products -- see products.h. The list is text, a line each, so that other programs read it:
 * SCHEMA.md, "Products". */
#include "schema/products.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGE "product"
#define UNIT_NAME "files of the bake"
#define OUTPUT "list"
static const char head[] = "kiln-products 1\n";
static const char state_letters[] = "cbs"; /* in the order of kiln_product_state */

static kiln_hash list_key(void)
{
    kiln_hasher *h = kiln_key_begin(STAGE, 0);
    kiln_key_text(h, "what", UNIT_NAME);
    return kiln_key_end(h);
}

/* ---- in memory ------------------------------------------------------------------------------- */
bool kiln_product_path_is_safe(const char *path)
{
    static const char *const folders[] = {"renders/", "export/"};
    const char *why;
    char name[KILN_PATH_MAX];
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof name) return false;
    memcpy(name, path, n + 1);
    if (name[n - 1] == '/') name[n - 1] = '\0';
    if (strpbrk(name, "\t\n") || !kiln_relative_is_safe(name, &why)) return false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(name, folders[i], strlen(folders[i])) == 0) return true;
    return false;
}

/* The first entry that is not before this path. */
static uint32_t place_of_product(const kiln_product_list *list, const char *path)
{
    uint32_t low = 0, high = list->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(list->products[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

kiln_product *kiln_product_list_find(const kiln_product_list *list, const char *path)
{
    const uint32_t at = place_of_product(list, path);
    return at < list->n && strcmp(list->products[at].path, path) == 0 ? &list->products[at] : NULL;
}

static kiln_status reserve_product(kiln_product_list *list, kiln_error *err)
{
    if (list->n < list->capacity) return KILN_OK;
    if (list->capacity > UINT32_MAX / 4)
        return kiln_fail(err, KILN_E_INPUT, "a bake has too many files");
    const uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
    kiln_product *more = realloc(list->products, capacity * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the list of the bake's files");
    list->products = more;
    list->capacity = capacity;
    return KILN_OK;
}

kiln_status kiln_product_list_add(kiln_product_list *list, const char *path, const char *stage,
                                  kiln_product **out, kiln_error *err)
{
    const uint32_t at = place_of_product(list, path);
    *out = kiln_product_list_find(list, path);
    if (*out) return KILN_OK;
    if (!kiln_product_path_is_safe(path))
        return kiln_fail(err, KILN_E_INPUT, "'%.300s' cannot be the name of a file of a bake",
                         path);
    KILN_TRY(reserve_product(list, err));
    char *copy = strdup(path);
    if (!copy)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the list of the bake's files");
    kiln_product *const p = &list->products[at];
    memmove(p + 1, p, (list->n - at) * sizeof *p);
    list->n++;
    *p = (kiln_product){.path = copy, .state = KILN_PRODUCT_BEGUN};
    (void)snprintf(p->stage, sizeof p->stage, "%s", stage);
    *out = p;
    return KILN_OK;
}

void kiln_product_list_remove(kiln_product_list *list, kiln_product *p)
{
    const size_t at = (size_t)(p - list->products);
    free(p->path);
    memmove(p, p + 1, (list->n - at - 1) * sizeof *p);
    list->n--;
}

void kiln_product_list_release(kiln_product_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) free(list->products[i].path);
    free(list->products);
    *list = (kiln_product_list){0};
}

/* ---- as text --------------------------------------------------------------------------------- */
static kiln_status put_line(const kiln_product *p, kiln_buffer *text, kiln_error *err)
{
    char hash[33], of[33];
    return kiln_buffer_printf(text, err, "%c\t%s\t%d\t%" PRIu64 "\t%" PRId64 "\t%s\t%s\t%s\n",
                              state_letters[p->state], p->stage, p->described, p->size, p->mtime_ns,
                              kiln_hash_hex(p->hash, hash), kiln_hash_hex(p->of, of), p->path);
}

/* The next field of a line, which ends with `end`; NULL: there is none. */
static char *next_field(char **at, char end)
{
    char *const field = *at, *const stop = strchr(field, end);
    if (!stop) return NULL;
    *stop = '\0';
    *at = stop + 1;
    return field;
}

static bool read_product_number(const char *text, bool is_signed, int64_t *out)
{
    char *end;
    const size_t digits = strspn(text + (is_signed && *text == '-'), "0123456789");
    if (digits == 0 || digits > 19) return false;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    *out = v;
    return errno == 0 && *end == '\0';
}

static bool is_stage_name(const char *text)
{
    const size_t n = strlen(text);
    return n > 0 && n < sizeof((kiln_product *)NULL)->stage &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* *path stays in the line. */
static bool read_line(char **at, kiln_product *p, char **path)
{
    enum { FIELDS = 7 };
    char *field[FIELDS];
    int64_t described, size;
    for (int i = 0; i < FIELDS; i++)
        if (!(field[i] = next_field(at, '\t'))) return false;
    *path = next_field(at, '\n');
    const char *const letter = strlen(field[0]) == 1 ? strchr(state_letters, field[0][0]) : NULL;
    if (!*path || !letter || !is_stage_name(field[1]) ||
        !read_product_number(field[2], false, &described) || described > 1)
        return false;
    if (!read_product_number(field[3], false, &size) ||
        !read_product_number(field[4], true, &p->mtime_ns))
        return false;
    if (!kiln_hash_parse(field[5], &p->hash) || !kiln_hash_parse(field[6], &p->of)) return false;
    p->state = (kiln_product_state)(letter - state_letters);
    (void)snprintf(p->stage, sizeof p->stage, "%s", field[1]);
    p->described = described == 1;
    p->size = (uint64_t)size;
    return kiln_product_path_is_safe(*path);
}

static kiln_status read_lines(char *text, kiln_product_list *list, kiln_error *err)
{
    char *path;
    if (strncmp(text, head, sizeof head - 1) != 0)
        return kiln_fail(err, KILN_E_INPUT, "the list of the bake's files has no head");
    for (char *at = text + sizeof head - 1; *at;) {
        kiln_product p = {0};
        const char *const before = list->n ? list->products[list->n - 1].path : "";
        KILN_TRY(reserve_product(list, err));
        if (!read_line(&at, &p, &path) || strcmp(before, path) >= 0)
            return kiln_fail(err, KILN_E_INPUT,
                             "the list of the bake's files has a wrong entry behind '%.300s'",
                             before);
        if (!(p.path = strdup(path)))
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the list of the bake's files");
        list->products[list->n++] = p;
    }
    return KILN_OK;
}

/* ---- in the manifest ------------------------------------------------------------------------- */
/* As the JSON string of the unit's counters: no blob is left over when the list is replaced, as it
 * is twice in a run. */
static kiln_status quote_text(const kiln_buffer *text, kiln_buffer *json, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(json, err, "{\"" OUTPUT "\":\""));
    for (size_t i = 0; i < text->size; i++) {
        const char c = (char)text->data[i];
        /* a safe path has no other */
        const char *const escaped = c == '\t'   ? "\\t"
                                    : c == '\n' ? "\\n"
                                    : c == '"'  ? "\\\""
                                                : NULL;
        KILN_TRY(kiln_buffer_put(json, escaped ? escaped : &c, escaped ? 2 : 1, err));
    }
    return kiln_buffer_put(json, "\"}", sizeof "\"}", err);
}

static const char list_sql[] =
    "SELECT CASE WHEN json_valid(counters) AND json_type(counters, '$." OUTPUT "') = 'text'"
    " THEN json_extract(counters, '$." OUTPUT "') ELSE '' END FROM unit WHERE key = ?";

kiln_status kiln_product_list_get(kiln_manifest *m, kiln_product_list *out, kiln_error *err)
{
    kiln_query q;
    bool found;
    char *text = NULL;
    kiln_status st;
    *out = (kiln_product_list){0};
    KILN_TRY(kiln_query_open(m, &q, list_sql, err));
    kiln_bind_hash(&q, list_key());
    KILN_GO(kiln_query_step(&q, &found, err));
    if (!found) goto done;
    text = kiln_column_text_dup(&q);
    st = kiln_query_check(&q, err);
    if (st == KILN_OK) st = read_lines(text, out, err);
    st = kiln_row_take(m, &q, st, err);
done:
    kiln_query_close(&q);
    free(text);
    return st;
}

static kiln_status store_text(kiln_manifest *m, const kiln_buffer *text, kiln_error *err)
{
    kiln_buffer json = {0};
    kiln_status st = quote_text(text, &json, err);
    const kiln_unit_result result = {.counters = (char *)json.data};
    const kiln_unit_done unit = {.key = list_key(), .stage = STAGE, .name = UNIT_NAME};
    if (st == KILN_OK) st = kiln_unit_forget(m, unit.key, err);
    if (st == KILN_OK) st = kiln_unit_store(m, &unit, &result, NULL, err);
    kiln_buffer_release(&json);
    return st;
}

kiln_status kiln_product_list_put(kiln_manifest *m, const kiln_product_list *list, kiln_error *err)
{
    kiln_buffer text = {0};
    kiln_status st = kiln_buffer_put(&text, head, sizeof head - 1, err);
    for (uint32_t i = 0; i < list->n && st == KILN_OK; i++)
        st = put_line(&list->products[i], &text, err);
    if (st == KILN_OK) st = store_text(m, &text, err);
    kiln_buffer_release(&text);
    return st;
}
