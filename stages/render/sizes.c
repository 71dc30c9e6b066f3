/* sizes -- the host memory of a picture's unit, before it is handed out. An upper bound counts
 * every row of the chunks that the camera may see. If that is more than a unit may take, a GPU's
 * worker is asked to draw the picture in the memory of its device; on the CPU the camera's
 * Gaussians are counted, in fixed memory. */
#include "stages/render/render_plan.h"

#include "base/minmax.h"
#include "kernels/pixel_hashes/pixel_hashes.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/render/depth.h"
#include "stages/render/outside.h"
#include "stages/render/picture_size.h"

#include <stdlib.h>
#include <string.h>

/* Returns the least memory that is enough for a camera that is not counted: for the whole picture,
 * or in the smallest slabs. */
static uint64_t least_ram(const kiln_render_job *j, bool in_parts)
{
    const kiln_layer *layer = j->plan->layer;
    const kiln_render_unit *u = kiln_render_unit_of(j);
    const kiln_draw_size size = kiln_frame_bound(&j->request, layer, &j->chunks);
    kiln_draw_size at_once = size;
    at_once.in_parts = in_parts;
    const uint64_t whole =
        kiln_frame_ram(layer, &at_once, true, kiln_render_beside_frame(u, &at_once));
    return kiln_min_u64(whole,
                        kiln_render_slabs_ram(layer, u, &size, kiln_render_smallest_slab(&size)));
}

uint64_t kiln_render_least_ram(const kiln_render_job *j, bool in_parts)
{
    return kiln_max_u64(least_ram(j, in_parts), kiln_frame_count_ram(j->plan->layer, &j->request));
}

uint64_t kiln_render_parent_ram(kiln_run *r, const kiln_render_plan *s, uint64_t n)
{
    enum { TEXTS = 256, SEEN = 80, REPORTED = 448 };
    const uint64_t seen = SEEN + sizeof(uint32_t) * (uint64_t)s->layer->n_chunks;
    const uint64_t each = sizeof(kiln_camera) + TEXTS + sizeof(kiln_render_job) + seen +
                          sizeof(kiln_unit) + sizeof(kiln_outside) +
                          (s->exposure_file ? sizeof(kiln_exposure) + sizeof(kiln_exposure *) : 0);
    return n * each + kiln_run_report_rows_ram(r, n, REPORTED);
}

/* Two lists at most: cameras are counted, and pictures drawn. */
void kiln_render_foresee(kiln_run *r, uint64_t least, uint64_t n)
{
    kiln_run_foresee_ram(r, least + 2 * kiln_small_list_ram(n, 1, 0), 0);
}

static void set_size(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size)
{
    kiln_render_job *j = &s->jobs[i];
    j->band_pairs = size->band_pairs;
    j->ram = kiln_frame_ram(s->layer, size, true,
                            kiln_render_beside_frame(kiln_render_unit_of(j), size));
    s->units[i].ram = j->ram;
}

/* By the upper bound, whether the camera is counted or not: hosts of different memory must come to
 * the same list. */
static uint64_t cost_of_job(const kiln_render_job *j, const kiln_draw_size *bound)
{
    return 4 * bound->visible + (uint64_t)j->camera->width * j->camera->height;
}

/* The same for a picture whose Gaussians the worker counts itself: for that, and for the smallest
 * slabs that they may need. */
static uint64_t unknown_ram(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size)
{
    const kiln_render_unit *u = kiln_render_unit_of(&s->jobs[i]);
    const uint64_t counting =
        kiln_frame_count_ram(s->layer, &u->request) + kiln_render_picture_bytes(u);
    const uint64_t slabs =
        kiln_render_slabs_ram(s->layer, u, size, kiln_render_smallest_slab(size));
    return kiln_max_u64(counting, slabs);
}

/* ---- drawn on a GPU where memory is tight ---------------------------------------------------- */
/* The memory of a picture that is drawn in the memory of a GPU: for that, and for slabs, because
 * the GPU may refuse. */
