#!/bin/sh
# object-store.sh -- bakes a scene with hosts that share nothing but a bucket:
#
#   object-store.sh lead SCENE [options of kiln pipeline]   the host that has the scene and the bake
#   object-store.sh work I/N SCENE [the same options]       another host, the Ith of N: computes tasks until the bake has ended
#   object-store.sh task I SCENE [the same options]         computes task I of the open round and ends: for array jobs
#
# Scene and bake have the same paths on each host (a folder of each container, for example); import and render read the scene there,
# so it travels, too, once to each host. A manifest travels to each host once a round, and each part once back. Hosts may come, go
# and die at any time. What tasks have left out, the lead computes. Where the bucket had a bake before, the lead begins first.
#
#   STORE=s3://bucket/city   where objects lie: with the AWS CLI, or a folder. Any other store by four commands for sh:
#   PUT='...'                file $1 to object $2
#   GET='...'                object $2 to file $1
#   LIST='...'               the names in folder $1 ('' or KEY/), without that, a line each; those of folders with or without a /
#   DELETE='...'             object $1
#   SUBMIT='...'             starts tasks 1 to $1 of the open round, each as `object-store.sh task I`; else hosts that `work` do
#   TASKS=8                  tasks a round
#   PATIENCE=600             seconds without a new part after which the lead gathers, and hosts take tasks of others
#   POLL=5                   seconds between two looks
#   KILN=kiln                the front command
#
# Objects:  round             KEY STAGE TASKS MANIFEST CLAIM SCENE end -- the open round, with checksums; or `done CODE end`
#           KEY/manifest-SUM  KEY/claim-SUM  scene-SUM
#           KEY/I-SUM         part of task I
# Each name but `round` has the checksum of what it names, so a torn object is seen and fetched again, or made again; what comes
# twice is the same; what comes late has the KEY of a round that is over, and is removed with it. A put that does not show in a list
# is done again. Nothing is evaluated that the store has: it is compared with what it may be.
#
# lead ends as gnu-parallel.sh does: 0, the exit code of the stage that failed, or 7 with --allow-partial.
set -u
export LC_ALL=C # a-z are 26 letters
usage() { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
role=${1:-} which=
case $role in
lead) shift ;;
work | task) which=${2:-}; case $which in '' | *[!0-9/]*) usage ;; esac; shift 2 ;;
*) usage ;;
esac
[ $# -gt 0 ] || usage
TASKS=${TASKS:-8} KILN=${KILN:-kiln} POLL=${POLL:-5} PATIENCE=${PATIENCE:-600}
case ${STORE:-} in
s3://*)
    : "${PUT:=aws s3 cp --quiet \"\$1\" \"$STORE/\$2\"}" "${GET:=aws s3 cp --quiet \"$STORE/\$2\" \"\$1\"}"
    : "${LIST:=aws s3 ls \"$STORE/\$1\" | sed 's/.* //'}" "${DELETE:=aws s3 rm --quiet \"$STORE/\$1\"}" ;;
/*)
    : "${PUT:=mkdir -p \"\$(dirname '$STORE'/\$2)\" && cp \"\$1\" '$STORE'/\$2.new && mv '$STORE'/\$2.new '$STORE'/\$2}"
    : "${GET:=cp '$STORE'/\$2 \"\$1\"}" "${LIST:=ls '$STORE'/\$1 2>/dev/null}" "${DELETE:=rm -f '$STORE'/\$1}" ;;
esac
: "${PUT:?names a command; see the head of this script}" "${GET:?}" "${LIST:?}" "${DELETE:?}"
say() { echo "$0: $*" >&2; }
fail() { say "$1"; exit "${2:-74}"; }

# ---- the store ----
sum() { sha256sum <"$1" | cut -c 1-40; }
list() { sh -c "$LIST" sh "$1"; }
is_there() { list "${1%"${1##*/}"}" | grep -qxF "${1##*/}"; }
# store FILE NAME: until a list shows it
store() {
    for pause in 0 1 2 4 8; do
        sleep $pause
        sh -c "$PUT" sh "$1" "$2" >&2 && is_there "$2" && return
    done
    say "cannot store '$2'"
    return 1
}
# store_whole FILE NAME SUM: until it comes back as it is. A torn part is computed again; these are what all hosts wait for.
store_whole() {
    for pause in 0 1 2; do
        store "$1" "$2" && fetch "$2" "$3" "$place/back" && rm "$place/back" && return
    done
    say "'$2' comes back from the store changed"
    return 1
}
# fetch NAME SUM FILE: whole, or not at all
fetch() {
    for pause in 0 1 2 4; do
        sleep $pause
        sh -c "$GET" sh "$3.new" "$1" >&2 && [ -f "$3.new" ] && [ "$(sum "$3.new")" = "$2" ] && mv "$3.new" "$3" && return
    done
    rm -f "$3.new"
    return 1
}
is_sum() { case $1 in *[!0-9a-f]*) false ;; *) [ ${#1} -eq 40 ] ;; esac; }

# ---- the bake, by the same options on each host ----
commands=$("$KILN" pipeline "$@" --print-commands) || exit
eval "set -- $(printf '%s\n' "$commands" | tail -n 1)"
case $1 in */kiln-import) manifest=$3 ;; *) manifest=$2 ;; esac
case $manifest in /*) ;; *) manifest=$PWD/$manifest ;; esac
eval "set -- $(printf '%s\n' "$commands" | head -n 1)"
case $1 in */kiln-import) scene=$2 ;; *) scene= ;; esac
place=${manifest%/*}/object-store parts=${manifest%/*}/object-store/parts
for folder in "$place" "$parts"; do
    [ ! -L "$folder" ] || fail "'$folder' is a link, so files would be written elsewhere: remove it" 3
done
mkdir -p "$parts" || exit 74
line_of() { # the line of a stage
    printf '%s\n' "$commands" | while IFS= read -r line; do
        eval "set -- $line"
        [ "${1##*/kiln-}" != "$1" ] && [ "${1##*/kiln-}" = "$wanted" ] && printf '%s\n' "$line"
    done
}
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

