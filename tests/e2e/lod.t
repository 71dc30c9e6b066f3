#!/bin/bash
# kiln-lod: levels of every chunk and of the cells above, the same bits on any threads, under a cap, killed and shared out among
# hosts; a changed chunk leads to its ancestors alone; bakes without levels stay as they are; odd scenes.
# starts first
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() {
    kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln prune "$2" >/dev/null &&
        kiln chunk "$2" "${@:3}" >/dev/null ||
        fail "bake of $1"
}
nothing() { "$KILN_BIN/kiln-lod" "$@" 2>&1 | grep -q 'nothing to do' || fail "something to do: kiln lod $*"; }

scene s 6000 3 160x120
chunked s base.db --max 512
before=$(digest base.db)
cp base.db one.db

test_case '--dry-run leaves nothing' && (
    must 0 kiln lod one.db --coarsest 256 --threads 1 --dry-run
    [ "$before" = "$(digest one.db)" ] || fail "--dry-run left something"
); result

must 0 kiln lod one.db --coarsest 256 --threads 1 --json
cp out one.json
chunks=$(number one.json 'd["chunks"]') nodes=$(number one.json 'd["nodes"]')

test_case 'levels of every chunk and of the cells above' && (
    [ "$nodes" -gt "$chunks" ] && [ "$chunks" -gt 8 ] || fail "$chunks chunks and $nodes nodes"
    [ "$(number one.json 'd["levels"][0]["nodes"]')" = "$chunks" ] || fail "not every chunk has level 1"
    [ "$(number one.json 'd["levels"][-1]["nodes"]')" = 1 ] || fail "there is not one root"
    [ "$(number one.json 'd["levels"][-1]["gaussians"] <= 256')" = True ] || fail "the root has more than --coarsest"
    [ "$(number one.json 'd["units"]["done"]')" -ge "$nodes" ] || fail "not a unit for each node"
    [ "$before" = "$(digest one.db | grep -v '^layer levels\|^layer visibility')" ] || fail "kiln-lod changed something else"
    digest one.db | grep -q '^layer levels' || fail "there are no levels"
); result

test_case 'kiln-verify and kiln-gc know levels' && (
    must 0 kiln verify one.db
    nothing one.db
    must 0 kiln gc one.db
    nothing one.db
); result

test_case 'kiln-info --lod has the same numbers' && (
    must 0 "$KILN_BIN/kiln-info" base.db --lod
    grep -q '^no levels of detail' out || fail "levels that are not there"
    must 0 "$KILN_BIN/kiln-info" one.db --lod
    [ -z "$(awk '/^level/ { on = 1 } /^$/ { on = 0 } on && length > 110' out)" ] || fail "the table is wider than 110 columns"
    must 0 "$KILN_BIN/kiln-info" one.db --lod --json
    py levels out one.json || fail "kiln-info counts otherwise than kiln-lod"
); result

cp base.db two.db

test_step 'two threads on a CPU without AVX2: the same bits' && (
    must 0 env KILN_ISA=baseline "$KILN_BIN/kiln-lod" two.db --quiet --coarsest 256 --threads 2
    same one.db two.db
); result

test_case 'under a cap: the same bits' && (
    cp base.db capped.db
    must 0 kiln lod capped.db --coarsest 256 --ram 256M --json
    [ "$(number out 'd["ram_peak_bytes"] <= d["ram_cap_bytes"] == 256 << 20')" = True ] || fail "the cap was exceeded"
    same one.db capped.db
); result

test_step 'killed again and again: the same bits' && (
    cp base.db killed.db
    kills=0
    for kill in 20:20 8:10 4:1 3:1 2:1 1:1; do # at least the unit in which the run before hung is computed
        unit=${kill%:*} more=${kill#*:}
        killed_when_stored killed.db lod $(($(stored killed.db lod) + more)) env KILN_FAULT="unit=$unit:hang" "$KILN_BIN/kiln-lod" \
            killed.db --quiet --coarsest 256 --threads 2 &&
            code=0 ||
            code=$?
        # A kill comes late on a busy machine: the other thread has then computed the unit in which the next run is to hang, which
        # ends.
        [ $code != 0 ] || [ $kills -lt 2 ] || break
        [ $code = 137 ] || fail "the run that hangs in unit $unit ended with $code"
        kills=$((kills + 1))
        must 0 kiln verify killed.db
    done
    must 0 kiln lod killed.db --coarsest 256 --json
    [ "$(number out 'd["units"]["cached"]')" -gt 0 ] || fail "nothing was kept of the runs that were killed"
    same one.db killed.db
); result

test_case 'over hosts: the same bits' && (
    cp base.db hosts.db
    must 0 kiln lod hosts.db --coarsest 256 --plan --tasks 2
    must 4 kiln lod hosts.db --shard 1/2 --part parts # of other options, although chunks are merged alike
    must 4 kiln lod hosts.db --gather parts
    grep -q 'the same options as --plan was given' err || fail "it does not say what to do: $(cat err)"
    for i in 1 2; do must 0 kiln lod hosts.db --coarsest 256 --shard $i/2 --part parts; done
    for i in 1 2 3 4 5 6; do [ -e hosts.db.claim ] && must 0 kiln lod hosts.db --coarsest 256 --gather parts --remove-parts; done
    [ ! -e hosts.db.claim ] || fail "the rounds do not end"
    same one.db hosts.db
); result

test_case '--force: the same bits' && (
    must 0 kiln lod two.db --force
    same one.db two.db
); result

test_case 'a stored result that cannot be used is made again' && (
    # A stored result of a chunk that cannot be used is dropped, and the same command makes it again: a size, a plane, errors that
    # are the bounds of a level.
    for change in "UPDATE unit_output SET raw_bytes = raw_bytes - 4 WHERE name = '4 means'" \
        "DELETE FROM unit_output WHERE name = '4 quats'" \
        "UPDATE unit_output SET (hash, raw_bytes) = (SELECT hash, raw_bytes FROM unit_output AS o
            WHERE o.unit = unit_output.unit AND o.name = '4 bounds') WHERE name = 'errors'"; do
        cp killed.db bad.db
        py spoil bad.db "$change"
        must 74 kiln lod bad.db --levels 4 --coarsest 300
        grep -q 'run the same command to compute them again' err || fail "it does not say what to do: $(cat err)"
        must 0 kiln lod bad.db --levels 4 --coarsest 300
        must 0 kiln verify bad.db
    done
); result

