/* video_frame -- pictures as a stream of frames of one size, as encoders of video read them.
 *
 *   Y4M   YUV4MPEG2: a header line, then each frame behind the line FRAME: 8 bits, 4:2:0 with
 *         chroma in the middle of four pixels (C420jpeg), limited range
 *   RGB   8 bits each of red, green and blue, row by row, nothing else: ffmpeg's rawvideo rgb24
 *
 * Bytes are those of kernels/pixel_bytes, which a GPU that has drawn the picture makes itself. Pure
 * functions, for any thread. Source: the manual page yuv4mpeg(5) of mjpegtools. */
#ifndef KILN_STAGES_RENDER_VIDEO_FRAME_H
#define KILN_STAGES_RENDER_VIDEO_FRAME_H

#include "base/status.h"
#include "kernels/pixel_bytes/pixel_bytes.h"

#include <stddef.h>
#include <stdint.h>

typedef enum { KILN_VIDEO_NONE, KILN_VIDEO_Y4M, KILN_VIDEO_RGB } kiln_video_kind;

/* What a worker makes of a picture: a frame of this size, of its upper left corner, in the first
 * bytes of the file `path`. */
typedef struct {
    kiln_video_kind kind;
    uint32_t width, height;
    char path[64];
} kiln_video_frame;

/* A frame rate as a fraction. */
typedef struct {
    uint32_t num, den;
} kiln_video_rate;

/* Returns the fraction for frames a second: N, N * 1000 / 1001 (23.976, 29.97, 59.94) or
 * thousandths. fps: 0.001 to 1000. */
kiln_video_rate kiln_video_rate_of(double fps);
/* Returns the line in front of each frame; "": there is none. */
const char *kiln_video_frame_line(kiln_video_kind kind);
/* Returns the bytes of a frame, with the line in front of it. */
size_t kiln_video_frame_bytes(kiln_video_kind kind, uint32_t width, uint32_t height);
/* Writes the text in front of the first frame, which may be empty, and returns its length, below
 * 128. */
size_t kiln_video_head(kiln_video_kind kind, uint32_t width, uint32_t height, kiln_video_rate rate,
                       char out[128]);
/* Returns the arguments of pixel_bytes, without its arrays, for what stands behind that line. The
 * picture's rows have `stride` pixels. */
kiln_pixel_bytes_args kiln_video_frame_args(kiln_video_kind kind, uint32_t stride, uint32_t width,
                                            uint32_t height);
/* Writes a frame, but to memory: out[kiln_video_frame_bytes]. The rows of rgba have `stride` pixels
 * of 4 floats. Fails as pixel_bytes. */
kiln_status kiln_video_frame_write(const kiln_video_frame *f, const float *rgba, uint32_t stride,
                                   unsigned threads, unsigned char *out,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
