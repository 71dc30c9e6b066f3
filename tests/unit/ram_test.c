/* --ram: what is free under limits, by a pretended /proc and /sys; and how a cap is shared out. */
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/memory/memfd.h"
#include "stages/engine/memory/ram_use.h"

#include "base/file.h"
#include "tests/unit/own_memory.h"
#include "tests/unit/test_folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

/* ---- what is free ---------------------------------------------------------------------------- */
static char root[TEST_FOLDER_MAX];

static void put(const char *path, const char *text)
{
    char full[2 * KILN_PATH_MAX];
    (void)snprintf(full, sizeof full, "%s%s", root, path);
    assert_int_equal(kiln_make_parents(full, NULL), KILN_OK);
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int make_root(void **state)
{
    (void)state;
    assert_int_equal(test_folder_new(root, "ram"), 0);
    put("/proc/meminfo",
        "MemTotal:       33554432 kB\nMemFree:         1048576 kB\nMemAvailable:   16777216 kB\n");
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    return test_folder_remove(root);
}

static void without_cgroups_it_is_what_the_kernel_calls_available(void **state)
{
    (void)state;
    assert_int_equal(kiln_ram_free(root), 16384 * MIB);
}

static void the_least_limit_up_the_tree_counts_and_file_pages_are_free(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/slice/job\n");
    put("/sys/fs/cgroup/slice/job/memory.max", "max\n");
    put("/sys/fs/cgroup/slice/job/memory.high", "4294967296\n");
    put("/sys/fs/cgroup/slice/job/memory.current", "1048576\n");
    put("/sys/fs/cgroup/slice/job/memory.stat", "anon 1048576\nactive_file 0\ninactive_file 0\n");
    assert_int_equal(kiln_ram_free(root), 4095 * MIB);
    put("/sys/fs/cgroup/slice/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/slice/memory.current", "314572800\n");
    put("/sys/fs/cgroup/slice/memory.stat",
        "anon 209715200\nfile 1\nactive_file 41943040\ninactive_file 62914560\n");
    assert_int_equal(kiln_ram_free(root), (1024 - 300 + 100) * MIB);
}

static void a_group_that_is_over_its_limit_leaves_nothing(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "1048576\n");
    put("/sys/fs/cgroup/memory.current", "9999999\n");
    assert_int_equal(kiln_ram_free(root), 0);
}

static void groups_of_version_1_and_containers_without_their_path(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:cpu,cpuacct:/docker/7f2c\n4:memory:/docker/7f2c\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
    put("/sys/fs/cgroup/memory/memory.stat",
        "cache 52428800\ntotal_active_file 0\ntotal_inactive_file 52428800\n");
    assert_int_equal(kiln_ram_free(root), (512 - 100 + 50) * MIB);
}

/* ---- the plan -------------------------------------------------------------------------------- */
enum { UNITS = 6 };
static kiln_run run; /* too big for the stack */
static kiln_unit units[UNITS];
static const uint64_t due[UNITS] = {0, 1, 2, 3, 4, 5};

static kiln_status plan(uint64_t cap_mib, uint64_t unit_mib, unsigned wanted, kiln_ram_plan *p,
                        kiln_error *err)
{
    static const kiln_stage_program program = {0}; /* whose units defer no work */
    run.program = &program;
    run.devices.home = run.devices.homes;
    run.ram = (kiln_ram_use){.cap = cap_mib * MIB};
    kiln_common_values.threads = 4;
    memset(units, 0, sizeof units);
    for (int i = 0; i < UNITS; i++) {
        (void)snprintf(units[i].name, sizeof units[i].name, "block %d", i);
        units[i].ram = (i == 3 ? unit_mib : 1) * MIB; /* the largest decides */
    }
    return kiln_ram_plan_make(kiln_run_ram(&run), &(kiln_ram_list){units, due, UNITS, wanted, 0}, p,
                              err);
}

