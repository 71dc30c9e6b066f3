/* encoder -- see encoder.h. */
#include "stages/render/encoder.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What ffmpeg calls the container of files of this suffix, and whether they hold H.264; else ffmpeg
 * chooses. */
static const struct {
    const char *suffix, *muxer;
    bool h264, starts_fast;
} kinds[] = {{"mp4", "mp4", true, true},
             {"m4v", "mp4", true, true},
             {"mov", "mov", true, true},
             {"mkv", "matroska", true, false},
             {"webm", "webm", false, false}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int kind_of_video(const char *path)
{
    int k = 0;
    while (k < N_KINDS && strcasecmp(kiln_path_suffix(path), kinds[k].suffix) != 0) k++;
    return k;
}

kiln_status kiln_encoder_check(const char *path, kiln_error *err)
{
    if (kind_of_video(path) < N_KINDS) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--video '%s': the name of a video ends in .mp4, .m4v, .mov, .mkv or .webm",
                     path);
}

/* ---- processes ------------------------------------------------------------------------------- */
/* Starts ffmpeg with these descriptors as 0, 1 and 2; -1: /dev/null. Signals are as in a new
 * program. Returns an errno. */
static int spawn(char *const *argv, const int fds[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)sigaddset(&defaults, SIGINT);
    (void)sigaddset(&defaults, SIGTERM);
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    for (int i = 0; i < 3 && !failed; i++)
        failed = fds[i] >= 0 ? posix_spawn_file_actions_adddup2(&actions, fds[i], i)
                             : posix_spawn_file_actions_addopen(&actions, i, "/dev/null",
                                                                i == 0 ? O_RDONLY : O_WRONLY, 0);
    if (!failed) failed = posix_spawnattr_setsigdefault(&attributes, &defaults);
    if (!failed) failed = posix_spawnattr_setsigmask(&attributes, &none);
    if (!failed)
        failed =
            posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!failed) failed = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

static kiln_status make_pipe(int ends[2], kiln_error *err)
{
    if (pipe2(ends, O_CLOEXEC) == 0) return KILN_OK;
    ends[0] = ends[1] = -1;
    return kiln_fail(err, KILN_E_IO, "cannot make a pipe to ffmpeg: %s", strerror(errno));
}

static void close_end(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

static kiln_status cannot_run(int error, kiln_error *err)
{
    return kiln_fail(err, KILN_E_IO,
                     "cannot run ffmpeg, which makes the video: %s; install it (Debian: apt-get "
                     "install ffmpeg), or pipe the "
                     "frames into another encoder with --format y4m -o -",
                     strerror(error));
}

/* ---- is it there? ---------------------------------------------------------------------------- */
kiln_status kiln_encoder_find(char version[128], kiln_error *err)
{
    static const char begins[] = "ffmpeg version ";
    char name[] = "ffmpeg", option[] = "-version", *const argv[] = {name, option, NULL}, said[512];
    int ends[2];
    size_t n = 0;
    pid_t pid;
    KILN_TRY(make_pipe(ends, err));
    const int failed = spawn(argv, (const int[3]){-1, ends[1], -1}, &pid);
    close_end(&ends[1]);
    for (ssize_t got = 1; !failed && got != 0;) {
        char rest[512]; /* read to its end, so that it can end */
        got = n < sizeof said - 1 ? read(ends[0], said + n, sizeof said - 1 - n)
                                  : read(ends[0], rest, sizeof rest);
        if (got < 0 && errno != EINTR) break;
        if (got > 0 && n < sizeof said - 1) n += (size_t)got;
    }
    close_end(&ends[0]);
    if (failed) return cannot_run(failed, err);
    said[n] = '\0';
    said[strcspn(said, "\r\n")] = '\0';
    const int status = wait_for(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && n == 0) return cannot_run(ENOENT, err);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
        strncmp(said, begins, sizeof begins - 1) != 0)
        return kiln_fail(err, KILN_E_IO,
                         "the program ffmpeg in the PATH is not FFmpeg: its version is '%.100s'",
                         said);
    char *word = said + sizeof begins - 1;
    word[strcspn(word, " ")] = '\0';
    (void)snprintf(version, 128, "%.127s", word);
    return KILN_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */
/* The frames are RGB of the range and transfer of a screen; the video says by which matrix they
 * became luma and chroma. */
static unsigned fill_arguments(int kind, char size[32], char rate[32], char file[KILN_PATH_MAX + 8],
                               const char **a)
{
    static const char *const head[] = {"ffmpeg", "-hide_banner", "-nostats", "-loglevel",
                                       "error",  "-f",           "rawvideo", "-pix_fmt",
                                       "rgb24",  "-video_size"};
    static const char *const colours[] = {
        "-i",
        "pipe:0",
        "-an",
        "-vf",
        "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p",
        "-color_range",
        "tv",
        "-colorspace",
        "bt709",
        "-color_primaries",
        "bt709",
        "-color_trc",
        "iec61966-2-1"};
    unsigned n = 0;
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) a[n++] = head[i];
    a[n++] = size;
    a[n++] = "-framerate";
    a[n++] = rate;
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++) a[n++] = colours[i];
    if (kinds[kind].h264) {
        a[n++] = "-c:v";
        a[n++] = "libx264";
        a[n++] = "-crf";
        a[n++] = "18";
    }
    if (kinds[kind].starts_fast) {
        a[n++] = "-movflags";
        a[n++] = "+faststart";
    }
    a[n++] = "-f";
    a[n++] = kinds[kind].muxer;
    a[n++] = "-y";
    a[n++] = file; /* "file:" in front: no name is an option or an address */
    a[n] = NULL;
    return n;
}

