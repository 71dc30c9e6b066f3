#!/bin/bash
# Bakes of kiln slurm on a real slurmctld and slurmd, with the real stages. At random moments a process of a job is killed (the
# job's, in which its stages run, or a worker), a job is put back into the queue, or one of another partition takes its place
# (slurm_killer.py). The chain ends by itself, or --status says what became of its last job and the same command goes on. Each
# bake has the digest of a bake at home and leaves nothing behind. A host so busy that Slurm cannot start a job on it has the
# job held; the same command releases it.
# SLURM_KILLS=n: kills, to which requeues and preemptions come. SEED=n: other moments. SCENE=dir: another scene. SLURM_WORDS:
# more words for kiln slurm.
# time-limit: 7200
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
[ -n "${SCENE:-}" ] || { SCENE=$KILN_TMP/s; scene "$SCENE" 6000 4 96x64; }
options=(--max 512 --devices cpu --threads 1)
must 0 "$KILN_BIN/kiln" pipeline "$SCENE" --out "$KILN_TMP/home" "${options[@]}"
digest "$KILN_TMP/home/manifest.db" >"$KILN_TMP/home.digest"
export XDG_STATE_HOME=$KILN_TMP/state
# A host that other work keeps busy is not down.
slurm_start "$KILN_TMP/cluster" SlurmdTimeout=300 MaxArraySize=4 PreemptType=preempt/partition_prio PreemptMode=REQUEUE \
    'PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE MaxTime=INFINITE State=UP' \
    'PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP'
wanted=${SLURM_KILLS:-200} bakes=0 alone=0 again=0 held=0 parts=0
events=$KILN_TMP/events # a line each
: >"$events"
# shellcheck disable=SC2086 # words
on_hosts() { "$KILN_BIN/kiln" slurm "$SCENE" --out "$out" "${options[@]}" ${SLURM_WORDS:-} "$@"; }
says() {
    grep -qE -- "$1" "$KILN_TMP/out" "$KILN_TMP/err" && return
    cat "$KILN_TMP/out" "$KILN_TMP/err" >&2
    fail "nothing says '$1'"
}
of_bake() { squeue --noheader --states="$1" --array --format='%i %k' | awk '$2 == "kiln" { print $1 }'; }
count() { grep -cxE "$1" "$events"; }
kills() { count 'job|worker'; }
told() {
    echo "$(kills) kills ($(count job) of jobs, $(count worker) of workers)," \
        "$(count requeue) requeues, $(count preempt) preemptions in $bakes bakes"
}
python3 tests/soak/slurm_killer.py "$KILN_BIN/kiln" "$KILN_TMP/bake-" "$events" "$wanted" "${SEED:-7}" $$ &
killer=$!
at_exit 'kill $killer 2>/dev/null; slurm_stop' # which waits for all that was started here
while [ "$(kills)" -lt "$wanted" ]; do
    out=$KILN_TMP/bake-$((++bakes)) before=$again ended=
    must 0 on_hosts --tasks 3 --sbatch=--partition=low
    for _ in $(seq 5000); do
        sleep 0.3
        ! squeue --noheader --states=PENDING --format=%r | grep -q '^BeginTime' || slurm_hurry
        if squeue --noheader --states=PENDING --format=%r | grep -qE '^launch.failed.requeued.held'; then
            must 0 on_hosts --status; says '^Slurm holds jobs that it could not start; run the same kiln slurm to release them'
            held=$((held + 1)) again=$((again + 1))
            must 75 on_hosts; says 'could not start job .* and held it; the job is released'
        fi
        [ -z "$(of_bake PENDING,RUNNING,COMPLETING,REQUEUED)" ] || continue
        must 0 on_hosts --status
        ! grep -q '^finished$' "$KILN_TMP/out" || { ended=yes; break; }
        grep -q '^no job is left' "$KILN_TMP/out" || continue # squeue did not answer
        # The job between two rounds was killed: that is said, and what to do.
        says '^no job is left.*(same kiln slurm|job [0-9]+ .*(nothing says why|unknown|cancelled)|ended with exit code|was killed)'
        again=$((again + 1))
        must 0 on_hosts
    done
    [ -n "$ended" ] || fail "bake $bakes has not ended: $(on_hosts --status)"
    [ $again != "$before" ] || alone=$((alone + 1))
    digest "$out/manifest.db" | diff "$KILN_TMP/home.digest" - >&2 || fail "bake $bakes has other digests"
    must 0 "$KILN_BIN/kiln" verify "$out/manifest.db"
    for made in renders export; do diff -r "$KILN_TMP/home/$made" "$out/$made" >&2 || fail "bake $bakes: $made differ"; done
    left=$(ls "$out" | grep -vxE 'manifest\.db|renders|export|report\.html|slurm')$(find "$out/slurm/parts" -type f)
    [ -z "$left" ] || fail "bake $bakes left: $left"
    parts=$((parts + $(cat "$out"/slurm/logs-*/*-tasks-*.log | grep -c ': part [0-9]* of ')))
    for chain in "$out"/slurm/logs-*; do
        [ "$(grep -l 'the bake is finished' "$chain"/*-round-*.log | wc -l)" -le 1 ] || fail "two chains: $chain"
    done
    echo "$(date +%T) $(told); the same command $again times" >&2
    rm -r "$out"
done
echo "$(told), each with the same digests; $parts parts made; $alone ended by themselves," \
    "$again times the same command went on, $held of them for jobs that Slurm held"
slurm_stop
