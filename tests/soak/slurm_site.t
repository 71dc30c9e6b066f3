#!/bin/bash
# kiln slurm as a site has it, on a real slurmctld and slurmd with a stand-in for the stages: two partitions, of which jobs of one are
# preempted by those of the other; a user who is not root; more tasks than MaxArraySize; a time limit that a round's job reaches; a mail
# at the end. Each case has a name.
# time-limit: 3000
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
. tests/e2e/slurm_jobs.sh
# What Slurm calls for a mail: -s SUBJECT ADDRESS
cat >"$KILN_TMP/mail" <<E1
#!/bin/sh
cat >/dev/null
echo "\$3: \$2" >>'$KILN_TMP/mails'
E1
chmod 755 "$KILN_TMP" "$KILN_TMP/mail"
: >"$KILN_TMP/mails"
chmod 666 "$KILN_TMP/mails"
jobs_start MaxArraySize=4 "MailProg=$KILN_TMP/mail" PreemptType=preempt/partition_prio PreemptMode=REQUEUE \
    'PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE MaxTime=INFINITE State=UP' \
    'PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP'
partition_of() { squeue --noheader --states=all --format='%P %k' | awk -v kind="$1" '$3 == kind { print $1 }' | sort -u | paste -sd ' '; }
# passed CASE: with its jobs by their logs and, of a whole bake, a sum of what it holds
passed() {
    echo "ok: $1: $(logs '*-round-*.log' | wc -l) jobs of rounds, $(logs '*-tasks-*.log' | wc -l) of tasks," \
        "$(sort "$out/computed" 2>/dev/null | cut -d ' ' -f 1-3 | uniq | wc -l) units, $(sort "$out/manifest.db" | sha256sum | cut -c 1-16)"
}
mails() { cut -d : -f 1,2- "$KILN_TMP/mails"; }

# ---- two partitions, more tasks than MaxArraySize, some at a time, one mail ----
new partitions
must 0 on_hosts --tasks 7 --concurrent 2 --sbatch-task='--partition=high --gres=gpu:1' --sbatch-round=--partition=low --mail it@site.example --wait
[ "$(partition_of task)/$(partition_of round)" = high/low ] || fail "partitions: $(partition_of task)/$(partition_of round)"
finished
[ "$(find "$out/slurm" -name 'tiles-tasks-*.log' | wc -l)" = 14 ] || fail "logs: $(ls "$out/slurm"/logs-*)"
wait_for '[ -s "$KILN_TMP/mails" ]'
sleep 1
[ "$(wc -l <"$KILN_TMP/mails")" = 1 ] && grep -q "^it@site.example: .*kiln: $out is finished Ended" "$KILN_TMP/mails" || fail "mails: $(mails)"
: >"$KILN_TMP/mails"
passed partitions

# ---- a bake that fails has one mail, too ----
new failing
echo 3 >"$out/fault-tiles-1-0"
must 3 on_hosts --tasks 2 --mail it@site.example --wait; says 'kiln-tiles ended with exit code 3: tiles is told to fail'
wait_for '[ -s "$KILN_TMP/mails" ]'
sleep 1
[ "$(wc -l <"$KILN_TMP/mails")" = 1 ] && grep -q '^it@site.example: .*kiln-.*-round Failed' "$KILN_TMP/mails" || fail "mails: $(mails)"
passed failing

# ---- a job of another partition takes the place of a task and of a round's job: the bake goes on by itself ----
for place in 1-2 2-0; do
    new "preempted-$place"
    echo hang >"$out/fault-tiles-$place"
    must 0 on_hosts --tasks 2 --sbatch=--partition=low
    on_hosts --wait >"$KILN_TMP/waited" 2>&1 &
    waiting=$!
    wait_for '[ ! -e "$out/fault-tiles-$place" ]'
    other=$(sbatch --parsable --partition=high --cpus-per-task=4 --output=/dev/null --wrap='sleep 2') || fail sbatch
    wait_for 'squeue --noheader --states=PENDING --format="%k %r" | grep -q "^kiln .*BeginTime"'
    must 75 on_hosts; says 'jobs of this bake have not ended'
    must 0 on_hosts --status; says 'PENDING (task|round) of tiles'
    wait_for '[ -z "$(squeue --noheader --jobs="$other" 2>/dev/null)" ]'
    slurm_hurry
    wait $waiting || fail "--wait: $(cat "$KILN_TMP/waited")"
    finished
    passed "preempted-$place"
done

# ---- a user who is not root ----
if command -v setpriv >/dev/null && setpriv --reuid=nobody --clear-groups test -x "$KILN_TMP/bin/kiln" -a -r "$KILN_BIN/kiln"; then
    new nobody
    mkdir -p "$KILN_TMP/state.nobody"
    chown nobody "$out" "$KILN_TMP/state.nobody"
    as_nobody() { XDG_STATE_HOME=$KILN_TMP/state.nobody HOME=$KILN_TMP/state.nobody setpriv --reuid=nobody --clear-groups "$KILN_TMP/bin/kiln" slurm "a scene" --out "$out" \
        --stages import,tiles,export --allow-partial --scratch-dir "it's here" "$@"; }
    must 0 as_nobody --tasks 3 --wait
    [ "$(stat -c %U "$out/manifest.db")" = nobody ] || fail "the bake belongs to $(stat -c %U "$out/manifest.db")"
    must 0 as_nobody --status; says '^finished$'
    finished
    passed nobody
else
    echo 'not tried: a user who is not root, who cannot read the programs here'
fi

# ---- the time limit of a round's job (Slurm counts in minutes) ----
new limit
echo hang >"$out/fault-tiles-1-0"
must 0 on_hosts --tasks 2 --sbatch-round=--time=1
wait_for '[ ! -e "$out/fault-tiles-1-0" ]'
for _ in $(seq 200); do [ -n "$(squeue --noheader --states=PENDING,RUNNING,COMPLETING --format=%i)" ] || break; sleep 1; done
must 0 on_hosts --status; says 'killed at its time limit .1:00.; give it more with --time'
must 0 on_hosts --sbatch-round=' ' --wait
finished
passed limit
slurm_stop
