#!/bin/bash
# kiln-lod --refine: better than merged in cameras that were not fitted to; the same bits on any threads, under a cap and over
# hosts; a level that gets no better stays as it is merged.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() {
    kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln prune "$2" >/dev/null &&
        kiln chunk "$2" "${@:3}" >/dev/null ||
        fail "bake of $1"
}
against() {
    must 0 "$KILN_BIN/kiln-render" "$1" --levels-against "$2" --devices cpu
    grep -E '^ +[12] ' out | awk '{print $1, $4}'
}

kiln generate demo s --gaussians 1500 --cameras 12 --size 96x72 >/dev/null || fail "generate"
chunked s base.db --max 1024
cp base.db hosts.db
must 0 kiln lod base.db --levels 2
cp base.db one.db
must 0 kiln lod one.db --refine 32 --threads 1 --devices cpu --json

test_case 'refined levels are kept, and the baked layer stays' && (
    [ "$(number out 'd["refined"]["kept"] * 2 > d["refined"]["levels"] > 2')" = True ] ||
        fail "few levels are better: $(number out 'd["refined"]')"
    must 0 kiln verify one.db
    [ "$(digest base.db | grep '^layer baked')" = "$(digest one.db | grep '^layer baked')" ] ||
        fail "refining changed the baked layer"
); result

test_case 'better in cameras that were in no picture that it was fitted to' && (
    against base.db merged >merged.txt
    against one.db refined >refined.txt
    paste merged.txt refined.txt |
        awk '$4 < $2 + 0.3 { print "level " $1 ": " $2 " dB merged, " $4 " dB refined"; bad = 1 } END { exit bad || NR != 2 }' ||
        fail "refined levels are no better"
); result

test_case 'too small a gain is no gain' && (
    cp base.db little.db
    must 0 kiln lod little.db --refine 1 --devices cpu --json
    [ "$(number out 'd["refined"]["kept"] == 0 < d["refined"]["levels"]')" = True ] ||
        fail "a small gain was kept: $(number out 'd["refined"]')"
    [ "$(digest base.db | grep '^layer levels')" = "$(digest little.db | grep '^layer levels')" ] ||
        fail "levels of a small gain were changed"
); result

test_case '--refine is stored' && (
    "$KILN_BIN/kiln-lod" one.db 2>&1 | grep -q 'nothing to do' || fail "--refine was forgotten"
); result

test_case 'any threads: the same bits' && (
    cp base.db two.db
    must 0 kiln lod two.db --refine 32 --threads 2 --devices cpu
    same one.db two.db
); result

test_case 'a cap: the same bits' && (
    cp base.db capped.db
    must 0 kiln lod capped.db --refine 32 --devices cpu --ram 256M --json
    [ "$(number out 'd["ram_peak_bytes"] <= d["ram_cap_bytes"]')" = True ] || fail "the cap was exceeded"
    same one.db capped.db
); result

test_case 'over hosts: the same bits' && (
    must 0 kiln lod hosts.db --levels 2 --refine 32 --plan --tasks 2
    must 4 kiln lod hosts.db --levels 2 --gather parts
    grep -q 'as --plan was given' err || fail "merged levels are gathered where --refine was planned: $(cat err)"
    for round in 1 2 3; do
        [ -e hosts.db.claim ] || break
        for i in 1 2; do must 0 kiln lod hosts.db --levels 2 --refine 32 --shard $i/2 --part parts --devices cpu; done
        must 0 kiln lod hosts.db --levels 2 --refine 32 --gather parts --remove-parts
    done
    [ ! -e hosts.db.claim ] || fail "the rounds do not end"
    same one.db hosts.db
); result

test_case 'cameras within a cloud of large Gaussians lose nothing that shows' && (
    scene wild 600 5 48x32
    chunked wild wild.db --max 1024
    must 0 kiln lod wild.db --levels 1
    against wild.db wild_merged >merged.txt
    must 0 kiln lod wild.db --refine 3 --devices cpu
    against wild.db wild_refined >refined.txt
    paste merged.txt refined.txt |
        awk '$4 < $2 - 0.1 { print "level " $1 ": " $2 " dB merged, " $4 " dB refined"; bad = 1 } END { exit bad || NR != 1 }' ||
        fail "a wild scene became worse"
); result

test_case '--refine 0 takes it back' && (
    must 0 kiln lod one.db --refine 0
    same one.db base.db
); result

test_case 'a number of steps that is none' && (
    must 2 kiln lod base.db --refine -1
); result
