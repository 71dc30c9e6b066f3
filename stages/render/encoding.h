/* encoding -- how many pictures a GPU's worker encodes (hashes, compresses and writes) while it
 * draws the next ones. Encoding is deferred work of a unit (kiln_worker_defer).
 *
 * Problem. A picture takes 1.4 ms to draw and tens of milliseconds to encode on one thread, so many
 * must be encoded at the same time. Constraint. Each needs a canvas and memory to write, within
 * --ram. Answers go out in the order of the units, so a picture that is encoded may have to wait
 * for an older one; meanwhile another is encoded. So there are KILN_RENDER_ANSWERS units unanswered
 * for each picture that may be encoded at a time. */
#ifndef KILN_STAGES_RENDER_ENCODING_H
#define KILN_STAGES_RENDER_ENCODING_H

#include <stdint.h>

enum { KILN_RENDER_ENCODING_MAX = 16, KILN_RENDER_ANSWERS = 2 };

/* The sizes are the same for all units of a run, the largest of all, so that no unit waits for
 * canvases of another size. */
typedef struct {
    uint32_t most;    /* pictures that may be encoded at a time */
    uint64_t drawing; /* bytes of host memory that a unit takes */
    uint64_t writing; /* bytes that writing the files of a picture takes, without threads */
    uint64_t pixels;  /* of a picture */
} kiln_render_encoding;

/* Returns how many pictures to encode at a time: one thread each for three quarters of the threads.
 * More threads for a picture wait for each other at its end. 300 frames take as long with half as
 * many pictures and with as many as threads; with two they take longer. If there are few pictures,
 * fewer are encoded at a time, on more threads each. */
uint32_t kiln_render_encoding_most(uint32_t threads, uint64_t pictures);

/* Returns the bytes that encoding t->most pictures takes, with their canvases. */
uint64_t kiln_render_encoding_bytes(const kiln_render_encoding *t);

/* Returns how many pictures a worker can encode at a time if its units may take `may` bytes; 0:
 * none. More than two take at most half of what drawing leaves, because the other half keeps
 * decoded planes. If the result is not 0, *beside is the size of a unit together with encoding,
 * without canvases; there is one canvas more than pictures being encoded. */
uint32_t kiln_render_encoding_in(const kiln_render_encoding *t, uint64_t may, uint64_t *beside);

#endif