# ---- a task ----
# read_round: the open round; false where there is none, or the object is torn
read_round() {
    key= stage= n= code=
    rm -f "$place/round.new"
    sh -c "$GET" sh "$place/round.new" round >/dev/null 2>&1 && [ -f "$place/round.new" ] || return 1
    read -r key stage n manifest_sum claim_sum scene_sum last <"$place/round.new" || return 1
    if [ "$key" = done ] && [ "$n" = end ]; then code=$stage; return 0; fi
    case $key in *[!0-9a-f]*) return 1 ;; esac
    case $stage in '' | *[!a-z]*) return 1 ;; esac
    case $n in '' | 0* | *[!0-9]*) return 1 ;; esac
    [ ${#key} -eq 32 ] && [ ${#n} -le 6 ] && is_sum "$manifest_sum" && is_sum "$claim_sum" && [ "$last" = end ] || return 1
    [ "$scene_sum" = - ] || is_sum "$scene_sum"
}
# The manifest of the round, and the scene, which is kept for later rounds.
fetch_round() {
    if [ "$scene_sum" != - ] && [ ! -e "$place/scene-$scene_sum" ]; then
        fetch "scene-$scene_sum" "$scene_sum" "$place/scene.tar" || return 1
        mkdir -p "$(dirname "$scene")" && tar -xf "$place/scene.tar" -C "$(dirname "$scene")" || return 1
        : >"$place/scene-$scene_sum"
        rm -f "$place/scene.tar"
    fi
    [ "$(cat "$place/has" 2>/dev/null)" != "$key $manifest_sum $claim_sum" ] || return 0
    rm -f "$place/has" "$manifest.claim" "$parts"/*
    fetch "$key/manifest-$manifest_sum" "$manifest_sum" "$manifest" && fetch "$key/claim-$claim_sum" "$claim_sum" "$manifest.claim" || return 1
    echo "$key $manifest_sum $claim_sum" >"$place/has"
}
run_task() { # I of the open round; its part is stored
    wanted=$stage line=$(line_of)
    [ -n "$line" ] || fail "the open round is of $stage, which is not among the chosen stages" 2
    rm -f "$parts/$stage-$key-$1-of-$n.part"
    (eval "$line --shard $1/$n --part $(quote "$parts")") # 7: the part says which units were given up
    part=$parts/$stage-$key-$1-of-$n.part
    [ -f "$part" ] && store "$part" "$key/$1-$(sum "$part")" && rm -f "$part"
}
missing_tasks() { # of those of the open round that have no part in the store
    there=" $(list "$key/" | sed -n 's/^\([0-9]*\)-.*/\1/p' | tr '\n' ' ') "
    i=0
    while [ $((i += 1)) -le "$n" ]; do case $there in *" $i "*) ;; *) echo $i ;; esac; done
}

if [ $role = task ]; then
    read_round || fail "no round is open"
    [ -z "$code" ] || exit "$code"
    [ "$which" -le "$n" ] || exit 0
    fetch_round || fail "the round is over, or its manifest cannot be fetched whole"
    run_task "$which"
    exit
fi
if [ $role = work ]; then
    own=${which%/*} of=${which#*/} idle=0 last_key=
    while :; do
        if read_round; then
            [ -z "$code" ] || exit "$code"
            [ "$key" = "$last_key" ] || idle=0 tried=
            last_key=$key
            for i in $(missing_tasks); do
                [ $(((i - own) % of)) -eq 0 ] || [ $idle -ge "$PATIENCE" ] || continue
                case $tried in *" $i "*" $i "*) continue ;; esac # twice is enough: the lead computes it
                fetch_round || break
                tried="$tried $i "
                run_task "$i" && idle=0
            done
        fi
        sleep "$POLL"
        idle=$((idle + POLL))
    done
