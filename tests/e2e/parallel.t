#!/bin/bash
# examples/gnu-parallel.sh: the digest of a bake in one go; a task that is killed ends it, and the same command again runs that task
# alone.
. tests/e2e/lib.sh
command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q 'GNU parallel' ||
    skip 'there is no GNU parallel (apt-get install parallel)'
example=$PWD/examples/gnu-parallel.sh
cd "$KILN_TMP" || fail "cd"
scene "it's a scene" 5000 3 160x100
must 0 "$KILN_BIN/kiln" pipeline "it's a scene" --out one --stages import,knn,prune,chunk,tiles
# kiln-tiles through a script, whose second task is killed each time until RUN is removed
mkdir bin
cat >bin/kiln-tiles <<E1
#!/bin/sh
export KILN_ROUND_S=0 # counting is a round, too
case "\$*" in *--shard*) echo "\$CUDA_VISIBLE_DEVICES" >>'$KILN_TMP/gpus' ;; esac
case " \$* " in *' --shard 2/3 '*) [ ! -e '$KILN_TMP/deadly' ] || kill -KILL \$\$ ;; esac
exec '$KILN_BIN/kiln-tiles' "\$@"
E1
cat >bin/kiln <<E2
#!/bin/sh
'$KILN_BIN/kiln' "\$@" | sed 's|$KILN_BIN/kiln-tiles|$KILN_TMP/bin/kiln-tiles|'
E2
chmod +x bin/*
export TASKS=3 GPUS=2 KILN=$KILN_TMP/bin/kiln

test_case 'a second call beside the first, and right after it was killed, does not run' && (
    cat >slow <<E3
#!/bin/sh
case " \$* " in *' --shard 1/3 '*) touch '$KILN_TMP/begun'; sleep 1000 ;; esac
E3
    sed '1r slow' bin/kiln-tiles | sed '2d' >bin/once && mv bin/kiln-tiles fast && mv bin/once bin/kiln-tiles &&
        chmod +x bin/kiln-tiles
    setsid "$example" "it's a scene" --out hosts --stages import,knn,prune,chunk,tiles >/dev/null 2>&1 &
    first=$!
    for _ in $(seq 600); do [ -e begun ] && break; sleep 0.1; done
    must 75 "$example" "it's a scene" --out hosts --stages import,knn,prune,chunk,tiles
    kill -KILL "$first"; wait "$first" 2>/dev/null || :
    must 75 "$example" "it's a scene" --out hosts --stages import,knn,prune,chunk,tiles
    grep -q 'tasks of a killed one, still work' err || fail "$(cat err)"
    kill -KILL -- "-$first" 2>/dev/null || :
    for _ in $(seq 100); do flock -n hosts/parallel true && break; sleep 0.1; done
    mv fast bin/kiln-tiles
    rm -rf hosts gpus
); result

test_step 'a task that is killed ends it, and the same command again runs that task alone' && (
    touch deadly
    must 1 "$example" "it's a scene" --out hosts --stages import,knn,prune,chunk,tiles
    grep -q 'tasks of tiles failed' err || fail "$(cat err)"
    ls hosts/parallel/parts/tiles-*-1-of-3.part hosts/parallel/parts/tiles-*-3-of-3.part >/dev/null ||
        fail "the other tasks left no part"
    rm deadly
    must 0 "$example" "it's a scene" --out hosts --stages import,knn,prune,chunk,tiles
    same one/manifest.db hosts/manifest.db
    # tasks of the round that was broken off: 1, 3, and twice the killed one; then that one, and three of the second round
    [ "$(wc -l <gpus)" = 8 ] || fail "$(wc -l <gpus) tasks of tiles were started"
    [ -z "$(ls hosts/parallel/parts)" ] && [ ! -e hosts/manifest.db.claim ] || fail "left: $(ls hosts hosts/parallel/parts)"
    [ "$(sort -u gpus | tr '\n' ' ')" = '0 1 ' ] || fail "tasks had these GPUs: $(cat gpus)"
); result

test_case 'begun anew, the tasks are shared out again' && (
    rm hosts/manifest.db gpus
    must 0 "$example" "it's a scene" --out hosts --stages import,knn,prune,chunk,tiles
    [ "$(wc -l <gpus)" = 6 ] || fail "of two rounds of 3 tasks these were shared out: $(cat gpus)"
); result

test_case 'units are given up: with --allow-partial it comes to its end' && (
    KILN_FAULT='unit=pairs*cam2*:exit' must 7 "$example" "it's a scene" --out part --stages import,knn,prune,chunk,tiles,export \
        --allow-partial
    [ -n "$(ls part/export)" ] || fail "--allow-partial did not go on: $(cat err)"
    [ ! -e part/manifest.db.claim ] || fail "a claim is left"
); result

test_case 'all stages, with the report that a bake ends with' && (
    must 0 "$example" "it's a scene" --out whole
    [ -s whole/report.html ] || fail "no report: $(cat err)"
); result
