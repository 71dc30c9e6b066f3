/* `kiln claim` -- the open round of a bake over hosts, for scripts: they take its lines as they
 * are, because whatever lies in the folder of a bake was checked before it is printed. */
#include "base/quote.h"
#include "stages/front/front.h"
#include "stages/front/open_round.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *missing_in;

static const kiln_opt rows[] = {
    KILN_OPTION_PATH("missing", &missing_in, "DIR",
                     "print the numbers of those tasks alone whose part is not in DIR, one a line"),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "Prints a line each: stage NAME, plan KEY, tasks N, units N, due N. No round is open: prints "
    "nothing.",
    "NAME is a stage of kiln pipeline, KEY has 32 hexadecimal digits, N is a number of digits. "
    "Where the claim of the manifest "
    "says "
    "something else, nothing is printed, and the exit code is 3.",
    NULL};

const kiln_cli kiln_front_claim_cli = {
    .program = "kiln claim",
    .summary = "prints the open round of a bake over hosts, checked, for scripts",
    .positionals = "MANIFEST",
    .n_positionals = 1,
    .tables_note = notes,
    .options = rows,
    .common = kiln_print_options};

static kiln_status print_missing_tasks(const kiln_open_round *open, kiln_error *err)
{
    kiln_task_list missing;
    const int fd = openat(AT_FDCWD, missing_in, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is a link or not a folder, so it is not searched for parts",
                         missing_in);
    if (fd < 0)
        return kiln_fail(err, KILN_E_INPUT, "cannot open the folder '%s': %s", missing_in,
                         strerror(errno));
    const kiln_status st = kiln_open_round_missing(open, fd, missing_in, &missing, err);
    (void)close(fd); /* was only read */
    for (uint32_t i = 0; st == KILN_OK && i < missing.n; i++) kiln_print("%u", missing.task[i]);
    kiln_task_list_release(&missing);
    return st;
}

kiln_status kiln_front_claim(int argc, char **argv, int *code, kiln_error *err)
{
    kiln_parsed parsed;
    kiln_open_round open;
    (void)code;
    KILN_TRY(kiln_cli_parse(&kiln_front_claim_cli, argc, argv, &parsed, err));
    if (parsed.done) return KILN_OK;
    KILN_TRY(kiln_open_round_read(parsed.positional[0], &open, err));
    if (!open.there) return KILN_OK;
    if (missing_in) return print_missing_tasks(&open, err);
    kiln_print("stage %s", open.stage);
    kiln_print("plan %s", open.key);
    kiln_print("tasks %u", open.tasks);
    kiln_print("units %llu", (unsigned long long)open.units);
    kiln_print("due %llu", (unsigned long long)open.due);
    return KILN_OK;
}
