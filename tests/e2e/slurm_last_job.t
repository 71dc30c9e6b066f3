#!/bin/bash
# A round's job that dies writes nothing and has no successor: kiln slurm says what became of it, by the note with which it began,
# its log, and Slurm while it knows the job. Slurm and the stages are stand-ins; soak/slurm_site.t has a real time limit.
. tests/e2e/lib.sh
. tests/e2e/slurm_fake.sh
. tests/e2e/slurm_jobs.sh
slurm_fake "$KILN_TMP/fake"
export PATH=$KILN_TMP/fake/bin:$PATH
jobs_place
fake=$KILN_TMP/fake
echo '1:00:00|4G' >"$fake/limits"

# begin_job NAME: a bake whose first job is at work in its plan, as Slurm would run it: $job is its group, $log its log
begin_job() {
    new "$1"
    rm -f "$fake/ids" "$fake/queue"
    echo hang >"$out/fault-import-1-0"
    must 0 on_hosts --tasks 2
    slurm_fake_words
    log=$(sed -n 's/^--output=//p' "$fake/job.1" | sed 's/%j/1/')
    SLURM_JOB_ID=1 setsid sh "${words[@]}" >>"$log" 2>&1 </dev/null &
    job=$!
    wait_for '[ ! -e "$out/fault-import-1-0" ]'
}
die() { kill -KILL -- "-$job"; wait "$job" 2>/dev/null || :; }
chain() { cat "$out/slurm/chain"; }
# status PATTERN
status() { must 0 on_hosts --status; says "^no job is left, but the bake is not finished: job $1; see $out/slurm$"; }

test_case 'the log says that it was killed at its time limit' && (
    begin_job time
    grep -qE '^kiln slurm: job 1 on [^ ]+, 20[^ ]+Z, [0-9]+ CPUs$' "$log" ||
        fail "the log does not begin with where and when: $(cat "$log")"
    die
    echo 'slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-29T15:00:00 DUE TO TIME LIMIT ***' >>"$log"
    status '1 on [^ ]+ since 20[^ ]+Z was killed at its time limit .1:00:00.; give it more with --time .*'
    must 74 on_hosts --wait --tasks 2; says 'the last call did not finish: job 1 .*time limit .1:00:00.'
); result

test_case 'the log says that it was killed for its memory' && (
    begin_job memory
    die
    echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. Some of the step tasks have been OOM Killed.' >>"$log"
    status '1 .* took more memory than Slurm gave it .4G.; give it more with --mem .*'
); result

test_case 'the log of an earlier run, which was put back into the queue' && (
    begin_job again # of an earlier run, which was put back into the queue
    sed -i '1i slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-29T15:00:00 DUE TO PREEMPTION ***' "$log"
    die
    status '1 .* for a reason that Slurm has forgotten; run the same kiln slurm to continue'
); result

test_case 'a stage does not speak for Slurm' && (
    begin_job pretended # a stage does not speak for Slurm
    die
    echo 'kiln-import: slurmstepd: error: DUE TO TIME LIMIT' >>"$log"
    status '1 .* for a reason that Slurm has forgotten; .*'
); result

test_case 'Slurm says that its node was lost' && (
    begin_job node
    die
    echo "1|NODE_FAIL|None|kiln round import - $(chain) $out/slurm" >"$fake/queue"
    status '1 .* was lost with its node; run the same kiln slurm to continue'
    echo "9|CANCELLED|None|kiln round tiles - $(chain) $out/slurm" >>"$fake/queue"
    status '9 was cancelled; run the same kiln slurm to continue' # it had not begun
); result

test_case 'Slurm says that it failed' && (
    begin_job failed
    die
    echo "1|FAILED|NonZeroExitCode|kiln round import - $(chain) $out/slurm" >"$fake/queue"
    status '1 .* ended as FAILED for an unknown reason; run the same kiln slurm to continue'
); result

