/* colmap_binary -- cameras.bin, images.bin, rigs.bin, frames.bin; little-endian, nothing aligned
 * (COLMAP's doc/format.rst).
 *
 *   cameras  u64 count; u32 id, i32 model, u64 width, u64 height, f64 params[of the model]
 *   images   u64 count; u32 id, f64 qw qx qy qz tx ty tz, u32 camera id, name up to NUL, u64 n, n x
 *            (f64 x, f64 y, u64 point)
 *   rigs     u64 count; u32 id, u32 sensors; if any: i32 type, u32 id of the first; the others: i32
 *            type, u32 id, u8 has_pose, if 1: f64 pose[7]
 *   frames   u64 count; u32 id, u32 rig id, f64 pose[7], u32 n, n x (i32 sensor type, u32 sensor
 *            id, u64 data id)
 *
 * Numbers and records without gaps are read to where they stay, as they lie (base/endian.h).
 *
 * The file is read as a stream; every count is held against the bytes that are left before anything
 * is done with it, and keypoints are skipped or handed on one by one, so that memory does not grow
 * with the file.
 */
#include "stages/cameras/colmap/colmap_model.h"

#include "base/endian.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 1024, SENSOR_CAMERA = 0, KEYPOINT = 24, POSE = 56, FRAME_DATA = 16 };

typedef struct {
    const char *path;
    FILE *f;
    uint64_t size, at;
    kiln_error *err;
} stream;

static kiln_status open_stream(stream *s, const char *path, kiln_error *err)
{
    int fd;
    struct stat info;
    *s = (stream){.path = path, .err = err};
    KILN_TRY(kiln_file_open(path, &fd, err));
    if (fstat(fd, &info) != 0 || !(s->f = fdopen(fd, "rb"))) {
        kiln_status st = kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", path, strerror(errno));
        close(fd);
        return st;
    }
    s->size = (uint64_t)info.st_size;
    return KILN_OK;
}

static kiln_status fail_truncated(const stream *s, const char *what)
{
    return kiln_fail(s->err, KILN_E_INPUT,
                     "'%s' is truncated: it ends at byte %llu, inside %s; is the copy complete?",
                     s->path, (unsigned long long)s->size, what);
}

static kiln_status take_stream_bytes(stream *s, void *dst, size_t bytes, const char *what)
{
    if (bytes > s->size - s->at) return fail_truncated(s, what);
    if (fread(dst, 1, bytes, s->f) != bytes)
        return kiln_fail(s->err, KILN_E_IO, "cannot read '%s' at byte %llu", s->path,
                         (unsigned long long)s->at);
    s->at += bytes;
    return KILN_OK;
}

static kiln_status skip_stream_bytes(stream *s, uint64_t bytes, const char *what)
{
    if (bytes > s->size - s->at) return fail_truncated(s, what);
    if (fseeko(s->f, (off_t)bytes, SEEK_CUR) != 0)
        return kiln_fail(s->err, KILN_E_IO, "cannot seek in '%s': %s", s->path, strerror(errno));
    s->at += bytes;
    return KILN_OK;
}

/* A count whose records take at least `least` bytes each. */
static kiln_status take_count(stream *s, uint64_t *n, uint64_t least, const char *what)
{
    if (s->size == 0) return kiln_fail(s->err, KILN_E_INPUT, "'%s' is empty", s->path);
    KILN_TRY(take_stream_bytes(s, n, sizeof *n, what));
    if (*n > (s->size - s->at) / least)
        return kiln_fail(
            s->err, KILN_E_INPUT,
            "'%s' is shorter than its count requires: %llu %s do not fit into %llu bytes", s->path,
            (unsigned long long)*n, what, (unsigned long long)(s->size - s->at));
    return KILN_OK;
}

static kiln_status read_camera(stream *s, kiln_colmap *m)
{
    struct {
        uint32_t id;
        int32_t model;
        uint64_t size[2];
    } head;
    double params[KILN_CAMERA_PARAMS];
    _Static_assert(sizeof head == 24, "as in the file");
    KILN_TRY(take_stream_bytes(s, &head, sizeof head, "a camera"));
    const kiln_camera_model *model = kiln_camera_model_by_id(head.model);
    if (!model)
        return kiln_fail(
            s->err, KILN_E_INPUT,
            "'%s': camera model %d of camera %u is unknown, and with it the size of its record",
            s->path, head.model, head.id);
    KILN_TRY(take_stream_bytes(s, params, model->n_params * sizeof *params,
                               "the parameters of a camera"));
    return kiln_colmap_put_camera(m, head.id, model, head.size[0], head.size[1], params, s->err);
}

static kiln_status take_name(stream *s, char name[NAME_MAX_BYTES + 1], uint32_t image)
{
    for (size_t n = 0; n <= NAME_MAX_BYTES; n++) {
        KILN_TRY(take_stream_bytes(s, name + n, 1, "the name of an image"));
        if (!name[n]) return KILN_OK;
    }
    return kiln_fail(s->err, KILN_E_INPUT, "'%s': the name of image %u is longer than %d bytes",
                     s->path, image, NAME_MAX_BYTES);
}

