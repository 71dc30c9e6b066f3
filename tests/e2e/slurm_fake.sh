# slurm_fake -- programs by the names of Slurm's, which keep what they are called with and run nothing: for tests of what is submitted.
#
#   slurm_fake DIR      makes DIR/bin, which the caller puts in front of its PATH. sbatch counts in DIR/ids and writes its words to
#                       DIR/job.ID, a line each, and its environment to DIR/environment.ID; with DIR/refuse it fails. squeue prints DIR/queue,
#                       or DIR/limits where it is asked for a job's limits, and writes its environment to DIR/environment.squeue. DIR/called has a line for each call of scancel and scontrol
#   slurm_fake_words    sets words=(...) to the script and arguments of the job that was submitted last
slurm_fake() {
    slurm_fake=$1
    mkdir -p "$1/bin" || fail "mkdir $1/bin"
    cat >"$1/bin/sbatch" <<E1
#!/bin/sh
[ ! -e '$1/refuse' ] || { echo 'sbatch: error: refused' >&2; exit 1; }
id=\$((\$(cat '$1/ids' 2>/dev/null || echo 0) + 1))
echo \$id >'$1/ids'
printf '%s\\n' "\$@" >'$1/job.'\$id
env >'$1/environment.'\$id
echo \$id
E1
    cat >"$1/bin/squeue" <<E2
#!/bin/sh
case " \$* " in *' --format=%l|%m '*) exec cat '$1/limits' ;; esac
env >'$1/environment.squeue'
cat '$1/queue' 2>/dev/null
exit 0
E2
    cat >"$1/bin/scontrol" <<E3
#!/bin/sh
echo "scontrol \$*" >>'$1/called'
[ "\$1" != show ] || echo 'MaxArraySize            = 1001'
E3
    printf '#!/bin/sh\necho "scancel $*" >>%s\n' "'$1/called'" >"$1/bin/scancel"
    chmod +x "$1"/bin/*
}
slurm_fake_words() {
    mapfile -t words <"$slurm_fake/job.$(cat "$slurm_fake/ids")"
    while [ ${#words[@]} -gt 0 ] && [[ ${words[0]} == -* ]]; do words=("${words[@]:1}"); done
}
