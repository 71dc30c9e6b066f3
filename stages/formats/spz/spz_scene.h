/* spz_scene -- what the writers of both versions of SPZ share: what can be written, the header, a
 * chunk's codes.
 *
 * A plan begins with kiln_spz_plan. Rows lie in the layer's order; the six planes of codes are
 * attribute after attribute of the whole scene, in either version.
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_SCENE_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_SCENE_H

#include "stages/formats/rows.h"
#include "stages/formats/spz/spz_encode.h"
#include "stages/formats/writer.h"

enum { KILN_SPZ_OCTAVES = 256 };

typedef struct {
    kiln_spz_coding coding;
    bool is_of_spz; /* all rows were read from SPZ and stay where they were */
    /* the box of positions alone asks for finer steps than there are: the scales decide */
    bool is_small;
    /* of rows of SPZ: fractional bits that lose nothing of any position */
    uint32_t needed;
    uint32_t stride[KILN_SPZ_PLANES]; /* bytes a row */
    /* of each plane behind the header, and where the last one ends */
    uint64_t at[KILN_SPZ_PLANES + 1];
    /* if is_small: how many scales there are from 2^(i - 128) up to twice that */
    uint64_t scales[KILN_SPZ_OCTAVES];
} kiln_spz_plan;

/* kiln_writer_functions.counts: indices of kiln_export_worker.counts, set by
 * kiln_spz_chunk_encode. */
extern const kiln_export_count kiln_spz_counts[];
#define KILN_SPZ_COUNTS                                                       \
    {"row has a log scale that was clamped to -10 .. 5.9375",                 \
     "rows have log scales that were clamped to -10 .. 5.9375"},              \
        {"row has a colour that was clamped to what a byte holds",            \
         "rows have colours that were clamped to what a byte holds"},         \
    {                                                                         \
        "row has a spherical harmonic that was clamped to -1 .. 0.9922",      \
            "rows have spherical harmonics that were clamped to -1 .. 0.9922" \
    }

/* The oldest version that is written: degree 3 at most, and rotations of 3 bytes. */
enum { KILN_SPZ_OLDEST = 2 };

/* Checks what SPZ can hold, chooses the fractional bits, unless rows must be read for that, and
 * begins p->plan. Notes: what readers make of the file. KILN_E_INPUT: there are too many rows. The
 * second is of version KILN_SPZ_OLDEST. */
kiln_status kiln_spz_plan_oldest(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_spz_plan_make(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;

/* The first round of a writer: of rows that were read from SPZ, finds the fractional bits that
 * their file had, so that positions keep their codes; of a scene that is small for where it lies,
 * what its scales are: a Gaussian is in its place if a step is a tenth of it, however small the box
 * of all centres is. For other rows it has no units. */
uint64_t kiln_spz_measure_units(const kiln_export *e);
uint64_t kiln_spz_measure_ram(const kiln_export *e, uint64_t unit);
kiln_status kiln_spz_measure(kiln_export_worker *x, uint64_t unit, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_spz_measure_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                    size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_INPUT: steps are too coarse */
kiln_status kiln_spz_measure_end(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;
#define KILN_SPZ_MEASURING                                                                      \
    {                                                                                           \
        .what = "measuring", .units = kiln_spz_measure_units, .ram = kiln_spz_measure_ram,      \
        .run = kiln_spz_measure, .gather = kiln_spz_measure_gather, .end = kiln_spz_measure_end \
    }

/* n_streams: of version 4, else 0. */
void kiln_spz_header_make(uint64_t n_rows, const kiln_spz_coding *coding, bool antialiased,
                          uint32_t version, unsigned char n_streams,
                          unsigned char out[KILN_SPZ_HEADER]);

/* The codes of a chunk's rows. */
typedef struct {
    uint64_t n, first;                      /* rows, and the place of the first one */
    unsigned char *planes[KILN_SPZ_PLANES]; /* planes[0] owned: they lie one behind the other */
    size_t bytes[KILN_SPZ_PLANES];
} kiln_spz_chunk;
kiln_status kiln_spz_chunk_encode(kiln_export_worker *x, const kiln_spz_plan *plan, uint64_t unit,
                                  kiln_spz_chunk *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_spz_chunk_release(kiln_spz_chunk *c);
/* Host memory of kiln_spz_chunk_encode, and of what it leaves. */
uint64_t kiln_spz_chunk_ram(const kiln_export *e, const kiln_spz_plan *plan, uint64_t unit);

#endif
