/* The costs of work.h: measured on one core and rounded up (DESIGN.md). */
#include "stages/engine/devices/work.h"

#include <stdlib.h>

/* Nanoseconds of one thread. */
enum {
    IMPORT_ROW = 3000,
    KNN_ROW = 1000,
    PRUNE_ROW = 3000,
    PRUNE_ROW_VIEW = 250,
    COUNT_ROW_VIEW = 60, /* about twice the measured cost */
    CHUNK_ROW = 6000,
    TILES_ROW_CAMERA = 1500,
    PICTURE_ROW = 400,
    PICTURE_PIXEL = 150, /* drawn, hashed and encoded */
    PHOTO_PIXEL = 100,
    PICTURE_PAIR = 200, /* 256 pixels of a tile */
    DECODED_ROW = 500,
    PAIRS_OF_ROW = 10, /* about, where they are not counted yet: 3 to 14 were measured */
};

enum {
    OPEN_MS = 400,     /* making a context and ending it */
    HAND_OVER_MS = 50, /* where there is one: the stage's kernels are loaded and its data copied */
};

static const double NS = 1e-9;

double kiln_work_import(double rows) { return NS * IMPORT_ROW * rows; }
double kiln_work_knn(double rows) { return NS * KNN_ROW * rows; }
double kiln_work_prune(double rows, double views)
{
    return NS * rows * (PRUNE_ROW + PRUNE_ROW_VIEW * views);
}
double kiln_work_chunk(double rows) { return NS * CHUNK_ROW * rows; }
double kiln_work_tiles(double rows, double cameras)
{
    return NS * TILES_ROW_CAMERA * rows * cameras;
}
double kiln_work_count(double rows) { return NS * COUNT_ROW_VIEW * rows; }
double kiln_work_decode(double rows) { return NS * DECODED_ROW * rows; }

double kiln_work_picture(double rows, double pixels, double pairs, bool photo)
{
    return NS *
           (PICTURE_ROW * rows + (photo ? PICTURE_PIXEL + PHOTO_PIXEL : PICTURE_PIXEL) * pixels +
            PICTURE_PAIR * pairs);
}

double kiln_work_later(const kiln_work_scene *s)
{
    const double rows = s->rows * s->cameras, tiles = kiln_work_tiles(s->rows, s->cameras);
    const double pictures = kiln_work_picture(rows, s->pixels, PAIRS_OF_ROW * rows, true);
    return tiles > pictures ? tiles : pictures;
}

double kiln_work_gpu_s(bool open)
{
    const char *given = getenv("KILN_GPU_MS");
    const unsigned long ms = given && *given ? strtoul(given, NULL, 10) : OPEN_MS;
    return 1e-3 * (double)(open && ms > HAND_OVER_MS ? HAND_OVER_MS : ms);
}

bool kiln_work_is_round(double cpu_s)
{
    static const double LEAST_S = 100;
    const char *given = getenv("KILN_ROUND_S");
    return cpu_s >= (given && *given ? strtod(given, NULL) : LEAST_S);
}

bool kiln_work_pays(double cpu_s, unsigned threads, bool open)
{
    return cpu_s >= kiln_work_gpu_s(open) * (threads ? threads : 1);
}
