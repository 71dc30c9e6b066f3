#!/usr/bin/env bash
# ram_writers -- the memory promise of what writes or shows a bake: a line for each bake and program or format, in MiB: the least --ram
# that its refusals name, how often it was refused on the way there (1: the first sentence was enough), what it told and what another
# program saw from outside (tests/bench/ram_watch.c). Programs without --ram have `-` for the first two. Ends with 1 where a refusal
# named too little, or more was taken than --ram allows or the bounds below say.
#
#   tests/soak/ram_writers.sh [BAKE.db ...]    without names: two are made, of 1M Gaussians of degree 3 and of 20,000 cameras
#
#   GAUSSIANS=1000000 CAMERAS=20000 THREADS=2 FORMATS='ply spz ...' PROGRAMS='export loss refine serve report info ...'
#   SCRATCH=dir KILN_BIN=dir (programs of another build) TIMES=1 (seconds behind each line)
set -u
bakes=()
for bake in "$@"; do bakes+=("$(realpath "$bake")"); done
cd "$(dirname "$0")/../.." || exit 1
O=$(cd "${O:-build}" && pwd)
KILN_BIN=${KILN_BIN:-$O/bin}
KILN_TMP=$(mktemp -d "${SCRATCH:-${TMPDIR:-/tmp}}/kiln-ram.XXXXXX") || exit 1
trap 'rm -rf "$KILN_TMP"' EXIT
. tests/e2e/lib.sh
. tests/e2e/ram.sh
RAM_WATCH=$O/tests/bench/ram_watch
SERVE=$PWD/tests/e2e/serve.py
cd "$KILN_TMP" || exit 1
bad=0
threads=${THREADS:-2}

mib() { echo "$((($1 + 1048575) >> 20))"; }
line() { # PROGRAM LEAST TRIES TOLD OUTSIDE NOTE
    printf '%-10s %-16s %6s %5s %6s %8s  %s\n' "$name" "$@"
}

# capped WHAT STAGE [arguments]: the least that is named, and what is taken under it
capped() {
    local what=$1 cap=1 tries=0 code note='' least=; shift
    for ((tries = 0; tries < 6; tries++)); do
        rm -rf out.*
        SECONDS=0
        watched "${cap}M" "$threads" "$@"; code=$?
        [ $code = 5 ] || break
        least=$(least_named)
        [ -n "$least" ] && [ "$least" -gt "$cap" ] || break
        cap=$least
    done
    if [ $code != 0 ]; then
        [ $code = 5 ] && bad=1
        line "$what" "$cap" "$tries" - - "exit $code: $(tail -n 1 err | cut -c 1-200)"
        return
    fi
    [ "$tries" = 1 ] || note="$note; refused $tries times"
    [ "$ram_outside" -le "$ram_cap" ] || note="$note; above the cap"
    [ "$ram_outside" -le "$ram_predicted" ] || note="$note; above the prediction of $(mib "$ram_predicted")"
    [ -z "$note" ] || bad=1
    line "$what" "$cap" "$tries" "$(mib "$ram_told")" "$(mib "$ram_outside")" "${TIMES:+$SECONDS s }${note#; }"
}

# plain BOUND WHAT PROGRAM [arguments]: a program that takes no --ram; above BOUND MiB is too much
plain() {
    local bound=$1 what=$2 code note=; shift 2
    SECONDS=0
    "$RAM_WATCH" peak "$KILN_BIN/kiln-$1" "${@:2}" --threads "$threads" -q >out 2>err; code=$?
    read -r ram_outside _ _ _ <peak
    [ $code = 0 ] || note="; exit $code: $(tail -n 1 err | cut -c 1-200)"
    [ "$(mib "$ram_outside")" -le "$bound" ] || note="$note; above $bound"
    [ -z "$note" ] || bad=1
    line "$what" - - - "$(mib "$ram_outside")" "${TIMES:+$SECONDS s }${note#; }"
}

# Pages are asked for one after the other. The report is made in the server's own process and draws levels of detail: 1M Gaussians may
# take as much as the report's 200.
served() {
    local note='' bound=100
    [ "$("$KILN_BIN/kiln-info" "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["counts"]["baked"])')" -lt 100000 ] || bound=250
    read -r idle ram_outside < <(python3 "$SERVE" ram "$KILN_BIN/kiln-serve" "$1" "$RAM_WATCH")
    [ -n "${ram_outside:-}" ] || { bad=1; line serve - - - - "failed"; return; }
    [ "$idle" -le $((100 << 20)) ] && [ "$(mib "$ram_outside")" -le "$bound" ] || { note="above $bound"; bad=1; }
    line serve - - "$(mib "$idle") idle" "$(mib "$ram_outside")" "$note"
}

exports() {
    local f
    for f in ${FORMATS:-$("$KILN_BIN/kiln-export" --list-formats | awk '{print $1}')}; do
        rm -rf out.* written
        capped "$f" export "$1" --format "$f" -o written
    done
}

programs=${PROGRAMS:-export loss refine verify serve report info json plots compare gc}
measure() {
    local db=$1 p copy
    name=$(basename "$db" .db)
    for p in $programs; do
        case $p in
        export) exports "$db" ;;
        loss) rm -rf written; capped 'spz, 2 views' export "$db" --format spz -o written --report-loss 2 ;;
        refine) cp "$db" refined.db; capped 'lod --refine' lod refined.db --refine 1 ;;
        verify) plain 200 verify verify "$db" --ram 200M ;;
        serve) served "$db" ;;
        report) plain 200 report report "$db" -o report.html ;;
        info) plain 100 info info "$db" ;;
        json) plain 100 "info --json" info "$db" --json ;;
        plots) plain 100 "info --plots" info "$db" --plots ;;
        compare) copy=$(dirname "$db")/$name.pictures; [ ! -d "$copy" ] || plain 100 compare compare "$copy" "$copy" ;;
        gc) cp "$db" swept.db; plain 100 gc gc swept.db ;;
        esac
    done
    rm -rf refined.db* swept.db* written out.* report.html
}

# baked NAME GAUSSIANS CAMERAS SIZE
baked() {
    local db=$KILN_TMP/$1.db s
    scene "$1" "$2" "$3" "$4"
    kiln import "$1" "$db" >/dev/null || fail "import"
    for s in knn prune chunk lod tiles; do kiln $s "$db" >/dev/null || fail "$s"; done
    kiln render "$db" -o "$KILN_TMP/$1.pictures" >/dev/null || fail "render"
    bakes+=("$db")
}

if [ ${#bakes[@]} = 0 ]; then
    baked gaussians "${GAUSSIANS:-1000000}" 2 640x360
    baked cameras 20000 "${CAMERAS:-20000}" 64x64
fi
printf '%-10s %-16s %6s %5s %6s %8s\n' bake what least tries told outside
for bake in "${bakes[@]}"; do measure "$bake"; done
exit $bad
