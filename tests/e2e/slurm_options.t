#!/bin/bash
# What a user and an admin set for the jobs of kiln slurm: options of sbatch for each kind of job, how many tasks run at a time, a
# wrapper, a file that is sourced, a mail at the end; what the next call remembers of them; --status for programs; and what a
# finished bake ends with: its report, and cameras that were not measured. Slurm is a stand-in that runs one job after the other.
. tests/e2e/lib.sh
. tests/e2e/slurm_fake.sh
. tests/e2e/slurm_jobs.sh
fake=$KILN_TMP/fake
slurm_fake "$fake"
export PATH=$fake/bin:$PATH
echo '1:00:00|4G' >"$fake/limits"
jobs_place
json() { python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), d' "$KILN_TMP/out" "$1" || fail "$1"; }
has() { grep -qxe "$2" "$fake/job.$1" || fail "job $1 has no $2: $(cat "$fake/job.$1")"; }
# lacks ID PATTERN: as an option of sbatch
lacks() { ! sed '/^[^-]/q' "$fake/job.$1" | grep -qe "$2" || fail "job $1 has $2: $(cat "$fake/job.$1")"; }

# ---- each kind of job has options of its own, behind those of all ----
cat >"$KILN_TMP/wrap" <<E1
#!/bin/sh
echo "\$SETUP \$*" >>'$KILN_TMP/wrapped'
shift
exec "\$@"
E1
chmod +x "$KILN_TMP/wrap"
echo 'SETUP=loaded; export SETUP' >"$KILN_TMP/it's setup"
echo 4 >"$fake/max"
new set
on_these() { must "$1" on_hosts "${@:2}"; }
on_these 0 --tasks 5 --concurrent 2 --sbatch='--account=a' --sbatch-task='--gres=gpu:1 --time=9' --sbatch-round=--partition=cpu \
    --wrapper="$KILN_TMP/wrap --nv" --setup "it's setup" --mail me@example.org

test_case '--status --json before the first job' && (
    must 0 on_hosts --status --json
    json 'd["version"] == 1 and d["folder"].endswith("/set/slurm") and d["ended"] is None and d["round"] is None and d["jobs"] == []'
); result

slurm_fake_words
SLURM_JOB_ID=1 must 0 sh "${words[@]}"

test_case 'each kind of job has options of its own, behind those of all' && (
    has 1 --account=a; has 1 --partition=cpu; has 1 --mail-type=FAIL; has 1 --mail-user=me@example.org; lacks 1 --gres
    # 5 tasks with an index below 4: two arrays, the second behind the first, so that no more than 2 run
    has 2 --array=1-3%2; has 3 --array=1-2%2; has 3 --dependency=afterany:2; has 4 --dependency=afterany:2:3
    has 2 --gres=gpu:1; has 2 --account=a; lacks 2 --partition; lacks 2 --mail; lacks 4 --gres
); result

test_case '--status --json of an open round' && (
    must 0 on_hosts --status --json
    json 'd["round"]["stage"] == "import" and d["round"]["missing"] == [1, 2, 3, 4, 5] and d["round"]["due"] == 10 and d["chain"]'
); result

slurm_fake_run 2

test_case 'the wrapper is around every job' && (
    finished
    grep -q "^loaded --nv $KILN_TMP/bin/kiln-import a scene .*--plan" wrapped || fail "no wrapper: $(cat wrapped)"
    grep -q "^loaded --nv $KILN_TMP/bin/kiln-tiles .*--shard 3/5" wrapped || fail "no wrapper around a task: $(cat wrapped)"
); result

test_case 'one mail at the end' && (
    last=$(cat "$fake/ids")
    has "$last" --mail-type=END; has "$last" --mail-user=me@example.org; has "$last" "--job-name=kiln: $out is finished"
    has "$last" --partition=cpu
    [ "$(grep -lx -- --mail-type=END "$fake"/job.* | wc -l)" = 1 ] || fail "not one mail"
); result

test_case '--status --json of a finished bake' && (
    must 0 on_hosts --status --json
    json 'd["ended"] == {"code": 0, "stage": "export", "why": ""} and {s["state"] for s in d["stages"]} == {"fresh"} and d["last_job"] is None'
); result

rm "$fake"/job.* "$fake/ids"

test_step "the next call remembers them, and ' ' takes one away" && (
    on_these 0 --sbatch-round=' ' --mail=' '
    has 1 --account=a; has 1 concurrent=2; has 1 tasks=5; has 1 sbatch-task=--time=9; has 1 wrapper=--nv
    has 1 "setup=$KILN_TMP/it's setup"
    lacks 1 --partition; lacks 1 --mail
); result

test_case 'what is given replaces one' && (
    on_these 0 --concurrent 0
    has 2 concurrent=0
); result

test_case 'options that are refused' && (
    on_these 2 --sbatch-task=--array=1-2; says "--sbatch-task: '--array=1-2' cannot be used"
    on_these 2 --sbatch-round='--wait'; says "--sbatch-round: '--wait' cannot be used"
    on_these 2 --mail 'a b'; says "is not an address"
    on_these 2 --mail=--wrap=x; says "is not an address"
    on_these 3 --setup nowhere; says "cannot find 'nowhere'"
    touch "$out/setup" "a scene/setup"
    on_these 2 --setup "$out/setup"; says 'lies in the scene or in the bake'
    on_these 2 --setup "a scene/setup"; says 'lies in the scene or in the bake'
    on_these 2 --json; says -- '--json needs --status'
); result

test_case 'a wrapper that is not there ends the bake, and says so' && (
    new lacking
    rm "$fake"/job.* "$fake/ids"
    on_these 0 --wrapper=/nowhere/apptainer
    slurm_fake_run || : # as the job ends
    must 0 on_hosts --status; says 'kiln-import ended with exit code 127'
); result

# ---- a bake of real stages ends with its report, and says which cameras were not measured ----
scene s 300 3 32x32
"$KILN_BIN/kiln" pipeline s --out drawn --devices cpu >/dev/null 2>&1 || fail "pipeline"
cp drawn/renders/cam[01].png s/
cd "$KILN_TMP" || fail "cd"
bake_hosts() {
    rm -f "$fake"/job.* "$fake/ids"
    must 0 "$KILN_BIN/kiln" slurm s --out "$@" --devices cpu
    slurm_fake_run
    must 0 "$KILN_BIN/kiln" slurm s --out "$1" --devices cpu --status
}

test_step 'a bake of real stages ends with its report, and says which cameras were not measured' && (
    bake_hosts with --tasks 8
    grep -q '<h2>Cameras</h2>' with/report.html || fail "no report: $(cat with/slurm/logs-*/*round*)"
    says '^finished: 1 of 3 cameras were not measured, 0 of 1 of the test split: 1 have no photo, 0 one that is damaged or gone$'
    # 8 tasks were asked for, and a round has 2 or 3 units
    [ -z "$(find with/slurm -name '*-tasks-*_4.log')" ] || fail "jobs without a unit: $(ls with/slurm/logs-*)"
); result

test_case '--no-report' && (
    bake_hosts without --no-report
    [ ! -e without/report.html ] || fail "a report although --no-report"
); result

test_case '--stages makes no report' && (
    bake_hosts chosen --stages import,knn
    [ ! -e chosen/report.html ] || fail "a report although --stages"
); result

test_case 'the exports are the same' && (
    cmp drawn/export/scene.ply with/export/scene.ply || fail "exports differ"
); result
