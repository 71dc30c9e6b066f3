/* made -- what a worker is told of a picture, made of what is kept of it (render_plan.h).
 *
 * Problem. The payload of a picture is 18 KB, most of it room for paths, and what a list of
 * pictures takes is taken for each of them. Layout. The plan keeps the numbers that were computed;
 * everything else follows from the camera, its sources and the options, and is made again for each
 * picture that is asked for, in one place in memory. */
#include "stages/render/exposure.h"
#include "stages/render/picture_places.h"
#include "stages/render/stored_pictures.h"

#include "stages/cameras/pinholes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

kiln_level_wish kiln_render_wish(const kiln_render_plan *s, const kiln_render_job *j)
{
    return j->level ? (kiln_level_wish){.form = KILN_LEVEL_AT, .level = j->level} : s->wish;
}

static kiln_file_info state_of(const kiln_source_file *f)
{
    return (kiln_file_info){.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
}

/* The photo that the picture is compared with. A frame of a video is compared with none. */
static kiln_status set_photo(const kiln_render_plan *s, const kiln_camera *c, kiln_render_unit *u,
                             kiln_error *err)
{
    if (!c->photo[0] || s->video) return KILN_OK;
    const kiln_source_file *f = kiln_render_source_at(s, c->photo),
                           *mask = kiln_render_source_at(s, c->mask);
    snprintf(u->photo, sizeof u->photo, "%s", c->photo);
    snprintf(u->mask, sizeof u->mask, "%s", c->mask);
    if (c->distorted) KILN_TRY(kiln_pinhole_lens(c, &u->lens, err));
    if (f) u->photo_file = state_of(f);
    if (f) u->photo_hash = f->hash;
    if (mask) u->mask_file = state_of(mask);
    if (mask) u->mask_hash = mask->hash;
    return KILN_OK;
}

static void set_numbers(const kiln_render_plan *s, const kiln_render_job *j, kiln_render_unit *u)
{
    const kiln_level_wish wish = kiln_render_wish(s, j);
    const kiln_camera *c = j->camera;
    u->request = j->request;
    u->count_only = false;
    u->ram = j->ram;
    u->band_pairs = j->band_pairs;
    u->slab_capacity = j->slab_capacity;
    u->device_ram = j->device_ram;
    u->count_first = j->count_first;
    u->measured = j->measured;
    u->table_key = j->table_key;
    u->picture_seen = j->picture_seen;
    u->depth_seen = j->depth_seen;
    u->full_seen = j->full_seen;
    u->encoding = s->encoding;
    u->drawn = kiln_drawn_name_of(&s->drawn, &wish);
    u->pinhole = (kiln_pinhole){c->fx, c->fy, c->cx, c->cy, c->width, c->height};
    u->undistort_filter = s->o->undistort_filter;
    u->mask_width = c->mask_width;
    u->mask_height = c->mask_height;
    u->crop = s->viewpoints.crop;
    memcpy(u->background, s->background, sizeof u->background);
    kiln_render_exposure_set(s, j, u);
}

/* Sets to 0 what is made of a job. Behind the ends of texts all is 0 already: their rooms are 22
 * KB, of which a few hundred bytes are in use, and with 20,000 pictures to look for, clearing all
 * of it was an eighth of the time. */
static void clear_made(kiln_render_made *made)
{
#define TEXT(member)                                            \
    {                                                           \
        offsetof(kiln_render_made, member), sizeof made->member \
    }
    static const struct {
        size_t at, size;
    } texts[] = {TEXT(unit.camera), TEXT(unit.photo),      TEXT(unit.mask), TEXT(unit.picture),
                 TEXT(unit.depth),  TEXT(unit.frame.path), TEXT(relative)}; /* in their order */
#undef TEXT
#define BEFORE(a, b) (offsetof(kiln_render_made, a) < offsetof(kiln_render_made, b))
    _Static_assert(BEFORE(unit.camera, unit.photo) && BEFORE(unit.photo, unit.mask) &&
                       BEFORE(unit.mask, unit.picture) && BEFORE(unit.picture, unit.depth) &&
                       BEFORE(unit.depth, unit.frame.path) && BEFORE(unit.frame.path, relative) &&
                       BEFORE(relative, looked_at),
                   "the texts of kiln_render_made have another order: put them into it here, too");
#undef BEFORE
    char *const bytes = (char *)made;
    size_t from = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        memset(bytes + from, 0, texts[i].at - from);
        memset(bytes + texts[i].at, 0, strnlen(bytes + texts[i].at, texts[i].size));
        from = texts[i].at + texts[i].size;
    }
    memset(bytes + from, 0, offsetof(kiln_render_made, looked_at) - from);
}

kiln_status kiln_render_make(const kiln_render_job *j, const kiln_render_made **out,
                             kiln_error *err)
{
    const kiln_render_plan *s = j->plan;
    kiln_render_made *made = s->made;
    *out = made;
    if (made->job == j && made->of_video == (s->video != NULL)) {
        set_numbers(s, j, &made->unit); /* the texts cost calls of the system */
        return KILN_OK;
    }
    clear_made(made);
    set_numbers(s, j, &made->unit);
    snprintf(made->unit.camera, sizeof made->unit.camera, "%s", j->camera->name);
    if (s->video) made->unit.frame = kiln_video_frame_of(s->video, (uint64_t)(j - s->jobs));
    KILN_TRY(set_photo(s, j->camera, &made->unit, err));
    KILN_TRY(kiln_pictures_place(s, j, made, err));
    made->job = j;
    made->of_video = s->video != NULL;
    return KILN_OK;
}

const kiln_render_made *kiln_render_made_of(const kiln_render_job *j)
{
    const kiln_render_made *made = j->plan->made;
    /* it was made before, by the same numbers */
    (void)(kiln_render_make(j, &made, NULL) == KILN_OK);
    return made;
}

const void *kiln_render_payload_of(const void *job) { return kiln_render_unit_of(job); }