fi

# ---- the lead ----
exec 9<"$place"
flock -n -E 75 9 || { [ $? -ne 75 ] || fail "another call leads this bake" 75; }
sh -c "$DELETE" sh round >/dev/null 2>&1 || true # the end of an earlier bake is not that of this one
scene_sum=-
store_scene() {
    [ -n "$scene" ] && [ "$scene_sum" = - ] || return 0
    top=$(cd "$(dirname "$scene")" && pwd) || return 1
    bake=${manifest%/*}
    # the bake may lie in the scene
    tar -cf "$place/scene.tar" --sort=name -C "$top" --anchored --no-wildcards --exclude="${bake#"$top/"}" "$(basename "$scene")" &&
        scene_sum=$(sum "$place/scene.tar") || return 1
    is_there "scene-$scene_sum" || store_whole "$place/scene.tar" "scene-$scene_sum" "$scene_sum" || return 1
    rm -f "$place/scene.tar"
}
read_claim() { # the round that is open, if one is
    open= key= n=
    claim=$("$KILN" claim "$manifest") || exit
    while read -r word value; do
        case $word in stage) open=$value ;; plan) key=$value ;; tasks) n=$value ;; esac
    done <<E1
$claim
E1
}
partial=0
step() { # the command of a step: ends this where it fails; what --allow-partial allows is told at the end
    code=0
    eval "$1" || code=$?
    [ $code -ne 0 ] || return 0
    case $code-$line in 7-*" '--allow-partial=yes'"*) partial=7 ;; *) end $code ;; esac
}
put_round() {
    echo "$* end" >"$place/round"
    for pause in 0 1 2 4 8; do
        sleep $pause
        sh -c "$PUT" sh "$place/round" round >&2 && sh -c "$GET" sh "$place/back" round >&2 && cmp -s "$place/round" "$place/back" && return
    done
    fail "cannot store 'round'"
}
clear_rounds() { # but the one with this key: parts may come late
    for old in $(list '' | sed -n 's/^\([0-9a-f]\{32\}\)\/\{0,1\}$/\1/p'); do
        [ "$old" = "${1:-}" ] || for name in $(list "$old/"); do sh -c "$DELETE" sh "$old/$name" >&2; done
    done
}
end() {
    put_round "done $1"
    clear_rounds
    exit "$1"
}
share_round() {
    cp "$manifest" "$place/manifest" && cp "$manifest.claim" "$place/claim" || exit 74
    manifest_sum=$(sum "$place/manifest") claim_sum=$(sum "$place/claim")
    store_scene && store_whole "$place/manifest" "$key/manifest-$manifest_sum" "$manifest_sum" &&
        store_whole "$place/claim" "$key/claim-$claim_sum" "$claim_sum" || exit 74
    rm -f "$place/manifest"
    put_round "$key $open $n $manifest_sum $claim_sum $scene_sum"
    [ -z "${SUBMIT:-}" ] || sh -c "$SUBMIT" sh "$n" >&2 || say "SUBMIT failed; this host computes the tasks of other hosts, too"
}
collect_parts() { # until all are here, or none has come for long
    idle=0
    while [ -n "$("$KILN" claim "$manifest" --missing "$parts")" ] && [ $idle -lt "$PATIENCE" ]; do
        for name in $(list "$key/"); do
            i=${name%%-*} s=${name#*-}
            case $i in '' | *[!0-9]* | ???????*) continue ;; esac
            part=$parts/$open-$key-$i-of-$n.part
            is_sum "$s" && [ ! -e "$part" ] || continue
            if fetch "$key/$name" "$s" "$part"; then idle=0; else
                say "'$key/$name' is incomplete and is removed; it is computed again"
                sh -c "$DELETE" sh "$key/$name" >&2
            fi
        done
        sleep "$POLL"
        idle=$((idle + POLL))
    done
}
run() { # the line of a stage
    line=$1
    eval "set -- $line"
    stage=${1##*/kiln-}
    if [ "$stage" = report ]; then eval "$line" >/dev/null || say "the report could not be written; run $KILN report $manifest to try again"; return 0; fi
    if ! "$1" --help-json | grep -q '"name": "plan"'; then step "$line"; return; fi
    step "$line --plan --tasks $TASKS"
    read_claim
    while [ "$open" = "$stage" ]; do
        share_round
        collect_parts
        step "$line --gather $(quote "$parts") --remove-parts --tasks $TASKS"
        read_claim
        clear_rounds "$key"
    done
}
# A round that an earlier call has left open keeps all other stages from writing, so it comes first.
read_claim
if [ -n "$open" ]; then
    wanted=$open line=$(line_of)
    [ -n "$line" ] || fail "a plan of $open is open, but this stage is not among the chosen ones" 75
    run "$line"
fi
printf '%s\n' "$commands" >"$place/commands"
while IFS= read -r line <&3; do run "$line" 3<&-; done 3<"$place/commands"
end $partial