static uint64_t on_device_ram(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size)
{
    return kiln_max_u64(kiln_render_device_ram(s->layer, kiln_render_unit_of(&s->jobs[i])),
                        unknown_ram(s, i, size));
}

/* Returns false if a unit may not take so much. */
static bool set_on_device(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size,
                          uint64_t may)
{
    kiln_render_job *j = &s->jobs[i];
    const uint64_t ram = on_device_ram(s, i, size);
    if (ram > may) return false;
    j->device_ram = kiln_render_device_ram(s->layer, kiln_render_unit_of(j));
    s->units[i].ram = j->ram = ram;
    return true;
}

/* ---- counting where memory is tight ---------------------------------------------------------- */
/* Sets the memory of a counted camera with `pairs` pairs. If the whole is more than a unit may
 * take, a GPU is asked to draw it, which may take less now that slabs are known better; else it is
 * drawn in slabs, if they take less. */
static void set_counted(const kiln_render_plan *s, uint32_t i, kiln_draw_size size, uint64_t pairs,
                        uint64_t may)
{
    kiln_render_job *j = &s->jobs[i];
    set_size(s, i, &size);
    if (s->units[i].ram <= may) return;
    size.band_pairs = kiln_render_slab_band(size.band_pairs, pairs);
    if (size.in_parts && set_on_device(s, i, &size, may)) return;
    const kiln_render_unit *u = kiln_render_unit_of(j);
    const uint64_t capacity = kiln_render_largest_slab(s->layer, u, &size, may);
    const uint64_t ram = kiln_render_slabs_ram(s->layer, u, &size, capacity);
    if (ram >= s->units[i].ram) return;
    j->slab_capacity = capacity;
    s->units[i].ram = j->ram = ram;
}

static kiln_status take_count(kiln_run *r, const kiln_render_plan *s, uint32_t i,
                              const kiln_unit *u, kiln_draw_size size, uint64_t may,
                              kiln_error *err)
{
    kiln_frame_counts c;
    const kiln_view_request *request = &s->jobs[i].request;
    KILN_TRY(kiln_frame_counts_read(r, u, request, &s->jobs[i].chunks, &c, err));
    size.visible = c.visible;
    kiln_draw_size_bands(&size, &request->view, c.row_pairs);
    set_counted(s, i, size, c.pairs, may);
    free(c.row_pairs);
    return KILN_OK;
}

/* A kiln_unit.payload_of, of a job. */
static const void *count_payload_of(const void *job)
{
    const kiln_render_job *j = job;
    kiln_render_unit *u = &j->plan->made->unit;
    (void)kiln_render_made_of(j);
    j->plan->made->job = NULL; /* the next to ask for this camera gets none of what follows */
    u->count_only = true;
    u->ram = kiln_frame_count_ram(j->plan->layer, &j->request);
    /* of the next list, about: what the worker keeps has room beside that */
    u->encoding.drawing = j->ram;
    if (j->level) u->drawn.wish = kiln_level_full; /* of its two pictures the one that takes more */
    return u;
}

static void make_count(kiln_run *r, const kiln_render_plan *s, uint32_t i, bool in_parts,
                       kiln_unit *u)
{
    kiln_render_job *j = &s->jobs[i];
    kiln_hasher *h = kiln_run_key_bare(r, "count with boxes");
    kiln_key_hash(h, "table", j->table_key);
    u->ram = kiln_frame_count_ram(s->layer, &j->request);
    snprintf(u->name, sizeof u->name, "pairs of %.120s", j->camera->name);
    u->key = kiln_key_end(h);
    u->payload = j;
    u->payload_of = count_payload_of;
    u->payload_bytes = sizeof(kiln_render_unit);
    u->cost = s->units[i].cost;
    u->place = s->units[i].place;
    u->ram_cache = kiln_frame_cache_ram(s->layer, u->ram);
    u->ram_after = least_ram(j, in_parts);
    u->n_outputs = 1;
    u->optional = u->planning = true;
    u->volatile_result = kiln_run_is_once(r);
}

