/* `kiln slurm` -- a plain script does it (pipelines/slurm/slurm.sh), which a site's administrator can read and change. Its help,
 * manual page and completion are from the table here. */
#include "stages/front/front.h"
#include "stages/front/programs.h"

#include <string.h>

static struct {
    uint32_t tasks;
    const char *sbatch;
    bool status, cancel, wait;
} o; /* the script reads the words itself */

static const kiln_opt rows[] = {
    {"tasks", 0, KILN_OPT_U32, &o.tasks, "N", NULL, "1..100000",
     "cut the work of a stage into N tasks; where not given, as in the last call, or 8", 0},
    {"sbatch", 0, KILN_OPT_TEXT, &o.sbatch, "OPTIONS", NULL, NULL,
     "options of sbatch for all jobs, in one word: --sbatch='--partition=gpu --gres=gpu:1 --time=2:00:00'; where not given, those "
     "of "
     "the last call",
     0},
    {"status", 0, KILN_OPT_BOOL, &o.status, NULL, NULL, NULL, "say what is done, what runs and what is missing", 0},
    {"cancel", 0, KILN_OPT_BOOL, &o.cancel, NULL, NULL, NULL, "cancel all jobs of this bake; nothing finished is lost", 0},
    {"wait", 0, KILN_OPT_BOOL, &o.wait, NULL, NULL, NULL,
     "wait until the bake has ended, and end with its exit code; jobs that wait for ever are waited for", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const char *const notes[] = {
    "Bakes a scene over the hosts of a Slurm cluster, into a folder that all of them share. Run again, it submits only what is "
    "missing; what was finished stays.",
    "Every other option goes to kiln pipeline (kiln pipeline --help). Name the devices (--devices cpu or cuda) where hosts differ: "
    "pictures of the CPU and of GPUs are not the same.",
    "Logs, the commands of the stages and the settings are in OUT/slurm.",
    "Exit codes are those of the stages; 74 where Slurm refuses a job, 75 where jobs of this bake have not ended.", NULL};

static void help(const kiln_cli *c, FILE *out)
{
    (void)fprintf(out, "Usage: %s %s [options]\n\n", c->program, c->positionals);
    kiln_cli_wrap(notes[0], 0, out);
    kiln_cli_help_rows("Options", c->options, out);
    for (size_t i = 1; notes[i]; i++) {
        (void)fputc('\n', out);
        kiln_cli_wrap(notes[i], 0, out);
    }
    kiln_cli_help_rows("Others", kiln_print_options, out);
}

const kiln_cli kiln_front_slurm_cli = {.program = "kiln slurm",
                                       .summary = "bakes a scene over the hosts of a Slurm cluster",
                                       .positionals = "SCENE",
                                       .n_optional = 1,
                                       .tables_note = notes,
                                       .options = rows,
                                       .common = kiln_print_options,
                                       .help = help};

bool kiln_front_slurm_passes(const char *name)
{
    /* As slurm.sh has them: the work is shared out already, and what is computed by force would be computed in each round. */
    static const char *const refused[] = {"force", "shard", "units", "json", "print-commands"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(name, refused[i])) return false;
    for (const kiln_opt *row = rows; row->name; row++)
        if (!strcmp(name, row->name)) return false;
    return true;
}

kiln_status kiln_front_slurm(int argc, char **argv, int *code, kiln_error *err)
{
    kiln_parsed parsed;
    (void)code;
    for (const kiln_opt *row = kiln_print_options; argc == 2 && !strncmp(argv[1], "--", 2) && row->name; row++)
        if (!strcmp(argv[1] + 2, row->name)) return kiln_cli_parse(&kiln_front_slurm_cli, argc, argv, &parsed, err);
    return kiln_script_become("slurm/slurm.sh", argv, err);
}
