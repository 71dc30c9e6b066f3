/* encoder -- ffmpeg, which makes a video of frames that are written to its standard input.
 *
 * It is found in the PATH and started without a shell (posix_spawnp). What it says on its standard
 * error is passed on line by line, as warnings of ours, so that nothing of it reaches a terminal
 * unquoted. Runs in the parent's main thread. The caller ignores SIGPIPE.
 */
#ifndef KILN_STAGES_RENDER_ENCODER_H
#define KILN_STAGES_RENDER_ENCODER_H

#include "base/file.h"
#include "stages/products/product_place.h"
#include "stages/render/video_frame.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;                /* 0: there is none */
    int in;                   /* where frames are written, not blocking; -1: closed */
    int says;                 /* what it says, not blocking; -1: closed */
    char line[512];           /* of that, the line in progress */
    char last[512];           /* the last whole line; "": it has said nothing */
    char part[KILN_PATH_MAX]; /* the file that it writes, until it is whole */
} kiln_encoder;

/* Checks that the name of the file is one of a video (.mp4, .m4v, .mov, .mkv, .webm).
 * KILN_E_USAGE. */
kiln_status kiln_encoder_check(const char *path, kiln_error *err) KILN_MUST_CHECK;
/* Asks ffmpeg for its version ("5.1.9-0+deb12u1"). KILN_E_IO: there is none, or it is another
 * program. */
kiln_status kiln_encoder_find(char version[128], kiln_error *err) KILN_MUST_CHECK;
/* Starts it on frames of KILN_VIDEO_RGB. path: the video; a file of that name is replaced when the
 * video is whole. KILN_E_IO. */
kiln_status kiln_encoder_start(kiln_encoder *e, const char *path, uint32_t width, uint32_t height,
                               kiln_video_rate rate, kiln_error *err) KILN_MUST_CHECK;
/* Passes on what it has said. */
void kiln_encoder_listen(kiln_encoder *e);
/* Fails with KILN_E_IO and how it ended; for a pipe that nobody reads any more. Waits for its
 * end. */
kiln_status kiln_encoder_ended(kiln_encoder *e, kiln_error *err) KILN_MUST_CHECK;
/* Says whether it has ended, after its input was closed (kiln_encoder_close). Waits up to 200
 * ms. */
bool kiln_encoder_is_done(kiln_encoder *e);
void kiln_encoder_close(kiln_encoder *e);
/* Checks how it ended, and gives the video its name (kiln_product_put). KILN_E_IO, KILN_E_USAGE. */
kiln_status kiln_encoder_finish(kiln_encoder *e, const char *path, const kiln_product_seen *seen,
                                kiln_error *err) KILN_MUST_CHECK;
/* Kills it, where it runs, and removes the file that is not whole. */
void kiln_encoder_release(kiln_encoder *e);

#endif
