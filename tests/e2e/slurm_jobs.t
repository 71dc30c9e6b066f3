#!/bin/bash
# kiln slurm's jobs on a real slurmctld and slurmd, with a stand-in for the stages: rounds follow each other, arrays keep to MaxArraySize,
# each task has a GPU of its own; what is killed, torn, busy, cancelled or ends badly costs its part, and the same command goes on;
# the controller may die in the middle.
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
mkdir "$KILN_TMP/bin"
for name in kiln kiln-import kiln-tiles kiln-export; do ln -s "$PWD/tests/e2e/slurm_stand_in.sh" "$KILN_TMP/bin/$name"; done
scripts=$PWD/pipelines/slurm
slurm_start "$KILN_TMP/cluster" MaxArraySize=4
cd "$KILN_TMP" || fail "cd"
on_hosts() { KILN=$KILN_TMP/bin/kiln "$scripts/slurm.sh" "a scene" --out "$out" "$@"; }
says() { grep -qE -- "$1" "$KILN_TMP/out" "$KILN_TMP/err" || { cat "$KILN_TMP/out" "$KILN_TMP/err" >&2; fail "nothing says '$1'"; }; }
new() { out="$KILN_TMP/$1"; mkdir "$out"; }
# finished [WHERE]: every unit is there, each was computed once, none or as many as WHERE says in a round's own job
finished() {
    [ "$(sort "$out/manifest.db" | grep -vc fresh)" = 30 ] || fail "units: $(cat "$out/manifest.db")"
    [ "$(grep -c fresh "$out/manifest.db")" = 3 ] || fail "stages: $(grep fresh "$out/manifest.db")"
    [ "$(cut -d ' ' -f 1-3 "$out/computed" | sort | uniq -d)" = '' ] || fail "computed twice: $(sort "$out/computed")"
    [ "$(grep -c here "$out/computed")" = "${1:-0}" ] || fail "computed by rounds: $(grep here "$out/computed")"
    [ ! -e "$out/manifest.db.claim" ] || fail "a claim is left"
    [ -z "$(find "$out/slurm/parts" -name '*.part')" ] || fail "parts are left"
    must 0 on_hosts --status; says '^finished$'
    [ "$(grep -cE '^(import|tiles|export) +fresh$' "$KILN_TMP/out")" = 3 ] || fail "status: $(cat "$KILN_TMP/out")"
}
# wait_for COMMAND: until it succeeds
wait_for() { for _ in $(seq 300); do eval "$1" && return; sleep 0.1; done; fail "waited too long for: $1; $(on_hosts --status)"; }

# ---- all is well: 7 tasks in 3 arrays of at most 3; then nothing is left to do ----
new plain
must 0 on_hosts --tasks 7 --sbatch='--gres=gpu:1 --cpus-per-task=2' --wait
finished
for gpu in 0 1; do grep -q "gpu=$gpu\$" "$out/computed" || fail "no task had GPU $gpu: $(cat "$out/computed")"; done
[ "$(grep -c 'gpu=[01]$' "$out/computed")" = 30 ] || fail "a task had no GPU or both: $(cat "$out/computed")"
[ "$(cat "$out"/slurm/tiles-tasks-*.log 2>/dev/null | grep -c .)" = 0 ] && ls "$out"/slurm/tiles-tasks-*_3.log >/dev/null || fail "logs: $(ls "$out/slurm")"
must 0 on_hosts --wait
finished

# ---- a task is killed, one is busy, one leaves a torn part: the tasks that left no part are submitted again, alone ----
new faults
echo kill >"$out/fault-tiles-1-2"
echo 75 >"$out/fault-tiles-1-3"
echo torn >"$out/fault-tiles-2-4"
must 0 on_hosts --tasks 5
must 75 on_hosts; says 'jobs of this bake have not ended'
wait_for 'squeue --noheader --states=PENDING --format="%k %r" | grep -q "task tiles.*BeginTime"'
slurm_hurry
must 0 on_hosts --wait
# 5 tasks in each of two rounds, and the killed one once more
[ "$(ls "$out"/slurm/tiles-tasks-*.log | wc -l)" = 11 ] || fail "not the killed task alone was submitted again: $(ls "$out/slurm")"
[ "$(ls "$out"/slurm/parts/*.bad | wc -l)" = 1 ] || fail "the torn part was not put aside"
finished 2 # of the torn part

# ---- cancelled while a task hangs; then only what is missing ----
new cancel
echo hang >"$out/fault-tiles-1-2"
must 0 on_hosts --tasks 3
wait_for '[ "$(ls "$out/slurm/parts" | grep -c tiles-ab10)" = 2 ]'
must 0 on_hosts --status; says '^tiles +a round is open: 2 of 3 parts are there, missing: 2$'; says 'RUNNING task of tiles'
must 0 on_hosts --cancel; says 'the plan of tiles stands'
[ -z "$(squeue --noheader --states=PENDING,RUNNING)" ] || fail "jobs are left: $(squeue)"
must 0 on_hosts --status; says '^no job is left'
must 0 on_hosts --wait
finished

# ---- a stage that fails ends it, with its exit code, and says where ----
new failure
echo 3 >"$out/fault-tiles-2-0"
must 3 on_hosts --tasks 2 --wait; says 'kiln-tiles ended with exit code 3'
must 0 on_hosts --status; says 'no job is left: kiln-tiles ended with exit code 3'
must 0 on_hosts --wait
finished

# ---- a round's job is killed; the controller is killed and comes back ----
new controller
echo hang >"$out/fault-tiles-1-1"
must 0 on_hosts --tasks 2
wait_for '[ "$(ls "$out/slurm/parts" | grep -c tiles-ab10)" = 1 ]'
kill -KILL "$slurm_controller_pid"
wait "$slurm_controller_pid" 2>/dev/null
slurm_controller_start
wait_for 'scontrol ping 2>/dev/null | grep -q UP'
must 0 on_hosts --cancel
must 0 on_hosts --wait
finished

# ---- what is refused before anything is submitted ----
must 2 on_hosts --tasks 0
must 2 on_hosts --force; says 'not for a bake over hosts'
out=$KILN_TMP/none must 3 on_hosts --status
must 74 on_hosts --sbatch=--partition=none; says 'Slurm refused the job'
slurm_stop
