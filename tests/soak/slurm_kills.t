#!/bin/bash
# kiln slurm's chain of jobs on a real slurmctld and slurmd, with a stand-in for the stages, while at random moments a job's process is
# killed, a job is put back into the queue, or one of another partition takes its place: the chain ends by itself, or --status says what
# became of its last job and the same command goes on. A host so busy that Slurm cannot start a job on it has the job held; the same command
# releases it. SLURM_KILLS=n SEED=n: more of them, other moments.
# time-limit: 7200
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
. tests/e2e/slurm_jobs.sh
jobs_start MaxArraySize=4 PreemptType=preempt/partition_prio PreemptMode=REQUEUE \
    'PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE MaxTime=INFINITE State=UP' \
    'PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP'
RANDOM=${SEED:-7}
wanted=${SLURM_KILLS:-200} bakes=0 alone=0 again=0 held=0
declare -A events=([kill]=0 [requeue]=0 [preempt]=0)
of_bake() { squeue --noheader --states="$1" --array --format='%i %k' | awk '$2 == "kiln" { print $1 }'; }
any() { shuf -n 1 --random-source=<(yes $RANDOM); }
disturb() {
    local what id pid
    case $((RANDOM % 3)) in
    0)
        pid=$(pgrep -f "^$KILN_TMP/bin/kiln slurm --job" | any)
        [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null && what=kill ;;
    1)
        id=$(of_bake RUNNING | any)
        [ -n "$id" ] && scontrol requeue "$id" 2>/dev/null && what=requeue ;;
    2)
        [ -n "$(of_bake RUNNING)" ] && sbatch --partition=high --cpus-per-task=4 --output=/dev/null --wrap='sleep 0.5' >/dev/null && what=preempt ;;
    esac
    [ -z "${what:-}" ] || events[$what]=$((events[$what] + 1))
    [ -n "${what:-}" ]
}
total() { echo $((events[kill] + events[requeue] + events[preempt])); }
while [ "$(total)" -lt "$wanted" ]; do
    new "bake-$((++bakes))"
    must 0 on_hosts --tasks 3 --sbatch=--partition=low
    for look in $(seq 1000); do
        sleep 0.$((RANDOM % 5 + 2))
        [ "$(total)" -ge "$wanted" ] || [ $((look % 2)) = 0 ] || disturb
        slurm_hurry
        if squeue --noheader --states=PENDING --format=%r | grep -qE '^launch.failed.requeued.held'; then
            must 0 on_hosts --status; says '^Slurm holds jobs that it could not start: the same kiln slurm releases them'
            held=$((held + 1)) again=$((again + 1))
            must 75 on_hosts; says 'could not start job .* and holds it; released'
        fi
        [ -z "$(of_bake PENDING,RUNNING,COMPLETING,REQUEUED)" ] || continue
        must 0 on_hosts --status
        ! grep -q '^finished$' "$KILN_TMP/out" || break
        # The job between two rounds was killed: that is said, and what to do.
        says '^no job is left.*(job [0-9]+ .*(nothing says why|unknown|cancelled|same kiln slurm)|ended with exit code)'
        again=$((again + 1))
        must 0 on_hosts
    done
    ! grep -q . <(of_bake PENDING,RUNNING) || fail "bake $bakes has not ended: $(on_hosts --status)"
    [ $again != "${before:-0}" ] || alone=$((alone + 1))
    before=$again
    [ "$(sort "$out/manifest.db" | grep -vc fresh)" = 30 ] && [ "$(grep -c fresh "$out/manifest.db")" = 3 ] || fail "bake $bakes: $(cat "$out/manifest.db")"
    [ ! -e "$out/manifest.db.claim" ] && [ -z "$(find "$out/slurm/parts" -name '*.part')" ] || fail "left: $(ls "$out" "$out/slurm/parts")"
    for chain in "$out"/slurm/logs-*; do
        [ "$(grep -l 'the bake is finished' "$chain"/*-round-*.log | wc -l)" -le 1 ] || fail "two chains: $chain"
    done
done
echo "${events[kill]} kills, ${events[requeue]} requeues, ${events[preempt]} preemptions in $bakes bakes; $alone ended by themselves, $again times the same command went on, $held of them for jobs that Slurm held"
slurm_stop
