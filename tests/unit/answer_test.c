/* answer, deadlines -- answers are shared and counted until the last user drops them; connections
 * end when their time is over. */
#include "stages/serve/answer.h"
#include "stages/serve/deadlines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static kiln_reply reply_of(size_t bytes)
{
    kiln_reply r = {.status = 200};
    kiln_error err = {0};
    assert_int_equal(kiln_buffer_put(&r.body, NULL, bytes, &err), KILN_OK);
    return r;
}

static void answers_are_counted_until_dropped(void **state)
{
    (void)state;
    kiln_answer_pool pool = {.limit = 1 << 20};
    kiln_answer *a = NULL, *b = NULL;
    kiln_error err = {0};
    kiln_reply r = reply_of(600000);
    assert_int_equal(kiln_answer_make(&pool, &r, &a, &err), KILN_OK);
    assert_null(r.body.data);
    assert_true(atomic_load(&pool.bytes) >= 600000);
    r = reply_of(600000);
    assert_int_equal(kiln_answer_make(&pool, &r, &b, &err), KILN_E_BUSY);
    assert_null(b);
    assert_null(r.body.data); /* taken after a failure, too */
    assert_int_equal(kiln_answer_text(&pool, 503, "wait", &b, &err), KILN_OK);
    assert_true(b->reply.again);
    assert_memory_equal(b->reply.body.data, "wait\n", 5);
    kiln_answer_drop(b);
    assert_ptr_equal(kiln_answer_use(a), a);
    kiln_answer_drop(a);
    assert_true(atomic_load(&pool.bytes) >= 600000);
    kiln_answer_drop(a);
    assert_int_equal(atomic_load(&pool.bytes), 0);
    kiln_answer_drop(NULL);
}

static void assert_open(int fd, bool open)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
    assert_int_equal(n, open ? -1 : 0);
}

static void only_connections_whose_time_is_over_end(void **state)
{
    (void)state;
    kiln_deadlines d;
    kiln_error err = {0};
    int pairs[3][2];
    kiln_deadline *of[3];
    assert_int_equal(kiln_deadlines_init(&d, &err), KILN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        of[i] = kiln_deadlines_add(&d, pairs[i][0], i == 1 ? 0 : 3600000);
        assert_non_null(of[i]);
    }
    usleep(1000);
    assert_int_equal(kiln_deadlines_sweep(&d), 1);
    assert_int_equal(kiln_deadlines_sweep(&d), 0); /* it has ended */
    assert_open(pairs[0][1], true);
    assert_open(pairs[1][1], false);
    kiln_deadlines_set(&d, of[0], 0);
    kiln_deadlines_set(&d, of[2], 0);
    kiln_deadlines_set(&d, of[2], KILN_NO_DEADLINE);
    usleep(1000);
    assert_int_equal(kiln_deadlines_sweep(&d), 1);
    assert_open(pairs[0][1], false);
    assert_open(pairs[2][1], true);
    kiln_deadlines_remove(&d, of[1]);
    kiln_deadlines_remove(&d, of[0]);
    assert_int_equal(d.n, 1);
    kiln_deadlines_remove(&d, of[2]);
    assert_null(d.first);
    kiln_deadlines_release(&d);
    for (int i = 0; i < 3; i++) {
        (void)close(pairs[i][0]);
        (void)close(pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_counted_until_dropped),
        cmocka_unit_test(only_connections_whose_time_is_over_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
