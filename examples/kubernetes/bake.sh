#!/bin/sh
# bake.sh SCENE [options of kiln pipeline] -- bakes a scene over the nodes of a Kubernetes cluster: an Indexed Job a round, and a Job of
# one pod between two rounds, which gathers and plans. SCENE is a path on the volume (volume.yaml), which pods see as their folder.
#
#     kubectl apply -f volume.yaml
#     IMAGE=registry.example/splatkiln TASKS=64 ./bake.sh city --devices cpu --scratch-dir /scratch
#
# Called again, it goes on where it was: the manifest, its claim and the parts on the volume say what is done.
#
#   IMAGE=name        an image with SplatKiln's programs in its PATH
#   TASKS=8           tasks a round        PARALLELISM=TASKS   pods at a time
#   NAME=kiln-...     what Jobs are called; each bake needs one of its own (default: a number made of the arguments)
#   KUBECTL=kubectl   the command, with its options: 'kubectl --namespace bakes'
#
# Pods ask kiln for the commands of the stages each time. Here nothing is evaluated that a pod has printed: stages, keys and numbers are
# taken from its lines when they are no more than that, and kiln claim has checked them there. What lies on the volume may be somebody
# else's.
#
# What pods need is in job.yaml. Ends with 0, or with 1 where a step failed, whose log is printed; with 7 where units were given up: at
# the stage that did so, or with --allow-partial at the end.
set -eu
export LC_ALL=C # a-z are 26 letters
[ $# -gt 0 ] || { echo "Usage: IMAGE=name [TASKS=8] [PARALLELISM=n] $0 SCENE [options of kiln pipeline]" >&2; exit 2; }
: "${IMAGE:?names the image}" "${TASKS:=8}" "${KUBECTL:=kubectl}"
: "${PARALLELISM:=$TASKS}" "${NAME:=kiln-$(echo "$*" | cksum | cut -d ' ' -f 1)}"
here=$(cd "$(dirname "$0")" && pwd)
case $TASKS in '' | 0* | *[!0-9]* | ???????*) echo "$0: TASKS is a number from 1 to 100000, not '$TASKS'" >&2; exit 2 ;; esac
quoted=$(for word; do printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"; done)

# submit NAME TASKS BACKOFF COMMAND: makes the Job and waits for its end; fails where it failed.
submit() {
    $KUBECTL delete job "$1" --ignore-not-found >/dev/null
    JOB=$1 N=$2 BACKOFF=$3 COMMAND=$4 IMAGE=$IMAGE PARALLELISM=$PARALLELISM awk '
        function put(word, value) {
            if (i = index($0, "@" word "@")) $0 = substr($0, 1, i - 1) value substr($0, i + length(word) + 2)
        }
        /@COMMAND@/ { # each line of it, as far to the right
            n = split(ENVIRON["COMMAND"], lines, "\n")
            indent = substr($0, 1, index($0, "@") - 1)
            for (i = 1; i <= n; i++) print indent lines[i]
            next
        }
        {
            put("NAME", ENVIRON["JOB"]); put("TASKS", ENVIRON["N"]); put("BACKOFF", ENVIRON["BACKOFF"])
            put("PARALLELISM", ENVIRON["PARALLELISM"]); put("IMAGE", ENVIRON["IMAGE"])
            print
        }' "$here/job.yaml" | $KUBECTL apply -f - >&2
    while :; do
        case " $($KUBECTL get job "$1" -o jsonpath='{.status.conditions[?(@.status=="True")].type}') " in
        *' Complete '*) return 0 ;;
        *' Failed '*) return 1 ;;
        esac
        sleep "${PAUSE:-5}"
    done
}

# step COMMAND: runs it in a pod and prints what it says.
step() {
    code=0
    submit "$NAME-step" 1 3 "$1" || code=1
    pod=$($KUBECTL get pods -l "job-name=$NAME-step" -o name | tail -n 1)
    [ $code -ne 0 ] || pod=$($KUBECTL get pods -l "job-name=$NAME-step" --field-selector=status.phase=Succeeded -o name | tail -n 1)
    $KUBECTL logs "$pod"
    return $code
}

# ---- what pods run ----

