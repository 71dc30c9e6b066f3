/* chunk_choice -- see the header. A pattern is matched with one remembered star of each kind: when
 * what follows does not fit, the last '*' takes one more character, and where it may not, the last
 * '**' does. A later star of a kind makes the earlier one's choice final, so the time is at most
 * the product of four lengths, whatever a stranger's pattern is. */
#include "stages/select/chunk_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM_MAX = 256 };

static bool is_within(const char *set, const char *end, char c)
{
    for (; set < end; set++) {
        const char first = *set;
        const char last = set + 2 < end && set[1] == '-' ? set[2] : first;
        if (set + 2 < end && set[1] == '-') set += 2;
        if (c >= first && c <= last) return true;
    }
    return false;
}

/* Does the pattern's first element, which is no star, fit c? *next: behind it. */
static bool element_fits(const char *pattern, char c, const char **next)
{
    const char *set = pattern + 1;
    const bool other = *pattern == '[' && (*set == '!' || *set == '^');
    if (*pattern == '[') {
        set += other;
        const char *end = *set ? strchr(set + 1, ']') : NULL;
        if (end) {
            *next = end + 1;
            return c != '/' && is_within(set, end, c) != other;
        }
    }
    *next = pattern + 1;
    if (*pattern == '?') return c != '/';
    if (*pattern == '\\' && pattern[1]) {
        *next = pattern + 2;
        return pattern[1] == c;
    }
    return *pattern == c;
}

bool kiln_pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *star_at = NULL, *deep = NULL, *deep_at = NULL, *next;
    for (;;) {
        if (*pattern == '*') {
            const size_t n = strspn(pattern, "*");
            pattern += n;
            if (n > 1) {
                deep = pattern;
                deep_at = name;
                star = NULL;
            } else {
                star = pattern;
                star_at = name;
            }
            continue;
        }
        if (!*pattern && !*name) return true;
        if (*pattern && *name && element_fits(pattern, *name, &next)) {
            pattern = next;
            name++;
            continue;
        }
        if (star && *star_at && *star_at != '/') {
            pattern = star;
            name = ++star_at;
        } else if (deep && *deep_at) {
            pattern = deep;
            name = ++deep_at;
            star = NULL;
        } else {
            return false;
        }
    }
}

/* "#7" -> 7; false: it is a name or a pattern. */
static bool read_index(const char *item, uint64_t *index)
{
    const size_t n = strlen(item);
    if (item[0] != '#' || n < 2 || n > 11 || strspn(item + 1, "0123456789") != n - 1) return false;
    *index = strtoull(item + 1, NULL, 10);
    return true;
}

/* Can a pattern that begins like this fit a name that begins with '/'? */
static bool may_begin_name(const char *item)
{
    if (item[0] == '\\' && item[1]) return item[1] == '/';
    return item[0] == '/' || item[0] == '*';
}

kiln_status kiln_chunks_check(const char *text, bool of_chunks, kiln_error *err)
{
    char item[ITEM_MAX];
    uint64_t index;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        (void)snprintf(item, sizeof item, "%.*s", n < sizeof item ? (int)n : 0, at);
        if (!*item || (of_chunks && !read_index(item, &index) && !may_begin_name(item)))
            return kiln_fail(err, KILN_E_USAGE,
                             "--chunks takes names such as /0/3, #INDEX, and patterns such as "
                             "/0/3**, separated by commas, "
                             "not '%.*s'",
                             n < 200 ? (int)n : 200, at);
        at += n;
        if (!*at) return KILN_OK;
    }
}

static kiln_status choose_item(const kiln_layer *const layers[], uint32_t n_layers,
                               const char *item, uint8_t *chosen, kiln_error *err)
{
    const kiln_layer *first = layers[0];
    uint64_t index = 0, n = 0;
    const bool by_place = read_index(item, &index);
    for (uint32_t l = 0; l < n_layers; chosen += layers[l++]->n_chunks)
        for (uint32_t c = 0; c < layers[l]->n_chunks; c++) {
            const char *name = layers[l]->chunks[c].name;
            const bool meant =
                by_place ? c == index : strcmp(name, item) == 0 || kiln_pattern_matches(item, name);
            if (!meant) continue;
            chosen[c] = 1;
            n++;
        }
    if (n) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--chunks: the layer '%s' has no chunk '%s'; it has %u, from '%s' to '%s'",
                     first->kind, item, first->n_chunks,
                     first->n_chunks ? first->chunks[0].name : "",
                     first->n_chunks ? first->chunks[first->n_chunks - 1].name : "");
}

kiln_status kiln_chunks_choose(const kiln_layer *const layers[], uint32_t n_layers,
                               const char *text, uint8_t *chosen, kiln_error *err)
{
    char item[ITEM_MAX];
    if (!text)
        for (uint32_t l = 0; l < n_layers; chosen += layers[l++]->n_chunks)
            memset(chosen, 1, layers[l]->n_chunks);
    for (const char *at = text; at; at = *at ? at + 1 : NULL) {
        const size_t n = strcspn(at, ",");
        /* too long for any name: no chunk has it */
        (void)snprintf(item, sizeof item, "%.*s", n < sizeof item ? (int)n : 0, at);
        KILN_TRY(choose_item(layers, n_layers, item, chosen, err));
        at += n;
    }
    return KILN_OK;
}