test_case 'other options, and the first ones again' && (
    must 0 kiln lod two.db --levels 2
    [ "$(digest one.db)" != "$(digest two.db)" ] || fail "--levels changed nothing"
    must 0 kiln lod two.db --reset --coarsest 256
    same one.db two.db
    must 2 kiln lod two.db --levels 0
    must 2 kiln lod two.db --near -1
); result

test_step 'one opacity changed: its chunk and the cells above, no other unit' && (
    # One opacity changed, without visibility: its chunk and the cells above, no other unit. The root is at most eleven cells up.
    edit_ply s/scene.ply opacity 3000 'v + 0.125'
    must 0 kiln lod one.db --visibility off
    cp one.db old.db
    chunked s one.db
    must 0 kiln lod one.db --visibility off --json
    py due_units old.db one.db out || fail "other units were computed than those of the chunk and the cells above it"
    must 0 kiln verify one.db
); result

test_case 'levels of chunks that are no longer drawn' && (
    must 0 kiln chunk old.db --max 1024
    must 0 "$KILN_BIN/kiln-info" old.db --lod --json
    [ "$(number out '(d["levels"]["current"], d["levels"]["rows"][0]["level"])')" = "(False, 1)" ] ||
        fail "it says something of chunks that are gone"
    must 0 "$KILN_BIN/kiln-info" old.db --lod
    grep -q '^the levels of detail belong to earlier chunks' out || fail "it does not say that levels are of other chunks"
); result

test_case 'a cap below one unit, and the cap that it names' && (
    chunked s tiny.db
    must 5 kiln lod tiny.db --ram 20M
    mib=$(sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err)
    [ -n "$mib" ] || fail "it does not say the least that works: $(cat err)"
    must 5 kiln lod tiny.db --ram "$((mib - 8))M"
    must 0 kiln lod tiny.db --ram "${mib}M" --json
    [ "$(number out 'd["nodes"]')" = 1 ] || fail "one chunk is not the root"
    must 0 kiln verify tiny.db
); result

py degrees
for degree in 0 1 2 3 4; do
    test_case "spherical harmonics of degree $degree" && (
        chunked sh$degree.ply sh$degree.db --max $((degree == 2 ? 1 : 40)) --min 1
        must 0 kiln lod sh$degree.db --json
        [ "$(number out 'd["levels"][-1]["gaussians"] >= 1 and d["nodes"] > d["chunks"] > 3')" = True ] ||
            fail "degree $degree: $(cat out)"
        must 0 kiln verify sh$degree.db
    ); result
done

test_case 'nothing to merge: no chunks yet, points, no rows' && (
    kiln import s none.db >/dev/null
    must 4 kiln lod none.db
    kiln generate points p --gaussians 300 >/dev/null || fail "points"
    chunked p points.db --max 64
    must 0 kiln lod points.db --levels 8 --coarsest 1
    must 0 kiln verify points.db
    kiln prune none.db >/dev/null 2>&1 || :
    kiln knn none.db >/dev/null && kiln prune none.db --filter-box 900,900,900,901,901,901 >/dev/null &&
        kiln chunk none.db >/dev/null ||
        fail "a bake without rows"
    must 0 kiln lod none.db
    must 0 kiln verify none.db
    nothing none.db
); result

front() { "$KILN_BIN/kiln" pipeline s --out bake --max 512 "$@" >out 2>err || { cat err >&2; fail "kiln pipeline $*"; }; }

test_case 'kiln pipeline makes levels where it is asked, and keeps them up to date' && (
    front
    ! digest bake/manifest.db | grep -q '^layer levels' || fail "levels that nobody asked for"
    plain=$(digest bake/manifest.db)
    front --lod
    [ "$plain" = "$(digest bake/manifest.db | grep -v '^layer levels\|^layer visibility')" ] || fail "levels changed the bake"
    digest bake/manifest.db | grep -q '^layer levels' || fail "--lod made no levels"
    front --max 1024
    must 0 kiln info bake/manifest.db --json
    [ "$(number out '[s["state"] for s in d["stages"] if s["name"] == "lod"]')" = "['fresh']" ] || fail "levels were left behind"
); result
