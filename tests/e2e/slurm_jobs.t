#!/bin/bash
# kiln slurm's jobs on a real slurmctld and slurmd, with a stand-in for the stages: rounds follow each other, arrays keep to
# MaxArraySize, each task has a GPU of its own, and a task that is killed, torn or busy costs its part. soak/slurm_jobs.t has what
# takes longer.
# starts first
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
. tests/e2e/slurm_jobs.sh
jobs_start MaxArraySize=4

new 'the bake'
echo kill >"$out/fault-tiles-1-2"
echo 75 >"$out/fault-tiles-1-3"
echo torn >"$out/fault-tiles-2-4"
echo 7 >"$out/fault-import-1-gather"
mkdir -p "$out/slurm/parts" # import's parts are there before its plan, as after --break-claim
for i in 1 2 3 4; do { [ $i -gt 1 ] || seq -f 'import 1 %g' 10; echo end; } >"$out/slurm/parts/import-$(key 1)-$i-of-4.part"; done
# a variable that makes arrays of all jobs must not reach them, nor one that hides them
export SBATCH_ARRAY_INX=0-3 SQUEUE_STATES=SUSPENDED SQUEUE_PARTITION=none
must 0 on_hosts --tasks 4 --sbatch='--gres=gpu:1 --cpus-per-task=2'

test_case 'jobs of this bake have not ended' && (
    must 75 on_hosts; says 'jobs of this bake have not ended'
); result

unset SBATCH_ARRAY_INX SQUEUE_STATES SQUEUE_PARTITION
wait_for 'squeue --noheader --states=PENDING --format="%k %r" | grep -q "task tiles.*BeginTime"'
slurm_hurry

test_step 'a bake in part is said to be one' && (
    must 7 on_hosts --wait; says 'baked in part: units of import were given up; run the same'
    must 0 on_hosts --status; says 'no job is left: baked in part: units of import'
); result

test_case 'a round whose parts are all there has no tasks' && (
    [ -z "$(find "$out/slurm" -name 'import-tasks-*')" ] || fail "tasks were submitted although all parts were there"
    [ "$(cat "$out/stood")" = 'tiles of 4' ] || fail "the plan was looked at: $(cat "$out/stood")"
); result

test_case 'the killed task alone is submitted again, the torn part is put aside' && (
    [ "$(find "$out/slurm" -name 'tiles-tasks-*.log' | wc -l)" = 9 ] ||
        fail "not the killed task alone was submitted again: $(ls "$out/slurm")"
    [ "$(find "$out/slurm/parts" -name '*.bad' | wc -l)" = 1 ] || fail "the torn part was not put aside"
); result

test_case 'each task has a GPU of its own' && (
    for gpu in 0 1; do grep -q "gpu=$gpu\$" "$out/computed" || fail "no task had GPU $gpu: $(cat "$out/computed")"; done
    [ "$(grep -c 'gpu=[01]$' "$out/computed")" = 18 ] || fail "a task had no GPU or both: $(cat "$out/computed")"
); result

test_case 'the log of a task begins and ends with what it had' && (
    for log in $(cd "$out/slurm" && find . -name 'tiles-tasks-*_1.log' | tr -d ' '); do
        [ "$(sed -E 's/^kiln slurm: job [0-9]+ on [^ ]+, 20[^ ]+Z, 2 CPUs, 100 MiB a CPU$/begin/; s/^kiln slurm: ends with 0 after [0-9.]+ s; its largest process took [0-9]+ MiB$/end/' \
            "$out/slurm/$log" | paste -sd ' ')" = 'begin end' ] || fail "the log of a task that did its work: $(cat "$out/slurm/$log")"
    done
); result

test_case 'a plan stands: what to do is said' && (
    claim import 1 4 >"$out/manifest.db.claim"
    must 0 on_hosts --cancel
    says "the plan of import is still open .*, or give it up with kiln import 'a scene' '$out/manifest.db' --break-claim"
    echo 4 >"$out/fault-import-open"
    must 4 on_hosts --wait; says "the open plan of import was made with other options .*, or give up the plan with kiln import 'a scene'"
    find "$out/slurm" -name 'import-round-*.log' -exec cat {} + | grep 'to continue' && fail "the same kiln slurm does not go on"
    rm "$out/manifest.db.claim"
); result

test_case "a round's job is put back into the queue" && (
    new requeued
    echo hang >"$out/fault-tiles-1-0"
    must 0 on_hosts --tasks 2
    wait_for '[ ! -e "$out/fault-tiles-1-0" ]'
    round=$(squeue --noheader --states=RUNNING --format='%i %k' | awk '$3 == "round" { print $1 }')
    scontrol requeue "$round" || fail "requeue"
    must 75 on_hosts; says "jobs of this bake have not ended .$round."
    must 0 on_hosts --status; says "^  $round PENDING round of"
    on_hosts --wait >"$KILN_TMP/waited" 2>&1 &
    waiting=$!
    slurm_hurry
    wait $waiting || fail "--wait: $(cat "$KILN_TMP/waited")"
    finished
); result

test_case 'nothing is left to do' && (
    must 0 on_hosts --wait
    finished 2 # units of the torn part
); result

test_case 'another kiln slurm is submitting' && (
    (flock 9 && must 75 on_hosts --tasks 9 && says 'another kiln slurm is submitting') 9>"$out/slurm/lock" || exit 1
    grep -qx 'tasks 4' "$(grep -lx "bake $out" "$KILN_TMP"/state/splatkiln/slurm/*)" ||
        fail "the second kiln slurm took the first one's settings"
); result

test_case 'what is refused before anything is submitted' && (
    must 2 on_hosts --tasks 0
    must 2 on_hosts --force; says 'cannot be used in a bake over hosts'
    out=$KILN_TMP/none must 3 on_hosts --status
    rmdir "a scene"
    out=$KILN_TMP/none must 3 on_hosts; says "cannot find the scene 'a scene'"
    mkdir "a scene"
    [ ! -e none ] || fail "something was made for a scene that is not there"
    must 74 on_hosts --sbatch=--partition=none; says 'Slurm refused the job'
); result

slurm_stop
