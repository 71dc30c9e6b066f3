#!/usr/bin/env bash
# --level: a view is drawn of the levels of detail that it asks for, with or without tile tables, in the same bits; what is drawn in
# full stays what it was.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
TESTS=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
export OMP_NUM_THREADS=2
scene s 6000 5 160x100
mkdir b full two other
for s in "import s" knn prune "chunk --max 1024"; do
    set -- $s
    if [ "$1" = import ]; then kiln import s b/b.db >/dev/null; else kiln "$1" b/b.db "${@:2}" >/dev/null; fi || fail "$s"
done
render() { "$KILN_BIN/kiln-render" "$@" --devices cpu --json 2>err || { cat err >&2; fail "kiln-render $*"; }; }
images() { digest "$1" | grep '^image'; }
# from a JSON: sum or list of a field of the views
views() { python3 -c 'import json, sys; print(*[eval(sys.argv[1], {"v": v}) for v in json.load(sys.stdin)["views"]])' "$1"; }

test_case 'without levels there is a sentence' && (
    cp b/b.db none.db
    must 4 kiln render none.db --level 2
    grep -q 'run kiln-lod first' err || fail "without levels: $(cat err)"
    must 4 kiln tiles none.db --level auto
    must 0 kiln render none.db --level 0 # which needs none
); result

# in full: the same pictures and keys, whether there are levels or not
cp b/b.db full/f.db
render full/f.db >/dev/null
images full/f.db >full.lines
kiln lod b/b.db --devices cpu >/dev/null || fail "kiln-lod"
kiln lod full/f.db --devices cpu >/dev/null || fail "kiln-lod after kiln-render"

test_case 'in full nothing is drawn again for levels, and pictures stay' && (
    "$KILN_BIN/kiln-render" full/f.db --devices cpu 2>&1 | grep -q 'nothing to do' ||
        fail "drawn again for levels that it does not use"
    images full/f.db | diff full.lines - >&2 || fail "other pictures in full"
); result

test_case 'a level that there is not' && (
    must 2 kiln render full/f.db --level 2.5
    must 2 kiln render full/f.db --level dB:-1
); result

cp b/b.db two/t.db
render two/t.db --level 2 >two.json
images two/t.db >two.lines

test_step 'level 2 is what a scene of its rows looks like' && (
    ! cmp -s full.lines two.lines || fail "level 2 looks like the full scene"
    cp -r s of_rows
    n=$(python3 "$TESTS/level.py" b/b.db 2 of_rows/scene.ply) || fail "rows of level 2"
    [ "$n" -ge 1400 ] && [ "$n" -le 1500 ] || fail "$n rows at level 2 of 6000"
    kiln import of_rows other/o.db >/dev/null && kiln knn other/o.db >/dev/null &&
        kiln chunk other/o.db --layer source --max 700 >/dev/null ||
        fail "import of level 2"
    render other/o.db >/dev/null
    images other/o.db | diff two.lines - >&2 || fail "level 2 is not drawn of its rows"
    [ "$(views '[l["level"] for l in v["detail"]["levels"]]' <two.json | tr -d ' ' | tr ']' '\n' | sort -u | grep -c .)" = 1 ] ||
        fail "other levels: $(cat two.json)"
); result

test_case 'kiln pipeline makes levels where they are to be drawn' && (
    must 0 "$KILN_BIN/kiln" pipeline of_rows -o pipe --level 3 --devices cpu
    grep -q -- '--level 3 needs levels of detail: kiln-lod makes them' err || fail "the pipeline does not say so: $(cat err)"
); result

test_case 'the text says what of each level is drawn' && (
    "$KILN_BIN/kiln-render" two/t.db --devices cpu -o views/ >said.txt 2>&1 || fail "$(cat said.txt)"
    grep -qx 'level 2: 14[0-9]* Gaussians a view, 2[45].[0-9] % of [0-9]*' said.txt && grep -qx '  by level: 2: 100 %' said.txt ||
        fail "it says: $(cat said.txt)"
); result

test_step 'tables of level 2 give the same bits' && (
    kiln tiles two/t.db --level 2 --devices cpu >/dev/null || fail "kiln-tiles --level 2"
    render two/t.db --force >forced.json
    [ "$(views 'v["from_table"]' <forced.json)" = "True True True True True" ] || fail "tables of level 2 are not used"
    images two/t.db | diff two.lines - >&2 || fail "other pictures with tables"
    must 0 kiln verify two/t.db
    must 0 kiln verify two/t.db --threads 2
    must 0 kiln tiles two/t.db --level 2 --predict
); result

