#!/bin/sh
# slurm.sh -- `kiln slurm`: bakes a scene over the hosts of a Slurm cluster. Submits one job (round.sh), which submits what follows.
# KILN in the environment: the front command. Options and exit codes: kiln slurm --help.
case $0 in */*) scripts=$(cd "${0%/*}" && pwd -P) ;; *) scripts=$PWD ;; esac
. "$scripts/shared.sh"
kiln=${KILN:-$(command -v kiln)} || fail 74 'there is no kiln in the PATH'
export LC_ALL=C

# ---- the command line -------------------------------------------------------------------------------------------------

new_tasks='' new_sbatch='' sbatch_given=no act=submit wait=no passed=''
option() { # NAME VALUE
    case $1 in
    --tasks)
        case $2 in '' | 0* | *[!0-9]* | ???????*) fail 2 "--tasks takes a number from 1 to 100000, not '$2'" ;; esac
        [ "$2" -le 100000 ] || fail 2 "--tasks takes a number from 1 to 100000, not '$2'"
        new_tasks=$2 ;;
    --sbatch) new_sbatch=$2 sbatch_given=yes ;;
    esac
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) exec "$kiln" slurm --help ;;
    --make) passed='--make ' ;; # the first word of make pipeline-slurm; variables of make follow
    TASKS=* | SBATCH=*)
        case $passed in --make*) ;; *) fail 2 "one scene, please: '$1'" ;; esac
        name=--tasks; [ "${1%%=*}" = TASKS ] || name=--sbatch
        [ -z "${1#*=}" ] || option $name "${1#*=}" ;;
    --status) act=status ;;
    --cancel) act=cancel ;;
    --wait) wait=yes ;;
    --tasks=* | --sbatch=*) option "${1%%=*}" "${1#*=}" ;;
    --tasks | --sbatch) [ $# -gt 1 ] || fail 2 "$1 needs a value"; option "$1" "$2"; shift ;;
    --force | --force=* | --shard | --shard=* | --units | --units=* | --json | --print-commands)
        fail 2 "$1 is not for a bake over hosts; see kiln slurm --help" ;;
    *) passed="$passed$(quote "$1")" ;;
    esac
    shift
done
for program in sbatch squeue scontrol scancel; do
    command -v $program >/dev/null || fail 74 "there is no $program here: is this a host of a Slurm cluster?"
done
# All options are checked here, before anything is submitted.
eval "commands=\$(\"\$kiln\" pipeline $passed --print-commands)" || exit
last=$(printf '%s\n' "$commands" | tail -n 1)
eval "set -- $last"
case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
out=${manifest%/*}
if [ $act = submit ]; then
    eval "set -- $(printf '%s\n' "$commands" | head -n 1)"
    case $1 in
    */kiln-import) [ -e "$2" ] || fail 3 "cannot find the scene '$2'" ;;
    *) [ -e "$manifest" ] || fail 3 "cannot find '$manifest', and import is none of the stages asked for" ;;
    esac
elif [ ! -d "$out/slurm" ]; then
    fail 3 "'$out' was not baked with kiln slurm"
fi
mkdir -p "$out/slurm/parts" || exit 74
folder=$(cd "$out/slurm" && pwd -P) || exit 74
manifest=${folder%/slurm}/manifest.db

# ---- what there is ----------------------------------------------------------------------------------------------------

# "import fresh" and so on, a line a stage, of what kiln-info says.
stage_states() {
    "$kiln" info "$manifest" --json --allow-network-fs 2>/dev/null | awk -F '"' '$2 == "name" { name = $4 } $2 == "state" && name != "" { print name, $4; name = "" }'
}

