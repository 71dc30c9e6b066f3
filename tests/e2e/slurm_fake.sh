# slurm_fake -- programs by the names of Slurm's, which keep what they are called with and run nothing: for tests of what is submitted.
#
#   slurm_fake DIR      makes DIR/bin, which the caller puts in front of its PATH. sbatch counts in DIR/ids and writes its words to
#                       DIR/job.ID, a line each, and its environment to DIR/environment.ID; with DIR/refuse it fails. squeue prints DIR/queue,
#                       or DIR/limits where it is asked for a job's limits, and writes its environment to DIR/environment.squeue.
#                       DIR/called has a line for each call of scancel and scontrol
#                       DIR/max is MaxArraySize, where it is not 1001
#   slurm_fake_run [ID] runs all submitted jobs (from ID), and those that they submit, one after the other, each with its log
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
[ "\$1" != show ] || echo "MaxArraySize            = \$(cat '$1/max' 2>/dev/null || echo 1001)"
E3
    printf '#!/bin/sh\necho "scancel $*" >>%s\n' "'$1/called'" >"$1/bin/scancel"
    chmod +x "$1"/bin/*
}
slurm_fake_words() {
    mapfile -t words <"$slurm_fake/job.$(cat "$slurm_fake/ids")"
    while [ ${#words[@]} -gt 0 ] && [[ ${words[0]} == -* ]]; do words=("${words[@]:1}"); done
}
slurm_fake_run() {
    local id=$((${1:-1} - 1)) word list index log
    while [ $((++id)) -le "$(cat "$slurm_fake/ids")" ]; do
        mapfile -t words <"$slurm_fake/job.$id"
        list='' log=/dev/null
        while [ ${#words[@]} -gt 0 ] && [[ ${words[0]} == -* ]]; do
            word=${words[0]} words=("${words[@]:1}")
            case $word in --array=*) list=${word#*=} ;; --output=*) log=${word#*=} ;; --wrap=*) words=() ;; esac
        done
        [ ${#words[@]} -gt 0 ] || continue
        list=$(tr , '\n' <<<"${list%\%*}" | sed 's/-/ /' | while read -r from to; do [ -z "$from" ] || seq "$from" "${to:-$from}"; done)
        for index in ${list:-none}; do
            word=${log//%A/$id} word=${word//%j/$id} word=${word//%a/$index}
            SLURM_JOB_ID=$id SLURM_ARRAY_TASK_ID=$index sh "${words[@]}" >>"$word" 2>&1 </dev/null
        done
    done
}
