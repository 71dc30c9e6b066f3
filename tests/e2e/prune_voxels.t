#!/bin/bash
# Pruning by voxels: what --filter-floaters and --filter-cluster drop is what the definition says, by numpy, on 66,000 Gaussians; the
# same on any threads, in parts, under a cap, killed, and beside other rules.
. tests/e2e/lib.sh
. tests/e2e/pruning.sh
needs_numpy
T=$KILN_TMP
rows=66000 # two blocks
off='--max-spacing off --max-extent off --min-opacity off --min-scale off'
kept() { sqlite3 "$1" "SELECT count FROM layer WHERE kind = 'pruned' ORDER BY id DESC LIMIT 1"; }
again() { cp "$T/start.db" "$T/$1.db"; }
mkdir "$T/s"
py scene "$T/s/scene.ply" $rows 100.03,-7,3 || fail "scene"
imported "$T/s" "$T/start.db"
floaters='--filter-floaters 0.1,0.3,1/250' cluster='--filter-cluster 0.1,0.5,2e-4 --seed-pos 101.1,-7,3'

test_step 'the floaters that the definition says' && (
    again floaters
    # shellcheck disable=SC2086
    prune "$T/floaters.db" $off $floaters --threads 1
    py dropped "$T/start.db" "$T/floaters.db" floaters 0.1 0.3 0.004 || fail "see above"
    pruned "$T/floaters.db" >"$T/floaters"
); result

test_step 'the cluster that the definition says' && (
    again cluster
    # shellcheck disable=SC2086
    prune "$T/cluster.db" $off $cluster --threads 1
    py dropped "$T/start.db" "$T/cluster.db" cluster 0.1 0.5 2e-4 101.1,-7,3 || fail "see above"
    pruned "$T/cluster.db" >"$T/cluster"
); result

test_case 'the same on four threads, in parts, under a cap' && (
    for how in '--voxel-blocks 2500 --threads 4' '--ram 64M'; do
        for rule in cluster floaters; do
            [ $rule = cluster ] || how=${how/2500/300} # it asks for fewer
            again same
            # shellcheck disable=SC2086
            prune "$T/same.db" $off ${!rule} $how
            diff "$T/$rule" <(pruned "$T/same.db") || fail "another layer by $rule with $how"
        done
    done
); result

test_case 'a dry run counts and writes nothing' && (
    again dry
    before=$(sha256sum <"$T/dry.db")
    # shellcheck disable=SC2086
    prune "$T/dry.db" $off $floaters --dry-run --json
    [ "$(dropped "$T/out" filter-floaters)" = $((rows - $(kept "$T/floaters.db"))) ] || fail "$(head -c 2000 "$T/out")"
    [ "$(sha256sum <"$T/dry.db")" = "$before" ] || fail "a dry run writes"
); result

test_case 'stored, off again, and resumed after a kill' && (
    cp "$T/floaters.db" "$T/stored.db"
    prune "$T/stored.db"
    grep -q 'nothing to do' "$T/err" || fail "$(cat "$T/err")"
    prune "$T/stored.db" --filter-floaters off
    [ "$(kept "$T/stored.db")" = $rows ] || fail "off drops rows"
    again killed
    # shellcheck disable=SC2086
    KILN_FAULT="unit=cluster:hang" "$KILN_BIN/kiln-prune" "$T/killed.db" $off $cluster >/dev/null 2>&1 & run=$!
    sleep 0.5
    kill -KILL $run && { wait $run 2>/dev/null || true; }
    # shellcheck disable=SC2086
    KILN_FAULT="unit=statistics:hang" killed_when_stored "$T/killed.db" prune 1 "$KILN_BIN/kiln-prune" "$T/killed.db" $off $cluster || true
    [ "$(stored "$T/killed.db" prune)" = 1 ] || fail "$(stored "$T/killed.db" prune) units are stored"
    # shellcheck disable=SC2086
    prune "$T/killed.db" $off $cluster
    diff "$T/cluster" <(pruned "$T/killed.db") || fail "another layer after kills"
    ls "$T" | grep -q 'killed.*scratch' && fail "scratch stays: $(ls "$T")"
    true
); result

