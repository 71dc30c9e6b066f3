#!/bin/bash
# What kiln slurm refuses before anything is submitted, with stand-ins for Slurm: what a job would find after it has waited in the
# queue, and options and variables that would break the chain of jobs.
. tests/e2e/lib.sh
. "${0%/*}/slurm_fake.sh"
slurm_fake "$KILN_TMP"
export PATH=$KILN_TMP/bin:$PATH XDG_STATE_HOME=$KILN_TMP/state
cd "$KILN_TMP" || fail "cd"
scene s 300 2 32x32
# refused WHAT CODE PATTERN command...: a case of that name: it ends so, says so, and has submitted nothing
refused() {
    local what=$1 want=$2 pattern=$3; shift 3
    test_case "$what" && (
        rm -f ids
        timeout 60 "$@" >out 2>err </dev/null && code=0 || code=$?
        [ $code = "$want" ] && grep -qE -- "$pattern" err && [ ! -e ids ] ||
            fail "exit $code, $(cat ids 2>/dev/null || echo no) job submitted: $(tail -n 2 err)"
    ); result
}
submitted() { # WHAT command...: a case of that name
    local what=$1; shift
    test_step "$what" && (
        rm -f ids
        timeout 60 "$@" >out 2>err </dev/null && [ "$(cat ids)" = 1 ] || fail "nothing was submitted: $(tail -n 2 err)"
    ); result
}
slurm() { "$KILN_BIN/kiln" slurm s "$@"; }
export -f slurm

# ---- a network file system ----
on_network() { KILN_NETWORK_FS=$KILN_TMP "$KILN_BIN/kiln" slurm s "$@"; }
export -f on_network
export KILN_TMP KILN_BIN
refused 'no --scratch-dir on a network file system' 2 'network file system.*--scratch-dir' bash -c on_network
refused 'nor with it for one stage alone' 2 'network file system.*of knn work|of import work' bash -c \
    'on_network --tiles-scratch-dir=/tmp'
submitted 'with --scratch-dir' bash -c 'on_network --scratch-dir=/tmp'
submitted 'with --allow-network-fs' bash -c 'on_network --allow-network-fs'
submitted 'on a local disk' bash -c slurm
mkdir -p e/bake && : >e/bake/manifest.db
submitted 'a stage that has no rounds' env KILN_NETWORK_FS="$KILN_TMP" "$KILN_BIN/kiln" slurm e --stages export

# ---- options of sbatch ----
for word in --array=0-3 '-a 0-3' --wait -W --wrap=true --hold --test-only --chdir=/ --parsable --signal=B:1 --export=NONE \
    --output=x --error=x \
    --job-name=x --dependency=1 --arr=1 --clusters=all -Mall --export-file=x '--exclusive : --mem=1' script; do
    refused "--sbatch='$word'" 2 '--sbatch: ' "$KILN_BIN/kiln" slurm s --sbatch="--time=1 $word"
done
refused 'a command in --sbatch' 2 'is not expanded' "$KILN_BIN/kiln" slurm s --sbatch='--comment=$(touch PWNED)'

test_case 'a command in --sbatch does not run' && (
    [ ! -e PWNED ] || fail 'it ran'
); result

submitted 'words that sh would take for its own' "$KILN_BIN/kiln" slurm s --sbatch='--constraint="a&b" --exclude=n[1-2]'

test_case 'words of --sbatch reach the job' && (
    grep -qx -- '--constraint=a&b' job.1 && grep -qx -- '--exclude=n\[1-2\]' job.1 || fail "the words of sbatch are $(cat job.1)"
); result

# ---- variables ----
SBATCH_ARRAY_INX=0-3 SBATCH_WAIT=1 SBATCH_EXPORT=NONE SBATCH_OUTPUT=x SQUEUE_STATES=RUNNING SQUEUE_PARTITION=none \
    SQUEUE_USERS=nobody \
    SLURM_RESTART_COUNT=3 SLURM_JOB_ID=7 CUDA_VISIBLE_DEVICES=2 SBATCH_PARTITION=gpu SBATCH_ACCOUNT=me SBATCH_QOS=low \
    SBATCH_TIMELIMIT=9 \
    SLURM_CONF=/etc/it submitted 'variables of sbatch and squeue' "$KILN_BIN/kiln" slurm s

test_case 'variables that reach Slurm, and those that do not' && (
    for name in SBATCH_ARRAY_INX SBATCH_WAIT SBATCH_EXPORT SBATCH_OUTPUT SQUEUE_STATES SQUEUE_PARTITION SQUEUE_USERS \
        SLURM_RESTART_COUNT \
        SLURM_JOB_ID CUDA_VISIBLE_DEVICES; do
        ! grep -q "^$name=" environment.1 environment.squeue || fail "$name reaches Slurm"
    done
    for name in SBATCH_PARTITION=gpu SBATCH_ACCOUNT=me SBATCH_QOS=low SBATCH_TIMELIMIT=9 SLURM_CONF=/etc/it; do
        grep -qx "$name" environment.1 || fail "$name does not reach Slurm"
    done
); result

# ---- one chain ----
submitted 'a first call' "$KILN_BIN/kiln" slurm s
cp job.1 job.first
submitted 'a second one, which finds no job' "$KILN_BIN/kiln" slurm s

test_case "the first call's job begins no second chain" && (
    echo first >ids
    slurm_fake_words
    must 0 sh "${words[@]}"
    grep -q 'a later kiln slurm has started again' out && [ ! -e s/bake/manifest.db ] ||
        fail "the first call's job begins a second chain: $(cat out)"
); result

# ---- jobs that will run again ----
place=$(cd s/bake/slurm && pwd -P)
for state in PENDING REQUEUED SPECIAL_EXIT RESV_DEL_HOLD; do
    echo "5|$state|BeginTime|kiln round tiles - $place" >queue
    refused "a second kiln slurm while a job is $state" 75 'have not ended .5.' "$KILN_BIN/kiln" slurm s
done
printf '#!/bin/sh\ncat %s; echo "5|PENDING|BeginTime|kiln round tiles - %s" >%s\n' "'$KILN_TMP/queue'" "$place" \
    "'$KILN_TMP/queue'" >bin/squeue
echo "5|COMPLETING|None|kiln round tiles - $place" >queue
refused 'a second kiln slurm while a job that is put back is COMPLETING' 75 'have not ended .5.' "$KILN_BIN/kiln" slurm s
