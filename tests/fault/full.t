#!/bin/bash
# Promise 3, a full disk: at 20 points of a bake no byte more can be written, and under a limit on the size of files. The stage ends
# with 74 and what there is, nothing wrong is visible, and with room again the same command gives the digests of a clean bake.
. tests/fault/lib.sh
prepare

# ---- the disk is full after N bytes ----
# written STAGE: bytes that it writes to files
written() { one "$1" space 0 any >&2 || return; echo "$calls"; }
for stage in $ALL_STAGES; do
    test_case "the disk is full: $stage" && (
        total=$(written "$stage") || fail "$stage without a fault"
        for part in 1 3 5 ; do # of 6
            one "$stage" space $((total * part / 6)) any || fail "see above"
            [ "$hits" != 0 ] || fail "$stage: the disk never was full"
            err=$KILN_TMP/work.$stage.space.any.err
            if [ -s "$err" ]; then grep -q 'are free there; make room' "$err" || fail "no numbers: $(cat "$err")"; fi
        done
    ); result
done
[ "$(wc -w <<<"$ALL_STAGES")" -ge 7 ] || fail "too few stages: $ALL_STAGES"

# ---- ulimit -f, in 1024 bytes ----
limited=$KILN_TMP/limited
: >"$limited"
for stage in $ALL_STAGES; do
    test_case "ulimit -f: $stage" && (
        for kib in 16 300 1200; do
            dir=$KILN_TMP/limit
            rm -rf "$dir"; cp -a "$KILN_TMP/before.$stage" "$dir"
            command_of "$stage" "$dir"
            (ulimit -f $kib; exec timeout -k 1 $WITHIN "${run[@]}") >/dev/null 2>"$dir.err" && code=0 || code=$?
            [ $code = 0 ] && continue # its files are smaller
            [ $code = 74 ] || fail "$stage under ulimit -f $kib ended with $code: $(cat "$dir.err")"
            grep -q 'ulimit -f' "$dir.err" || fail "$stage under ulimit -f $kib does not say why: $(cat "$dir.err")"
            n=$kib kind='ulimit -f' who=any
            { is_whole && goes_on; } || fail "see above"
            echo "$stage $kib" >>"$limited"
        done
    ); result
done
[ -n "$cases_wanted" ] || [ "$(wc -l <"$limited")" -ge 7 ] || fail "only $(wc -l <"$limited") runs came to a limit"

# ---- even root cannot write into another file system's read-only mount ----
test_case 'a full tmpfs, and a read-only one' && (
    [ "$(id -u)" = 0 ] && mkdir "$KILN_TMP/small" && mount -t tmpfs -o size=1m none "$KILN_TMP/small" 2>/dev/null ||
        skip 'no tmpfs can be mounted'
    trap 'umount -l "$KILN_TMP/small"' EXIT
    must 74 kiln import "$KILN_TMP/s" "$KILN_TMP/small/x.db"
    grep -q 'are free there' "$KILN_TMP/err" || fail "a full tmpfs: $(cat "$KILN_TMP/err")"
    [ -z "$(ls "$KILN_TMP/small")" ] || fail "a manifest was left on a full disk: $(ls "$KILN_TMP/small")"
    mount -o remount,size=64m "$KILN_TMP/small" || fail "remount"
    kiln import "$KILN_TMP/s" "$KILN_TMP/small/x.db" >/dev/null || fail "import with room again"
    mount -o remount,ro "$KILN_TMP/small" || fail "remount"
    must 74 kiln knn "$KILN_TMP/small/x.db"
    kiln verify "$KILN_TMP/small/x.db" >/dev/null || fail "verify on a read-only disk"
); result

test_case 'an export asks for its room before anything is computed' && (
    # an export whose size is known asks for its room before anything is computed: no worker is the one that reports it
    [ "$(id -u)" = 0 ] && mkdir "$KILN_TMP/tiny" && mount -t tmpfs -o size=16k none "$KILN_TMP/tiny" 2>/dev/null ||
        skip 'no tmpfs can be mounted'
    trap 'umount -l "$KILN_TMP/tiny"' EXIT
    must 74 kiln export "$KILN_TMP/after.export/x.db" --force -o "$KILN_TMP/tiny/o.ply"
    grep -q "^kiln-export: cannot write '.*are free there" "$KILN_TMP/err" || fail "a full tmpfs: $(cat "$KILN_TMP/err")"
    [ -z "$(ls "$KILN_TMP/tiny")" ] || fail "left on a full disk: $(ls "$KILN_TMP/tiny")"
); result
