/* `kiln slurm` -- a plain script does it (pipelines/slurm/slurm.sh), which a site's administrator can read and change. */
#include "stages/front/front.h"
#include "stages/front/programs.h"

kiln_status kiln_front_slurm(int argc, char **argv, int *code, kiln_error *err)
{
    (void)argc;
    (void)code;
    return kiln_script_become("slurm/slurm.sh", argv, err);
}
