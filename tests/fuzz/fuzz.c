/* fuzz -- the table of harnesses, and libFuzzer's two entries. KILN_FUZZ names the harness that a
 * process runs; KILN_FUZZ=list prints the table, "NAME LONGEST" a line, and ends. */
#include "tests/fuzz/fuzz.h"

#include "stages/formats/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READER_MAX_LEN = 8192 }; /* a .ksplat of two sections has 6144 bytes of headers */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const kiln_fuzz_row rows[] = {
#define FUZZ(name, function, argument, max_len) {name, function, argument, max_len},
#include "tests/fuzz/fuzz.def"
#undef FUZZ
};

void kiln_fuzz_each(bool (*each)(void *context, const kiln_fuzz_row *row), void *context)
{
    char name[64];
    for (const kiln_reader *const *r = kiln_readers; *r; r++) {
        snprintf(name, sizeof name, "reader-%s", (*r)->name);
        const kiln_fuzz_row row = {
            .name = name, .run = kiln_fuzz_reader, .argument = *r, .max_len = READER_MAX_LEN};
        if (!each(context, &row)) return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!each(context, &rows[i])) return;
}

typedef struct {
    const char *name;
    kiln_fuzz_row row;
    bool found;
} wanted;

static bool is_wanted(void *context, const kiln_fuzz_row *row)
{
    wanted *w = context;
    w->found = strcmp(w->name, row->name) == 0;
    w->row = *row;
    return !w->found;
}

bool kiln_fuzz_find(const char *name, kiln_fuzz_row *out)
{
    wanted w = {.name = name};
    kiln_fuzz_each(is_wanted, &w);
    *out = w.row;
    out->name = name; /* a reader's name lives as long as the call */
    return w.found;
}

void kiln_fuzz_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

void kiln_fuzz_refusal(kiln_status st, const kiln_error *err)
{
    const bool right =
        st == KILN_E_INPUT || st == KILN_E_IO || st == KILN_E_USAGE || st == KILN_E_STALE;
    if (!right) fprintf(stderr, "status %d: %s\n", (int)st, err->msg);
    HOLDS(right);
    HOLDS(err->msg[0] && strlen(err->msg) < sizeof err->msg);
}

/* ---- libFuzzer ------------------------------------------------------------------------------- */
static kiln_fuzz_row chosen;

static bool print_row(void *context, const kiln_fuzz_row *row)
{
    (void)context;
    printf("%s %u\n", row->name, row->max_len);
    return true;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("KILN_FUZZ");
    (void)argc, (void)argv;
    if (name && strcmp(name, "list") == 0) {
        kiln_fuzz_each(print_row, NULL);
        exit(0);
    }
    if (name && kiln_fuzz_find(name, &chosen)) return 0;
    fprintf(stderr,
            "fuzz: KILN_FUZZ names the harness, not '%s'; KILN_FUZZ=list prints their names\n",
            name ? name : "");
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chosen.run(chosen.argument, data, size);
    return 0;
}
