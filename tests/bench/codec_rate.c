/* codec_rate [THREADS] -- how fast this machine packs and unpacks blobs (schema/codec.h: byte
 * shuffle, zstd level 1, hash) when all threads do nothing else. Prints "PACK UNPACK", millions of
 * raw bytes a second of all threads together. Stages cannot store or read planes faster than this
 * (tests/bench/bake).
 *
 * Every thread packs, then unpacks, the planes of a block of the generated scene for SECONDS;
 * packed bytes are thrown away. */
#include "base/memory.h"
#include "schema/codec.h"
#include "stages/generate/inputs.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 65536, SECONDS = 1, SEED = 1 }; /* BLOCK: Gaussians of a block of kiln-import */

/* Planes of one block, in the order of a manifest's columns. */
/* means, log_scales, quats, opacity_logits, sh0, shN */
static const uint32_t components[] = {3, 3, 4, 1, 3, 45};
enum { N_PLANES = sizeof components / sizeof *components };

typedef struct {
    float *raw[N_PLANES];
    kiln_blob packed[N_PLANES];
    uint64_t raw_bytes; /* of all planes */
} block;

static size_t bytes_of(unsigned plane) { return sizeof(float) * BLOCK * components[plane]; }

static kiln_status block_init(block *b, kiln_error *err)
{
    kg_scene scene;
    kg_splat g;
    for (unsigned p = 0; p < N_PLANES; p++) {
        KILN_TRY(kiln_alloc((void **)&b->raw[p], bytes_of(p), 1, "a plane", err));
        b->raw_bytes += bytes_of(p);
    }
    kg_scene_init(&scene, BLOCK, SEED);
    for (uint64_t i = 0; i < BLOCK; i++) {
        kg_splat_at(&scene, i, &g);
        const float *const columns[N_PLANES] = {g.pos,      g.scale, g.rot,
                                                &g.opacity, g.f_dc,  g.f_rest};
        for (unsigned p = 0; p < N_PLANES; p++)
            for (uint32_t c = 0; c < components[p]; c++)
                b->raw[p][(uint64_t)c * BLOCK + i] = columns[p][c];
    }
    for (unsigned p = 0; p < N_PLANES; p++)
        KILN_TRY(kiln_blob_pack(b->raw[p], bytes_of(p), sizeof(float), &b->packed[p], err));
    return KILN_OK;
}

static void block_release(block *b)
{
    for (unsigned p = 0; p < N_PLANES; p++) {
        free(b->packed[p].packed);
        free(b->raw[p]);
    }
}

static kiln_status to_nobody(void *context, const void *data, size_t bytes, kiln_error *err)
{
    (void)context, (void)data, (void)bytes, (void)err;
    return KILN_OK;
}

/* Packs or unpacks all planes once; dst has room for the largest. */
static kiln_status go_through(const block *b, bool pack, void *dst, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_blob out;
    kiln_packer *packer;
    KILN_TRY(kiln_packer_new(&packer, err));
    for (unsigned p = 0; p < N_PLANES && st == KILN_OK; p++) {
        if (pack)
            st = kiln_blob_stream(packer, b->raw[p], bytes_of(p), sizeof(float),
                                  &(kiln_blob_sink){.put = to_nobody}, &out, err);
        else
            st = kiln_blob_unpack(&b->packed[p], dst, err);
    }
    kiln_packer_free(packer);
    return st;
}

static kiln_status measure(const block *b, bool pack, int threads, double *mb_s, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint64_t rounds = 0;
    const double begun = omp_get_wtime();
#pragma omp parallel num_threads(threads) reduction(+ : rounds)
    {
        kiln_error own = {0};
        void *dst = NULL;
        kiln_status mine = kiln_alloc(&dst, bytes_of(N_PLANES - 1), 1, "a plane", &own);
        while (mine == KILN_OK && omp_get_wtime() - begun < SECONDS) {
            mine = go_through(b, pack, dst, &own);
            rounds++;
        }
        free(dst);
        if (mine != KILN_OK) {
#pragma omp critical
            st = kiln_fail(err, mine, "%s", own.msg);
        }
    }
    *mb_s = 1e-6 * (double)(rounds * b->raw_bytes) / (omp_get_wtime() - begun);
    return st;
}

int main(int argc, char **argv)
{
    const int asked = argc > 1 ? atoi(argv[1]) : 0,
              threads = asked > 0 ? asked : omp_get_num_procs();
    double pack_mb_s = 0, unpack_mb_s = 0;
    kiln_error err = {0};
    block b = {.raw_bytes = 0};
    kiln_status st;
    KILN_GO(block_init(&b, &err));
    KILN_GO(measure(&b, true, threads, &pack_mb_s, &err));
    KILN_GO(measure(&b, false, threads, &unpack_mb_s, &err));
    (void)printf("%.0f %.0f\n", pack_mb_s, unpack_mb_s);
done:
    block_release(&b);
    if (st != KILN_OK) (void)fprintf(stderr, "codec_rate: %s\n", err.msg);
    return kiln_exit_code(st);
}
