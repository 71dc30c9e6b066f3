#include "tests/gpu/scenes.h"

#include "stages/generate/inputs.h"
#include "tests/gpu/call.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- which scenes ---------------------------------------------------------------------------- */

/* The last two stand for the first and the fifth where there is no CUDA. */
static const uint32_t views[SCENE_VIEWS][2] = {{640, 360},   {15, 17},   {1, 1},     {33, 1000},
                                               {1920, 1080}, {208, 117}, {1920, 136}};
enum { ORDINARY, LARGEST = 4, ORDINARY_OF_CPU, LARGEST_OF_CPU };

static unsigned view_for(bool cuda, unsigned view)
{
    if (cuda) return view;
    return view == ORDINARY ? ORDINARY_OF_CPU : view == LARGEST ? LARGEST_OF_CPU : view;
}

static const char *const kind_names[SCENE_KINDS] = {
#define X(id, name) name,
    SCENE_KIND_MAP(X)
#undef X
};

const char *scene_name(const scene_spec *s, char out[128])
{
    snprintf(out, 128, "%s, %llu rows, %u x %u, %s%s", kind_names[s->kind],
             (unsigned long long)s->n, views[s->view][0], views[s->view][1],
             kiln_profiles[s->profile].name, s->antialiased ? " antialiased" : "");
    return out;
}

bool scenes_are_small(void) { return getenv("KILN_GPU_SMALL") != NULL; }

void scenes_each(bool cuda, void (*fn)(void *context, const scene_spec *spec), void *context)
{
    /* around a warp, a block of threads and a block of blocks; what is worst of each kind shows
     * well below the last */
    const uint64_t sizes[] = {
        0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1000, 4097, cuda ? 65536 : 20000};
    static const uint64_t small_sizes[] = {0, 1, 33, 257};
    const bool small = scenes_are_small();
    const unsigned n_largest = cuda ? SCENE_KINDS : 2;
    const unsigned n_sizes =
        small ? sizeof small_sizes / sizeof *small_sizes : sizeof sizes / sizeof *sizes;
    unsigned turn = 0;
    for (unsigned kind = 0; kind < SCENE_KINDS; kind++)
        for (unsigned k = 0; k < n_sizes; k++, turn++) {
            if (k + 1 == sizeof sizes / sizeof *sizes && kind >= n_largest) continue;
            const scene_spec s = {.kind = (scene_kind)kind,
                                  .n = small ? small_sizes[k] : sizes[k],
                                  /* not the largest */
                                  .view = small ? 1 : view_for(cuda, turn % LARGEST),
                                  .profile = (kiln_profile_id)(turn % KILN_PROFILE_COUNT),
                                  .antialiased = turn / 2 % 2};
            fn(context, &s);
        }
    for (unsigned kind = 0; kind < SCENE_KINDS; kind++)
        for (unsigned view = 0; view <= LARGEST; view++)
            for (unsigned how = 0; how < 2 * KILN_PROFILE_COUNT; how++) {
                const bool wide =
                    kind == SCENE_RANDOM || kind == SCENE_EXPLODED || kind == SCENE_NEEDLES;
                const bool largest = view == LARGEST;
                const scene_spec s = {.kind = (scene_kind)kind,
                                      .n = 300,
                                      .view = view_for(cuda, view),
                                      .profile = (kiln_profile_id)(how / 2),
                                      .antialiased = how % 2,
                                      .of_views = true};
                if ((view > 1 && !wide) || (largest && how % 3 != kind % 3) ||
                    (small && (view != 1 || !wide)))
                    continue;
                fn(context, &s);
            }
}

/* ---- what is in them ------------------------------------------------------------------------- */

static double between(kg_rng *r, double lo, double hi) { return lo + (hi - lo) * kg_u(r); }

/* Component c of plane p in row i. */
static float *at(const scene *s, float *p, unsigned c, uint64_t i) { return &p[c * s->n + i]; }

