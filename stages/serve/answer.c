/* answer -- see the header. */
#include "stages/serve/answer.h"

#include <stdlib.h>
#include <string.h>

bool kiln_answer_pool_takes(const kiln_answer_pool *pool, uint64_t bytes)
{
    const uint64_t held = atomic_load(&pool->bytes);
    return held <= pool->limit && bytes <= pool->limit - held;
}

/* A buffer grows by doubling; an answer may be kept for long. */
static void fit(kiln_buffer *b)
{
    void *data = b->size && b->size < b->capacity ? realloc(b->data, b->size) : NULL;
    if (!data) return;
    b->data = data;
    b->capacity = b->size;
}

static kiln_status make_answer(kiln_answer_pool *pool, kiln_reply *reply, kiln_answer **out,
                               kiln_error *err)
{
    kiln_answer *a = NULL;
    const kiln_status st = KILN_ALLOC(&a, 1, "an answer", err);
    if (st != KILN_OK) {
        kiln_buffer_release(&reply->body);
        return st;
    }
    atomic_init(&a->users, 1);
    a->pool = pool;
    a->reply = *reply;
    fit(&a->reply.body);
    reply->body = (kiln_buffer){0};
    (void)atomic_fetch_add(&pool->bytes, a->reply.body.capacity);
    *out = a;
    return KILN_OK;
}

kiln_status kiln_answer_make(kiln_answer_pool *pool, kiln_reply *reply, kiln_answer **out,
                             kiln_error *err)
{
    *out = NULL;
    if (kiln_answer_pool_takes(pool, reply->body.capacity))
        return make_answer(pool, reply, out, err);
    kiln_buffer_release(&reply->body);
    return kiln_fail(err, KILN_E_BUSY, "too many answers wait for slow clients");
}

kiln_status kiln_answer_text(kiln_answer_pool *pool, unsigned status, const char *text,
                             kiln_answer **out, kiln_error *err)
{
    kiln_reply reply = {
        .status = status, .type = "text/plain; charset=utf-8", .again = status == 503};
    *out = NULL;
    KILN_TRY(kiln_buffer_put(&reply.body, text, strlen(text), err));
    const kiln_status st = kiln_buffer_put(&reply.body, "\n", 1, err);
    if (st == KILN_OK) return make_answer(pool, &reply, out, err);
    kiln_buffer_release(&reply.body);
    return st;
}

kiln_answer *kiln_answer_use(kiln_answer *a)
{
    (void)atomic_fetch_add(&a->users, 1);
    return a;
}

void kiln_answer_drop(void *answer)
{
    kiln_answer *a = answer;
    if (!a || atomic_fetch_sub(&a->users, 1) > 1) return;
    (void)atomic_fetch_sub(&a->pool->bytes, a->reply.body.capacity);
    kiln_buffer_release(&a->reply.body);
    free(a);
}
