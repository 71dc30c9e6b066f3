/* fuzz_picture -- a photo, by content: PNG, JPEG, WebP, TIFF or .npy. What is decoded is decoded
 * again to the same, its size is what the header said, and PNG and .npy are written and read back
 * to the same pixels. */
#include "tests/fuzz/fuzz.h"

#include "stages/image/image.h"
#include "stages/image/image_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* beyond that only the compressor's time grows */
enum { DECODED_PIXELS = 1 << 22, WRITTEN_PIXELS = 4096 };

static size_t values_of(const kiln_picture *p)
{
    return (size_t)p->width * p->height * p->channels;
}

static bool same(const kiln_picture *a, const kiln_picture *b)
{
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           memcmp(a->data, b->data, values_of(a) * sizeof(float)) == 0;
}

/* Into a file of its own, because the other is the input. */
static void write_again(const kiln_picture *p)
{
    static int fd = -1;
    char path[40];
    kiln_error err = {0};
    kiln_picture again;
    if (fd < 0) fd = memfd_create("written", MFD_CLOEXEC);
    HOLDS(fd >= 0 && ftruncate(fd, 0) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const kiln_picture_job job = {.path = path,
                                  .format = p->depth_bits == 32   ? KILN_NPY
                                            : p->depth_bits == 16 ? KILN_PNG16
                                                                  : KILN_PNG8,
                                  .width = p->width,
                                  .height = p->height,
                                  .step = p->channels,
                                  .channels = p->channels,
                                  .data = p->data};
    FILE *f = fopen(path, "wb");
    HOLDS(f);
    HOLDS((job.format == KILN_NPY ? kiln_npy_write(&job, f, &err)
                                  : kiln_png_write(&job, f, &err)) == KILN_OK);
    HOLDS(fclose(f) == 0);
    HOLDS(kiln_picture_read(path, &again, &err) == KILN_OK);
    HOLDS(same(p, &again));
    kiln_picture_release(&again);
}

static void check_values(const kiln_picture *p)
{
    HOLDS(p->data && p->width && p->height && p->channels >= 1 && p->channels <= 4);
    for (size_t i = 0; p->depth_bits <= 16 && i < values_of(p); i++)
        HOLDS(p->data[i] >= 0 && p->data[i] <= 1);
}

void kiln_fuzz_picture(const void *argument, const uint8_t *data, size_t size)
{
    const char *path = kiln_fuzz_path(data, size);
    /* of values that a PNG holds */
    const bool exact = strcmp(argument, "jpeg") != 0 && strcmp(argument, "tiff") != 0;
    uint32_t width = 0, height = 0;
    kiln_picture p = {0}, again = {0};
    kiln_error err = {0}, why = {0};
    const kiln_status sized = kiln_picture_size(path, &width, &height, &err);
    if (sized != KILN_OK) kiln_fuzz_refusal(sized, &err);
    /* a few bytes of WebP or zstd may mean that */
    if (sized == KILN_OK && (uint64_t)width * height > DECODED_PIXELS) return;
    const kiln_status st = kiln_picture_read(path, &p, &err);
    HOLDS(kiln_picture_read(path, &again, &why) == st);
    if (st != KILN_OK) {
        kiln_fuzz_refusal(st, &err);
        HOLDS(!p.data && !again.data);
        return;
    }
    HOLDS(sized == KILN_OK && width == p.width && height == p.height);
    check_values(&p);
    HOLDS(same(&p, &again));
    if (exact && p.channels != 2 && values_of(&p) <= WRITTEN_PIXELS) write_again(&p);
    kiln_picture_release(&p);
    kiln_picture_release(&again);
}
