#!/bin/bash
# kiln slurm on a real slurmctld and slurmd with two stand-in GPUs: the bake has the digest of a bake at home, pictures too, and the
# same command again has nothing to do. The chair where the reference data are, else a generated scene.
# starts first
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
scene=$KILN_SHARED/scenes/chair
if [ -z "$KILN_SHARED" ] || [ ! -d "$scene" ]; then
    scene=$KILN_TMP/s
    scene "$scene" 20000 6 200x200
fi
# While a cluster starts and its jobs wait for the scheduler, cores are idle.
"$KILN_BIN/kiln" pipeline "$scene" --out "$KILN_TMP/home" --max 2048 --devices cpu >"$KILN_TMP/home.log" 2>&1 &
home=$!
export XDG_STATE_HOME=$KILN_TMP/state
slurm_start "$KILN_TMP/cluster"
must 0 "$KILN_BIN/kiln" slurm "$scene" --out "$KILN_TMP/hosts" --max 2048 --devices cpu --threads 1 --tasks 4 \
    --sbatch='--gres=gpu:1' --wait
wait $home || fail "the bake at home: $(cat "$KILN_TMP/home.log")"

test_case 'the digest of a bake at home, pictures and exports' && (
    same "$KILN_TMP/home/manifest.db" "$KILN_TMP/hosts/manifest.db"
    diff -r "$KILN_TMP/home/renders" "$KILN_TMP/hosts/renders" || fail "pictures differ"
    diff -r "$KILN_TMP/home/export" "$KILN_TMP/hosts/export" || fail "exports differ"
); result

test_case 'no parts and no claim are left' && (
    [ -z "$(ls "$KILN_TMP/hosts/slurm/parts")" ] && [ ! -e "$KILN_TMP/hosts/manifest.db.claim" ] || fail "parts or a claim are left"
); result

test_case 'a stage that can be shared out is' && (
    for s in import $STAGES; do
        tasks=$(find "$KILN_TMP/hosts/slurm" -name "$s-tasks-*.log" | wc -l)
        case $s in tiles | render) ;; *) continue ;; esac
        ! "$KILN_BIN/kiln-$s" --help-json | grep -q '"name": "plan"' || [ "$tasks" -ge 4 ] || fail "$s was not shared out"
    done
    [ "$(sed -n 's/.*: part [0-9]* of \([0-9]*\): .*/\1/p' "$KILN_TMP"/hosts/slurm/logs-*/*-tasks-*.log | sort -n | tail -n 1)" = \
        4 ] ||
        fail "not 4 tasks"
    ! grep -h ': part .*: 0 units,' "$KILN_TMP"/hosts/slurm/logs-*/*-tasks-*.log || fail "a task had nothing to do"
); result

test_case 'there is a report' && (
    [ -s "$KILN_TMP/hosts/report.html" ] || fail "no report"
); result

test_case 'the same command again has nothing to do' && (
    must 0 "$KILN_BIN/kiln" slurm "$scene" --out "$KILN_TMP/hosts" --max 2048 --devices cpu --threads 1 --wait
    [ "$(find "$(ls -d "$KILN_TMP"/hosts/slurm/logs-* | tail -n 1)" -name '*-round-*.log' -exec cat {} + | grep -c 'nothing to do')" = \
        "$(grep -c '^STAGE([a-z]*, [0-9]*, ALWAYS' pipelines/stages.def)" ] || fail "the second call did something"
); result

test_case '--status says that it has finished' && (
    must 0 "$KILN_BIN/kiln" slurm "$scene" --out "$KILN_TMP/hosts" --status
    [ "$(tail -n 1 "$KILN_TMP/out")" = finished ] || fail "status: $(cat "$KILN_TMP/out")"
); result

test_case "make's variables" && (
    make -s O="$KILN_MAKE_O" pipeline-slurm SCENE="$scene" OUT="$KILN_TMP/made" TASKS=2 SBATCH=--gres=gpu:2 DEVICES=cpu \
        STAGES=import >"$KILN_TMP/out" 2>&1 ||
        fail "make pipeline-slurm: $(cat "$KILN_TMP/out")"
    remembered=$(grep -l "^bake $KILN_TMP/made\$" "$KILN_TMP"/state/splatkiln/slurm/*) ||
        fail "make pipeline-slurm is not remembered"
    grep -qx 'tasks 2' "$remembered" && grep -qx 'sbatch --gres=gpu:2' "$remembered" || fail "make's TASKS and SBATCH are lost"
    for _ in $(seq 300); do [ -e "$KILN_TMP/made/slurm/ended" ] && break; sleep 0.1; done
    [ "$(cat "$KILN_TMP/made/slurm/ended")" = '0 import' ] || fail "make pipeline-slurm did not bake"
); result

slurm_stop