kiln_status kiln_encoder_start(kiln_encoder *e, const char *path, uint32_t width, uint32_t height,
                               kiln_video_rate rate, kiln_error *err)
{
    enum { ARGUMENTS = 48, PIPE_BYTES = 1 << 20 };
    const char *arguments[ARGUMENTS];
    char size[32], fps[32], file[KILN_PATH_MAX + 8];
    int in[2] = {-1, -1}, says[2] = {-1, -1}, part;
    *e = (kiln_encoder){.in = -1, .says = -1};
    KILN_TRY(kiln_make_parents(path, err));
    KILN_TRY(kiln_file_replaceable(path, err));
    kiln_leftovers_drop(path);
    /* ffmpeg opens it by its name, and replaces nothing else */
    KILN_TRY(kiln_temporary_create(path, e->part, &part, err));
    (void)close(part);
    (void)snprintf(size, sizeof size, "%ux%u", width, height);
    (void)snprintf(fps, sizeof fps, "%u/%u", rate.num, rate.den);
    (void)snprintf(file, sizeof file, "file:%s", e->part);
    (void)fill_arguments(kind_of_video(path), size, fps, file, arguments);
    KILN_TRY(make_pipe(in, err));
    kiln_status st = make_pipe(says, err);
    const int failed =
        st == KILN_OK ? spawn((char *const *)arguments, (const int[3]){in[0], -1, says[1]}, &e->pid)
                      : 0;
    if (failed) st = cannot_run(failed, err);
    if (st != KILN_OK) e->pid = 0;
    close_end(&in[0]);
    close_end(&says[1]);
    e->in = in[1];
    e->says = says[0];
    if (st != KILN_OK) return st;
    if (fcntl(e->in, F_SETFL, O_WRONLY | O_NONBLOCK) != 0 ||
        fcntl(e->says, F_SETFL, O_RDONLY | O_NONBLOCK) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot set up the pipe to ffmpeg: %s", strerror(errno));
    (void)fcntl(e->in, F_SETPIPE_SZ, PIPE_BYTES); /* a smaller one is slower, no more */
    return KILN_OK;
}

static void end_line(kiln_encoder *e)
{
    if (!e->line[0]) return;
    memcpy(e->last, e->line, sizeof e->last);
    kiln_warn("ffmpeg: %s", e->line);
    e->line[0] = '\0';
}

void kiln_encoder_listen(kiln_encoder *e)
{
    char said[512];
    ssize_t n;
    while (e->says >= 0 && (n = read(e->says, said, sizeof said)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return; /* nothing now */
        for (ssize_t i = 0; i < n; i++) {
            const size_t used = strlen(e->line);
            if (said[i] == '\n' || said[i] == '\r' || used + 1 == sizeof e->line) end_line(e);
            if (said[i] == '\n' || said[i] == '\r' || said[i] == '\0') continue;
            e->line[strlen(e->line) + 1] = '\0';
            e->line[strlen(e->line)] = said[i];
        }
    }
    end_line(e);
    close_end(&e->says);
}

/* Reads what it says to the end, because it cannot end before. */
static int reap(kiln_encoder *e)
{
    while (e->says >= 0) {
        struct pollfd p = {.fd = e->says, .events = POLLIN};
        (void)poll(&p, 1, -1);
        kiln_encoder_listen(e);
    }
    const int status = wait_for(e->pid);
    e->pid = 0;
    return status;
}

static kiln_status judge_exit(const kiln_encoder *e, int status, kiln_error *err)
{
    const char *between = e->last[0] ? "; it says: " : "";
    if (WIFSIGNALED(status))
        return kiln_fail(err, KILN_E_IO,
                         "ffmpeg was ended by signal %d (%s), so there is no video%s%s",
                         WTERMSIG(status), strsignal(WTERMSIG(status)), between, e->last);
    return kiln_fail(
        err, KILN_E_IO,
        "ffmpeg ended with exit code %d before the video was complete, so there is no video%s%s",
        WEXITSTATUS(status), between, e->last);
}

kiln_status kiln_encoder_ended(kiln_encoder *e, kiln_error *err)
{
    kiln_encoder_close(e);
    return judge_exit(e, reap(e), err);
}

void kiln_encoder_close(kiln_encoder *e) { close_end(&e->in); }

bool kiln_encoder_is_done(kiln_encoder *e)
{
    enum { PATIENCE_MS = 200 };
    struct pollfd p = {.fd = e->says, .events = POLLIN};
    if (e->says >= 0) (void)poll(&p, 1, PATIENCE_MS);
    kiln_encoder_listen(e);
    return e->says < 0;
}

kiln_status kiln_encoder_finish(kiln_encoder *e, const char *path, const kiln_product_seen *seen,
                                kiln_error *err)
{
    const int status = reap(e);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return judge_exit(e, status, err);
    KILN_TRY(kiln_product_put(e->part, path, seen, err));
    e->part[0] = '\0';
    return KILN_OK;
}

void kiln_encoder_release(kiln_encoder *e)
{
    close_end(&e->in);
    if (e->pid > 0) {
        (void)kill(e->pid, SIGKILL);
        (void)reap(e);
    }
    close_end(&e->says);
    if (e->part[0]) (void)unlink(e->part);
    e->part[0] = '\0';
}
