/* image_internal -- what the files of stages/image share: one pair of functions a format, and the way a picture
 * reaches its place on disk. */
#ifndef KILN_STAGES_IMAGE_INTERNAL_H
#define KILN_STAGES_IMAGE_INTERNAL_H

#include "base/file.h"
#include "stages/image/image.h"

#include <stdio.h>

#define KILN_PICTURE_AXIS_MAX ((uint32_t)1 << 20)

/* KILN_E_INPUT when an axis is 0, longer than KILN_PICTURE_AXIS_MAX, or the product above KILN_PICTURE_MAX. */
kiln_status kiln_picture_check(const char *path, uint64_t width, uint64_t height, kiln_error *err) KILN_MUST_CHECK;
/* Opens for reading as a stream and says how long the file is. */
kiln_status kiln_picture_open(const char *path, FILE **f, uint64_t *size, kiln_error *err) KILN_MUST_CHECK;

/* A reader fills *out (data owned by the caller, also after a failure). size_only: width, height and channels alone. */
kiln_status kiln_png_read(const char *path, int size_only, kiln_picture *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_jpeg_read(const char *path, int size_only, kiln_picture *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_npy_read(const char *path, int size_only, kiln_picture *out, kiln_error *err) KILN_MUST_CHECK;

/* What is to be written: the arguments of kiln_picture_write. */
typedef struct {
    const char *path;
    const float *data;
    uint32_t width, height, step, channels, depth_bits;
    const kiln_picture_text *text;
    uint32_t n_text;
} kiln_picture_job;
kiln_status kiln_png_write(const kiln_picture_job *job, FILE *f, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_npy_write(const kiln_picture_job *job, FILE *f, kiln_error *err) KILN_MUST_CHECK;

#endif
