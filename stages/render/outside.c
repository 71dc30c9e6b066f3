/* outside -- see outside.h. */
#include "stages/render/outside.h"

#include "stages/engine/json_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* compression, noise and uneven light change a plain background by less than this, mostly */
#define NEAR (16 / 255.0)
#define NOT_EQUAL (8 / 255.0) /* a background this far away is another colour: 30 dB at best */
enum {
    LOOKED = 1 << 16,  /* pixels of a picture, more or less */
    LEVELS = 16,       /* of a channel, in the count of colours */
    CANDIDATES = 64,   /* cameras whose colour is tried for all */
    LEAST_EMPTY = 100, /* one pixel of so many must be empty */
    SHARE = 80,        /* per cent of the empty pixels that must have the colour */
};

/* Alpha is 0 or at least that of the weakest Gaussian that shows, 1/255. */
static bool is_empty(const float *rgba) { return rgba[3] < 0.5f / 255; }

/* Clamps to 0 to 1; NaN becomes 0, as in a PNG. */
static double clamped(double v) { return v > 0 ? (v < 1 ? v : 1) : 0; }

static bool is_near(const double a[3], const double b[3], double within)
{
    for (int c = 0; c < 3; c++)
        if (fabs(a[c] - b[c]) > within) return false;
    return true;
}

/* ---- one camera ------------------------------------------------------------------------------ */
typedef struct {
    const float *rgba, *photo;
    const uint8_t *mask;
    uint32_t width, height, step;
} samples;

typedef void visit_fn(void *context, const double colour[3]);

static uint64_t each_empty(const samples *s, visit_fn *visit, void *context)
{
    uint64_t looked = 0;
    for (uint32_t y = s->step / 2; y < s->height; y += s->step)
        for (uint32_t x = s->step / 2; x < s->width; x += s->step, looked++) {
            const size_t at = (size_t)y * s->width + x;
            if (!is_empty(s->rgba + 4 * at) || (s->mask && s->mask[at] == 0)) continue;
            const float *p = s->photo + 3 * at;
            const double colour[3] = {clamped((double)p[0]), clamped((double)p[1]),
                                      clamped((double)p[2])};
            visit(context, colour);
        }
    return looked;
}

typedef struct {
    uint32_t n[LEVELS][LEVELS][LEVELS];
    uint64_t empty;
} colour_counts;

static uint32_t level(double v) { return v < 1 ? (uint32_t)(v * LEVELS) : LEVELS - 1; }

static void count_colour(void *context, const double colour[3])
{
    colour_counts *c = context;
    c->n[level(colour[0])][level(colour[1])][level(colour[2])]++;
    c->empty++;
}

static void most_often(const colour_counts *c, double colour[3])
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < LEVELS; r++)
        for (uint32_t g = 0; g < LEVELS; g++)
            for (uint32_t b = 0; b < LEVELS; b++) {
                if (c->n[r][g][b] <= most) continue;
                most = c->n[r][g][b];
                const uint32_t of[3] = {r, g, b};
                for (int k = 0; k < 3; k++) colour[k] = (of[k] + 0.5) / LEVELS;
            }
}

typedef struct {
    double centre[3], sum[3];
    uint64_t near;
} nearness;

static void add_near(void *context, const double colour[3])
{
    nearness *n = context;
    if (!is_near(colour, n->centre, NEAR)) return;
    n->near++;
    for (int c = 0; c < 3; c++) n->sum[c] += colour[c];
}

