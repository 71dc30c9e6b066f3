/* picture -- which format a file is, and how a written one reaches its place.
 *
 * A format is known by its first bytes, because names can be wrong. A picture is written beside its
 * name and renamed when it is complete and on disk, so that no reader ever sees half of one.
 */
#include "stages/image/image_internal.h"
#include "stages/image/webp_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 12 };

typedef struct {
    const char *magic;
    size_t length, at; /* of the magic in the file, within its first HEAD_BYTES */
    kiln_status (*read)(const char *path, int size_only, kiln_picture *out, kiln_error *err);
} picture_reader;

/* A new format: its file with a read function, which image_internal.h declares, its row here, a
 * harness with seeds (tests/fuzz/fuzz.def), without which nothing hostile is tried. */
static const picture_reader readers[] = {
    {"\x89PNG\r\n\x1a\n", 8, 0, kiln_png_read},
    {"\xff\xd8\xff", 3, 0, kiln_jpeg_read},
    {"\x93NUMPY", 6, 0, kiln_npy_read},
    {"WEBP", 4, 8, kiln_webp_read}, /* RIFF, its length */
    {"II*\0", 4, 0, kiln_tiff_read},
    {"MM\0*", 4, 0, kiln_tiff_read},
    {"II+\0", 4, 0, kiln_tiff_read}, /* of more than 4 GiB */
    {"MM\0+", 4, 0, kiln_tiff_read},
};

void kiln_picture_release(kiln_picture *p)
{
    free(p->data);
    *p = (kiln_picture){0};
}

kiln_status kiln_picture_check(const char *path, uint64_t width, uint64_t height, kiln_error *err)
{
    if (width == 0 || height == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' has no pixels", path);
    if (width > KILN_PICTURE_AXIS_MAX || height > KILN_PICTURE_AXIS_MAX ||
        width * height > KILN_PICTURE_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' claims %llu x %llu pixels; at most %u on an axis and 2^30 in total are read",
            path, (unsigned long long)width, (unsigned long long)height, KILN_PICTURE_AXIS_MAX);
    return KILN_OK;
}

kiln_status kiln_picture_open(const char *path, FILE **f, uint64_t *size, kiln_error *err)
{
    int fd = -1;
    struct stat s;
    KILN_TRY(kiln_file_open(path, &fd, err));
    if (fstat(fd, &s) != 0 || !(*f = fdopen(fd, "rb"))) {
        kiln_status st = kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", path, strerror(errno));
        close(fd);
        return st;
    }
    *size = (uint64_t)s.st_size;
    return KILN_OK;
}

static kiln_status find_reader(const char *path, const picture_reader **out, kiln_error *err)
{
    FILE *f = NULL;
    uint64_t size;
    char head[HEAD_BYTES] = {0};
    KILN_TRY(kiln_picture_open(path, &f, &size, err));
    size_t got = fread(head, 1, sizeof head, f);
    int failed = ferror(f);
    fclose(f); /* opened for reading: nothing to lose */
    if (failed) return kiln_fail(err, KILN_E_IO, "cannot read '%s'", path);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (got >= readers[i].at + readers[i].length &&
            memcmp(head + readers[i].at, readers[i].magic, readers[i].length) == 0) {
            *out = &readers[i];
            return KILN_OK;
        }
    return kiln_fail(err, KILN_E_INPUT,
                     size == 0 ? "'%s' is empty, so it is not a picture"
                               : "'%s' is not a picture of a known kind; convert it to PNG or JPEG",
                     path);
}

kiln_status kiln_picture_read(const char *path, kiln_picture *out, kiln_error *err)
{
    const picture_reader *f = NULL;
    *out = (kiln_picture){0};
    out->orientation = 1;
    KILN_TRY(find_reader(path, &f, err));
    kiln_status st = f->read(path, 0, out, err);
    if (st != KILN_OK) kiln_picture_release(out);
    return st;
}

kiln_status kiln_picture_look(const char *path, uint32_t *width, uint32_t *height,
                              uint8_t *orientation, kiln_error *err)
{
    const picture_reader *f = NULL;
    kiln_picture p = {.orientation = 1};
    KILN_TRY(find_reader(path, &f, err));
    kiln_status st = f->read(path, 1, &p, err);
    *width = p.width;
    *height = p.height;
    *orientation = p.orientation;
    kiln_picture_release(&p);
    return st;
}

kiln_status kiln_picture_size(const char *path, uint32_t *width, uint32_t *height, kiln_error *err)
{
    uint8_t orientation;
    return kiln_picture_look(path, width, height, &orientation, err);
}

/* Of formats with one suffix the first is meant, of suffixes of one format the first is written. */
static const struct {
    const char *suffix;
    kiln_picture_format format;
} by_suffix[] = {
#define X(id, name, suffix, what) {suffix, KILN_##id},
    KILN_PICTURE_FORMAT_MAP(X)
#undef X
        {"jpg", KILN_JPEG},
    {"jpeg", KILN_JPEG},
    {"webp", KILN_WEBP},
};
enum { N_SUFFIXES = sizeof by_suffix / sizeof *by_suffix };

const char *kiln_picture_suffix(kiln_picture_format f)
{
    int i = 0;
    while (by_suffix[i].format != f) i++;
    return by_suffix[i].suffix;
}

/* N_SUFFIXES: none. */
static int find_suffix(const char *suffix)
{
    int i = 0;
    while (i < N_SUFFIXES && strcasecmp(suffix, by_suffix[i].suffix) != 0) i++;
    return i;
}

const char *kiln_picture_suffix_at(unsigned i)
{
    for (int k = 0; k < N_SUFFIXES; k++)
        if (find_suffix(by_suffix[k].suffix) == k && i-- == 0) return by_suffix[k].suffix;
    return NULL;
}

kiln_picture_format kiln_picture_format_of(const char *path)
{
    const int i = find_suffix(kiln_path_suffix(path));
    return i == N_SUFFIXES ? KILN_PNG8 : by_suffix[i].format;
}

bool kiln_picture_suffix_is_written(const char *path)
{
    return find_suffix(kiln_path_suffix(path)) != N_SUFFIXES;
}

kiln_status kiln_picture_format_check(kiln_picture_format f, const char *path, uint32_t width,
                                      uint32_t height, kiln_error *err)
{
    const uint32_t most = f == KILN_JPEG   ? KILN_JPEG_SIDE_MAX
                          : f == KILN_WEBP ? KILN_WEBP_SIDE_MAX
                                           : UINT32_MAX;
    if (width <= most && height <= most) return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "'%s' would have %ux%u pixels, and a side of a .%s has at most %u; name a .png", path,
        width, height, kiln_picture_suffix(f), most);
}

