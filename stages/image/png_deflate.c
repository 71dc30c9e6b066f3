/* png_deflate -- a block of filtered rows becomes a piece of a deflate stream, whose bytes depend
 * on the rows alone.
 *
 * ISA-L's level 1 has a fault on x86 (2.28 to 2.32, igzip_icf_body_h1_gr_bt.asm, label
 * .write_first_byte): behind the very first byte it takes the hash of the third from a register
 * that still holds the address of the stream. The third byte's place then stands in a line of the
 * hash table that the address decides, where it may hide a match or offer one: what comes out
 * inflates to the same rows, but about one block in 4,000 gets other bytes, another one in each
 * process.
 *
 * So the first byte is given alone, as far as ISA-L allows: of input that is not the last it keeps
 * ISAL_LOOK_AHEAD bytes in sight. It takes the one in front of them and leaves before it hashes
 * another; the second call computes both hashes from the rows. The second call works in ISA-L's own
 * buffer, into which it copies: 2 to 4 % of the time. What is too short for two calls is packed by
 * level 0, whose code has no such fault, with the codes of the format, because a table of codes
 * would be longer.
 */
#include "stages/image/image_internal.h"

#include <isa-l/igzip_lib.h>

enum { LEVEL = 1, FIRST_BYTES = ISAL_LOOK_AHEAD + 1 };

typedef struct {
    struct isal_zstream z;
    _Alignas(16) unsigned char level[ISAL_DEF_LVL1_DEFAULT];
} deflater;

size_t kiln_png_deflate_state_bytes(void) { return sizeof(deflater); }

static bool deflate_input(struct isal_zstream *z, const unsigned char *in, size_t bytes)
{
    z->next_in = (unsigned char *)(uintptr_t)in; /* ISA-L's struct lacks const; it only reads */
    z->avail_in = (uint32_t)bytes;
    return isal_deflate(z) == COMP_OK && z->avail_in == 0;
}

bool kiln_png_deflate(void *state, const kiln_png_block *b, size_t *bytes)
{
    deflater *const d = state;
    struct isal_zstream *const z = &d->z;
    const size_t first = b->plain > FIRST_BYTES ? FIRST_BYTES : 0;
    isal_deflate_init(z);
    z->next_out = b->out;
    z->avail_out = (uint32_t)b->capacity;
    if (first) {
        z->level = LEVEL;
        z->level_buf = d->level;
        z->level_buf_size = sizeof d->level;
        if (!deflate_input(z, b->rows, first)) return false;
    } else if (isal_deflate_set_hufftables(z, NULL, IGZIP_HUFFTABLE_STATIC) != COMP_OK)
        return false;
    z->end_of_stream = b->last;
    z->flush = b->last ? NO_FLUSH : SYNC_FLUSH;
    if (!deflate_input(z, b->rows + first, b->plain - first)) return false;
    *bytes = z->total_out;
    return z->avail_out > 0;
}
