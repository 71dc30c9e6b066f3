#!/bin/bash
# kiln-verify says the same of a damaged bake with one thread, eight, and memory for one; --quick finds what rows say and reads no
# blob; it reads one state while a writer goes on.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
scene "$KILN_TMP/scene" 70000 2 160x120
bake "$KILN_TMP/scene" "$KILN_TMP/m.db"
cd "$KILN_TMP" || exit 1
# said OPTIONS...: exit code, stderr and stdout of kiln-verify
said() { "$KILN_BIN/kiln-verify" bad.db "$@" 2>&1; echo "exit $?"; }
# damaged PYTHON: bad.db is m.db, changed by statements on `db` and `flip(blob id)`
damaged() {
    rm -f bad.db*
    cp m.db bad.db
    py damage "$1" || fail "cannot damage: $1"
}
# alike WORDS...: all say the same, exit 74, and these words
alike() {
    local word
    said --threads 1 >one
    said --threads 8 >eight
    said --threads 8 --ram 1M >small
    cmp -s one eight || { diff one eight >&2; fail "8 threads say something else than one"; }
    cmp -s one small || { diff one small >&2; fail "with little memory it says something else"; }
    grep -q '^exit 74$' one || fail "it ends otherwise: $(cat one)"
    for word; do grep -q -- "$word" one || fail "not said: $word: $(cat one)"; done
}

test_case 'a sound bake' && (
    cp m.db bad.db
    for options in '--threads 1' '--threads 8' '--threads 8 --ram 1M' --quick; do
        # shellcheck disable=SC2086 # words
        said $options | grep -q 'all is well' || fail "a sound bake, $options: $(said $options)"
    done
); result

test_case 'the same bytes are checked by one thread and by eight' && (
    cp m.db bad.db
    same_bytes() { "$KILN_BIN/kiln-verify" bad.db --json --threads "$1" | grep '"checked_bytes"'; }
    [ "$(same_bytes 1)" = "$(same_bytes 8)" ] || fail "other bytes with 8 threads"
); result

test_case 'damaged blobs, which --quick does not read' && (
    damaged 'for i in blob_of("means", 0), blob_of("shN", 1), blob_of("quats", 0), table_blob("rank_delta"): flip(i)'
    alike 'blob [0-9a-f]* is damaged' "chunk '[^']*', plane 'shN'"
    [ "$(grep -c 'warning: .*damaged' one)" -ge 8 ] || fail "too little is said: $(cat one)" # each as a blob and where it is used
    said --quick | grep -q 'all is well' || fail "--quick reads blobs: $(said --quick)"
    said --quick | grep -q 'checked rows and references, not the bytes' || fail "--quick does not say what it leaves out"
); result

test_case 'rows and a blob that do not fit' && (
    damaged 'flip(blob_of("means", 1)); db.execute("UPDATE chunk SET box_max_y = 100 WHERE ordinal = 0"); db.execute("UPDATE tile_band SET pairs = pairs + 1")'
    alike 'its box spans' 'pairs, but have'
); result

test_case 'a blob that is gone' && (
    damaged 'db.execute("DELETE FROM blob WHERE id = ?", (blob_of("sh0", 0),))'
    alike 'refers to a row of blob that is missing'
    said --quick | grep -q 'refers to a row of blob that is missing' || fail "--quick does not find a missing blob: $(said --quick)"
    must 74 "$KILN_BIN/kiln-verify" bad.db --quick
); result

test_case 'a count that is wrong' && (
    damaged 'db.execute("UPDATE layer SET count = count + 1")'
    alike 'its chunks have'
    said --quick | grep -q 'its chunks have' || fail "--quick does not count: $(said --quick)"
); result

test_case "damage of pages: SQLite's own words, by one thread" && (
    pages=$(($(stat -c %s m.db) / 65536))
    for page in 2 5 $((pages / 3)) $((pages / 2)) $((pages - 3)); do
        cp m.db bad.db
        head -c 64 /dev/zero | dd of=bad.db bs=1 seek=$((page * 65536)) conv=notrunc status=none
        cmp -s m.db bad.db && continue
        said --threads 1 >one
        said --threads 8 >eight
        cmp -s one eight || { diff one eight >&2; fail "page $page: 8 threads say something else"; }
    done
); result

test_case 'while a stage writes' && (
    cp m.db bad.db
    kiln prune bad.db --min-opacity 0.2 >/dev/null &
    writer=$!
    for _ in 1 2 3; do said --threads 4 >out; grep -q '^exit 0$' out || fail "while prune writes: $(cat out)"; done
    wait $writer || fail 'prune'
); result

test_case '--quick and --digest do not go together' && (
    must 2 "$KILN_BIN/kiln-verify" m.db --quick --digest
); result
