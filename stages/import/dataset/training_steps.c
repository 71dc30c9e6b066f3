/* training_steps -- see the header. */
#include "stages/import/dataset/training_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 18 }; /* of a step; longer ones are no number of a step */

static const char digits[] = "0123456789";

static bool is_border(char c) { return c == '_' || c == '-' || c == '.'; }

/* The last run of digits of name[n] that stands alone. */
static bool find_run(const char *name, size_t n, size_t *at, size_t *length)
{
    bool found = false;
    for (size_t i = 0; i < n;) {
        const size_t run = strspn(name + i, digits) < n - i ? strspn(name + i, digits) : n - i;
        if (run > 0 && run <= DIGITS_MAX && (i == 0 || is_border(name[i - 1])) &&
            (i + run == n || is_border(name[i + run]))) {
            *at = i;
            *length = run;
            found = true;
        }
        i += run > 0 ? run : 1;
    }
    return found;
}

/* "iteration_30000", "step-7000": what trainers call the folder of a step. */
static bool folder_step(const char *name, size_t n, uint64_t *step)
{
    static const char *const words[] = {"iteration", "step", "iter"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t word = strlen(words[i]);
        if (n < word + 2 || strncmp(name, words[i], word) != 0 || !is_border(name[word])) continue;
        if (n - word - 1 > DIGITS_MAX || strspn(name + word + 1, digits) < n - word - 1) continue;
        *step = strtoull(name + word + 1, NULL, 10);
        return true;
    }
    return false;
}

/* Appends what there is room for. */
static void put_step_pattern(kiln_step *out, const char *text, size_t n)
{
    const size_t used = strlen(out->pattern), capacity = sizeof out->pattern - used;
    (void)snprintf(out->pattern + used, capacity, "%.*s", (int)n, text);
}

static void put_folders(kiln_step *out, const char *path, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t run = strspn(path + i, digits);
        if (run > 0) put_step_pattern(out, "#", 1);
        if (run == 0) {
            run = strcspn(path + i, digits) < n - i ? strcspn(path + i, digits) : n - i;
            put_step_pattern(out, path + i, run);
        }
        i += run;
    }
}

void kiln_step_of(const char *path, kiln_step *out)
{
    const char *name = kiln_path_base(path), *suffix = kiln_path_suffix(path);
    const size_t n = *suffix ? (size_t)(suffix - 1 - name) : strlen(name),
                 folders = (size_t)(name - path);
    size_t at = 0, length = 0, above = folders ? folders - 1 : 0;
    out->pattern[0] = '\0';
    out->step = 0;
    put_folders(out, path, folders);
    out->has_step = find_run(name, n, &at, &length);
    if (out->has_step) {
        out->step = strtoull(name + at, NULL, 10);
        put_step_pattern(out, name, at);
        put_step_pattern(out, "#", 1);
        put_step_pattern(out, name + at + length, strlen(name + at + length));
        return;
    }
    while (above > 0 && path[above - 1] != '/') above--;
    if (folders) out->has_step = folder_step(path + above, folders - 1 - above, &out->step);
    put_step_pattern(out, name, strlen(name));
}
