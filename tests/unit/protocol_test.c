/* Messages and shared memory between parent and worker where a limit of the process is reached. */
#include "stages/engine/worker/protocol.h"
#include "stages/engine/memory/memfd.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Sets a soft limit; what it was before. */
static rlim_t limit(int which, rlim_t to)
{
    struct rlimit l;
    assert_int_equal(getrlimit((__rlimit_resource_t)which, &l), 0);
    const rlim_t was = l.rlim_cur;
    l.rlim_cur = to;
    assert_int_equal(setrlimit((__rlimit_resource_t)which, &l), 0);
    return was;
}

/* From now on no descriptor can be made. */
static rlim_t use_up_descriptors(void)
{
    const int next = dup(0);
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    return limit(RLIMIT_NOFILE, (rlim_t)next);
}

static void too_many_files_are_no_fault_of_the_unit(void **state)
{
    (void)state;
    kiln_error err = {0};
    int fd;
    const rlim_t was = use_up_descriptors();
    const kiln_status st = kiln_memfd_new(&fd, &err);
    (void)limit(RLIMIT_NOFILE, was);
    assert_int_equal(st, KILN_E_IO); /* E_NOMEM would be tried again and quarantined */
    assert_non_null(strstr(err.msg, "ulimit -n"));
}

static void a_descriptor_that_has_no_room_is_told_as_that(void **state)
{
    (void)state;
    const kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_RESULT, .bytes = 5};
    kiln_message got;
    kiln_error err = {0};
    bool closed;
    int pair[2], fd, came;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(kiln_memfd_new(&fd, NULL), KILN_OK);
    assert_int_equal(kiln_memfd_write(fd, 0, "bytes", 5, NULL), KILN_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(kiln_message_send(pair[0], &m, fd, NULL), KILN_OK);
    const rlim_t was = use_up_descriptors();
    const kiln_status st = kiln_message_receive(pair[1], &got, &came, &closed, &err);
    (void)limit(RLIMIT_NOFILE, was);
    assert_int_equal(st, KILN_E_IO);
    assert_int_equal(came, -1);
    assert_non_null(strstr(err.msg, "ulimit -n"));

    /* with room it comes */
    assert_int_equal(kiln_message_receive(pair[1], &got, &came, &closed, NULL), KILN_OK);
    assert_true(came >= 0);
    (void)close(came);
    (void)close(fd);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static void shared_memory_beyond_the_file_size_limit_names_it(void **state)
{
    (void)state;
    char page[4096] = {0};
    kiln_error err = {0};
    int fd;
    assert_int_equal(kiln_memfd_new(&fd, NULL), KILN_OK);
    const rlim_t was = limit(RLIMIT_FSIZE, 1000);
    const kiln_status st = kiln_memfd_write(fd, 0, page, sizeof page, &err);
    (void)limit(RLIMIT_FSIZE, was);
    assert_int_equal(st, KILN_E_IO);
    assert_non_null(strstr(err.msg, "ulimit -f"));
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_files_are_no_fault_of_the_unit),
        cmocka_unit_test(a_descriptor_that_has_no_room_is_told_as_that),
        cmocka_unit_test(shared_memory_beyond_the_file_size_limit_names_it),
    };
    (void)signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