static void with_room_all_workers_have_two_units_and_results_wait(void **state)
{
    kiln_ram_plan p;
    (void)state;
    assert_int_equal(plan(8192, 100, 4, &p, NULL), KILN_OK);
    assert_int_equal(p.n_workers, 4);
    assert_int_equal(p.in_flight, 2);
    assert_int_equal(p.batch, 256 * MIB);
    assert_true(p.unit >= 1000 * MIB);
    assert_true(p.predicted <= p.cap);
    assert_int_equal(run.ram.predicted, p.predicted);
    /* parent, batch, four workers with a thread each and one and a half units, the connection that
     * writes batches once */
    const uint64_t sum = 24 * MIB + 256 * MIB + 4 * (27 * MIB / 2 + 150 * MIB) + KILN_BULK_RAM;
    assert_true(p.direct);
    assert_true(p.predicted >= sum);
    assert_true(p.predicted < sum + KILN_BULK_RAM);
    assert_int_equal(plan(64 << 10, 100, 4, &p, NULL), KILN_OK);
    assert_int_equal(p.batch, 1024 * MIB);
    assert_true(p.predicted >= sum + 768 * MIB);
}

/* The connection that writes batches once is counted, and left out where it has no room. */
static void storing_directly_takes_room_that_is_left(void **state)
{
    kiln_ram_plan p;
    unsigned with = 0, without = 0;
    (void)state;
    for (uint64_t cap = 100; cap < 2000; cap += 7) {
        if (plan(cap, 64, 4, &p, NULL) != KILN_OK) continue;
        assert_true(p.predicted <= p.cap);
        if (p.direct) assert_true(p.batch > 0);
        *(p.direct ? &with : &without) += 1;
    }
    assert_true(with > 100);
    assert_true(without > 5);
}

static void no_plan_predicts_more_than_its_cap_and_every_share_holds_the_largest_unit(void **state)
{
    unsigned workers = 0;
    (void)state;
    for (uint64_t cap = 100; cap < 2000; cap += 7) {
        kiln_ram_plan p;
        kiln_error err = {0};
        const kiln_status st = plan(cap, 100, 8, &p, &err);
        if (st != KILN_OK) {
            assert_int_equal(st, KILN_E_CAP);
            assert_int_equal(workers, 0); /* more memory never makes it fail again */
            continue;
        }
        assert_true(p.unit >= 100 * MIB);
        assert_true(p.predicted <= p.cap);
        assert_true(p.batch + p.n_workers * (p.unit + (p.in_flight - 1) * 50 * MIB) < p.cap);
        assert_true(p.n_workers >= workers);
        workers = p.n_workers;
    }
    assert_int_equal(workers, 8);
}

/* Many units on 16 threads. Workers that wait for each transaction are worth less than somewhat
 * fewer that do not. */
enum { BLOCKS = 40 };
static void plan_blocks(uint64_t cap_mib, uint64_t unit_mib, bool is_volatile, kiln_ram_plan *p)
{
    static const kiln_stage_program program = {0};
    static kiln_unit blocks[BLOCKS];
    uint64_t all[BLOCKS];
    run.program = &program;
    run.devices.home = run.devices.homes;
    run.ram = (kiln_ram_use){.cap = cap_mib * MIB};
    kiln_common_values.threads = 16;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks[i] =
            (kiln_unit){.name = "block", .ram = unit_mib * MIB, .volatile_result = is_volatile};
        all[i] = i;
    }
    assert_int_equal(kiln_ram_plan_make(kiln_run_ram(&run),
                                        &(kiln_ram_list){blocks, all, BLOCKS, 16, 0}, p, NULL),
                     KILN_OK);
    assert_true(p->predicted <= p->cap);
    assert_true(p->unit >= unit_mib * MIB);
    const uint64_t result = (p->in_flight - 1) * unit_mib * MIB / 2,
                   worker = 27 * MIB / 2 + unit_mib * MIB + result;
    assert_true(24 * MIB + p->batch + (p->direct ? KILN_BULK_RAM : 0) + p->n_workers * worker <=
                p->cap);
}

