/* png_level6 -- how large PNG files are beside what libpng makes of the same pixels as most
 * programs call it: zlib's level 6, filters chosen line by line.
 *
 *   png_level6 FILE...     prints "BYTES BYTES_AT_LEVEL_6" for all of them together
 *
 * 8-bit pictures: libpng's simplified interface reads and writes them, and its defaults are what is
 * compared with. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One file's two sizes are added. false: a sentence was printed. */
static int add_sizes(const char *path, unsigned long long *have, unsigned long long *level6)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    png_alloc_size_t size = 0;
    void *pixels = NULL;
    struct stat info;
    int ok = stat(path, &info) == 0 && png_image_begin_read_from_file(&image, path) != 0;
    if (ok) pixels = malloc(PNG_IMAGE_SIZE(image));
    ok = ok && pixels && png_image_finish_read(&image, NULL, pixels, 0, NULL) != 0 &&
         png_image_write_get_memory_size(image, size, 0, pixels, 0, NULL) != 0;
    if (ok) {
        *have += (unsigned long long)info.st_size;
        *level6 += size;
    } else
        fprintf(stderr, "png_level6: cannot read '%s': %s\n", path, image.message);
    free(pixels);
    png_image_free(&image);
    return ok;
}

int main(int argc, char **argv)
{
    unsigned long long have = 0, level6 = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: png_level6 FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (!add_sizes(argv[i], &have, &level6)) return 74;
    printf("%llu %llu\n", have, level6);
    return 0;
}