/* Flushes to the disk and closes; the first failure is reported. */
static kiln_status close_written(FILE *f, const char *path, kiln_status st, kiln_error *err)
{
    if (st == KILN_OK && (fflush(f) != 0 || fsync(fileno(f)) != 0))
        st = kiln_file_write_failed(path, errno, err);
    if (fclose(f) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

static kiln_status write_format(const kiln_picture_job *job, FILE *f, kiln_error *err)
{
    switch (job->format) {
    case KILN_NPY:
        return kiln_npy_write(job, f, err);
    case KILN_JPEG:
        return kiln_jpeg_write(job, f, err);
    case KILN_WEBP:
        return kiln_webp_write(job, f, err);
    case KILN_PNG8:
    case KILN_PNG16:
    case KILN_N_PICTURE_FORMATS:
        break;
    }
    return kiln_png_write(job, f, err);
}

kiln_status kiln_picture_write(const kiln_picture_job *job, kiln_error *err)
{
    static const kiln_product_seen nothing = {0};
    char tmp[KILN_PATH_MAX];
    int fd;
    const bool colours_only = job->format == KILN_JPEG || job->format == KILN_WEBP;
    if ((job->channels != 3 && (colours_only || (job->channels != 1 && job->channels != 4))) ||
        job->step < job->channels)
        return kiln_fail(err, KILN_E_BUG, "cannot write '%s': %u channels of %u", job->path,
                         job->channels, job->step);
    KILN_TRY(kiln_picture_check(job->path, job->width, job->height, err));
    KILN_TRY(kiln_picture_format_check(job->format, job->path, job->width, job->height, err));
    KILN_TRY(kiln_file_replaceable(job->path, err));
    KILN_TRY(kiln_make_parents(job->path, err));
    KILN_TRY(kiln_temporary_create(job->path, tmp, &fd, err));
    FILE *f = fdopen(fd, "wb");
    if (!f) {
        const kiln_status st =
            kiln_fail(err, KILN_E_IO, "cannot create '%s': %s", tmp, strerror(errno));
        (void)close(fd);
        (void)unlink(tmp);
        return st;
    }
    kiln_status st = write_format(job, f, err);
    st = close_written(f, job->path, st, err);
    if (st == KILN_OK) st = kiln_product_put(tmp, job->path, job->seen ? job->seen : &nothing, err);
    if (st != KILN_OK) unlink(tmp); /* best effort: the failure is already reported */
    return st;
}

uint64_t kiln_picture_write_bytes(const kiln_picture_job *job)
{
    switch (job->format) {
    case KILN_NPY:
        return (uint64_t)job->width * job->channels * sizeof(float);
    case KILN_JPEG:
        return kiln_jpeg_write_bytes(job);
    case KILN_WEBP:
        return kiln_webp_write_bytes(job);
    case KILN_PNG8:
    case KILN_PNG16:
    case KILN_N_PICTURE_FORMATS:
        break;
    }
    return kiln_png_write_bytes(job);
}