test_case 'one thread and little memory give the same bits' && (
    cp b/b.db two/slow.db
    render two/slow.db --level 2 --threads 1 --ram 62M >/dev/null
    images two/slow.db | diff two.lines - >&2 || fail "other pictures with little memory"
); result

test_case 'back to the full scene' && (
    render two/t.db --level 0 >/dev/null
    images two/t.db | diff full.lines - >&2 || fail "--level 0 is not the full scene"
); result

test_case 'a table of levels whose layer is gone is damage' && (
    sqlite3 two/t.db "UPDATE chunk SET name = replace(name, '@2', '@9') WHERE name = (SELECT min(name) FROM chunk WHERE name LIKE '%@2')" ||
        fail sqlite3
    must 74 kiln verify two/t.db
); result

test_case 'by decibels: the full scene where that much is asked for' && (
    # by decibels: the full scene where that much is asked for, so that nothing is drawn again; fewer from far away; and a camera
    # close to one side of the scene draws what is far away coarser
    cp -r full fine && render fine/f.db --level dB:200 >fine.json
    images fine/f.db | diff full.lines - >&2 || fail "dB:200 is not the full scene"
    [ "$(views 'v["detail"]["rows"] == v["detail"]["full"]' <fine.json | tr ' ' '\n' | sort -u)" = True ] ||
        fail "dB:200 leaves Gaussians out: $(head -c 1500 fine.json)"
); result

py near_and_far

test_case 'a camera close to one side draws what is far away coarser' && (
    render b/b.db --cameras near.json --level dB:25 --format none >near.out
    [ "$(views 'len(v["detail"]["levels"]) > 1 and v["detail"]["rows"] < v["detail"]["full"]' <near.out)" = True ] ||
        fail "a near camera: $(head -c 1500 near.out)"
); result

test_case 'fewer Gaussians from far away, and 35 dB of the full scene' && (
    render b/b.db --cameras far.json --level auto -o auto.npy >far.out
    [ "$(views 'v["detail"]["rows"] * 4 < v["detail"]["full"] * 3' <far.out)" = True ] ||
        fail "a far camera: $(head -c 1500 far.out)"
    render b/b.db --cameras far.json --level 0 -o all.npy >/dev/null
    "$KILN_BIN/kiln-compare" all.npy auto.npy --json >compared || fail "kiln-compare"
    python3 -c 'import json, sys
sys.exit(not 35 <= (json.load(sys.stdin)["psnr"] or 999))' <compared || fail "--level auto from far away: $(cat compared)"
); result

test_case 'levels measured with another profile are told' && (
    "$KILN_BIN/kiln-render" b/b.db --cameras far.json --level auto --profile gsplat-1.5 --devices cpu --format none >said.txt 2>&1 \
        ||
        fail "$(cat said.txt)"
    grep -q 'measured with the profile inria.*kiln-lod --profile gsplat-1.5' said.txt ||
        fail "another profile is not told: $(cat said.txt)"
); result

before=$(digest b/b.db | sha256sum)

test_step '--levels-against draws each level beside the full scene' && (
    render b/b.db --levels-against against >against.json
    py against against.json || fail "--levels-against: $(cat against.json)"
    [ "$(digest b/b.db | sha256sum)" = "$before" ] || fail "--levels-against changes the bake"
); result

test_case 'the folders of --levels-against are compared' && (
    kiln compare against/full_2 against/level_2 >compared || fail "kiln-compare of the two folders"
    must 2 kiln render b/b.db --levels-against against --level 2
); result

test_case '--levels-against with --format none' && (
    render b/b.db --levels-against of_none --format none >/dev/null
    [ ! -e of_none ] || fail "--format none writes files"
); result

test_case '--levels-against where --format none is stored' && (
    cp b/b.db stored.db && kiln render stored.db --format none --devices cpu >/dev/null || fail "--format none"
    render stored.db --levels-against of_none >/dev/null
    diff -r against of_none >&2 || fail "--levels-against writes no pictures where --format none is stored"
); result

test_case '--levels-against of equal pictures' && (
    mkdir one && py one_row
    cp s/cameras.json one/
    kiln import one one/o.db >/dev/null && kiln knn one/o.db >/dev/null && kiln chunk one/o.db --layer source >/dev/null &&
        kiln lod one/o.db --devices cpu >/dev/null ||
        fail "one Gaussian"
    "$KILN_BIN/kiln-render" one/o.db --levels-against one/against --devices cpu >said 2>&1 || fail "$(cat said)"
    grep -q '  equal$' said && ! grep -qi 'inf\|nan' said || fail "equal pictures: $(cat said)"
); result
