#!/bin/bash
# A PLY that is one gzip or zstd stream is the PLY: the same digests, under --ram, with nothing left in scratch; cut, damaged and
# lengthened streams are refused with the offset and leave nothing; a stream that a disk cannot hold ends with 74.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 100000 1 32x32
ply=s/scene.ply
py pack $ply || fail 'cannot pack'
kiln import $ply plain.db >/dev/null || fail 'import'
mkdir scratch
for file in one.ply.gz two.ply.gz; do
    test_case "$file is the PLY" && (
        must 0 kiln import $file $file.db --ram 120M --scratch-dir scratch --json
        python3 -c 'import json; r = json.load(open("out")); assert r["ram_peak_bytes"] <= 120 << 20, r' || fail "--ram: $(cat out)"
        same plain.db $file.db
        [ -z "$(ls scratch)" ] || fail "scratch keeps $(ls scratch)"
        # freshness is about the file that the user has
        must 0 kiln import $file $file.db --json && grep -q 'nothing to do' out || fail "imported twice: $(cat out)"
        python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT path FROM source_file").fetchone()[0])' $file.db >named
        [ "$(cat named)" = "$PWD/$file" ] || fail "source_file is about $(cat named)"
    ); result
done

test_step 'a zstd stream is the PLY' && (
    command -v zstd >/dev/null || skip 'no zstd'
    zstd -q $ply -o one.ply.zst && must 0 kiln import one.ply.zst zst.db && same plain.db zst.db
    head -c 1000000 one.ply.zst >cut.ply.zst && { cat one.ply.zst; echo rest; } >tail.ply.zst
    zstd -q --ultra --long=27 $ply -o long.ply.zst
    # a frame that decoders skip may come first
    { printf '\x50\x2a\x4d\x18\x04\0\0\0abcd'; cat one.ply.zst; } >skip.ply.zst
    must 0 kiln import skip.ply.zst skip.db && same plain.db skip.db
); result

test_case 'in a folder it is a candidate like any other' && (
    mkdir folder && cp one.ply.gz folder/scene.ply.gz && must 0 kiln import folder folder.db && same plain.db folder.db
); result

refused() { # code, words, file
    must "$1" kiln import "$3" bad.db --scratch-dir scratch
    [ "$(grep -c . err)" = 1 ] || fail "not one sentence: $(cat err)"
    grep -qE -- "$2" err && grep -qF "$3" err || fail "$3: $(cat err)"
    [ ! -e bad.db ] && [ -z "$(ls scratch)" ] || fail "$3 left something behind"
}
size=$(stat -c %s one.ply.gz)

test_case 'a gzip stream that is cut' && (
    refused 3 "ends at byte $((size - 5)), inside its gzip stream" cut.ply.gz
); result

test_case 'other bytes behind a gzip stream' && (
    refused 3 "other bytes after its gzip stream, from byte $size on" tail.ply.gz
); result

test_case 'a gzip stream whose checksum is wrong' && (
    refused 3 'damaged at byte [0-9]*: incorrect data check' sum.ply.gz
); result

test_case 'a gzip stream of something else' && (
    refused 3 'no splat or point file' none.ply.gz
); result

test_case 'a gzip stream that unpacks to more than its header says' && (
    refused 3 "bomb.ply.gz' unpacks to more than [0-9]* bytes: its header states [0-9]*; the file is damaged" bomb.ply.gz
); result

test_case 'damaged zstd streams' && (
    [ -e cut.ply.zst ] || skip 'no zstd'
    refused 3 'ends at byte 1000000, inside its zstd stream' cut.ply.zst
    refused 3 "other bytes after its zstd stream, from byte $(stat -c %s one.ply.zst) on" tail.ply.zst
    refused 3 'window' long.ply.zst
); result

test_case 'a limit on file sizes' && (
    # a limit that the file keeps within does not matter
    (ulimit -f 1000000; must 0 kiln import one.ply.gz limited.db && same plain.db limited.db) || exit 1
    (ulimit -f 4096; must 74 kiln import one.ply.gz bad.db --scratch-dir scratch) || exit 1
    grep -q 'ulimit -f' err && [ -z "$(ls scratch)" ] || fail "a limit on file sizes: $(cat err)"
); result

test_case 'a worker that is killed while it unpacks is replaced' && (
    KILN_FAULT='unit=unpacking:kill,times=1' must 0 kiln import one.ply.gz killed.db --scratch-dir scratch
    same plain.db killed.db && [ -z "$(ls scratch)" ] || fail "scratch keeps $(ls scratch)"
); result

test_case 'a stream that a disk cannot hold' && (
    [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=64m none small 2>/dev/null || skip 'no tmpfs can be mounted'
    trap 'umount -l "$KILN_TMP/small"' EXIT
    must 74 kiln import large.ply.gz bad.db --scratch-dir small
    grep -q 'cannot unpack .*large.ply.gz.*are free there; make room' err || fail "the bomb: $(cat err)"
    [ -z "$(ls small)" ] && [ ! -e bad.db ] || fail 'the bomb left something behind'
    [ "$(df --output=avail small | tail -1)" -gt 60000 ] || fail 'the bomb still takes room'
); result