prepare() { # STAGE: the words of its command are $1, $2 ... then
    cat <<E1
stage=$1 tasks=$TASKS n=$n
commands=\$(kiln pipeline $quoted --print-commands) || exit # a line a stage, quoted for a shell
E1
    cat <<'E2'
line=$(printf '%s\n' "$commands" | while IFS= read -r line; do
    eval "set -- $line"
    [ "${1##*/kiln-}" != "$stage" ] || printf '%s\n' "$line"
done)
eval "set -- $line"
case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
parts=${manifest%/*}/parts
[ ! -L "$parts" ] || { echo "'$parts' is a link, so files would be written elsewhere: remove it" >&2; exit 3; }
E2
}

begin_code() { # the names of the stages, and the open round
    cat <<E3
commands=\$(kiln pipeline $quoted --print-commands) || exit
E3
    cat <<'E4'
printf '%s\n' "$commands" | {
    stages=
    while IFS= read -r line; do
        eval "set -- $line"
        stages="$stages ${1##*/kiln-}"
    done
    echo "stages$stages"
    case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
    kiln claim "$manifest"
}
E4
}

task_code() { # STAGE
    prepare "$1"
    cat <<'E5'
"$@" --shard $((JOB_COMPLETION_INDEX + 1))/$n --part "$parts"
code=$?
[ $code -ne 7 ] || exit 0 # the part says which units were given up, and the gather tries them
exit $code
E5
}

step_code() { # STAGE: a gather or a plan, or a stage that cannot be shared out
    prepare "$1"
    cat <<'E6'
mkdir -p "$parts" || exit
open=$(kiln claim "$manifest" | sed -n 's/^stage //p')
if [ "$stage" = report ]; then "$@" --allow-network-fs || echo 'the report could not be written; run kiln report to try again' # the bake is whole
elif ! "$1" --help-json | grep -q '"name": "plan"'; then "$@" --allow-network-fs # only this pod writes
elif [ "$open" = "$stage" ]; then "$@" --gather "$parts" --remove-parts --tasks $tasks
else "$@" --plan --tasks $tasks
fi
code=$?
allowed=refused
for word; do [ "$word" != --allow-partial=yes ] || allowed=allowed; done
case $code in 0) echo 'gave-up nothing' ;; 7) echo "gave-up $allowed" ;; *) exit $code ;; esac
kiln claim "$manifest"
E6
}

# ---- what is done with what they say ----

partial=0
# The value of a line of ours in what a step has said; empty where it has other characters than it may have.
value() { # NAME CHARACTERS
    found=$(printf '%s\n' "$said" | sed -n "s/^$1 //p" | tail -n 1)
    case $found in *[!$2]*) found= ;; esac
    printf '%s\n' "$found"
}
read_claim() {
    open=$(value stage a-z) key=$(value plan 0-9a-f) n=$(value tasks 0-9)
    case $open/$key/$n in //) return ;; /* | *//* | */) ;; *) [ ${#key} -ne 32 ] || [ ${#n} -gt 6 ] || return 0 ;; esac
    echo "$0: a step has printed an invalid claim" >&2
    exit 1
}

# bake_stage STAGE: all rounds of a stage. The pod says whether it has any: it leaves a claim.
bake_stage() {
    stage=$1
    while :; do
        if [ "$open" = "$stage" ]; then
            submit "$NAME-$stage-$(echo "$key" | cut -c 1-8)" "$n" $((n + 6)) "$(task_code "$stage")" ||
                echo "$0: tasks of $stage failed; the next step computes what they lack" >&2
        fi
        said=$(step "$(step_code "$stage")") || { printf '%s\n' "$said"; exit 1; }
        printf '%s\n' "$said"
        case $(value gave-up a-z) in
        nothing) ;;
        allowed) partial=7 ;;
        refused) exit 7 ;;
        *) echo "$0: the step of $stage did not finish" >&2; exit 1 ;;
        esac
        read_claim
        [ "$open" = "$stage" ] || return 0
    done
}

n=
said=$(step "$(begin_code)") || { printf '%s\n' "$said" >&2; exit 1; }
stages=$(value stages 'a-z ')
[ -n "$stages" ] || { echo "$0: the first step has printed no stages" >&2; exit 1; }
read_claim
# A round that an earlier call has left open keeps all other stages from writing, so it comes first.
if [ -n "$open" ]; then
    case " $stages " in
    *" $open "*) bake_stage "$open" ;;
    *) echo "$0: a plan of $open is open, but this stage is not among the chosen ones" >&2; exit 75 ;;
    esac
fi
for stage in $stages; do bake_stage "$stage"; done
exit $partial
