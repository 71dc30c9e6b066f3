/* image_internal -- what the files of stages/image share: one pair of functions a format, and the
 * way a picture reaches its place on disk. */
#ifndef KILN_STAGES_IMAGE_INTERNAL_H
#define KILN_STAGES_IMAGE_INTERNAL_H

#include "base/file.h"
#include "stages/image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define KILN_PICTURE_AXIS_MAX ((uint32_t)1 << 20)

/* KILN_E_INPUT when an axis is 0, longer than KILN_PICTURE_AXIS_MAX, or the product above
 * KILN_PICTURE_MAX. */
kiln_status kiln_picture_check(const char *path, uint64_t width, uint64_t height,
                               kiln_error *err) KILN_MUST_CHECK;
/* Opens for reading as a stream and says how long the file is. */
kiln_status kiln_picture_open(const char *path, FILE **f, uint64_t *size,
                              kiln_error *err) KILN_MUST_CHECK;

/* The orientation that an EXIF block names, with or without "Exif" before it; 1 where it names
 * none. */
uint8_t kiln_exif_orientation(const unsigned char *block, size_t size);

/* A reader fills *out (data owned by the caller, also after a failure). size_only: width, height
 * and channels alone. */
kiln_status kiln_png_read(const char *path, int size_only, kiln_picture *out,
                          kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_jpeg_read(const char *path, int size_only, kiln_picture *out,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_webp_read(const char *path, int size_only, kiln_picture *out,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_tiff_read(const char *path, int size_only, kiln_picture *out,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_npy_read(const char *path, int size_only, kiln_picture *out,
                          kiln_error *err) KILN_MUST_CHECK;

kiln_status kiln_png_write(const kiln_picture_job *job, FILE *f, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_png_write_bytes(const kiln_picture_job *job); /* as kiln_picture_write_bytes */
/* A block of a PNG's stream. Without those before it, it refers to none of their bytes; blocks one
 * behind the other, the last one with `last`, are one raw deflate stream. */
typedef struct {
    const unsigned char *rows; /* [plain] filtered bytes, at least 1 */
    size_t plain;
    bool last;
    unsigned char *out; /* [capacity], at least plain + plain / 64 + 1000 */
    size_t capacity;
} kiln_png_block;
/* The same bytes wherever state, rows and out are, and whatever the state held before. state: of
 * kiln_png_deflate_state_bytes, as malloc aligns it, one thread at a time. false: something is
 * wrong with ISA-L or the room is too small. */
bool kiln_png_deflate(void *state, const kiln_png_block *b, size_t *bytes) KILN_MUST_CHECK;
size_t kiln_png_deflate_state_bytes(void);
enum { KILN_JPEG_SIDE_MAX = 65500 }; /* libjpeg's */
kiln_status kiln_jpeg_write(const kiln_picture_job *job, FILE *f, kiln_error *err) KILN_MUST_CHECK;
/* as kiln_picture_write_bytes; so _webp_ */
uint64_t kiln_jpeg_write_bytes(const kiln_picture_job *job);
kiln_status kiln_webp_write(const kiln_picture_job *job, FILE *f, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_webp_write_bytes(const kiln_picture_job *job);
kiln_status kiln_npy_write(const kiln_picture_job *job, FILE *f, kiln_error *err) KILN_MUST_CHECK;

#endif
