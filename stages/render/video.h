/* video -- the pictures of a run as one stream, in order: to ffmpeg, to stdout or into a file.
 *
 * Problem. Workers finish pictures in any order, faster or slower than whoever takes them, and no
 * frame may be lost or kept for long.
 *
 * Layout. A ring of slots in memory that the workers share. The worker of picture i writes its
 * frame into slot i % window. The parent writes slots to the stream in their order, as far as that
 * can be done without waiting; picture i is handed out when picture i - window has been written
 * (kiln_run_takes). So a slow reader holds the workers back, and a slow worker the stream.
 *
 * Everything here runs in the parent's main thread. */
#ifndef KILN_STAGES_RENDER_VIDEO_H
#define KILN_STAGES_RENDER_VIDEO_H

#include "stages/engine/engine.h"
#include "stages/products/product_place.h"
#include "stages/render/encoder.h"
#include "stages/render/render_units.h"

enum { KILN_VIDEO_SLOTS = 16 };

typedef struct {
    const char *path; /* of the video, or of the file; "-": stdout */
    bool encodes;     /* by ffmpeg; else frames are written as they are */
    kiln_video_kind kind;
    kiln_video_rate rate;
    kiln_product_seen seen; /* what stood at `path` */
} kiln_video_options;

typedef struct {
    kiln_video_options o;
    uint32_t width, height;
    uint64_t n_frames, n_written, frame_bytes;
    kiln_shared_memory ring;
    kiln_encoder encoder;
    char version[128]; /* ffmpeg's; "": it is not used */
    int fd;            /* where frames go; -1: nowhere yet */
    int stdout_was;    /* what is printed goes to stderr meanwhile; -1: it does not */
    /* `fd` is asked before each write, and gets no more than a pipe has room for */
    bool waits;
    void (*sigpipe_was)(int);
    /* bytes on their way: the head, or a piece of the frame n_written */
    unsigned char piece[65536];
    size_t n, at;
    uint64_t offset; /* of the frame, behind the piece */
    kiln_unit_taker taker;
} kiln_video;

/* Makes everything ready for n frames: finds ffmpeg, shares the memory, starts the stream. Prints
 * of this process go to stderr from now on if stdout is the stream. *out is set to be closed in all
 * cases. KILN_E_CAP: --ram has no room for two frames. KILN_E_IO.
 */
kiln_status kiln_video_open(kiln_run *r, const kiln_video_options *o, uint32_t width,
                            uint32_t height, uint64_t n, kiln_video *out,
                            kiln_error *err) KILN_MUST_CHECK;
/* Says where the worker of picture i puts its frame. */
kiln_video_frame kiln_video_frame_of(const kiln_video *v, uint64_t i);
/* Has the next list's results written. Until kiln_run_takes(r, NULL). */
void kiln_video_take(kiln_run *r, kiln_video *v);
/* Ends the stream when all frames are written: the file has its name then. KILN_E_IO,
 * KILN_E_INTERRUPTED, KILN_E_TERMINATED, KILN_E_HANGUP. */
kiln_status kiln_video_finish(kiln_run *r, kiln_video *v, kiln_error *err) KILN_MUST_CHECK;
/* Releases everything, and removes a file that is not whole. */
void kiln_video_close(kiln_run *r, kiln_video *v);

#endif