static void set_random(scene *s, uint64_t i, kg_rng *r)
{
    /* about as dense for any n */
    const double crowd = 0.3 * log((double)s->n + 1.0), size = between(r, -4.0, 0.5) - crowd;
    for (unsigned c = 0; c < 3; c++) {
        *at(s, s->means, c, i) = (float)(c == 2 ? between(r, -6, 10) : between(r, -5, 5));
        *at(s, s->log_scales, c, i) = (float)(size + between(r, -1, 1));
        *at(s, s->sh0, c, i) = (float)between(r, -1.5, 1.5);
        *at(s, s->rgb, c, i) = (float)kg_u(r);
    }
    for (unsigned c = 0; c < 4; c++) *at(s, s->quats, c, i) = (float)between(r, -2, 2);
    for (unsigned c = 0; c < 3 * ((SCENE_SH_DEGREE + 1) * (SCENE_SH_DEGREE + 1) - 1); c++)
        *at(s, s->shN, c, i) = (float)((double)(kg_next(r) >> 40) * 0x1p-25 - 0.25);
    s->opacity_logits[i] = (float)between(r, -8, 6);
    s->spacing2[i] = (float)between(r, 0, 0.1);
}

static void move(scene *s, uint64_t i, double x, double y, double z)
{
    *at(s, s->means, 0, i) = (float)x;
    *at(s, s->means, 1, i) = (float)y;
    *at(s, s->means, 2, i) = (float)z;
}

/* Every plane of row i times a factor of its own. */
static void multiply(scene *s, uint64_t i, float mean, float quat, float sh, float spacing)
{
    for (unsigned c = 0; c < 3; c++) {
        *at(s, s->means, c, i) *= mean;
        *at(s, s->sh0, c, i) *= sh;
        *at(s, s->rgb, c, i) *= sh < 1.0f ? sh : 1.0f;
        *at(s, s->shN, c, i) *= sh;
    }
    for (unsigned c = 0; c < 4; c++) *at(s, s->quats, c, i) *= quat;
    s->spacing2[i] *= spacing;
}

static void set_scales(scene *s, uint64_t i, float x, float y, float z)
{
    *at(s, s->log_scales, (unsigned)(i % 3), i) = x;
    *at(s, s->log_scales, (unsigned)((i + 1) % 3), i) = y;
    *at(s, s->log_scales, (unsigned)((i + 2) % 3), i) = z;
}

static void set_large(scene *s, uint64_t i)
{
    static const float factor[] = {1.0f, 1e4f, 1e12f, 1e30f, 3e37f};
    multiply(s, i, factor[i % 5], i % 2 ? 1e18f : 1e-18f, i % 3 ? 1.0f : 1e30f, factor[i % 4]);
    if (i % 7 == 1) set_scales(s, i, 40.0f, 88.0f, 89.5f); /* exp: large, the largest, infinite */
    if (i % 11 == 2) s->spacing2[i] = FLT_MAX / (float)(i % 64 + 1);
}

static void set_denormal(scene *s, uint64_t i)
{
    multiply(s, i, 1e-40f, 1e-22f, 1e-39f, 1e-41f);
    set_scales(s, i, -88.0f, -103.0f, i % 2 ? -104.0f : -1e-40f);
    s->opacity_logits[i] *= i % 2 ? 1e-40f : 1.0f;
    if (i % 5 == 0) multiply(s, i, 0.0f, 0.0f, 0.0f, 0.0f);
}

static void set_opacity(scene *s, uint64_t i)
{
    static const float logits[] = {-INFINITY,   -200.0f, -88.0f, -20.0f,  -5.55f, -5.5412636f,
                                   -5.5412631f, -5.53f,  -0.0f,  0.0f,    4.6f,   6.9f,
                                   16.0f,       17.0f,   89.0f,  INFINITY};
    s->opacity_logits[i] = logits[i % (sizeof logits / sizeof *logits)];
}