static void a_few_workers_give_way_to_a_batch(void **state)
{
    kiln_ram_plan p;
    (void)state;
    plan_blocks(1024, 38, false, &p); /* all of them beside a batch, if none has two units */
    assert_int_equal(p.n_workers, 16);
    assert_int_equal(p.in_flight, 1);
    assert_true(p.direct);
    assert_in_range(p.batch, 64 * MIB, 256 * MIB);
    plan_blocks(1024, 47, false, &p); /* 16 have room if each result is stored at once */
    assert_in_range(p.n_workers, 12, 15);
    assert_true(p.direct);
    assert_in_range(p.batch, 64 * MIB, 256 * MIB);
    plan_blocks(1024, 47, true, &p); /* nothing is stored */
    assert_int_equal(p.n_workers, 16);
    assert_int_equal(p.batch, 0);
    plan_blocks(1024, 630, false, &p); /* no thread of a single one is given up */
    assert_int_equal(p.n_workers, 1);
    assert_int_equal(p.n_threads, 16);
    plan_blocks(1024, 300, false, &p); /* one of three is too many */
    assert_int_equal(p.n_workers, 3);
    assert_int_equal(p.batch, 0);
    for (uint64_t cap = 400; cap < 3000; cap += 7) plan_blocks(cap, 38, false, &p);
    assert_int_equal(p.in_flight, 2);
    assert_int_equal(p.n_workers, 16);
}

static void the_least_that_is_named_works_and_little_less_does_not(void **state)
{
    kiln_ram_plan p;
    kiln_error err = {0};
    (void)state;
    assert_int_equal(plan(30, 200, 2, &p, &err), KILN_E_CAP);
    const char *at = strstr(err.msg, "the least that works is --ram ");
    assert_non_null(at);
    assert_non_null(strstr(err.msg, "'block 3' needs 200 MiB"));
    const uint64_t least = strtoull(at + strlen("the least that works is --ram "), NULL, 10);
    assert_int_equal(plan(least, 200, 2, &p, &err), KILN_OK);
    assert_int_equal(p.n_workers, 1);
    assert_int_equal(p.batch, 0);
    assert_int_equal(p.in_flight, 1);
    assert_int_equal(plan(least - 4, 200, 2, &p, &err), KILN_E_CAP);
}

static void a_unit_that_takes_all_that_a_worker_alone_may_has_a_plan(void **state)
{
    kiln_ram_plan p;
    (void)state;
    run.ram = (kiln_ram_use){.cap = 300 * MIB};
    kiln_common_values.threads = 4;
    memset(units, 0, sizeof units);
    units[0].ram = kiln_run_unit_ram(&run);
    assert_int_equal(
        kiln_ram_plan_make(kiln_run_ram(&run), &(kiln_ram_list){units, due, 1, 1, 0}, &p, NULL),
        KILN_OK);
    assert_true(p.unit >= units[0].ram);
}

static uint64_t least_named(const kiln_error *err)
{
    const char *at = strstr(err->msg, "the least that works is --ram ");
    assert_non_null(at);
    return strtoull(at + strlen("the least that works is --ram "), NULL, 10);
}

/* The plan of one unit. */
static kiln_status plan_one(uint64_t cap_mib, unsigned threads, unsigned wanted, const kiln_unit *u,
                            kiln_ram_plan *p, kiln_error *err)
{
    static const kiln_stage_program program = {0};
    const uint64_t foreseen = run.ram.foreseen;
    run.program = &program;
    run.devices.home = run.devices.homes;
    run.ram = (kiln_ram_use){.cap = cap_mib * MIB, .foreseen = foreseen};
    kiln_common_values.threads = threads;
    return kiln_ram_plan_make(kiln_run_ram(&run), &(kiln_ram_list){u, due, 1, wanted, 0}, p, err);
}

