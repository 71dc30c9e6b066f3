/* text_sink -- see the header. */
#include "stages/formats/text_sink.h"

#include "base/file.h"

enum { WAITS_MOST = 1 << 18 };

kiln_status kiln_text_count(void *bytes, const char *text, size_t n, kiln_error *err)
{
    (void)text, (void)err;
    *(uint64_t *)bytes += n;
    return KILN_OK;
}

kiln_status kiln_text_file_flush(kiln_text_file *f, kiln_error *err)
{
    KILN_TRY(kiln_file_write_at(f->fd, f->path, f->at, f->waits.data, f->waits.size, err));
    f->at += f->waits.size;
    f->waits.size = 0;
    return KILN_OK;
}

kiln_status kiln_text_file_put(void *file, const char *text, size_t n, kiln_error *err)
{
    kiln_text_file *f = file;
    KILN_TRY(kiln_buffer_put(&f->waits, text, n, err));
    return f->waits.size < WAITS_MOST ? KILN_OK : kiln_text_file_flush(f, err);
}

void kiln_text_file_release(kiln_text_file *f) { kiln_buffer_release(&f->waits); }