/* One value of one plane becomes something that no file should hold. */
static void spoil(scene *s, uint64_t i, kg_rng *r)
{
    static const float odd[] = {NAN,      INFINITY, -INFINITY,    FLT_MAX,
                                -FLT_MAX, -0.0f,    FLT_TRUE_MIN, -NAN};
    float *const planes[] = {s->means, s->log_scales, s->quats,    s->opacity_logits,
                             s->sh0,   s->shN,        s->spacing2, s->rgb};
    static const unsigned components[] = {3, 3, 4, 1, 3, 3, 1, 3};
    const unsigned p = kg_next(r) % 8;
    if (kg_next(r) % 4 == 0) return; /* some stay as they are */
    *at(s, planes[p], (unsigned)(kg_next(r) % components[p]), i) = odd[kg_next(r) % 8];
}

/* One number of a row just within what project takes for tame, or just beyond. */
static void set_edge(scene *s, uint64_t i, kg_rng *r)
{
    static const float scales[] = {-80.00001f, -80.0f,    -79.99999f, 9.5f,
                                   10.4f,      79.99999f, 80.0f,      80.00001f};
    static const float logits[] = {-80.00001f, -80.0f,   -79.99999f, -5.5438f, -5.5436f,
                                   -5.5390f,   -5.5388f, 80.0f,      80.00001f};
    const uint64_t which = kg_next(r) % 3;
    if (which == 0)
        *at(s, s->log_scales, (unsigned)(kg_next(r) % 3), i) =
            scales[kg_next(r) % (sizeof scales / sizeof *scales)];
    else if (which == 1)
        s->opacity_logits[i] = logits[kg_next(r) % (sizeof logits / sizeof *logits)];
    else
        multiply(s, i, 1.0f, (float)(between(r, 0.2, 1.0) * (kg_u(r) < 0.5 ? 0x1p-29 : 0x1p30)),
                 1.0f, 1.0f);
}

/* Behind the camera, far beside it, and just at the borders of what it sees. */
static void set_off_screen(scene *s, uint64_t i, kg_rng *r)
{
    const double side = kg_u(r) < 0.5 ? -1 : 1, z = between(r, -3.9, 8);
    if (i % 3 == 0)
        move(s, i, between(r, -5, 5), between(r, -5, 5), between(r, -40, -4));
    else if (i % 3 == 1)
        move(s, i, side * between(r, 20, 4000), between(r, -40, 40), z);
    else
        move(s, i, side * between(r, 0.5, 0.8) * (z + 4), between(r, 0.2, 0.5) * (z + 4), z);
}

static void set_kind(scene *s, uint64_t i, kg_rng *r)
{
    float p[3];
    switch (s->spec.kind) {
    case SCENE_CLUSTERED:
        kg_clustered_point(7, i, p);
        move(s, i, 6.0 * p[0] - 3.0, 6.0 * p[1] - 3.0, 6.0 * p[2] - 2.0);
        break;
    case SCENE_LINE:
        move(s, i, 0.001 * (double)(i % 2048), 0.001 * (double)(i % 2048), 2.0);
        break;
    case SCENE_EXPLODED:
        for (unsigned c = 0; i % 7 == 0 && c < 3; c++) *at(s, s->log_scales, c, i) += 8.0f;
        break;
    case SCENE_DENORMAL:
        set_denormal(s, i);
        break;
    case SCENE_LARGE:
        set_large(s, i);
        break;
    case SCENE_NEEDLES:
        set_scales(s, i, (float)between(r, 0, 5), -4.0f, (float)between(r, -40, -9));
        break;
    case SCENE_OFF_SCREEN:
        set_off_screen(s, i, r);
        break;
    case SCENE_OPACITIES:
        set_opacity(s, i);
        break;
    case SCENE_HOSTILE:
        spoil(s, i, r);
        break;
    case SCENE_EDGES:
        set_edge(s, i, r);
        break;
    case SCENE_RANDOM:
    case SCENE_EQUAL:
    case SCENE_KINDS:
        break;
    }
}

/* A camera at (0.3, -0.2, -4) looking along a direction near +z, its principal point off the
 * middle. */
