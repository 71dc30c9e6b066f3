/* picture_pair -- see the header. */
#include "stages/report/picture_pair.h"

enum { QUALITY = 84 };

static kiln_status encode_thumbnail(const kiln_thumbnail *t, kiln_buffer *file, kiln_error *err)
{
    return t->rgb ? kiln_jpeg_encode(t->rgb, t->width, t->height, QUALITY, file, err) : KILN_OK;
}

kiln_status kiln_picture_pair_make(const kiln_thumbnail *left, const kiln_thumbnail *right,
                                   kiln_report_pair *out, kiln_error *err)
{
    kiln_thumbnail difference = {0};
    KILN_TRY(encode_thumbnail(left, &out->left, err));
    KILN_TRY(encode_thumbnail(right, &out->right, err));
    if (!left->rgb || !right->rgb) return KILN_OK;
    kiln_status st = kiln_thumbnail_difference(left, right, &difference, err);
    if (st == KILN_OK) st = encode_thumbnail(&difference, &out->difference, err);
    kiln_thumbnail_release(&difference);
    return st;
}

void kiln_picture_pair_release(kiln_report_pair *p)
{
    kiln_buffer_release(&p->left);
    kiln_buffer_release(&p->right);
    kiln_buffer_release(&p->difference);
}

uint64_t kiln_picture_pair_bytes(const kiln_report_pair *p)
{
    return (p->left.size + p->right.size + p->difference.size) / 3 * 4;
}
