/* kiln -- the front command: `kiln pipeline SCENE` bakes a scene, `kiln NAME ...` is the program
 * kiln-NAME beside it.
 *
 * It is the stages, too: called kiln-STAGE, it is that stage. Its other names are links to it.
 * Commands of its own are rows of stages/front/help.c. There is no list of programs: what lies
 * beside is found. */
#include "base/file.h"
#include "base/log.h"
#include "base/option.h"
#include "base/own_program.h"
#include "stages/front/export_levels.h"
#include "stages/front/front.h"
#include "stages/front/programs.h"
#include "stages/engine/program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static kiln_error overview_error;
static kiln_status overview_status;

static void help_kiln(const kiln_cli *cli, bool all, FILE *out)
{
    (void)cli, (void)all;
    overview_status = kiln_front_overview(false, out, &overview_error);
}

/* Options without a command: --help, --version, --man. */
static kiln_status print_about(int argc, char **argv, kiln_error *err)
{
    const kiln_cli cli = {.program = "kiln",
                          .summary = "bakes 3D Gaussian Splatting scenes",
                          .positionals = "COMMAND",
                          .n_positionals = 1,
                          .options = kiln_print_options,
                          .help = help_kiln};
    kiln_parsed parsed;
    if (argc == 2 && !strcmp(argv[1], "--man")) return kiln_front_overview(true, stdout, err);
    KILN_TRY(kiln_cli_parse(&cli, argc, argv, &parsed, err));
    if (overview_status != KILN_OK) *err = overview_error;
    return overview_status;
}

static kiln_status run_kiln(int argc, char **argv, int *code, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    if (argc < 2) {
        KILN_TRY(kiln_front_overview(false, stderr, err));
        *code = kiln_exit_code(KILN_E_USAGE);
        return KILN_OK;
    }
    if (argv[1][0] == '-') return print_about(argc, argv, err);
    for (const kiln_front_row *r = kiln_front_rows; r->name; r++)
        if (!strcmp(argv[1], r->name)) return r->run(argc - 1, argv + 1, code, err);
    KILN_TRY(kiln_program_path(argv[1], path, err));
    if (strchr(argv[1], '/') || access(path, X_OK) != 0) return kiln_front_unknown(argv[1], err);
    return kiln_program_become(argv[1], argv + 1, err);
}

static const kiln_stage_program *named(const char *path)
{
    const char *base = kiln_path_base(path);
    return strncmp(base, "kiln-", 5) == 0 ? kiln_stage_program_find(base + 5) : NULL;
}

/* The stage by whose name we were called; then the file's name counts, because a caller may write
 * anything into argv[0] and users make links. A worker's argv[0] is its stage, whatever the file is
 * called. */
static const kiln_stage_program *called(const char *by)
{
    char file[KILN_PATH_MAX];
    const kiln_stage_program *p = by ? named(by) : NULL;
    if (p || (by && !strcmp(kiln_path_base(by), "kiln"))) return p;
    return kiln_own_program(file, NULL) == KILN_OK ? named(file) : NULL;
}

/* Commands whose sentences do not name them. */
static const char *teller(const char *command)
{
    static const char *const names[] = {"kiln pipeline", "kiln convert", "kiln slurm",
                                        "kiln claim"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(strchr(names[i], ' ') + 1, command)) return names[i];
    return "kiln";
}

static int run_stage(const kiln_stage_program *stage, int argc, char **argv)
{
    return stage == &kiln_stage_export ? kiln_front_export(argc, argv)
                                       : kiln_program_main(stage, argc, argv);
}

int main(int argc, char **argv)
{
    kiln_error err = {0};
    int code = 0;
    kiln_program_family(kiln_stage_program_find);
    if (argc > 0 && !strcmp(argv[0], "kiln-convert")) return kiln_front_convert_worker(argc, argv);
    const kiln_stage_program *stage = called(argc > 0 ? argv[0] : NULL);
    if (stage) return run_stage(stage, argc, argv);
    if (argc > 1 && (stage = kiln_program_own(argv[1])))
        return run_stage(stage, argc - 1, argv + 1);
    /* where our parent ignores it, waiting for a program would not tell how that ended */
    (void)signal(SIGCHLD, SIG_DFL);
    const kiln_status st = run_kiln(argc, argv, &code, &err);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        kiln_error lost;
        (void)kiln_fail(&lost, KILN_E_IO,
                        "cannot write to stdout; is the disk full or the pipe closed?");
        kiln_tell_error("kiln", "", &lost);
        if (st == KILN_OK && code == 0) code = kiln_exit_code(KILN_E_IO);
    }
    if (st == KILN_OK) return code;
    kiln_tell_error(teller(argc > 1 ? argv[1] : ""), "", &err);
    return kiln_exit_code(st);
}
