#!/bin/sh
# job.sh PROGRAM WORD... -- the script of every job of kiln slurm: sbatch wants one. Slurm keeps a copy of it and its words. What jobs of
# this site need, such as `module load cuda`, is written here.
exec "$@"
