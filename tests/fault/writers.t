#!/bin/bash
# Each format of kiln-export with a full disk, a failing call, a kill -9 at two moments and a folder that cannot be written: what is
# there under the target's name stays as it was or is whole, and the next run leaves nothing but the file.
# starts first
. tests/fault/lib.sh
"${cc[@]}" -std=gnu11 -O1 -g -shared -fPIC -o "$KILN_TMP/fail_nth.so" tests/fault/fail_nth.c -ldl || fail "cc"
scene "$KILN_TMP/s" 700 2 40x24
bake "$KILN_TMP/s" "$KILN_TMP/x.db" --max 128
kiln lod "$KILN_TMP/x.db" --levels 1 --coarsest 300 >/dev/null || fail lod
cd "$KILN_TMP" || exit 1
mkdir clean to

names=()
for format in $("$KILN_BIN/kiln-export" --list-formats | awk '{ print $1 }'); do
    mkdir "clean/$format"
    "$KILN_BIN/kiln-export" --quiet x.db --format "$format" -o "clean/$format/" --threads 1 2>err || fail "$format: $(cat err)"
    names+=("$format")
done
[ ${#names[@]} -ge 10 ] || fail "only ${#names[@]} formats"

export_to() {
    "${before[@]}" timeout -k 1 $WITHIN "$KILN_BIN/kiln-export" --quiet x.db --format "$format" -w -o "to/$format/" --threads \
        "${threads:-1}" 2>err
}

# An older export stands at the target: another choice of rows, or of levels another degree.
older() {
    local other=(--chunks '#0')
    case $format in lod | 3dtiles | rad) other=(--sh-degree 0) ;; esac
    before=()
    rm -rf "to/$format" "old/$format"; mkdir -p "to/$format" old
    "$KILN_BIN/kiln-export" --quiet x.db --format "$format" -o "to/$format/" "${other[@]}" 2>err ||
        fail "$format of a chunk: $(cat err)"
    cp -a "to/$format" "old/$format"
}
# The target is as it was, or as it is to be; hashed files of `chunks` may stand beside an old index, with index.json.unfinished,
# which names them for the next run to remove. `left` files may lie beside it
# until the next run, where a process was killed.
is_old_or_new() { # WHAT
    local file
    while read -r file; do
        case $format/$file in
        chunks/index.json | */index.json) cmp -s "to/$format/$file" "old/$format/$file" ||
            cmp -s "to/$format/$file" "clean/$format/$file" ||
            fail "$format, $1: '$file' is neither the old one nor the new one" ;;
        chunks/index.json.unfinished) ;;
        chunks/*) [ -e "clean/$format/$file" ] || [ -e "old/$format/$file" ] || [[ $file == *.tmp.* && $2 = left ]] ||
            fail "$format, $1: left '$file'" ;;
        */*.tmp.*) [ "${2:-}" = left ] || fail "$format, $1: left '$file'" ;;
        *) cmp -s "to/$format/$file" "old/$format/$file" || cmp -s "to/$format/$file" "clean/$format/$file" ||
            fail "$format, $1: '$file' is neither the old file nor the new one" ;;
        esac
    done < <(cd "to/$format" && find . -type f | sed 's|^\./||')
}
goes_on() { # WHAT: without the fault all is as in a clean folder
    before=()
    export_to || fail "$format after $1: $? $(cat err)"
    diff -rq "to/$format" "clean/$format" || fail "$format after $1: see above"
}