test_case 'a row counts for the rule that comes first, and each rule judges the whole scene' && (
    again both
    # shellcheck disable=SC2086
    prune "$T/both.db" $off $floaters $cluster --outlier-sor 8,2 --merge --json
    py split "$T/out" "$T/start.db" "$T/floaters.db" "$T/cluster.db" || fail "see above"
); result

test_case 'a scene far from 0 keeps the same rows' && (
    for x in 0 262144 -4194304; do # the grid has 131,072 to each side in voxels of 1/32; floats are exact
        mkdir "$T/at$x" && py scene "$T/at$x/scene.ply" 4000 $x,0,0 0.5 || fail "scene"
        imported "$T/at$x" "$T/at$x.db"
        # shellcheck disable=SC2086
        prune "$T/at$x.db" $off --filter-floaters 0.03125,0.3 --dry-run --json
        dropped "$T/out" filter-floaters >"$T/dropped.$x"
        # shellcheck disable=SC2086
        prune "$T/at$x.db" $off --filter-cluster 0.5,0.5,0.1 --seed-pos=$x,0,0 --dry-run --json
        dropped "$T/out" filter-cluster >>"$T/dropped.$x"
        # shellcheck disable=SC2086
        prune "$T/at$x.db" $off --filter-cluster 0.03125,0.1,0.01 --seed-pos=$x,0,0 --dry-run --json
        dropped "$T/out" filter-cluster >>"$T/dropped.$x"
        diff "$T/dropped.0" "$T/dropped.$x" || fail "other rows at $x"
    done
    [ "$(awk '$1 < 100 || $1 > 3990' "$T/dropped.0" | wc -l)" = 0 ] || fail "$(cat "$T/dropped.0")"
); result

test_case 'defaults, and a seed in an empty place' && (
    again on
    prune "$T/on.db" --filter-floaters on --filter-cluster 0.2,0.5,0.1 --seed-pos 100,0,0 --dry-run --json
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["rules"]["filter-floaters"]["dropped"] > 0, d["rules"]' "$T/out" || fail "on"
    grep -q 'the voxel at --seed-pos is not solid; the cluster begins at the nearest one, at ' "$T/err" || fail "$(cat "$T/err")"
); result

test_case 'the place where a cluster begins is a seed, however far from 0, and a seed far outside is told' && (
    far="$T/at-4194304.db"
    prune "$far" --filter-cluster 0.5,0.5,0.1 --dry-run
    grep -q 'at -4194301.25,0.75,-0.75, 4.19e+06 away; the scene is 5.16 wide$' "$T/err" || fail "$(cat "$T/err")"
    prune "$far" --filter-cluster 0.5,0.5,0.1 --seed-pos=-4194301.25,0.75,-0.75 --dry-run
    [ ! -s "$T/err" ] || fail "$(cat "$T/err")"
    prune "$far" --filter-cluster 0.5,0.5,0.1 --seed-pos=-4194300.25,0.75,-0.75 --dry-run
    grep -q 'the nearest one, at [-0-9.,]*$' "$T/err" || fail "$(cat "$T/err")"
); result

test_case 'a rule that leaves next to nothing warns of it' && (
    mkdir "$T/thin" && py scene "$T/thin/scene.ply" 1000 0,0,0 || fail "scene"
    imported "$T/thin" "$T/thin.db"
    prune "$T/thin.db" --filter-floaters 0.2,0.99 --dry-run
    grep -q -- '--filter-floaters drops [0-9]* of 1000 Gaussians; to keep more, take a larger SIZE or a smaller OPACITY$' "$T/err" || fail "$(cat "$T/err")"
    prune "$T/thin.db" --filter-cluster 0.1,0.8 --dry-run
    grep -q -- '--filter-cluster drops [0-9]* of 1000 Gaussians; to keep more, take a larger RES, a smaller OPACITY or another --seed-pos$' "$T/err" ||
        fail "$(cat "$T/err")"
    prune "$T/thin.db" --filter-floaters on --dry-run
    ! grep -q 'to keep more' "$T/err" || fail "$(cat "$T/err")"
); result

