#!/bin/bash
# SPZ files: the same Gaussians in each container are one scene, under --ram; --frame and an extension record decide the axes; bombs
# end within seconds and a small address space, and leave nothing; --max-inflated limits what does not say its size.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write files with"
cd "$KILN_TMP" || exit 1
py files || fail 'cannot write the files'
mkdir scratch
for file in v3 v4in3 v4 rub rdf; do
    test_step "$file.spz is read, under --ram" && (
        must 0 kiln import $file.spz $file.db --ram 200M --scratch-dir scratch --json
        python3 -c 'import json
r = json.load(open("out"))
assert r["rows_read"] == 20000 and r["ram_peak_bytes"] <= 200 << 20, r' || fail "$(cat out)"
        [ -z "$(ls scratch)" ] || fail "scratch keeps $(ls scratch)"
    ); result
done
must 0 kiln import v4.spz.gz packed.db

test_case 'the same Gaussians in each container are one scene' && (
    for file in v4in3 v4 rub packed; do same v3.db $file.db; done
); result

test_case '--list says which axes the numbers have' && (
    must 0 "$KILN_BIN/kiln-import" v3.spz no.db --list
    grep -q '^notes    Gaussians v3.spz: SPZ numbers are taken as RUB' out || fail "--list says no axes: $(cat out)"
    must 0 "$KILN_BIN/kiln-import" rub.spz no.db --list # names its axes behind the rows
    grep -q '^notes    Gaussians rub.spz: which axes its numbers have shows when the file is unpacked$' out ||
        fail "--list guesses axes: $(cat out)"
); result

test_case 'a healthy file is told of its axes, and not warned of' && (
    must 0 "$KILN_BIN/kiln-import" v3.spz said.db && grep -q 'SPZ numbers are taken as RUB' err && ! grep 'warning' err ||
        fail "a healthy file is warned of: $(cat err)"
); result

test_step '--frame as-is' && (
    must 0 "$KILN_BIN/kiln-import" v3.spz as-is.db --frame as-is && grep -q 'left as they stand (as-is)' err ||
        fail "which frame: $(cat err)"
    same rdf.db as-is.db
    [ "$(digest v3.db)" != "$(digest as-is.db)" ] || fail '--frame changes nothing'
); result

test_case 'another frame is another import' && (
    must 0 kiln import v3.spz v3.db --json && grep -q 'nothing to do' out || fail "imported twice: $(cat out)"
    must 0 kiln import v3.spz v3.db --frame as-is && same v3.db as-is.db
); result

axes() { python3 -c 'import json, sqlite3, sys
print(json.loads(sqlite3.connect(sys.argv[1]).execute("SELECT notes FROM scene").fetchone()[0])["axes"])' "$1"; }

test_case 'the axes are recorded' && (
    [ "$(axes v4.db) $(axes as-is.db) $(axes rub.db)" = 'RUB RDF RUB' ] ||
        fail "axes: $(axes v4.db) $(axes as-is.db) $(axes rub.db)"
); result

test_case 'the file decides, not the option' && (
    must 0 kiln import rub.spz rub.db --frame as-is && must 0 kiln import rub.spz again.db && same rub.db again.db
); result

refused() { # code, words, arguments
    local code=$1 words=$2; shift 2
    must "$code" kiln import "$@" bad.db --scratch-dir scratch
    [ "$(grep -c . err)" = 1 ] || fail "not one sentence: $(cat err)"
    grep -qE -- "$words" err || fail "$*: $(cat err)"
    [ ! -e bad.db ] && [ -z "$(ls scratch)" ] || fail "$* left something behind"
}

test_case 'version 3 outside a gzip stream' && (
    refused 3 'is SPZ version 3 without its gzip stream' plain.spz
); result

test_case 'a gzip stream that is cut' && (
    refused 3 'inside its gzip stream' cut.spz
); result

test_case 'more bytes than its header states' && (
    refused 3 "more.spz' unpacks to more than 1049242 bytes: its header states 666; the file is damaged" more.spz
); result

test_case 'a stream that unpacks to more than its header says' && (
    refused 3 "the alpha stream of .*it unpacks to more than its header says" bomb.spz
); result

test_case 'a bomb of blanks' && (
    refused 3 'more than 100 times its packed size of [0-9.]+ [KM]iB?; if you trust it, raise --max-inflated' blank.ply.gz
); result

test_case '--max-inflated' && (
    must 0 kiln import blank.ply.gz blank.db --max-inflated 2000
); result
