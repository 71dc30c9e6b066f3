#!/bin/bash
# A bake of schema version 1 (tests/data/manifest): programs that read leave it as it is, byte for byte; the first that writes makes
# it one of version 2; a killed upgrade is done again. Its kiln-prune is of an earlier version, too: that stage runs once more, with
# the limits that were its defaults to the same layer, after which all later stages have nothing to do. A later version is refused.
. tests/e2e/lib.sh
command -v sqlite3 >/dev/null || skip "no sqlite3"
stored=tests/data/manifest/version-1 db=$KILN_TMP/b/m.db
mkdir "$KILN_TMP/b"
fresh() { rm -rf "${db:?}"* "$KILN_TMP/b/renders"; gzip -dc $stored.db.gz >"$db" || fail gzip; }
version() { sqlite3 "$db" "PRAGMA user_version"; }
as_stored() { gzip -dc $stored.db.gz | cmp -s - "$db" || fail "$*: the bake is another one"; }
digests() { digest "$db" | diff $stored.digests - >&2 || fail "$*: other digests"; }

test_case 'programs that read leave it as it is' && (
    fresh
    for reader in "info" "info --json" "verify" "verify --quick" "verify --digest" "doctor"; do
        # shellcheck disable=SC2086 # a program and its options
        set -- $reader
        must 0 kiln "$1" "$db" "${@:2}"
        as_stored "kiln-$reader"
    done
    digests "as stored"
    [ "$(version)" = 1 ] || fail "version $(version)"
); result

# each program that may be the first to write; none but prune has anything to do
prune_again() { kiln prune "$db" --max-spacing 32 --max-extent 0.5 >/dev/null || fail "prune"; }
runs() { sqlite3 "$db" "SELECT count(*) FROM run WHERE stage <> 'gc'"; }
for writer in "knn" "prune --max-spacing 32 --max-extent 0.5" "gc"; do
    test_case "the first that writes: kiln-$writer" && (
        fresh
        # shellcheck disable=SC2086
        set -- $writer
        must 0 kiln "$1" "$db" "${@:2}"
        [ "$(version)" = 2 ] || fail "kiln-$writer leaves version $(version)"
        must 0 kiln verify "$db"
        digests "kiln-$writer"
        [ "$1" = prune ] || [ "$(runs)" = 6 ] || fail "kiln-$writer had something to do"
    ); result
done

test_case 'kiln-prune runs once more, and later stages have nothing to do' && (
    fresh
    must 4 kiln chunk "$db"
    prune_again
    for writer in chunk tiles render; do
        must 0 kiln $writer "$db"
        must 0 kiln verify "$db"
        digests "kiln-$writer"
        # pictures are drawn again, because the files of the stored bake are not there
        [ $writer = render ] || [ "$(runs)" = 7 ] || fail "kiln-$writer had something to do"
    done
); result

test_case 'dry runs leave it as it is' && (
    fresh
    for dry in "prune --dry-run" "gc --dry-run"; do
        # shellcheck disable=SC2086
        set -- $dry
        must 0 kiln "$1" "$db" "${@:2}"
        as_stored "kiln-$dry"
    done
); result

test_case 'a plan for other hosts writes, too' && (
    fresh
    prune_again
    export KILN_ROUND_S=0
    must 0 kiln tiles "$db" --profile gsplat-1.6 --plan --tasks 2
    [ "$(version)" = 2 ] || fail "planning leaves version $(version)"
    for round in 1 2; do
        for i in 1 2; do must 0 kiln tiles "$db" --profile gsplat-1.6 --shard $i/2 --part "$KILN_TMP/parts.$round"; done
        must 0 kiln tiles "$db" --profile gsplat-1.6 --gather "$KILN_TMP/parts.$round"
    done
    unset KILN_ROUND_S
    must 0 kiln verify "$db"
    [ "$(digest "$db" | grep -c '^table cam.*:gsplat-1.6:')" = 2 ] || fail "no tables of the other profile"
); result

test_step 'levels are made of it as of a bake of today' && (
    fresh
    prune_again
    must 0 kiln lod "$db"
    must 0 kiln verify "$db"
    grep -v '^layer levels\|^layer visibility' <(digest "$db") | diff $stored.digests - >&2 || fail "lod: other digests"
    [ "$(digest "$db" | grep -c '^layer levels ')" = 1 ] || fail "no levels"
); result

test_case 'a later version is refused' && (
    sqlite3 "$db" "PRAGMA user_version = 3"
    before=$(md5sum <"$db")
    for p in info verify knn tiles gc export; do
        must 3 kiln $p "$db"
        grep -q "has schema version 3, this program knows up to 2" "$KILN_TMP/err" || fail "kiln-$p: $(cat "$KILN_TMP/err")"
    done
    [ "$before" = "$(md5sum <"$db")" ] || fail "a refusal writes"
); result
