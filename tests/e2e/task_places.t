#!/bin/bash
# A plan gives cameras that see the same chunks to one task, whatever they are called: a task decodes all chunks that its cameras see. The
# bits are those of a bake in one go. What more tasks than are worth it cost is said.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write files with"
HERE=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
python3 -BSE "$HERE/two_places.py" s || fail 'no scene'
must 0 "$KILN_BIN/kiln" pipeline s --out one --max 500 --devices cpu --stages import,knn,prune,chunk
mkdir many && cp one/manifest.db many/
# The cameras of a part, by the names of its units.
cameras_of() { python3 -c 'import sqlite3, sys
for (name,) in sqlite3.connect(sys.argv[1]).execute("SELECT name FROM unit"): print(name.split()[-1])' "$1" | sort -u | paste -sd ' '; }
# takes STAGE OPTION...: two tasks of many/manifest.db, each with the cameras of one place
takes() {
    must 0 kiln $1 many/manifest.db --devices cpu "${@:2}" --plan --tasks 2
    for i in 1 2; do must 0 kiln $1 many/manifest.db --devices cpu "${@:2}" --shard $i/2 --part parts; done
    took=$(for part in parts/"$1"-*.part; do cameras_of "$part"; done | sort | paste -sd /)
    [ "$took" = 'cam0 cam2 cam4 cam6/cam1 cam3 cam5 cam7' ] || fail "$1: the tasks have $took"
    must 0 kiln $1 many/manifest.db --devices cpu "${@:2}" --gather parts --no-compute --remove-parts
}
for stage in tiles render; do
    test_step "$stage: a task has the cameras of one place" && (
        must 0 kiln $stage one/manifest.db --devices cpu
        takes $stage
        [ ! -e many/manifest.db.claim ] || fail "$stage: the claim stays"
    ); result
done

test_case 'the bits are those of one run' && (
    same one/manifest.db many/manifest.db
    diff -r one/renders many/renders || fail "pictures differ"
); result

test_case 'a plan says how many tasks are worth it' && (
    must 0 "$KILN_BIN/kiln-render" many/manifest.db --devices cpu --background 1,0,0 --plan --tasks 2
    ! grep -q 'worth it' err || fail "2 tasks: $(cat err)"
    must 0 "$KILN_BIN/kiln-render" many/manifest.db --devices cpu --background 0,1,0 --plan --tasks 20 --break-claim
    grep -qE '^kiln-render: 8 tasks are worth it' err || fail "20 tasks: $(cat err)"
    must 0 kiln render many/manifest.db --devices cpu --background 0,1,0 --gather parts
); result

test_case 'counting pairs, as of a large scene' && (
    export KILN_ROUND_S=0
    takes tiles --profile gsplat-1.5
); result