static kiln_status read_keypoints(stream *s, kiln_colmap *m, uint64_t n)
{
    struct {
        double x, y;
        uint64_t point;
    } k;
    _Static_assert(sizeof k == KEYPOINT, "as in the file");
    if (!kiln_colmap_wants_keypoints(m)) return skip_stream_bytes(s, n * KEYPOINT, "keypoints");
    for (uint64_t i = 0; i < n; i++) {
        KILN_TRY(take_stream_bytes(s, &k, sizeof k, "keypoints"));
        KILN_TRY(kiln_colmap_put_keypoint(m, k.x, k.y, k.point, s->err));
    }
    return KILN_OK;
}

static kiln_status read_binary_image(stream *s, kiln_colmap *m)
{
    uint32_t id, camera;
    uint64_t n_points;
    double pose[7];
    char name[NAME_MAX_BYTES + 1];
    KILN_TRY(take_stream_bytes(s, &id, sizeof id, "an image"));
    KILN_TRY(take_stream_bytes(s, pose, sizeof pose, "the pose of an image"));
    KILN_TRY(take_stream_bytes(s, &camera, sizeof camera, "an image"));
    KILN_TRY(take_name(s, name, id));
    KILN_TRY(take_count(s, &n_points, KEYPOINT, "keypoints"));
    KILN_TRY(kiln_colmap_put_image(m, id, pose, camera, name, s->err));
    return read_keypoints(s, m, n_points);
}

static kiln_status read_rig(stream *s, kiln_colmap *m)
{
    uint32_t head[2]; /* id, sensors */
    KILN_TRY(take_stream_bytes(s, head, sizeof head, "a rig"));
    if (head[1]) KILN_TRY(skip_stream_bytes(s, 8, "the first sensor of a rig"));
    for (uint32_t i = 1; i < head[1]; i++) {
        unsigned char has_pose;
        KILN_TRY(skip_stream_bytes(s, 8, "a sensor of a rig"));
        KILN_TRY(take_stream_bytes(s, &has_pose, 1, "a sensor of a rig"));
        if (has_pose) KILN_TRY(skip_stream_bytes(s, POSE, "the pose of a sensor"));
    }
    return kiln_colmap_put_rig(m, head[0], s->err);
}

static kiln_status read_frame(stream *s, kiln_colmap *m)
{
    uint32_t head[2], n; /* id, rig */
    KILN_TRY(take_stream_bytes(s, head, sizeof head, "a frame"));
    KILN_TRY(skip_stream_bytes(s, POSE, "the pose of a frame"));
    KILN_TRY(take_stream_bytes(s, &n, sizeof n, "a frame"));
    KILN_TRY(kiln_colmap_put_frame(m, head[0], head[1], s->err));
    for (uint32_t i = 0; i < n; i++) {
        struct {
            int32_t type;
            uint32_t sensor;
            uint64_t id;
        } data;
        _Static_assert(sizeof data == FRAME_DATA, "as in the file");
        KILN_TRY(take_stream_bytes(s, &data, sizeof data, "the data of a frame"));
        if (data.type == SENSOR_CAMERA)
            KILN_TRY(kiln_colmap_put_frame_image(m, head[0], data.id, s->err));
    }
    return KILN_OK;
}

/* A file of records that take at least `least` bytes each. */
static kiln_status read_binary_records(const char *path, kiln_colmap *m, uint64_t least,
                                       const char *what,
                                       kiln_status (*read)(stream *, kiln_colmap *),
                                       kiln_error *err)
{
    stream s;
    uint64_t n;
    KILN_TRY(open_stream(&s, path, err));
    kiln_status st = take_count(&s, &n, least, what);
    for (uint64_t i = 0; st == KILN_OK && i < n; i++) st = read(&s, m);
    fclose(s.f); /* opened for reading: nothing to lose */
    return st;
}

kiln_status kiln_colmap_bin_cameras(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_binary_records(path, m, 24 + 2 * sizeof(double), "cameras", read_camera, err);
}

kiln_status kiln_colmap_bin_images(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_binary_records(path, m, 4 + POSE + 4 + 1 + 8, "images", read_binary_image, err);
}

kiln_status kiln_colmap_bin_rigs(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_binary_records(path, m, 8, "rigs", read_rig, err);
}

kiln_status kiln_colmap_bin_frames(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_binary_records(path, m, 8 + POSE + 4, "frames", read_frame, err);
}

uint64_t kiln_colmap_bin_count(const char *path)
{
    stream s;
    uint64_t n = 0;
    if (open_stream(&s, path, NULL) != KILN_OK) return 0;
    if (take_stream_bytes(&s, &n, sizeof n, "the count") != KILN_OK) n = 0;
    fclose(s.f); /* opened for reading: nothing to lose */
    return n;
}
