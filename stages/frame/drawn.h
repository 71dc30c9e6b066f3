/* drawn -- of which chunks a picture or a tile table is made: those of a layer, or of its levels of
 * detail.
 *
 * Problem. A view may take coarser levels of what is far away (kiln-lod), so which chunks it draws
 * differs from view to view, and two layers have them. Layout. Both layers become one list of
 * chunks, those of the layer and behind them those of its levels; a chunk's number in that list
 * names it in frames, in the store of a GPU and in keys. Of each view the numbers of its chunks are
 * known before anything is read (kiln_view_chunks): keys, predictions and drawing go by them.
 *
 * The choice is made of the bake's numbers alone, so parent, worker and other hosts come to the
 * same one.
 */
#ifndef KILN_STAGES_DRAWN_H
#define KILN_STAGES_DRAWN_H

#include "schema/layers.h"
#include "schema/levels.h"
#include "stages/frame/level_choice.h"
#include "stages/frame/view_request.h"

/* The row of the option table of --level, which fills the const char *o (kiln_level_wish_parse). */
#define KILN_LEVEL_OPTION_ROW(o)                                                                   \
    KILN_OPTION_TEXT("level", &(o), "LEVEL",                                                       \
                     "level of detail (kiln-lod makes them): 0 (full), K (each chunk at level K, " \
                     "or its coarsest), dB:X (the "                                                \
                     "fewest Gaussians whose picture is X dB from the full one) or auto (dB:35)",  \
                     .def = "0", .flags = KILN_KEYED | KILN_LATER)

#define KILN_LEVEL_OPTION_CHECK   \
    {                             \
        "level", kiln_level_check \
    }

extern const kiln_level_wish kiln_level_full; /* --level 0 */

/* ---- what is drawn --------------------------------------------------------------------------- */
/* Names it in a payload. All bytes are defined. */
typedef struct {
    uint64_t kind;    /* kiln_layer_kind of the layer */
    kiln_hash layer;  /* its digest */
    kiln_hash levels; /* of the layer of its levels; zero: the layer alone is drawn */
    kiln_level_wish wish;
    uint64_t narrow; /* kiln_drawn_narrow was called */
} kiln_drawn_name;

typedef struct {
    /* the chunks of both; kind and digest are the layer's, count is of both. Without levels it is
     * the layer */
    kiln_layer *chunks;
    uint32_t n_full;            /* its first so many chunks are the layer's */
    kiln_layer *layer, *levels; /* levels NULL: the layer alone is drawn */
    kiln_level_tree tree;
    bool narrow; /* `chunks` are those of one cut alone */
} kiln_drawn;

/* Read a layer and, where not all is drawn in full, its levels. The first takes the current layer
 * of this kind, the second the layers that are named. Release also after a failure. KILN_E_STALE:
 * the layer has no levels, or is not there. KILN_E_IO: what stands in the manifest is no tree of
 * levels. */
kiln_status kiln_drawn_current(kiln_manifest *m, kiln_layer_kind kind, bool with_levels,
                               kiln_drawn *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_drawn_get(kiln_manifest *m, const kiln_drawn_name *name, kiln_drawn *out,
                           kiln_error *err) KILN_MUST_CHECK;
void kiln_drawn_release(kiln_drawn *d);
/* Where all views that will be asked for take the same cut, because the wish names a level, leaves
 * the chunks of that cut alone: what goes by all chunks (memory, the store of a GPU) is then of
 * these. Else does nothing. KILN_E_NOMEM. */
kiln_status kiln_drawn_narrow(kiln_drawn *d, const kiln_level_wish *wish,
                              kiln_error *err) KILN_MUST_CHECK;
kiln_drawn_name kiln_drawn_name_of(const kiln_drawn *d, const kiln_level_wish *wish);

/* ---- what a view draws of it ----------------------------------------------------------------- */
typedef struct {
    uint32_t n;
    uint32_t *numbers; /* [n] ascending; of the chunks that are chosen and that the view may see */
    uint64_t rows;     /* of these */
} kiln_view_chunks;

/* Chooses the chunks of a view. KILN_E_NOMEM. */
kiln_status kiln_view_chunks_choose(const kiln_drawn *d, const kiln_level_wish *wish,
                                    const kiln_view_request *request, kiln_view_chunks *out,
                                    kiln_error *err) KILN_MUST_CHECK;
/* The same of a layer without levels: all that the view may see. */
kiln_status kiln_view_chunks_of_layer(const kiln_layer *l, const kiln_view_request *request,
                                      kiln_view_chunks *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_view_chunks_release(kiln_view_chunks *c);

/* ---- said of it ------------------------------------------------------------------------------ */
typedef struct {
    /* Gaussians of the view's chunks; were all of them in full */
    uint64_t rows, full;
    uint64_t of_level[KILN_LEVELS_MAX + 1];        /* the first by level */
    uint32_t chunks_of_level[KILN_LEVELS_MAX + 1]; /* chunks by level */
} kiln_view_detail;
/* Says it where levels are chosen by errors that were measured under another profile or
 * antialiasing than that of this view. */
void kiln_drawn_say_measured(const kiln_drawn *d, const kiln_level_wish *wish,
                             const kiln_view_request *request);
/* What a view draws, by level. */
void kiln_view_detail_add(kiln_view_detail *sum, const kiln_drawn *d,
                          const kiln_view_request *request, const kiln_view_chunks *c);

#endif
