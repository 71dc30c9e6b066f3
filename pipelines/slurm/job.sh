#!/bin/sh
# job.sh SETUP PROGRAM WORD... -- the script of every job of kiln slurm: sbatch wants one. Slurm keeps a copy of it and its words. SETUP is
# the file of --setup, which is sourced (`module load cuda`), or ''. What all bakes of a site need is written here.
setup=$1
shift
[ -z "$setup" ] || . "$setup"
exec "$@"