/* A camera whose count was quarantined is tried with room for its planes alone. If it fails, no
 * other camera does. */
static kiln_status count_tight(kiln_run *r, const kiln_render_plan *s, const uint32_t *tight,
                               uint32_t n, bool in_parts, kiln_error *err)
{
    kiln_status st;
    kiln_unit *units = NULL;
    KILN_GO(KILN_ALLOC(&units, n, "units", err));
    for (uint32_t k = 0; k < n; k++) make_count(r, s, tight[k], in_parts, &units[k]);
    kiln_run_shares_planning(r, true); /* counting reads as much as drawing */
    KILN_GO(
        kiln_run_units(r, "counting visible Gaussians, because memory is tight", units, n, err));
    kiln_run_foresee_no_more(r); /* pictures are known now */
    const uint64_t may = kiln_run_unit_ram(r);
    for (uint32_t k = 0; k < n; k++) {
        kiln_draw_size size =
            kiln_frame_bound(&s->jobs[tight[k]].request, s->layer, &s->jobs[tight[k]].chunks);
        size.in_parts = in_parts;
        if (units[k].quarantined) {
            size.visible = 0;
            set_size(s, tight[k], &size);
            continue;
        }
        KILN_GO(take_count(r, s, tight[k], &units[k], size, may, err));
    }
done:
    kiln_run_shares_planning(r, false);
    if (units) kiln_units_release(units, n);
    free(units);
    return st;
}

static uint32_t count_due(const kiln_render_plan *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) n += s->jobs[i].due;
    return n;
}

/* Says whether pictures are made in parts, because a GPU draws them. Looks for no device if nothing
 * is to be drawn. */
static kiln_status may_be_in_parts(kiln_run *r, const kiln_render_plan *s, bool *may,
                                   kiln_error *err)
{
    const char *kind = "cpu";
    if (count_due(s) > 0) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    *may = strcmp(kind, "cpu") != 0;
    return KILN_OK;
}

/* Sets how many pictures a GPU's worker encodes while it draws, if its memory has room for all. */
static kiln_status size_encoding(kiln_run *r, kiln_render_plan *s, bool on_gpu, kiln_error *err)
{
    enum { DEPTH = 4 };
    kiln_render_encoding t = {0};
    unsigned workers = 1;
    const uint32_t tasks = kiln_run_tasks(r),
                   n_due = (count_due(s) + (tasks ? tasks - 1 : 0)) / (tasks ? tasks : 1);
    if (n_due > 0) KILN_TRY(kiln_run_worker_count(r, &workers, err));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        const kiln_render_unit *u = kiln_render_unit_of(j);
        const uint64_t pixels = (uint64_t)j->camera->width * j->camera->height;
        t.drawing = kiln_max_u64(t.drawing, s->units[i].ram);
        const uint64_t hashes = KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels);
        t.writing = kiln_max_u64(
            t.writing,
            kiln_render_writing_bytes(u) +
                (u->depth[0] ? DEPTH * pixels + kiln_depth_bytes(pixels, u->depth_colours) : 0) +
                hashes);
        t.pixels = kiln_max_u64(t.pixels, pixels);
    }
    t.most = kiln_render_encoding_most(kiln_devices_threads(kiln_common_values.threads) / workers,
                                       n_due / workers);
    const uint64_t cache = kiln_frame_cache_ram(s->layer, on_gpu ? 0 : t.drawing) +
                           (on_gpu && n_due > 0 ? kiln_render_encoding_bytes(&t) : 0);
    s->encoding = t;
    for (uint32_t i = 0; i < s->n_jobs; i++) s->units[i].ram_cache = cache;
    return KILN_OK;
}

