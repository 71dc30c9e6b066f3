#!/bin/sh
# gnu-parallel.sh SCENE [options of kiln pipeline] -- bakes a scene over hosts (or GPUs of one host) with GNU parallel, without a scheduler.
#
# Each stage that can be shared out is one or more rounds: a plan, TASKS tasks of which each leaves a part, a gather. The others
# run here. On a network file system give --scratch-dir a disk of each host. Called again, it goes on where it was: a task whose part is
# there is not started again.
#
#   TASKS=8               tasks a round
#   GPUS=4                four tasks at a time on this host, each with one GPU
#   PARALLEL='...'        options of parallel: --jobs 4; --sshloginfile hosts (scene, bake and kiln at the same paths on each host)
#   KILN=path             the front command; default: kiln
#
# What is evaluated is what kiln has just printed (--print-commands), never a file of the scene or of the bake: they may be somebody
# else's. kiln claim checks what it reads there.
#
# Two calls of one bake are not for one time: the second ends with 75. Ends with 0, or with the exit code of the stage that failed; with 1 where tasks failed; with 7 at the end where --allow-partial let a
# stage give units up.
set -eu
[ $# -gt 0 ] || { echo "Usage: [TASKS=8] [GPUS=n] [PARALLEL='options of parallel'] $0 SCENE [options of kiln pipeline]" >&2; exit 2; }
TASKS=${TASKS:-8} KILN=${KILN:-kiln}
commands=$("$KILN" pipeline "$@" --print-commands) # a line a stage, quoted for a shell
eval "set -- $(printf '%s\n' "$commands" | tail -n 1)"
case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
case $manifest in /*) ;; *) manifest=$PWD/$manifest ;; esac
parts=${manifest%/*}/parallel/parts
for folder in "${parts%/*}" "$parts"; do
    [ ! -L "$folder" ] || { echo "$0: '$folder' is a link, so files would be written elsewhere: remove it" >&2; exit 3; }
done
mkdir -p "$parts"
# Held by tasks on this host, too: those of a call that was killed go on, and what they write is not for two.
exec 9<"${parts%/*}"
flock -n -E 75 9 || {
    [ $? -ne 75 ] || { echo "$0: another call, or tasks of a killed one, still work on this bake: wait for them" >&2; exit 75; }
    echo "$0: this file system has no locks, so a second call is not kept out" >&2
}
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

read_claim() { # the round that is open, if one is: its stage and its number of tasks
    open='' n=''
    claim=$("$KILN" claim "$manifest") || exit
    while read -r word value; do
        case $word in stage) open=$value ;; tasks) n=$value ;; esac
    done <<E1
$claim
E1
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
    if [ "$stage" = report ]; then # the bake is whole without it
        eval "$line --allow-network-fs" >/dev/null || echo "$0: the report could not be written; run $KILN report $manifest to try again" >&2
        return 0
    fi
    if ! "$1" --help-json | grep -q '"name": "plan"'; then
        step "$line --allow-network-fs" # only this host writes
        return
    fi
    step "$line --plan --tasks $TASKS"
    read_claim
    while [ "$open" = "$stage" ]; do
        # A task: its number, and its slot from 1. 7: the part says which units were given up, and the gather tries them.
        gpu=${GPUS:+'export CUDA_VISIBLE_DEVICES=$(($2 - 1)); '}
        KILN_TASK="cd $(quote "$PWD") || exit; $gpu$line --shard \"\$1/$n\" --part $(quote "$parts"); "
        KILN_TASK=$KILN_TASK'code=$?; [ $code -ne 7 ] || exit 0; exit $code'
        export KILN_TASK # by its name, because parallel would replace {} and {= =} in the words of its command
        missing=$("$KILN" claim "$manifest" --missing "$parts") || exit
        [ -z "$missing" ] || printf '%s\n' "$missing" |
            parallel --will-cite --env KILN_TASK --retries 2 ${GPUS:+--jobs "$GPUS"} 'sh -c "$KILN_TASK" sh {} {%}' || {
            echo "$0: tasks of $stage failed; the same command again runs those alone that have left no part" >&2
            exit 1
        }
        step "$line --gather $(quote "$parts") --remove-parts --tasks $TASKS"
        read_claim
    done
}

line_of() { # the line of a stage
    wanted=$1
    printf '%s\n' "$commands" | while IFS= read -r line; do
        eval "set -- $line"
        [ "${1##*/kiln-}" != "$wanted" ] || printf '%s\n' "$line"
    done
}

# A round that an earlier call has left open keeps all other stages from writing, so it comes first.
read_claim
if [ -n "$open" ]; then
    line=$(line_of "$open")
    [ -n "$line" ] || { echo "$0: a plan of $open is open, but this stage is not among the chosen ones" >&2; exit 75; }
    run "$line"
fi

printf '%s\n' "$commands" | {
    while IFS= read -r line; do run "$line" </dev/null; done
    exit $partial
}
