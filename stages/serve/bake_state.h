/* bake_state -- the bake as one request sees it: a read-only connection, and what has been read
 * through it, kept until the data change.
 *
 * Between _enter and _leave there is one transaction, so all that is read is of one state, whatever
 * a stage writes meanwhile; it lasts as long as one answer is made. Nothing is ever written. If
 * another file has taken the manifest's place, it is opened, unless the log beside it is of the
 * former one (former_log.h).
 *
 * For one thread. Getters give what the state owns, until the next _enter; they read it when it is
 * first asked for. Failures as manifest.h; KILN_E_STALE: the bake has not come so far. */
#ifndef KILN_STAGES_SERVE_BAKE_STATE_H
#define KILN_STAGES_SERVE_BAKE_STATE_H

#include "base/file.h"
#include "schema/layers.h"
#include "schema/levels.h"
#include "schema/manifest.h"
#include "stages/serve/former_log.h"
#include "stages/survey/bake_views.h"

#include <sys/types.h>

enum { KILN_SERVE_CAMERAS_MAX = 20000 /* less than one KiB each is held in memory by each lane */ };

typedef struct {
    char path[KILN_PATH_MAX];
    bool allow_network;
    kiln_manifest *m; /* NULL: not open */
    dev_t device;     /* of the file that is open */
    ino_t inode;
    struct timespec opened; /* when it had last been written before it was opened */
    kiln_seen_log log;      /* beside it at the last request */
    int64_t data_version;
    /* rises whenever anything below, or a row of the manifest, may have changed */
    uint64_t version;
    bool written;        /* a program writes the manifest at present */
    char written_by[32]; /* as which stage; "" unknown */
    kiln_scene *scene;   /* NULL: not read since the last change; the same of the others */
    kiln_bake_views *views;
    kiln_source_file *sources;
    uint32_t n_sources;
    bool layers_known, tree_known;
    kiln_layer *drawn, *levels; /* levels: NULL if there are none of `drawn` */
    kiln_level_tree tree;
} kiln_bake_state;

/* Remembers which manifest; opens nothing. KILN_E_INPUT: the path is too long. */
kiln_status kiln_bake_state_init(kiln_bake_state *s, const char *path, bool allow_network,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_bake_state_release(kiln_bake_state *s);
kiln_status kiln_bake_state_enter(kiln_bake_state *s, kiln_error *err) KILN_MUST_CHECK;
/* Adds to a failure that is of the file what may have happened to it meanwhile. */
void kiln_bake_state_explain(const kiln_bake_state *s, kiln_error *err);
/* Ends the transaction; may be called before the answer is made, from where on only what a getter
 * has given is read. Twice does nothing. */
void kiln_bake_state_leave(kiln_bake_state *s);

kiln_status kiln_bake_state_scene(kiln_bake_state *s, const kiln_scene **out,
                                  kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_CAP: more than KILN_SERVE_CAMERAS_MAX cameras. */
kiln_status kiln_bake_state_views(kiln_bake_state *s, const kiln_bake_views **out,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_bake_state_sources(kiln_bake_state *s, const kiln_source_file **out, uint32_t *n,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Fills s->drawn and s->levels; each stays NULL where there is none. */
kiln_status kiln_bake_state_layers(kiln_bake_state *s, kiln_error *err) KILN_MUST_CHECK;
/* Fills s->tree besides, of the layers; empty if there is no layer to draw. */
kiln_status kiln_bake_state_tree(kiln_bake_state *s, kiln_error *err) KILN_MUST_CHECK;

#endif
