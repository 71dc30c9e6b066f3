/* tails -- how many pictures a GPU's worker hashes, compresses and writes while it draws the next ones (kiln_worker_defer). */
#ifndef KILN_STAGES_RENDER_ENCODING_H
#define KILN_STAGES_RENDER_ENCODING_H

#include <stdint.h>

/* Answers go out in order: a tail that is done may wait with its own for an older one, and another runs meanwhile. */
enum { KILN_RENDER_ENCODING_MAX = 16, KILN_RENDER_ANSWERS = 2 /* that are due, for each tail */ };

/* What they take, the same for all units of a run, so that none has to give way to another's tail. */
typedef struct {
    uint32_t most;    /* so many at a time, at most */
    uint64_t drawing; /* host memory in bytes: the most that any unit takes; */
    uint64_t writing; /* that writing its files takes, but for threads; */
    uint64_t pixels;  /* the most that a picture has */
} kiln_render_encoding;

/* For three quarters of a worker's threads one each, which then has little to wait for at the end of a picture: 300 frames take as
 * long with half as many and with as many as threads, longer with two. Few pictures have more threads each. */
uint32_t kiln_render_encoding_most(uint32_t threads, uint64_t pictures);

/* What as many as may be take with their canvases. */
uint64_t kiln_render_encoding_bytes(const kiln_render_encoding *t);

/* For how many there is room in a worker whose units may take `may` bytes; 0: for none. More than two take at most half of what
 * drawing leaves: the other half keeps decoded planes. *beside: what drawing takes with them, but for their canvases, of which
 * there is one more than there are tails. */
uint32_t kiln_render_encoding_in(const kiln_render_encoding *t, uint64_t may, uint64_t *beside);

#endif
