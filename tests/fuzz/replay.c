/* replay -- runs every seed of tests/data/fuzz through its harness, without a fuzzer: what was
 * found once is looked for each time.
 *
 *   replay FOLDER [NAME...]   the seeds in FOLDER/NAME of all harnesses, or of these; fails where a
 *                             harness has none
 *   replay --list             the names of the harnesses
 *
 * Inputs are copied to memory of their exact size, so that a sanitiser sees a read behind the
 * end. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- allocations ----------------------------------------------------------------------------- */
/* What libFuzzer's -malloc_limit_mb does: no seed justifies this much at once, so it comes from a
 * number in the file. Libraries are watched too, because they take these functions instead of
 * libc's; a sanitizer has its own. */
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__
enum { ALLOCATION_MAX = 128 << 20 };
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    HOLDS(bytes <= ALLOCATION_MAX);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    HOLDS(bytes == 0 || n <= ALLOCATION_MAX / bytes);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    HOLDS(bytes <= ALLOCATION_MAX);
    return __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    HOLDS(bytes <= ALLOCATION_MAX);
    return __libc_memalign(alignment, bytes);
}
#endif

/* ---- seeds ----------------------------------------------------------------------------------- */

typedef struct {
    const char *folder;
    int n_names;
    char **names;
    unsigned long seeds, harnesses, faults;
} replay;

static uint8_t *read_seed(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) return NULL;
    const long end = ftell(f);
    rewind(f);
    uint8_t *data = end >= 0 ? malloc((size_t)end) : NULL;
    *size = data ? fread(data, 1, (size_t)end, f) : 0;
    fclose(f);
    return data;
}

static void run_seed(const kiln_fuzz_row *row, const char *path)
{
    size_t size = 0;
    uint8_t *data = read_seed(path, &size);
    HOLDS(data || size == 0);
    row->run(row->argument, data, size);
    free(data);
}

static unsigned long run_folder(const kiln_fuzz_row *row, const char *folder)
{
    char path[1200];
    unsigned long n = 0;
    struct dirent **entries = NULL;
    const int all = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < all; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            fprintf(stderr, "%s\n", path); /* the last line names the seed that ended the process */
            run_seed(row, path);
            n++;
        }
        free(entries[i]);
    }
    free(entries);
    return n;
}

static bool is_meant(const replay *r, const char *name)
{
    for (int i = 0; i < r->n_names; i++)
        if (strcmp(r->names[i], name) == 0) return true;
    return r->n_names == 0;
}

static bool run_row(void *context, const kiln_fuzz_row *row)
{
    replay *r = context;
    char folder[900];
    if (!is_meant(r, row->name)) return true;
    snprintf(folder, sizeof folder, "%s/%s", r->folder, row->name);
    const unsigned long n = run_folder(row, folder);
    r->harnesses++;
    r->seeds += n;
    if (n == 0) {
        printf("the harness '%s' has no seeds: put some into %s\n", row->name, folder);
        r->faults++;
    }
    return true;
}

static bool print_name(void *context, const kiln_fuzz_row *row)
{
    (void)context;
    puts(row->name);
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        kiln_fuzz_each(print_name, NULL);
        return 0;
    }
    if (argc < 2) {
        fputs("usage: replay FOLDER [NAME...]\n       replay --list\n", stderr);
        return 2;
    }
    replay r = {.folder = argv[1], .n_names = argc - 2, .names = argv + 2};
    kiln_fuzz_each(run_row, &r);
    printf("%lu seeds of %lu harnesses replayed\n", r.seeds, r.harnesses);
    return r.faults || !r.seeds;
}
