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
# What pods need is in job.yaml. Ends with 0, or with 1 where a step failed, whose log is printed; with 7 where units were given up: at
# the stage that did so, or with --allow-partial at the end.
set -eu
[ $# -gt 0 ] || { echo "Usage: IMAGE=name [TASKS=8] [PARALLELISM=n] $0 SCENE [options of kiln pipeline]" >&2; exit 2; }
: "${IMAGE:?names the image}" "${TASKS:=8}" "${KUBECTL:=kubectl}"
: "${PARALLELISM:=$TASKS}" "${NAME:=kiln-$(echo "$*" | cksum | cut -d ' ' -f 1)}"
here=$(cd "$(dirname "$0")" && pwd)
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

partial=0
value() { printf '%s\n' "$said" | sed -n "s/^$1 //p" | tail -n 1; } # of the claim in what a step has said
read_claim() { open=$(value stage) key=$(value plan) n=$(value tasks); }
show_claim='
case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
[ ! -e "$manifest.claim" ] || cat "$manifest.claim"'

# bake_stage LINE: all rounds of a stage. The pod says whether it has any: it leaves a claim.
bake_stage() {
    stage=$(eval "set -- $1"; echo "${1##*/kiln-}")
    while :; do
        if [ "$open" = "$stage" ]; then
            submit "$NAME-$stage-$(echo "$key" | cut -c 1-8)" "$n" $((n + 6)) "set -- $1
case \$1 in */kiln-import) manifest=\$3 ;; *) manifest=\$2 ;; esac
\"\$@\" --shard \$((JOB_COMPLETION_INDEX + 1))/$n --part \"\${manifest%/*}/parts\"
code=\$?; [ \$code -ne 7 ] || exit 0; exit \$code # 7: the part says which units were given up, and the gather tries them" ||
                echo "$0: tasks of $stage failed; the next step computes what they lack" >&2
        fi
        said=$(step "set -- $1
case \$1 in */kiln-import) manifest=\$3 ;; *) manifest=\$2 ;; esac
if ! \"\$1\" --help-json | grep -q '\"name\": \"plan\"'; then \"\$@\" --allow-network-fs # only this pod writes
elif grep -qsx 'stage $stage' \"\$manifest.claim\"; then mkdir -p \"\${manifest%/*}/parts\" && \"\$@\" --gather \"\${manifest%/*}/parts\" --remove-parts --tasks $TASKS
else \"\$@\" --plan --tasks $TASKS
fi
code=\$?
case \$code in 0) ;; 7) echo 'partial $stage' ;; *) exit \$code ;; esac$show_claim") || { printf '%s\n' "$said"; exit 1; }
        printf '%s\n' "$said"
        if [ -n "$(value partial)" ]; then
            case $1 in *" '--allow-partial=yes'"*) partial=7 ;; *) exit 7 ;; esac
        fi
        read_claim
        [ "$open" = "$stage" ] || return 0
    done
}

said=$(step "set -e
kiln pipeline $quoted --print-commands | tee /tmp/commands
eval \"set -- \$(tail -n 1 /tmp/commands)\"$show_claim") || { printf '%s\n' "$said" >&2; exit 1; }
commands=$(printf '%s\n' "$said" | grep "^'") # a line a stage, quoted for a shell
read_claim
# A round that an earlier call has left open keeps all other stages from writing, so it comes first.
[ -z "$open" ] || bake_stage "$(printf '%s\n' "$commands" | grep "/kiln-$open' ")"
printf '%s\n' "$commands" | {
    while IFS= read -r line; do bake_stage "$line" </dev/null; done
    exit $partial
}
