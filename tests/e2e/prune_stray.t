#!/bin/bash
# Pruning of stray rows: what --outlier-sor drops is what the definition says, by numpy, on 50,000 Gaussians and more; the same on any
# threads, in ranges, under a cap, killed, over hosts, and beside other rules.
# starts first
. tests/e2e/lib.sh
. tests/e2e/pruning.sh
needs_numpy
T=$KILN_TMP
rows=70000 # two blocks
off='--max-spacing off --max-extent off --min-opacity off --min-scale off'
again() { cp "$T/start.db" "$T/$1.db"; }
scene "$T/s" $rows 2 64x48
imported "$T/s" "$T/start.db"

test_step 'the rows that the definition says' && (
    again whole
    # shellcheck disable=SC2086
    prune "$T/whole.db" $off --outlier-sor 8,2 --threads 1
    pruned "$T/whole.db" >"$T/whole"
    cp "$T/whole.db" "$T/next.db"
    prune "$T/next.db" --outlier-sor 20,1.5
    py dropped "$T/start.db" "$T/whole.db" 8 2 "$T/next.db" 20 1.5 || fail "see above"
); result

test_case 'the same in ranges, on two threads, under a cap' && (
    for how in '--threads 2' '--outlier-range 5000' '--outlier-range 20000 --threads 2 --ram 128M'; do
        again same
        # shellcheck disable=SC2086
        prune "$T/same.db" $off --outlier-sor 8,2 $how
        diff "$T/whole" <(pruned "$T/same.db") || fail "another layer with $how"
        ls "$T" | grep -q 'same.*scratch' && fail "scratch stays with $how: $(ls "$T")"
    done
    true
); result

test_case 'a dry run counts, writes nothing, and is the same in ranges' && (
    again dry
    before=$(sha256sum <"$T/dry.db")
    for how in '' '--outlier-range 5000'; do
        # shellcheck disable=SC2086
        prune "$T/dry.db" $off --outlier-sor 8,2 --dry-run --json $how
        [ "$(dropped "$T/out" outlier-sor)" = $((rows - $(sqlite3 "$T/whole.db" "SELECT count FROM layer WHERE kind = 'pruned'"))) ] ||
            fail "$(head -c 2000 "$T/out")"
    done
    [ "$(sha256sum <"$T/dry.db")" = "$before" ] || fail "a dry run writes"
    [ ! -e "$T/dry.db.scratch" ] || fail "a dry run leaves a folder"
); result

test_case 'stored, off again, and another S redoes nothing that it leaves' && (
    cp "$T/whole.db" "$T/stored.db"
    prune "$T/stored.db"
    grep -q 'nothing to do' "$T/err" || fail "$(cat "$T/err")"
    prune "$T/stored.db" --outlier-sor off
    [ "$(sqlite3 "$T/stored.db" "SELECT count FROM layer WHERE kind = 'pruned' ORDER BY id DESC LIMIT 1")" = $rows ] || fail "off drops rows"
    prune "$T/stored.db" --outlier-sor 8,2
    diff "$T/whole" <(pruned "$T/stored.db") || fail "another layer the second time"
); result

test_case 'no more rows than neighbours: nothing is stray' && (
    for n in 33 32; do
        scene "$T/few$n" $n 1 16x16
        imported "$T/few$n" "$T/few$n.db"
        # shellcheck disable=SC2086
        prune "$T/few$n.db" $off --outlier-sor 32,0.01 --json
        dropped "$T/out" outlier-sor >"$T/dropped$n"
    done
    [ "$(cat "$T/dropped33")" -gt 0 ] && [ "$(cat "$T/dropped32")" = 0 ] || fail "$(cat "$T"/dropped3?) of 32 and 33"
); result

test_case 'a row counts for the rule that comes first, and cameras see what is left' && (
    again both
    # shellcheck disable=SC2086
    prune "$T/both.db" $off --outlier-sor 8,2 --keep 50% --merge --json
    [ "$(dropped "$T/out" outlier-sor)" = $((rows - $(sqlite3 "$T/whole.db" "SELECT count FROM layer WHERE kind = 'pruned'"))) ] ||
        fail "other rows are stray beside other rules: $(head -c 2000 "$T/out")"
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["rules"]["keep"]["dropped"] > 0 and d["kept"] == 35000, d["kept"]' \
        "$T/out" || fail "keep"
); result

test_case 'what it cannot take is refused' && (
    again bad
    for bad in 0,2 33,2 8 8,0 8,-1 2.5,1 8,2,1 x off,2; do
        must 2 "$KILN_BIN/kiln-prune" "$T/bad.db" --outlier-sor $bad
        grep -q -- '--outlier-sor takes K,S' "$T/err" || fail "$bad: $(cat "$T/err")"
    done
); result

test_case 'over hosts: the same layer' && (
    export KILN_ROUND_S=0
    again hosts
    # shellcheck disable=SC2086
    over_hosts "$T/hosts.db" $off --outlier-sor 8,2 --outlier-range 5000
    [ $rounds -gt 0 ] || fail "nothing is shared out"
    diff "$T/whole" <(pruned "$T/hosts.db") || fail "hosts come to another layer"
); result