kiln_outside kiln_outside_look(const float *rgba, const float *photo, const uint8_t *mask,
                               uint32_t width, uint32_t height)
{
    enum { TURNS = 3 }; /* the middle of a level first, then the mean of what is near it */
    kiln_outside out = {0};
    colour_counts counts;
    samples s = {
        .rgba = rgba, .photo = photo, .mask = mask, .width = width, .height = height, .step = 1};
    while ((uint64_t)(width / s.step) * (height / s.step) > LOOKED) s.step++;
    memset(&counts, 0, sizeof counts);
    out.looked = each_empty(&s, count_colour, &counts);
    out.empty = counts.empty;
    if (out.empty == 0) return out;
    most_often(&counts, out.colour);
    for (int turn = 0; turn < TURNS; turn++) {
        nearness n = {0};
        memcpy(n.centre, out.colour, sizeof n.centre);
        (void)each_empty(&s, add_near, &n);
        out.near = n.near;
        for (int c = 0; c < 3 && n.near; c++) out.colour[c] = n.sum[c] / (double)n.near;
    }
    return out;
}

/* ---- counters -------------------------------------------------------------------------------- */
json_t *kiln_outside_json(const kiln_outside *o)
{
    return json_pack("{s:I, s:I, s:I, s:[o, o, o]}", "looked", (json_int_t)o->looked, "empty",
                     (json_int_t)o->empty, "near", (json_int_t)o->near, "colour",
                     kiln_json_real(o->colour[0]), kiln_json_real(o->colour[1]),
                     kiln_json_real(o->colour[2]));
}

kiln_outside kiln_outside_of_json(const json_t *v)
{
    const json_int_t looked = json_integer_value(json_object_get(v, "looked")),
                     empty = json_integer_value(json_object_get(v, "empty")),
                     near = json_integer_value(json_object_get(v, "near"));
    kiln_outside o = {0};
    if (near <= 0 || near > empty || empty > looked || looked > (json_int_t)LOOKED * 4) return o;
    o = (kiln_outside){
        .looked = (uint64_t)looked, .empty = (uint64_t)empty, .near = (uint64_t)near};
    for (size_t c = 0; c < 3; c++)
        o.colour[c] = clamped(json_number_value(json_array_get(json_object_get(v, "colour"), c)));
    return o;
}

/* ---- all of them ----------------------------------------------------------------------------- */
/* Counts the pixels near a colour over the cameras whose own colour is near it, and averages their
 * colours. */
static uint64_t count_near(const kiln_outside *views, uint32_t n, const double of[3],
                           double mean[3])
{
    uint64_t near = 0;
    double sum[3] = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (!is_near(views[i].colour, of, NEAR)) continue;
        near += views[i].near;
        for (int c = 0; c < 3; c++) sum[c] += views[i].colour[c] * (double)views[i].near;
    }
    for (int c = 0; c < 3; c++) mean[c] = near ? sum[c] / (double)near : 0;
    return near;
}

bool kiln_outside_differs(const kiln_outside *views, uint32_t n, const double background[3],
                          double colour[3])
{
    uint64_t looked = 0, empty = 0, most = 0;
    uint32_t tried = 0;
    for (uint32_t i = 0; i < n; i++) {
        looked += views[i].looked;
        empty += views[i].empty;
    }
    for (uint32_t i = 0; i < n && tried < CANDIDATES; i++) {
        double mean[3];
        if (views[i].empty == 0) continue;
        tried++;
        const uint64_t near = count_near(views, n, views[i].colour, mean);
        if (near <= most) continue;
        most = near;
        memcpy(colour, mean, sizeof mean);
    }
    return empty > 0 && empty * LEAST_EMPTY >= looked && most * 100 >= empty * SHARE &&
           !is_near(colour, background, NOT_EQUAL);
}

void kiln_colour_text(const double colour[3], char out[16])
{
    enum { ALMOST = 5 };
    int v[3], least = 255, most = 0;
    for (int c = 0; c < 3; c++) {
        v[c] = (int)(clamped(colour[c]) * 255 + 0.5);
        least = v[c] < least ? v[c] : least;
        most = v[c] > most ? v[c] : most;
    }
    if (least >= 255 - ALMOST)
        (void)snprintf(out, 16, "white");
    else if (most <= ALMOST)
        (void)snprintf(out, 16, "black");
    else
        (void)snprintf(out, 16, "%d,%d,%d", v[0], v[1], v[2]);
}
