#!/bin/sh
# gnu-parallel.sh SCENE [options of kiln pipeline] -- bakes a scene over hosts (or GPUs of one host) with GNU parallel, without a scheduler.
#
# Each stage that can be shared out is one or more rounds: a plan, TASKS tasks of which each leaves a part, a gather. The others
# run here. On a network file system give --scratch-dir a disk of each host. Called again, it goes on where it was: a task that ended well is not started again (--joblog, --resume-failed).
#
#   TASKS=8               tasks a round
#   GPUS=4                four tasks at a time on this host, each with one GPU
#   PARALLEL='...'        options of parallel: --jobs 4; --sshloginfile hosts (scene, bake and kiln at the same paths on each host)
#   KILN=path             the front command; default: kiln
#
# Ends with 0, or with the exit code of the stage that failed; with 1 where tasks failed; with 7 at the end where --allow-partial let a
# stage give units up.
set -eu
[ $# -gt 0 ] || { echo "Usage: [TASKS=8] [GPUS=n] [PARALLEL='options of parallel'] $0 SCENE [options of kiln pipeline]" >&2; exit 2; }
TASKS=${TASKS:-8}
commands=$("${KILN:-kiln}" pipeline "$@" --print-commands) # a line a stage, quoted for a shell
eval "set -- $(printf '%s\n' "$commands" | tail -n 1)"
case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
case $manifest in /*) ;; *) manifest=$PWD/$manifest ;; esac
folder=${manifest%/*}/parallel
mkdir -p "$folder/parts"
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

read_claim() { # the round that is open, if one is: its stage, its plan's key, its number of tasks
    open='' key='' n=''
    [ ! -e "$manifest.claim" ] || while read -r word value; do
        case $word in stage) open=$value ;; plan) key=$value ;; tasks) n=$value ;; esac
    done <"$manifest.claim"
}

partial=0
step() { # the command of a step: ends this where it fails; what --allow-partial allows is told at the end
    code=0
    eval "$1" || code=$?
    [ $code -ne 0 ] || return 0
    case $code-$line in 7-*" '--allow-partial=yes'"*) partial=7 ;; *) exit $code ;; esac
}

run() { # the line of a stage
    line=$1
    eval "set -- $line"
    stage=${1##*/kiln-}
    if ! "$1" --help-json | grep -q '"name": "plan"'; then
        step "$line --allow-network-fs" # only this host writes
        return
    fi
    step "$line --plan --tasks $TASKS"
    read_claim
    while [ "$open" = "$stage" ]; do
        task=$folder/$stage-$key-of-$n # a script that every host can read, and parallel's log
        {
            echo "cd $(quote "$PWD") || exit"
            [ -z "${GPUS:-}" ] || echo 'export CUDA_VISIBLE_DEVICES=$(($2 - 1))' # the slot, from 1
            echo "$line --shard \"\$1/$n\" --part $(quote "$folder/parts")"
            echo 'code=$?; [ $code -ne 7 ] || exit 0; exit $code' # 7: the part says which units were given up, and the gather tries them
        } >"$task.sh"
        seq "$n" | parallel --will-cite --quote --joblog "$task.log" --resume-failed --retries 2 ${GPUS:+--jobs "$GPUS"} \
            sh "$task.sh" '{}' '{%}' || {
            echo "$0: tasks of $stage failed, see '$task.log'; the same command again runs them alone" >&2
            exit 1
        }
        mv "$task.log" "$task.ended" # else these tasks would count as done in a bake that begins anew
        step "$line --gather $(quote "$folder/parts") --remove-parts --tasks $TASKS"
        read_claim
    done
}

# A round that an earlier call has left open keeps all other stages from writing, so it comes first.
read_claim
[ -z "$open" ] || run "$(printf '%s\n' "$commands" | grep "/kiln-$open' ")"
printf '%s\n' "$commands" | {
    while IFS= read -r line; do run "$line" </dev/null; done
    exit $partial
}
