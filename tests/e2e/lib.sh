# lib -- what the end-to-end tests share. Sourced by bash scripts that run from the repository's root, with KILN_BIN (programs),
# KILN_TMP (scratch, empty) and KILN_SHARED (reference data or empty) set by tests/run, or with defaults when run by hand.
set -u
KILN_BIN=${KILN_BIN:-$PWD/build/bin}
KILN_MAKE_O=${KILN_MAKE_O:-build}
KILN_SHARED=${KILN_SHARED:-}
# A stand-in for what make viewer makes, so that kiln-export writes --format html without npm.
export KILN_VIEWER=${KILN_VIEWER:-$PWD/tests/data/viewer}
STAGES=$(sed -n 's/^STAGE(\([a-z]*\), [0-9]*, ALWAYS,.*/\1/p' pipelines/stages.def | grep -vx import | paste -sd ' ')
. tests/cases.sh
[ -n "${KILN_TMP:-}" ] || { KILN_TMP=$(mktemp -d); at_exit 'rm -rf "$KILN_TMP"'; }

# LEFT: what stands between a file's name and the number of the process that writes it (base/leftovers.c).
left_of_host() {
    python3 -c 'import os
h = 2166136261
space = os.stat("/proc/self/ns/pid").st_ino.to_bytes(8, "little")
for b in os.uname().nodename.encode() + open("/proc/sys/kernel/random/boot_id", "rb").read() + space: h = (h ^ b) * 16777619 & 0xffffffff
print(".tmp.kiln-%08x-" % h, end="")'
}
[[ $(<"$0") != *LEFT* ]] || LEFT=$(left_of_host) # most scripts need none, and a Python takes its time

kiln() { local program=$1; shift; "$KILN_BIN/kiln-$program" --quiet "$@"; }
# must STATUS command...: it ends with just that status
must() {
    local want=$1 got; shift
    "$@" >"$KILN_TMP/out" 2>"$KILN_TMP/err"; got=$?
    [ "$got" = "$want" ] || { cat "$KILN_TMP/err" >&2; fail "exit $got, not $want: $*"; }
}
# stop_once_begun PID FOLDER: stops a process when the temporary folder of what it writes is there, and the folder is not
stop_once_begun() {
    for _ in $(seq 4000); do [ -z "$(find . -maxdepth 1 -name "$2.tmp.*")" ] || break; sleep 0.005; done
    kill -STOP "$1"
    [ ! -e "$2" ] || fail 'it had ended'
}
needs_numpy() {
    command -v python3 >/dev/null || skip "no python3"
    python3 -c 'import numpy' 2>/dev/null || skip "no numpy in $(command -v python3)"
}
# scene DIR N CAMERAS SIZE [options]: a generated scene
scene() {
    local dir=$1 n=$2 k=$3 size=$4; shift 4
    kiln generate scene "$dir" --gaussians "$n" --cameras "$k" --size "$size" "$@" >/dev/null || fail "generate"
}
# bake SCENE MANIFEST [options of chunk]: every stage. Several bakes of a test share a folder and so export/scene.ply, which is that of
# another manifest then: -w.
bake() {
    local from=$1 db=$2 s; shift 2
    kiln import "$from" "$db" >/dev/null || fail "import $from"
    for s in $STAGES; do
        case $s in
        chunk) kiln chunk "$db" "$@" >/dev/null || fail "chunk" ;;
        export) kiln export "$db" -w >/dev/null || fail "export" ;;
        *) kiln "$s" "$db" >/dev/null || fail "$s" ;;
        esac
    done
}
digest() { kiln verify "$1" --digest || fail "digest of $1"; }
# same A B: equal digests, with the difference shown
same() { diff <(digest "$1") <(digest "$2") >&2 || fail "$1 and $2 differ"; }
# edit_ply FILE COLUMN ROW|all EXPRESSION: sets a column of one row, or of all rows, to a Python expression of its present value v.
# The file is one of `kiln generate`: binary, with floats only.
E2E=$PWD/tests/e2e
edit_ply() { python3 "$E2E/edit_ply.py" "$@" || fail "cannot edit '$1'"; }
# ascii_ply 'TYPE COLUMN ...' ROW...: a PLY in text
ascii_ply() {
    local columns=$1; shift
    printf 'ply\nformat ascii 1.0\nelement vertex %d\n' $#
    # shellcheck disable=SC2086 # words
    printf 'property %s %s\n' $columns
    printf 'end_header\n'
    printf '%s\n' "$@"
}
# stored DB STAGE: how many units of the stage it has
stored() { sqlite3 "file:$1?mode=ro" "SELECT count(*) FROM unit WHERE stage = '$2'" 2>/dev/null || echo 0; }
# killed_when_stored DB STAGE N command...: runs the command until DB has N units of the stage, then kills it: at the same point on slow
# and fast machines, if a unit of it hangs (KILN_FAULT). Where that unit is the last one that can be computed, no more come: it is
# killed when it has stored none for some 30 seconds. The status is that of the command, 137 if it was killed.
killed_when_stored() {
    local db=$1 stage=$2 n=$3 run now last=-1 same=0; shift 3
    "$@" >/dev/null 2>&1 </dev/null & run=$!
    while kill -0 $run 2>/dev/null && [ $same -lt 1000 ]; do
        now=$(stored "$db" "$stage")
        [ "$now" -lt "$n" ] || break
        [ "$now" = "$last" ] && same=$((same + 1)) || same=0
        last=$now
        sleep 0.02
    done
    kill -KILL $run 2>/dev/null
    wait $run 2>/dev/null
}
