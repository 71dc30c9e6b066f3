/* video -- see video.h. */
#include "stages/render/video.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_stdout(const kiln_video *v) { return strcmp(v->o.path, "-") == 0; }

/* ---- ready ----------------------------------------------------------------------------------- */
/* As many slots as an eighth of the memory has room for, so that most of it is the workers'. */
static kiln_status share_slots(kiln_run *r, kiln_video *v, kiln_error *err)
{
    enum { PART = 8, LEAST = 2 };
    const uint64_t fit = kiln_run_unit_ram(r) / PART / v->frame_bytes;
    uint64_t slots = fit < LEAST ? LEAST : fit < KILN_VIDEO_SLOTS ? fit : KILN_VIDEO_SLOTS;
    if (slots > v->n_frames) slots = v->n_frames;
    if (!kiln_shared_memory_fits(slots * v->frame_bytes))
        return kiln_fail(err, KILN_E_IO,
                         "the limit on file sizes (ulimit -f), which also limits shared memory, is "
                         "too small for %llu frames",
                         (unsigned long long)slots);
    KILN_TRY(kiln_run_share_memory(r, slots * v->frame_bytes, (uint32_t)slots, &v->ring, err));
    v->taker.window = slots;
    return KILN_OK;
}

/* From now on `fd` is stdout, and what is printed goes to stderr. */
static kiln_status take_stdout(kiln_video *v, kiln_error *err)
{
    struct stat info;
    if (isatty(STDOUT_FILENO))
        return kiln_fail(
            err, KILN_E_USAGE,
            "-o - writes frames to stdout, which is a terminal here; pipe it into an encoder");
    (void)fflush(stdout);
    v->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (v->fd < 0) return kiln_fail(err, KILN_E_IO, "cannot write to stdout: %s", strerror(errno));
    v->stdout_was = v->fd;
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return kiln_fail(err, KILN_E_IO, "cannot print to stderr: %s", strerror(errno));
    v->waits = fstat(v->fd, &info) != 0 || !S_ISREG(info.st_mode);
    return KILN_OK;
}

static kiln_status open_video_file(kiln_video *v, kiln_error *err)
{
    KILN_TRY(kiln_make_parents(v->o.path, err));
    KILN_TRY(kiln_file_replaceable(v->o.path, err));
    kiln_leftovers_drop(v->o.path);
    return kiln_temporary_create(v->o.path, v->encoder.part, &v->fd, err);
}

static kiln_status take_frames(void *context, uint64_t n_done, uint64_t *n_taken, bool *waits,
                               kiln_error *err);

kiln_status kiln_video_open(kiln_run *r, const kiln_video_options *o, uint32_t width,
                            uint32_t height, uint64_t n, kiln_video *out, kiln_error *err)
{
    *out = (kiln_video){
        .o = *o, .width = width, .height = height, .n_frames = n, .fd = -1, .stdout_was = -1};
    out->encoder.in = out->encoder.says = -1;
    out->frame_bytes = kiln_video_frame_bytes(o->kind, width, height);
    out->sigpipe_was = signal(SIGPIPE, SIG_IGN); /* a reader that is gone is an error like others */
    if (o->encodes) KILN_TRY(kiln_encoder_find(out->version, err));
    KILN_TRY(share_slots(r, out, err));
    if (o->encodes) {
        KILN_TRY(kiln_encoder_start(&out->encoder, o->path, width, height, o->rate, err));
        out->fd = out->encoder.in;
    } else {
        KILN_TRY(is_stdout(out) ? take_stdout(out, err) : open_video_file(out, err));
    }
    char head[128];
    out->n = kiln_video_head(o->kind, width, height, o->rate, head);
    memcpy(out->piece, head, out->n);
    out->taker.take = take_frames;
    out->taker.context = out;
    out->taker.fd = out->fd;
    return KILN_OK;
}

kiln_video_frame kiln_video_frame_of(const kiln_video *v, uint64_t i)
{
    kiln_video_frame f = {.kind = v->o.kind, .width = v->width, .height = v->height};
    kiln_shared_memory_path(&v->ring, (uint32_t)(i % v->ring.n), f.path);
    return f;
}