# fails KIND N: with a fault of fail_nth
fails() {
    older
    before=(env "KILN_TEST_FAIL=$1:$2:any:$KILN_TMP/count" "LD_PRELOAD=$KILN_TMP/fail_nth.so")
    rm -f count; export_to; code=$?
    calls=$(counted count 1) hits=$(counted count 2)
    [ "$hits" = 0 ] && [ $code = 0 ] && return
    case $code in 0 | 5 | 6 | 7 | 74) ;; *) fail "$format, $1 $2: exit $code: $(cat err)" ;; esac
    [ $code = 0 ] || [ "$(grep -vc ': worker: ' err)" = 1 ] || fail "$format, $1 $2: not one sentence: $(cat err)"
    is_old_or_new "$1 $2"
    goes_on "$1 $2"
}
# Does a process of session $1 wait in pause(2), as a unit or an fsync that hangs does?
case $(uname -m) in x86_64) PAUSE=34 ;; aarch64) PAUSE=73 ;; *) PAUSE=- ;; esac
hangs() {
    local p now
    for p in $(ps -o pid= -s "$1"); do
        read -r now _ <"/proc/$p/syscall" && [ "$now" = $PAUSE ] && return
    done 2>/dev/null
    return 1
}
dies() { # WHAT: the parent is killed while `held` keeps it or a worker from going on
    local pid tries=0
    older
    threads=2
    before=("${held[@]}")
    setsid "${before[@]}" "$KILN_BIN/kiln-export" --quiet x.db --format "$format" -w -o "to/$format/" --threads 2 >/dev/null 2>&1 &
    pid=$!
    until hangs $pid; do
        kill -0 $pid 2>/dev/null && [ $((tries += 1)) -le $((WITHIN * 20)) ] ||
            { kill -9 -- -$pid 2>/dev/null; fail "$format, $1: nothing hangs"; }
        sleep 0.05
    done
    kill -9 -- -$pid 2>/dev/null
    wait $pid 2>/dev/null
    for ((tries = 0; tries < WITHIN * 20; tries++)); do # files of a process that runs are left alone
        [ -n "$(ps -o state= -s $pid | grep -v '^[ZX]')" ] || break
        sleep 0.05
    done
    is_old_or_new "$1" left
    unset threads
    goes_on "$1"
}
for format in "${names[@]}"; do
    test_case "$format: a full disk" && (
        fails space 0; total=$calls all=0
        for part in 2 6; do fails space $((total * part / 8)); all=$((all + hits)); done
        [ "$total" = 0 ] || [ $all -gt 0 ] || fail "$format: the disk never was full"
    ); result

    test_case "$format: calls that fail" && (
        # The engine writes, syncs and names the files of every format, so one format of each kind of target does; FAULT_ALL=1 tries
        # all.
        case ${FAULT_ALL:-}$format in ply | chunks | sog | sog-folder | 1*) kinds='write fsync rename' ;; *) kinds=rename ;; esac
        for kind in $kinds; do
            fails $kind 0; n=$calls all=0
            [ "$n" = 0 ] || { fails $kind "$n"; all=$((all + hits)); }
            [ "$n" = 0 ] || [ $all -gt 0 ] || fail "$format: none of $n calls of $kind failed"
        done
    ); result

    test_case "$format: kill -9 in the first round" && (
        held=(env KILN_FAULT=unit=0:hang); dies 'kill -9 in the first round'
    ); result

    test_case "$format: kill -9 in fsync" && (
        held=(env "KILN_TEST_FAIL=hang:1+:any:$KILN_TMP/count" "LD_PRELOAD=$KILN_TMP/fail_nth.so"); dies 'kill -9 in fsync'
    ); result

    rm -f count
done

test_case 'a folder is replaced where names cannot be exchanged, too' && (
    format=sog-folder
    fails swap 1
    [ "$hits" = 1 ] && [ "$code" = 0 ] && diff -rq "to/$format" "clean/$format" ||
        fail "$format without an exchange of names: exit $code, $hits failures: $(cat err)"
); result

mkdir ro
if [ "$(id -u)" != 0 ]; then
    chmod 555 ro
elif mount -t tmpfs -o size=1m none ro 2>/dev/null; then
    at_exit 'umount -l "$KILN_TMP/ro"'
    mount -o remount,ro ro || fail remount
else
    no_ro='no read-only file system: root may not mount one'
fi
for format in "${names[@]}"; do
    test_case "$format in a folder that takes nothing" && (
        [ -z "${no_ro:-}" ] || skip "$no_ro"
        must 74 "$KILN_BIN/kiln-export" --quiet x.db --format "$format" -w -o "ro/$format/"
        [ "$(wc -l <err)" = 1 ] && grep -q 'ro/' err || fail "$format in a folder that takes nothing: $(cat err)"
    ); result
done