static void set_view(scene *s)
{
    const double c = cos(0.2), d = sin(0.2), e = cos(0.1), f = sin(0.1);
    const double r[9] = {c, 0, -d, f * d, e, f * c, e * d, -f, e * c};
    const double eye[3] = {0.3, -0.2, -4}, origin[3] = {0, 0, 0};
    const uint32_t width = views[s->spec.view][0], height = views[s->spec.view][1];
    const double intrinsics[4] = {0.93 * width, 0.9 * width, 0.46 * width, 0.52 * height};
    double t[3];
    for (int i = 0; i < 3; i++)
        t[i] = -(r[3 * i] * eye[0] + r[3 * i + 1] * eye[1] + r[3 * i + 2] * eye[2]);
    kiln_view_init(&s->view, r, t, origin, intrinsics, width, height,
                   kiln_profiles[s->spec.profile].near_m, 12.0f);
}

void scene_make(scene *s, const scene_spec *spec)
{
    enum {
        SH_PLANES = 3 * ((SCENE_SH_DEGREE + 1) * (SCENE_SH_DEGREE + 1) - 1),
        PLANES = 3 + 3 + 4 + 1 + 3 + SH_PLANES + 1 + 3
    };
    const uint64_t n = spec->n;
    kg_rng r = {kg_stream(1 + (uint64_t)spec->kind, n), 0};
    *s = (scene){.spec = *spec, .n = n};
    s->data = s->means = call_memory(n * PLANES, sizeof *s->data);
    s->log_scales = s->means + 3 * n;
    s->quats = s->log_scales + 3 * n;
    s->opacity_logits = s->quats + 4 * n;
    s->sh0 = s->opacity_logits + n;
    s->shN = s->sh0 + 3 * n;
    s->spacing2 = s->shN + SH_PLANES * n;
    s->rgb = s->spacing2 + n;
    for (uint64_t i = 0; i < n; i++) {
        set_random(s, i, &r);
        set_kind(s, i, &r);
    }
    if (spec->kind == SCENE_EQUAL) {
        if (n > 0) move(s, 0, 0.2, 0.1, 1.0);
        for (uint64_t plane = 0; plane < PLANES; plane++)
            for (uint64_t i = 1; i < n; i++) s->data[plane * n + i] = s->data[plane * n];
    }
    set_view(s);
}

void scene_free(scene *s)
{
    free(s->data);
    free(s->splats);
    free(s->row_pairs);
}

/* ---- how they are seen ----------------------------------------------------------------------- */

static void run(kiln_op_id op, const void *args)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    call_now(kiln_ops_cpu_baseline(), &cpu, op, args);
}

void scene_look(scene *s)
{
    const uint32_t tiles_y = kiln_view_tiles_y(&s->view);
    kiln_splat2d *found = call_memory(s->n, sizeof *found);
    const kiln_project_args project = {.n = s->n,
                                       .means = s->means,
                                       .log_scales = s->log_scales,
                                       .quats = s->quats,
                                       .opacity_logits = s->opacity_logits,
                                       .sh0 = s->sh0,
                                       .shN = s->shN,
                                       .sh_degree = SCENE_SH_DEGREE,
                                       .view = &s->view,
                                       .profile = s->spec.profile,
                                       .antialiased = s->spec.antialiased,
                                       .splats = found,
                                       .n_visible = &s->visible};
    run(KILN_OP_project, &project);
    float *depths = call_memory(s->visible, sizeof *depths);
    uint32_t *rows = call_memory(s->visible, sizeof *rows),
             *order = call_memory(s->visible, sizeof *order);
    for (uint64_t i = 0; i < s->visible; i++) {
        depths[i] = found[i].depth;
        rows[i] = found[i].row;
    }
    const kiln_depth_order_args sort = {
        .n = s->visible, .depths = depths, .source_rows = rows, .order = order};
    run(KILN_OP_depth_order, &sort);
    s->splats = call_memory(s->visible, sizeof *s->splats);
    for (uint64_t i = 0; i < s->visible; i++) s->splats[i] = found[order[i]];
    s->row_pairs = call_memory(tiles_y, sizeof *s->row_pairs);
    const kiln_tile_pairs_count_args count = {.n = s->visible,
                                              .splats = s->splats,
                                              .view = &s->view,
                                              .row1 = tiles_y,
                                              .row_pairs = s->row_pairs};
    run(KILN_OP_tile_pairs_count, &count);
    free(found);
    free(depths);
    free(rows);
    free(order);
}