void kiln_render_size_uncounted(kiln_run *r, kiln_render_job *j, kiln_unit *u)
{
    const kiln_render_plan *s = j->plan;
    const kiln_draw_size size = kiln_frame_bound(&j->request, s->layer, &j->chunks);
    const uint64_t whole = kiln_frame_ram(s->layer, &size, true,
                                          kiln_render_beside_frame(kiln_render_unit_of(j), &size));
    j->band_pairs = size.band_pairs;
    j->ram = whole;
    if (whole > kiln_run_unit_ram(r)) {
        const kiln_render_unit *payload = kiln_render_unit_of(j);
        const uint64_t counting =
            kiln_frame_count_ram(s->layer, &payload->request) + kiln_render_picture_bytes(payload);
        j->ram = kiln_max_u64(counting, kiln_render_slabs_ram(s->layer, payload, &size,
                                                              kiln_render_smallest_slab(&size)));
        j->count_first = true;
    }
    u->ram = j->ram;
    u->cost = cost_of_job(j, &size);
}

/* In a plan, which cameras are counted is decided by the memory of the plan's host, due or not: all
 * hosts list the same. */
static bool is_counted_by_plan(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size,
                               uint64_t planned)
{
    return s->units[i].ram > planned && (!size->in_parts || on_device_ram(s, i, size) > planned);
}

/* A picture of a plan that has not counted it, on a host with less memory than the plan's: its
 * worker counts. */
static void set_uncounted(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size,
                          uint64_t may)
{
    kiln_render_job *j = &s->jobs[i];
    const uint64_t ram = unknown_ram(s, i, size);
    if (size->in_parts || s->units[i].ram <= may || ram >= s->units[i].ram) return;
    j->count_first = true;
    s->units[i].ram = j->ram = ram;
}

/* Returns the least work of a task before its first picture, in the unit of cost_of_job. Decoding a
 * row takes about 5/4 of the time that drawing takes for it. */
static uint64_t cost_of_decoding(const kiln_render_plan *s)
{
    enum { DECODED_ROW = 5 };
    uint64_t rows = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) rows = kiln_max_u64(rows, s->jobs[i].chunks.rows);
    return DECODED_ROW * rows;
}

kiln_status kiln_render_plan_size(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    bool in_parts;
    kiln_status st = KILN_OK;
    uint32_t *tight, n = 0;
    unsigned workers = 1;
    const bool shared = kiln_run_tasks(r) > 0;
    const uint64_t may = kiln_run_unit_ram(r);
    uint64_t planned = may, least = 0;
    KILN_TRY(kiln_run_decide(r, "picture-ram", &planned, err));
    KILN_TRY(may_be_in_parts(r, s, &in_parts, err));
    if (in_parts) KILN_TRY(kiln_run_worker_count(r, &workers, err));
    KILN_TRY(KILN_ALLOC(&tight, s->n_jobs, "cameras", err));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        kiln_draw_size size = kiln_frame_bound(&j->request, s->layer, &j->chunks);
        size.in_parts = in_parts;
        set_size(s, i, &size);
        s->units[i].cost = cost_of_job(j, &size);
        s->units[i].n_outputs = 1;
        if (s->units[i].ram > may) least = kiln_max_u64(least, kiln_render_least_ram(j, in_parts));
        if (shared && is_counted_by_plan(s, i, &size, planned)) {
            tight[n++] = i;
            continue;
        }
        const bool drawn =
            in_parts && s->units[i].ram > may / workers && set_on_device(s, i, &size, may);
        if (shared && !drawn)
            set_uncounted(s, i, &size, may);
        else if (j->due && !drawn && s->units[i].ram > may)
            tight[n++] = i;
    }
    kiln_render_foresee(r, least, s->n_jobs);
    kiln_run_costs_each_task(r, cost_of_decoding(s));
    if (n > 0) st = count_tight(r, s, tight, n, in_parts, err);
    if (st == KILN_OK) st = size_encoding(r, s, in_parts, err);
    free(tight);
    return st;
}