status() {
    jobs=$(jobs_now) || fail 74 'Slurm does not answer'
    states=''
    [ ! -e "$manifest" ] || states=$(stage_states)
    read_claim || :
    while IFS= read -r line <&3; do
        eval "set -- $line"
        stage=${1##*/kiln-}
        state=$(printf '%s\n' "$states" | sed -n "s/^$stage //p")
        if [ "$claim_stage" = "$stage" ]; then
            missing=$(missing_tasks | paste -sd ' ')
            there=$((n - $(missing_tasks | wc -l)))
            state="a round is open: $there of $n parts are there${missing:+, missing: $missing}"
        fi
        printf '%-8s %s\n' "$stage" "${state:-not begun}"
    done 3<"$folder/commands"
    if [ -n "$jobs" ]; then
        echo 'jobs:'
        printf '%s\n' "$jobs" | awk '{ printf "  %s %s %s of %s%s\n", $1, $2, $3, $4, $6 == "None" ? "" : " (" $6 ")" }'
        [ -z "$(held_jobs "$jobs")" ] || echo "Slurm holds jobs that it could not start: the same kiln slurm releases them"
    elif [ -e "$folder/ended" ]; then
        read -r code stage why <"$folder/ended"
        [ "$code" -ne 0 ] || { echo 'finished'; return; }
        echo "no job is left: $why; see $folder"
    else
        echo "no job is left, and the bake is not finished: the same kiln slurm goes on"
    fi
}

# Every job of this bake, and those that one of them submits meanwhile.
cancel() {
    : >"$folder/cancelled"
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        jobs=$(jobs_now) || fail 74 'Slurm does not answer'
        [ -n "$jobs" ] || break
        patiently scancel $(printf '%s\n' "$jobs" | sed 's/[_ ].*//' | sort -u) || fail 74 'scancel failed'
        sleep 1
    done
    [ -z "$jobs" ] || fail 75 "jobs have not ended after $attempt attempts: $(printf '%s\n' "$jobs" | sed 's/ .*//' | paste -sd ' ')"
    ! read_claim || say "the plan of $claim_stage stands and keeps others from writing; the same kiln slurm goes on with it, $(break_command) gives it up"
    say 'cancelled'
}

# Lets jobs that Slurm could not start and holds try again.
release() { # jobs
    held=$(held_jobs "$1" | paste -sd ,)
    [ -n "$held" ] || return 1
    say "Slurm could not start job $held and holds it; released"
    patiently scontrol release "$held"
}

wait_for_end() {
    exec 9>&- # others may submit now
    misses=0 releases=0
    # A job that submits another one is there until the other is: two looks without a job are an end.
    while [ $misses -lt 2 ]; do
        jobs=$(jobs_now) || fail 74 'Slurm does not answer'
        if [ -n "$jobs" ]; then misses=0; else misses=$((misses + 1)); fi
        ! release "$jobs" || releases=$((releases + 1))
        [ $releases -lt $RELEASES ] || fail 74 "Slurm cannot start jobs of this bake ($(held_jobs "$jobs" | paste -sd ' ')), see --status"
        sleep 1
    done
    [ -e "$folder/ended" ] || fail 74 "no job is left, and the bake is not finished; see $folder"
    read -r code stage why <"$folder/ended"
    [ "$code" -eq 0 ] || fail "$code" "$why; see $folder"
    say 'the bake is finished'
    exit 0
}

case $act in
status) status; exit 0 ;;
cancel) . "$folder/settings"; cancel; exit 0 ;;
esac

# ---- submitting -------------------------------------------------------------------------------------------------------

# Only one at a time looks for jobs, writes the settings and submits. Where a file system has no locks, flock says so and nobody is kept out.
exec 9>"$folder/lock" || exit 74
if command -v flock >/dev/null; then
    flock --nonblock --conflict-exit-code 75 9
    [ $? -ne 75 ] || fail 75 'another kiln slurm is submitting jobs of this bake'
fi
running=$(jobs_now) || fail 74 'Slurm does not answer'
if [ -n "$running" ]; then
    release "$running" || :
    [ $wait = no ] || [ -n "$new_tasks$new_sbatch" ] || wait_for_end
    fail 75 "jobs of this bake have not ended ($(printf '%s\n' "$running" | sed 's/ .*//' | paste -sd ' ')): see --status, --cancel"
fi
tasks=8 sbatch_options='' tmpdir=${TMPDIR:-}
here=$scripts
[ ! -e "$folder/settings" ] || . "$folder/settings"
scripts=$here
tmpdir=${TMPDIR:-}
[ -z "$new_tasks" ] || tasks=$new_tasks
if [ $sbatch_given = yes ]; then
    eval "set -- $new_sbatch" || exit 2
    sbatch_options=$(quote "$@")
fi
{
    for name in folder manifest kiln scripts tasks sbatch_options tmpdir; do
        eval "value=\$$name"
        echo "$name=$(quote "$value")"
    done
} >"$folder/settings.new" && mv "$folder/settings.new" "$folder/settings" || exit 74
printf '%s\n' "$commands" >"$folder/commands.new" && mv "$folder/commands.new" "$folder/commands" || exit 74
rm -f "$folder/ended" "$folder/cancelled" "$folder"/partial-*
eval "set -- $(head -n 1 "$folder/commands")"
job=$(submit round "${1##*/kiln-}" - "$scripts/round.sh" "$folder" "${1##*/kiln-}" 0) || fail 74 'Slurm refused the job'
say "job $job submitted, which submits the others; $tasks tasks a round"
say "watch it: kiln slurm ... --status; squeue --me; logs: $folder"
[ $wait = no ] || wait_for_end