/* ---- frames go out --------------------------------------------------------------------------- */
static kiln_status failed(kiln_video *v, int error, kiln_error *err)
{
    if (error == EPIPE && v->o.encodes) return kiln_encoder_ended(&v->encoder, err);
    if (error == EPIPE)
        return kiln_fail(
            err, KILN_E_IO,
            "the program that reads the frames from stdout has ended after %llu of %llu",
            (unsigned long long)v->n_written, (unsigned long long)v->n_frames);
    return kiln_file_write_failed(is_stdout(v) ? "stdout" : v->o.path, error, err);
}

/* Writes of the piece what can be written now. stdout is shared with others, so it is not made to
 * return at once: poll says whether a pipe has room for PIPE_BUF bytes. */
static kiln_status write_piece(kiln_video *v, bool *waits, kiln_error *err)
{
    enum { BURST = 4096 };
    while (v->at < v->n) {
        struct pollfd p = {.fd = v->fd, .events = POLLOUT};
        size_t n = v->n - v->at;
        if (v->waits && n > BURST) n = BURST;
        if (v->waits && poll(&p, 1, 0) == 0) {
            *waits = true;
            return KILN_OK;
        }
        const ssize_t done = write(v->fd, v->piece + v->at, n);
        if (done < 0 && errno == EINTR) continue;
        *waits = done < 0 && errno == EAGAIN;
        if (*waits) return KILN_OK;
        if (done < 0) return failed(v, errno, err);
        v->at += (size_t)done;
    }
    v->at = v->n = 0;
    return KILN_OK;
}

/* Reads the next piece of the frame, from its slot. */
static kiln_status read_piece(kiln_video *v, kiln_error *err)
{
    const uint64_t left = v->frame_bytes - v->offset;
    const int slot = v->ring.fds[v->n_written % v->ring.n];
    v->n = left < sizeof v->piece ? (size_t)left : sizeof v->piece;
    KILN_TRY(kiln_file_read_at(slot, "a frame", v->offset, v->piece, v->n, err));
    v->offset += v->n;
    return KILN_OK;
}

static kiln_status take_frames(void *context, uint64_t n_done, uint64_t *n_taken, bool *waits,
                               kiln_error *err)
{
    kiln_video *v = context;
    kiln_encoder_listen(&v->encoder);
    for (;;) {
        KILN_TRY(write_piece(v, waits, err));
        if (*waits) break;
        if (v->offset == v->frame_bytes) {
            v->offset = 0;
            v->n_written++;
        }
        if (v->n_written == n_done) break;
        KILN_TRY(read_piece(v, err));
    }
    *n_taken = v->n_written;
    return KILN_OK;
}

void kiln_video_take(kiln_run *r, kiln_video *v) { kiln_run_takes(r, &v->taker); }

/* ---- the end --------------------------------------------------------------------------------- */
static kiln_status finish_file(kiln_video *v, kiln_error *err)
{
    const int fd = v->fd;
    v->fd = -1;
    const int error = fsync(fd) != 0 ? errno : 0;
    if (close(fd) != 0 || error)
        return kiln_file_write_failed(v->o.path, error ? error : errno, err);
    KILN_TRY(kiln_product_put(v->encoder.part, v->o.path, &v->o.seen, err));
    v->encoder.part[0] = '\0';
    return KILN_OK;
}

kiln_status kiln_video_finish(kiln_run *r, kiln_video *v, kiln_error *err)
{
    if (!v->o.encodes) return is_stdout(v) ? KILN_OK : finish_file(v, err);
    kiln_encoder_close(&v->encoder);
    v->fd = -1;
    while (!kiln_encoder_is_done(&v->encoder)) KILN_TRY(kiln_run_interrupted(r, err));
    return kiln_encoder_finish(&v->encoder, v->o.path, &v->o.seen, err);
}

void kiln_video_close(kiln_run *r, kiln_video *v)
{
    kiln_run_takes(r, NULL);
    if (v->stdout_was >= 0) {
        (void)fflush(stdout);
        (void)dup2(v->stdout_was, STDOUT_FILENO);
    }
    if (v->fd >= 0 && !v->o.encodes) (void)close(v->fd);
    v->fd = -1;
    kiln_encoder_release(&v->encoder);
    kiln_run_unshare_memory(r, &v->ring);
    (void)signal(SIGPIPE, v->sigpipe_was);
}
