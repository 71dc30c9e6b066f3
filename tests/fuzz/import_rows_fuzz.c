/* import_rows_fuzz -- every reader of rows, with the sanitiser behind it, on any bytes: must not crash, hang or read
 * outside; what reads once must read again to the same bytes, block by block.
 *
 *   clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fopenmp -I. tests/fuzz/import_rows_fuzz.c \
 *     stages/import/{ply,ply_header,ply_columns,text_lines,mip_filter,colmap_points,readers,rows,scan,origin}.c \
 *     $(find base schema -name '*.c') -lsqlite3 -lzstd -lxxhash -ljansson -lm -o /tmp/fuzz
 *   /tmp/fuzz -max_len=20000 -rss_limit_mb=512 -timeout=5 CORPUS tests/data/ply
 *
 * The first byte chooses the name under which the rest is read: *.ply, points3D.bin or points3D.txt. */
#include "tests/unit/import_source.h"

#include <sys/stat.h>
#include <sys/types.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *write_input(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"fuzz.ply", "points3D.bin", "points3D.txt"};
    static char path[256];
    const char *tmp = getenv("KILN_TMP");
    (void)snprintf(path, sizeof path, "%s/kiln-fuzz-%d", tmp ? tmp : "/tmp", (int)getpid());
    (void)mkdir(path, 0700); /* there from the second input on */
    size_t at = strlen(path);
    (void)snprintf(path + at, sizeof path - at, "/%s", names[data[0] % 3]);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data + 1, 1, size - 1, f) != size - 1 || fclose(f) != 0) abort();
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    import_source a, b;
    kiln_error err = {0}, again = {0};
    if (size == 0) return 0;
    const char *path = write_input(data, size);
    kiln_status st = import_source_read(path, &a, &err);
    if (st != KILN_OK && !err.msg[0]) abort(); /* a refusal has a sentence */
    if (import_source_read(path, &b, &again) != st) abort();
    if (st == KILN_OK) {
        if (a.n != b.n || a.floats != b.floats || memcmp(a.rows, b.rows, a.n * a.floats * sizeof(float)) != 0) abort();
        for (uint64_t i = 0; i < a.n * a.floats; i++)
            if (!(a.rows[i] - a.rows[i] == 0)) abort(); /* nothing that is not finite comes through */
    }
    import_source_free(&a);
    import_source_free(&b);
    unlink(path);
    return 0;
}