static void threads_give_way_before_a_cap_is_refused(void **state)
{
    kiln_ram_plan p;
    kiln_error err = {0};
    unsigned before = 0;
    (void)state;
    run.ram.foreseen = 0;
    const kiln_unit u = {.name = "one", .ram = 100 * MIB};
    assert_int_equal(plan_one(60, 64, 16, &u, &p, &err), KILN_E_CAP);
    const uint64_t least = least_named(&err);
    assert_true(least < 150); /* 24 parent, 13.5 worker with one thread */
    assert_int_equal(plan_one(60, 1, 1, &u, &p, &err), KILN_E_CAP);
    assert_int_equal(least_named(&err), least); /* whatever --threads says */
    for (uint64_t cap = least; cap < 4 * least; cap++) {
        assert_int_equal(plan_one(cap, 64, 1, &u, &p, NULL), KILN_OK);
        assert_true(p.n_threads >= before);
        assert_true(p.unit >= u.ram);
        assert_true(p.predicted <= p.cap);
        assert_in_range(p.threads_each, p.n_threads, 64);
        before = p.n_threads;
    }
    assert_int_equal(before, 64);
    assert_int_equal(plan_one(8192, 64, 16, &u, &p, NULL), KILN_OK);
    assert_int_equal(p.n_workers, 16);
    assert_int_equal(p.n_threads, 64);
}

static void what_a_unit_has_for_each_thread_gives_way_too(void **state)
{
    kiln_ram_plan p;
    kiln_error err = {0};
    (void)state;
    run.ram.foreseen = 0;
    const kiln_unit u = {.name = "hashes", .ram = 2 * MIB, .ram_thread = 2 * MIB};
    /* 64 threads would be 128 MiB of buffers and 108 of worker */
    assert_int_equal(plan_one(256, 64, 1, &u, &p, &err), KILN_OK);
    assert_in_range(p.n_threads, 8, 63);
    assert_true(p.unit >= u.ram + (p.n_threads - 1) * u.ram_thread);
    assert_int_equal(plan_one(4096, 64, 1, &u, &p, &err), KILN_OK);
    assert_int_equal(p.n_threads, 64);
    assert_int_equal(plan_one(30, 64, 1, &u, &p, &err), KILN_E_CAP);
    assert_int_equal(plan_one(least_named(&err), 64, 1, &u, &p, &err), KILN_OK);
    assert_int_equal(p.n_threads, 1);
}

static void what_is_named_has_room_for_later_lists(void **state)
{
    kiln_ram_plan p;
    kiln_error err = {0};
    (void)state;
    const kiln_unit first = {.name = "first", .ram = 20 * MIB},
                    later = {.name = "later", .ram = 90 * MIB};
    run.ram.foreseen = 0;
    kiln_run_foresee_ram(&run, later.ram, 1);
    assert_int_equal(plan_one(40, 2, 1, &first, &p, &err), KILN_E_CAP);
    const uint64_t least = least_named(&err);
    assert_int_equal(plan_one(least, 2, 1, &first, &p, NULL), KILN_OK);
    assert_int_equal(plan_one(least, 2, 1, &later, &p, NULL), KILN_OK);
    assert_int_equal(plan_one(80, 2, 1, &first, &p, NULL), KILN_OK); /* nothing is refused for it */
    run.ram.foreseen = 0;
}