test_case 'nothing is solid: all is dropped, with a warning' && (
    mkdir "$T/few" && py scene "$T/few/scene.ply" 1000 0,0,0 || fail "scene"
    imported "$T/few" "$T/empty.db"
    prune "$T/empty.db" --filter-cluster 0.05,0.999999
    grep -q 'no voxel is solid, so --filter-cluster drops everything' "$T/err" || fail "$(cat "$T/err")"
    grep -q 'ALL 1000 Gaussians are dropped' "$T/err" || fail "$(cat "$T/err")"
); result

test_case 'of bare points it is said what is judged, and a rule that drops nothing has its line' && (
    mkdir "$T/bare" && py bare "$T/bare/points.ply" || fail "points"
    imported "$T/bare" "$T/bare.db"
    for rule in floaters cluster; do
        prune "$T/bare.db" --filter-$rule on --dry-run
        grep -q "^filter-$rule  *0  *0  " "$T/out" || fail "$rule: $(cat "$T/out")"
        grep -q -- "--filter-$rule judges scales and opacities, which these points have from kiln-knn alone: .*--outlier-sor 16,2" "$T/err" ||
            fail "$rule: $(cat "$T/err")"
    done
    prune "$T/bare.db" --filter-floaters on --filter-cluster on --dry-run
    grep -q -- '--filter-floaters and --filter-cluster judge scales' "$T/err" || fail "both: $(cat "$T/err")"
    prune "$T/bare.db" --outlier-sor 16,2 --dry-run --json
    [ ! -s "$T/err" ] && [ "$(dropped "$T/out" outlier-sor)" -gt 0 ] || fail "--outlier-sor: $(cat "$T/err")"
    again sound
    prune "$T/sound.db" --filter-floaters on --dry-run
    ! grep -q 'kiln-knn alone' "$T/err" || fail "Gaussians: $(cat "$T/err")"
); result

test_case 'a cluster that would take minutes is refused before its search' && (
    mkdir "$T/sky" && py sky "$T/sky/scene.ply" || fail "scene"
    imported "$T/sky" "$T/sky.db"
    for size in 0.02 0.015; do # rows ask for few blocks and meet 500 million
        must 3 timeout 60 "$KILN_BIN/kiln-prune" "$T/sky.db" --filter-cluster $size,0.5
        grep -q 'the search would take too long; take --filter-cluster 0.033,0.5$' "$T/err" || fail "$size: $(cat "$T/err")"
    done
); result

test_case 'what they cannot take is refused' && (
    again bad
    for bad in 0 -1 0.1,0 0.1,1 0.1,0.5,-1 0.1,0.5,1/0 0.1, ,0.1 0.1,0.5,0.1,2 inf x off,2; do
        must 2 "$KILN_BIN/kiln-prune" "$T/bad.db" --filter-floaters "$bad"
        grep -q -- '--filter-floaters takes SIZE\[,OPACITY\[,MIN\]\]' "$T/err" || fail "$bad: $(cat "$T/err")"
        must 2 "$KILN_BIN/kiln-prune" "$T/bad.db" --filter-cluster "$bad"
        grep -q -- '--filter-cluster takes RES\[,OPACITY\[,MIN\]\]' "$T/err" || fail "$bad: $(cat "$T/err")"
    done
    must 3 "$KILN_BIN/kiln-prune" "$T/bad.db" --filter-cluster 0.0001
    grep -q 'the search would take too long; take --filter-cluster 0.0081$' "$T/err" || fail "$(cat "$T/err")"
    # the smallest that works, whatever was asked, with the rest of what was given
    for asked in 0.000001= 0.002= 0.008,0.1= 0.001,0.3=,0.3 0.001,0.1,0.01=,0.1,0.01; do
        must 3 "$KILN_BIN/kiln-prune" "$T/bad.db" --filter-floaters "${asked%=*}"
        grep -q "the search would take too long; take --filter-floaters 0.0081${asked#*=}\$" "$T/err" || fail "$asked: $(cat "$T/err")"
    done
    must 5 "$KILN_BIN/kiln-prune" "$T/bad.db" --filter-floaters on --ram 8M
    grep -q 'the least that works is --ram' "$T/err" || fail "$(cat "$T/err")"
); result
