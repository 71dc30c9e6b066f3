#!/bin/bash
# kiln slurm's jobs on a real slurmctld and slurmd, with a stand-in for the stages, in more ways to fail than e2e/slurm_jobs.t has time
# for: what is cancelled, ends badly, loses its node or its controller is gone on with by the same command.
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
. tests/e2e/slurm_jobs.sh
jobs_start MaxArraySize=4

# ---- 7 tasks in 3 arrays ----
new plain
must 0 on_hosts --tasks 7 --wait
finished
[ "$(find "$out/slurm" -name 'tiles-tasks-*.log' | wc -l)" = 14 ] && logs 'tiles-tasks-*_3.log' | grep -q . || fail "logs: $(ls "$out/slurm")"

# ---- a part has a flipped byte, one is torn, and a task always dies: the round's own job computes what is missing ----
new faults
for i in 1 2; do echo "kill kill" >"$out/fault-tiles-$i-2"; echo torn >"$out/fault-tiles-$i-4"; done
must 0 on_hosts --tasks 5 --wait
finished 8

# ---- cancelled while a task hangs; then only what is missing ----
new cancel
echo hang >"$out/fault-tiles-1-2"
must 0 on_hosts --tasks 3
wait_for '[ "$(ls "$out/slurm/parts" | grep -c "tiles-$(key 1)-.*part$")" = 2 ]'
must 0 on_hosts --status; says '^tiles +a round is open: 2 of 3 parts exist, missing: 2$'; says 'RUNNING task of tiles'
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

# ---- the only node is drained: jobs wait, and go on when it is back ----
new drain
must 0 on_hosts --tasks 2
wait_for '[ -e "$out/manifest.db.claim" ]'
node=$(sinfo --noheader --format=%n)
scontrol update NodeName="$node" State=DRAIN Reason=test || fail drain
wait_for 'squeue --noheader --states=PENDING --format="%k %r" | grep -qE "^kiln .*(ReqNodeNotAvail|Resources|Priority|DRAIN)"'
must 0 on_hosts --status; says 'PENDING .* of import'
scontrol update NodeName="$node" State=RESUME || fail resume
must 0 on_hosts --wait
finished

# ---- the controller is killed and comes back, having lost its last seconds: cancelled, and gone on with ----
new controller
echo hang >"$out/fault-tiles-1-1"
must 0 on_hosts --tasks 2
wait_for '[ "$(ls "$out/slurm/parts" | grep -c "tiles-$(key 1)-.*part$")" = 1 ]'
kill -KILL "$slurm_controller_pid"
wait "$slurm_controller_pid" 2>/dev/null
slurm_controller_start
wait_for 'scontrol ping 2>/dev/null | grep -q UP'
must 0 on_hosts --cancel
# An id may be given again to which a task still runs: then Slurm also drains the node ("Duplicate jobid"), which an administrator resumes.
while sleep 1; do
    case $(sinfo --noheader --format=%T) in drain*) scontrol update NodeName="$node" State=RESUME; slurm_hurry ;; esac
done &
resuming=$!
must 0 on_hosts --wait
kill $resuming
finished
slurm_stop