test_case 'it has time to say it itself' && (
    begin_job asked
    echo 'slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-29T15:00:00 DUE TO TIME LIMIT ***' >>"$log"
    kill -TERM "$job"
    wait "$job" && code=0 || code=$?
    [ $code = 143 ] || fail "a job that is asked to end: $(cat "$log")"
    must 0 on_hosts --status
    says '^no job is left: kiln-import ended with exit code 143, because its job was killed at its time limit .1:00:00.; give it more .*'
); result

test_case 'tasks that died' && (
    new tasks
    rm -f "$fake/ids" "$fake/queue"
    must 0 on_hosts --tasks 2
    slurm_fake_words
    SLURM_JOB_ID=1 must 0 sh "${words[@]}" # plans import, and submits its tasks and the next round's job
    [ "$(cat "$fake/ids")" = 3 ] || fail "jobs: $(cat "$fake/ids")"
    slurm_fake_words
    logs=$(echo "$out"/slurm/logs-*)
    echo 'slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT 2026-11-29T15:00:00 DUE TO TIME LIMIT ***' >"$logs/import-tasks-2_1.log"
    echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=2.batch.' >"$logs/import-tasks-2_2.log"
    SLURM_JOB_ID=3 must 0 sh "${words[@]}"
    says '2 tasks of import have left no part; of its jobs, 1 was killed at the time limit and 1 for its memory'
    must 0 on_hosts --status; says '^2 tasks of import have left no part; of its jobs, 1 was killed at the time limit'
); result

test_case 'a job that is put back into the queue after it has submitted the next one' && (
    new followed
    rm -f "$fake/ids" "$fake/queue"
    must 0 on_hosts --tasks 2
    slurm_fake_words
    for queue in "1|RUNNING|None|kiln round tiles - $(chain)" "3|COMPLETING|None|kiln round tiles - $(chain)" \
        "3|PENDING|None|kiln task tiles - $(chain)" \
        "3|PENDING|None|kiln round tiles - another" "4|PENDING|Dependency|kiln round tiles - $(chain)"; do
        echo "$queue $out/slurm" >"$fake/queue"
        SLURM_JOB_ID=2 must 0 sh "${words[@]}"
        rm -f "$fake/queue"
        case $queue in 4*) says 'job 4 continues this bake, so this one does nothing' ;; *) says 'import: 2 tasks, array' ;; esac
    done
); result

test_step 'what a stage said last' && (
    new said
    rm -f "$fake/ids" "$fake/queue"
    echo 3 >"$out/fault-import-1-0"
    must 0 on_hosts
    slurm_fake_words
    echo 'kiln-import: of an earlier run' >"$KILN_TMP/log"
    SLURM_JOB_ID=1 must 3 sh -c '"$@" 2>>"$KILN_TMP/log"' sh sh "${words[@]}"
    must 0 on_hosts --status
    says '^no job is left: kiln-import ended with exit code 3: import is told to fail; run the same kiln slurm'
); result

test_case 'a note that somebody else has made' && (
    new hostile
    rm -f "$fake/ids" "$fake/queue"
    must 0 on_hosts
    printf '1 \033[2J$(touch PWNED) %%s%%n x y z\n' >"$out/slurm/begun"
    must 0 on_hosts --status
    ! grep -q "$(printf '\033')" "$KILN_TMP/out" "$KILN_TMP/err" && [ ! -e PWNED ] || fail "the note begun: $(cat "$KILN_TMP/out")"
); result

test_case 'the controller is down: what the manifest and the parts say is there at once' && (
    printf '#!/bin/sh\necho "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2\nexit 1\n' \
        >"$fake/bin/squeue"
    out=$KILN_TMP/said
    claim tiles 1 4 >"$out/manifest.db.claim"
    : >"$out/manifest.db"
    must 124 timeout 4 "$KILN_TMP/bin/kiln" slurm "a scene" --out "$out" --stages import,tiles,export --status
    says '^tiles +a round is open: 0 of 4 parts exist, missing: 1-4$'
    says 'squeue tries again in'
); result
