/* lanes -- see lanes.h, and kiln_draw_passes in draw.h.
 *
 * Pictures take lanes in turn. A lane's picture is waited for when the lane is needed again, so the host is busy with the next
 * pictures meanwhile. Nothing that pictures under way read may change: where planes must be loaded or memory is taken, all lanes
 * are waited for. A picture that does not fit beside the memory of the others is drawn alone, as is one that was too large for its
 * buffers, at the end.
 */
#include "kernels/draw/lanes.h"

#include "kernels/draw/single_pass.h"

#include <string.h>

/* ---- lanes ---------------------------------------------------------------------------------------------------------------- */
kiln_store_lane kiln_lane_own(kiln_draw_store *s)
{
    return (kiln_store_lane){.x = kiln_runner_exec(s->runner), .block = &s->scratch, .landing = s->landing};
}

/* Lane k, whose streams are made when it is first used. */
static kiln_status get_lane(kiln_draw_store *s, uint32_t k, kiln_store_lane *out, kiln_error *err)
{
    *out = kiln_lane_own(s);
    if (k == 0) return KILN_OK;
    kiln_store_beside *const b = &s->beside[k - 1];
    if (!b->stream) KILN_TRY(kiln_device_stream_new(out->x.device, false, &b->stream, err));
    if (!b->side) KILN_TRY(kiln_device_stream_new(out->x.device, true, &b->side, err));
    out->x.stream = b->stream;
    out->x.side = b->side;
    out->block = &b->block;
    out->landing += (size_t)k * KILN_STORE_LANDING;
    return KILN_OK;
}

uint64_t kiln_lanes_bytes(const kiln_draw_store *s)
{
    uint64_t bytes = 0;
    for (int k = 0; k < KILN_STORE_LANES - 1; k++) bytes += s->beside[k].block.bytes;
    return bytes;
}

void kiln_lanes_drop(kiln_draw_store *s)
{
    for (int k = 0; k < KILN_STORE_LANES - 1; k++) kiln_store_drop_block(s, &s->beside[k].block);
}

void kiln_lanes_free(kiln_draw_store *s)
{
    const int device = kiln_runner_exec(s->runner).device;
    if (device < 0) return;
    kiln_lanes_drop(s);
    for (int k = 0; k < KILN_STORE_LANES - 1; k++) {
        kiln_device_stream_free(device, s->beside[k].side);
        kiln_device_stream_free(device, s->beside[k].stream);
    }
}

/* ---- pictures ------------------------------------------------------------------------------------------------------------- */
/* A lane with the picture that is under way in it. */
typedef struct {
    kiln_draw_pass *of; /* NULL: it is idle */
    kiln_raster_args picture;
    kiln_pass pass;
} track;

static kiln_status finish_track(track *t, kiln_error *err)
{
    kiln_draw_pass *const of = t->of;
    if (!of) return KILN_OK;
    t->of = NULL;
    const kiln_status st = kiln_store_settle(&t->pass.v.x, kiln_pass_end(&t->pass, &of->stats, &of->done, err));
    kiln_gather_close(&t->pass.v);
    return st;
}

/* Waits for all, after a failure, too; the first failure is returned. */
static kiln_status finish_all(track tracks[KILN_STORE_LANES], kiln_status st, kiln_error *err)
{
    for (int k = 0; k < KILN_STORE_LANES; k++) {
        const kiln_status finished = finish_track(&tracks[k], st == KILN_OK ? err : NULL);
        if (st == KILN_OK) st = finished;
    }
    return st;
}

static kiln_status draw_alone(kiln_draw_pass *p, kiln_error *err)
{
    return kiln_draw_single_pass(p->scene, p->background, &p->to, &p->stats, &p->done, err);
}

/* Starts a picture in an idle lane. *fits is false if it could not. */
static kiln_status start_track(track *t, uint32_t k, kiln_draw_pass *p, kiln_pass_company company, bool *fits, kiln_error *err)
{
    kiln_store_lane lane;
    t->pass.b.bytes = 0;
    *fits = kiln_pass_may(p->scene);
    if (!*fits) return KILN_OK;
    KILN_TRY(get_lane(p->scene->store, k, &lane, err));
    t->picture = kiln_draw_whole(p->scene, p->background, p->to.rgba, p->to.depth);
    t->pass = kiln_pass_of(p->scene, &t->picture, &p->to, lane);
    p->scene->store->picture++;
    kiln_status st = kiln_gather_open_ready(&t->pass.v, fits, err);
    if (st == KILN_OK && *fits) st = kiln_pass_start(&t->pass, company, fits, err);
    if (st == KILN_OK && *fits) {
        t->of = p;
        return KILN_OK;
    }
    st = kiln_store_settle(&lane.x, st);
    kiln_gather_close(&t->pass.v);
    return st;
}

static kiln_status draw_all(track tracks[KILN_STORE_LANES], kiln_draw_pass *passes, uint32_t n, kiln_error *err)
{
    uint32_t lanes = KILN_STORE_LANES, next = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool fits;
        KILN_TRY(finish_track(&tracks[next], err));
        KILN_TRY(start_track(&tracks[next], next, &passes[i], KILN_PASS_BESIDE, &fits, err));
        if (!fits) {
            KILN_TRY(finish_all(tracks, KILN_OK, err));
            KILN_TRY(start_track(&tracks[next], next, &passes[i], KILN_PASS_IDLE, &fits, err));
        }
        if (!fits) {
            const bool was_large = tracks[next].pass.b.bytes > 0; /* known, and not there */
            KILN_TRY(draw_alone(&passes[i], err));
            if (was_large && next > 0) lanes = next; /* as many as there is memory for */
        }
        next = fits && next + 1 < lanes ? next + 1 : 0;
    }
    return KILN_OK;
}

kiln_status kiln_draw_passes(kiln_draw_pass *passes, uint32_t n, kiln_error *err)
{
    track tracks[KILN_STORE_LANES];
    memset(tracks, 0, sizeof tracks);
    for (uint32_t i = 0; i < n; i++) {
        passes[i].stats = (kiln_draw_stats){0};
        passes[i].done = false;
        if (!passes[i].scene->store || passes[i].scene->store != passes[0].scene->store || !passes[i].scene->header)
            return kiln_fail(err, KILN_E_USAGE, "pictures that are drawn at the same time have one store, and headers");
    }
    KILN_TRY(finish_all(tracks, draw_all(tracks, passes, n, err), err));
    for (uint32_t i = 0; i < n; i++)
        if (!passes[i].done) KILN_TRY(draw_alone(&passes[i], err));
    return KILN_OK;
}