/* A cap that is named before the parent holds what was announced works after it does. */
static void what_the_parent_will_hold_is_counted_once(void **state)
{
    enum { HELD = 40 };
    static const kiln_stage_program program = {0};
    const kiln_unit u = {.name = "one", .ram = 20 * MIB};
    kiln_ram_plan p;
    kiln_error err = {0};
    (void)state;
    needs_own_memory(); /* which grows between two plans there */
    run.program = &program;
    run.devices.home = run.devices.homes;
    run.ram = (kiln_ram_use){.cap = 60 * MIB};
    assert_true(kiln_run_parent_fits(&run));
    const uint64_t without = run.ram.parent;
    kiln_run_foresee_parent(&run, HELD * MIB);
    assert_int_equal(run.ram.parent, without + HELD * MIB);
    kiln_run_foresee_ram(&run, u.ram, 0);
    assert_false(kiln_run_parent_fits(&run));
    assert_int_equal(kiln_run_need_parent(&run, "cameras", &err), KILN_E_CAP);
    const uint64_t least = least_named(&err);
    char *held = mmap(NULL, HELD * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(held != MAP_FAILED);
    memset(held, 1, HELD * MIB);
    run.ram.cap = least * MIB;
    assert_int_equal(kiln_run_need_parent(&run, "cameras", &err), KILN_OK);
    assert_int_equal(
        kiln_ram_plan_make(kiln_run_ram(&run), &(kiln_ram_list){&u, due, 1, 1, 0}, &p, &err),
        KILN_OK);
    assert_int_equal(munmap(held, HELD * MIB), 0);
    run.ram.foreseen = 0;
}

static void small_results_are_counted_by_their_outputs(void **state)
{
    const kiln_unit picture = {.name = "picture", .n_outputs = 1}, chunk = {.name = "chunk"};
    (void)state;
    run.ram = (kiln_ram_use){.cap = 300 * MIB};
    kiln_ram_results(&run.ram, &chunk, 1, 1);
    const uint64_t of_chunk = run.ram.results;
    kiln_ram_results(&run.ram, &picture, 1, 1);
    assert_true(of_chunk == kiln_list_ram(1) && of_chunk > 4000);
    assert_true(run.ram.results < 700 &&
                kiln_small_list_ram(1000, 1, 100) == 1000 * (run.ram.results + sizeof chunk + 100));
}

static void what_workers_keep_is_predicted(void **state)
{
    kiln_ram_plan p;
    (void)state;
    needs_own_memory(); /* which grows between two plans there */
    run.ram.foreseen = 0;
    kiln_unit u = {.name = "one", .ram = 50 * MIB};
    assert_int_equal(plan_one(16384, 4, 1, &u, &p, NULL), KILN_OK);
    const uint64_t without = p.predicted;
    u.ram_cache = 3000 * MIB;
    assert_int_equal(plan_one(16384, 4, 1, &u, &p, NULL), KILN_OK);
    assert_int_equal(p.predicted, without + u.ram_cache);
    assert_int_equal(plan_one(1024, 4, 1, &u, &p, NULL), KILN_OK);
    assert_true(p.predicted > 1000 * MIB); /* all that the cap leaves */
    assert_true(p.predicted <= p.cap);
}

/* ---- what is taken --------------------------------------------------------------------------- */
static void a_look_sees_what_this_process_touches(void **state)
{
    const size_t bytes = 48 * MIB;
    (void)state;
    run.ram = (kiln_ram_use){.cap = 300 * MIB};
    kiln_run_look_at_ram(&run);
    const uint64_t before = run.ram.peak;
    /* sanitizers touch malloc's */
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    kiln_run_look_at_ram(&run);
    assert_true(run.ram.peak < before + 16 * MIB); /* not touched yet */
    memset(block, 1, bytes);
    kiln_run_look_at_ram(&run);
    assert_true(run.ram.peak >= before + 47 * MIB);
    assert_int_equal(block[bytes - 1], 1);
    assert_int_equal(munmap(block, bytes), 0);
    const uint64_t peak = run.ram.peak;
    kiln_run_look_at_ram(&run);
    assert_int_equal(run.ram.peak, peak);
}

static void a_memfd_counts_once_and_without_its_holes(void **state)
{
    int fd;
    void *map;
    static char page[MIB];
    (void)state;
    run.ram = (kiln_ram_use){.cap = 300 * MIB};
    kiln_run_look_at_ram(&run);
    const uint64_t before = run.ram.peak;
    memset(page, 1, sizeof page);
    assert_int_equal(kiln_memfd_new(&fd, NULL), KILN_OK);
    for (uint64_t i = 0; i < 16; i++)
        assert_int_equal(kiln_memfd_write(fd, 2 * i * MIB, page, sizeof page, NULL), KILN_OK);
    assert_int_equal(kiln_memfd_holds(fd), 16 * MIB);
    assert_int_equal(kiln_memfd_map(fd, 31 * MIB, &map, NULL), KILN_OK);
    for (uint64_t i = 0; i < 16; i++) assert_int_equal(((const char *)map)[2 * i * MIB], 1);
    kiln_run_look_at_ram(&run);
    assert_true(run.ram.peak >= before + 16 * MIB);
    assert_true(run.ram.peak < before + 24 * MIB);
    assert_int_equal(close(fd), 0);
}

/* Shared memory is the parent's from the moment that it is made, so that no later plan gives it to
 * units; what has been written to it counts in a look, whoever wrote it. */
static void shared_memory_is_counted_until_it_is_given_back(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_shared_memory m;
    static char data[3 * MIB];
    char path[64], other[64];
    run.ram = (kiln_ram_use){.cap = 1024 * MIB};
    const uint64_t before = kiln_run_unit_ram(&run);
    assert_int_equal(kiln_run_share_memory(&run, 100 * MIB, 2, &m, &err), KILN_OK);
    assert_true(kiln_run_unit_ram(&run) <= before - 100 * MIB &&
                kiln_run_unit_ram(&run) > before - 110 * MIB);
    kiln_run_look_at_ram(&run);
    const uint64_t empty = run.ram.peak;
    assert_true(empty < 100 * MIB);
    kiln_shared_memory_path(&m, 0, other);
    kiln_shared_memory_path(&m, 1, path);
    const int fd = open(path, O_RDWR); /* as a worker does */
    assert_true(fd >= 0 && lseek(fd, 0, SEEK_END) == 100 * (off_t)MIB);
    memset(data, 1, sizeof data);
    assert_int_equal(pwrite(fd, data, sizeof data, 50 * (off_t)MIB), sizeof data);
    kiln_run_look_at_ram(&run);
    assert_true(run.ram.peak >= empty + sizeof data &&
                run.ram.peak < empty + 2 * sizeof data + MIB);
    assert_int_equal(close(fd), 0);
    kiln_run_unshare_memory(&run, &m);
    kiln_run_unshare_memory(&run, &m); /* does nothing */
    assert_true(open(path, O_RDWR) < 0 && open(other, O_RDWR) < 0 &&
                kiln_run_unit_ram(&run) >= before - 5 * MIB);
    assert_true(kiln_shared_memory_fits(MIB) && !kiln_shared_memory_fits(UINT64_MAX));
    /* as in a program of mode 711: workers may not open what is below /proc */
    assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
    assert_false(kiln_shared_memory_fits(MIB));
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

int main(void)
{
#define FREE(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        FREE(without_cgroups_it_is_what_the_kernel_calls_available),
        FREE(the_least_limit_up_the_tree_counts_and_file_pages_are_free),
        FREE(a_group_that_is_over_its_limit_leaves_nothing),
        FREE(groups_of_version_1_and_containers_without_their_path),
        cmocka_unit_test(with_room_all_workers_have_two_units_and_results_wait),
        cmocka_unit_test(storing_directly_takes_room_that_is_left),
        cmocka_unit_test(no_plan_predicts_more_than_its_cap_and_every_share_holds_the_largest_unit),
        cmocka_unit_test(a_few_workers_give_way_to_a_batch),
        cmocka_unit_test(the_least_that_is_named_works_and_little_less_does_not),
        cmocka_unit_test(a_unit_that_takes_all_that_a_worker_alone_may_has_a_plan),
        cmocka_unit_test(threads_give_way_before_a_cap_is_refused),
        cmocka_unit_test(what_a_unit_has_for_each_thread_gives_way_too),
        cmocka_unit_test(what_is_named_has_room_for_later_lists),
        cmocka_unit_test(what_the_parent_will_hold_is_counted_once),
        cmocka_unit_test(small_results_are_counted_by_their_outputs),
        cmocka_unit_test(what_workers_keep_is_predicted),
        cmocka_unit_test(a_look_sees_what_this_process_touches),
        cmocka_unit_test(a_memfd_counts_once_and_without_its_holes),
        cmocka_unit_test(shared_memory_is_counted_until_it_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
