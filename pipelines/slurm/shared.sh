# shared.sh -- what the scripts of this folder share. Sourced, after OUT/slurm/settings, which slurm.sh has written:
#
#   folder    OUT/slurm, absolute: settings, commands, logs, parts
#   manifest  OUT/manifest.db
#   kiln      the front command
#   tasks     how many tasks a round is cut into
#   sbatch_options  words of --sbatch, quoted for a shell
#   tmpdir    TMPDIR where kiln slurm was called; empty: none
#
# OUT/slurm/commands has a line for each stage: its command, quoted for a shell (`kiln pipeline --print-commands`).
# What is done is asked of the manifest, its claim and the parts. Slurm is asked which jobs have not ended, and nothing else.
set -u
TRIES=2     # how often the tasks of a round are submitted; after that the round's own job computes what is missing
RESTARTS=20 # how often a job that found the manifest busy is put back into the queue, 120 s each
RELEASES=20 # how often --wait lets jobs try again that Slurm could not start

say() { echo "kiln slurm: $*"; }
fail() { # CODE sentence
    code=$1; shift
    echo "kiln slurm: $*" >&2
    exit "$code"
}
quote() { # words, for a shell
    for word; do printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"; done
}

# Runs a command of Slurm. While the controller does not answer (it may be starting again just now), tries for two minutes; what
# the controller refuses is said and fails at once.
patiently() {
    pause=1
    until { complaint=$("$@" 2>&1 >&5); } 5>&1; do
        printf '%s\n' "$complaint" >&2
        [ $pause -le 64 ] || return 1
        printf '%s\n' "$complaint" | grep -qiE 'contact|timed out|connect|temporarily' || return 1
        echo "kiln slurm: $1 tries again in $pause s" >&2
        sleep $pause
        pause=$((pause * 2))
    done
    [ -z "$complaint" ] || printf '%s\n' "$complaint" >&2
}

# ---- the manifest's claim and the parts: what is done -----------------------------------------------------------------

# Reads the claim that a plan has left: sets claim_stage, key and n. Fails where there is none.
read_claim() {
    claim_stage='' key='' n=''
    [ -e "$manifest.claim" ] || return 1
    claim_stage=$(claim_value stage) key=$(claim_value plan) n=$(claim_value tasks)
    [ -n "$claim_stage" ] && [ -n "$key" ] && [ -n "$n" ] && [ "$(tail -n 1 "$manifest.claim")" = end ] ||
        fail 74 "'$manifest.claim' is no claim"
}
claim_value() { sed -n "s/^$1 //p" "$manifest.claim"; } # a word and its value are a line (schema/claim.h)

command_of() { grep -E "^'([^']|'\\\\'')*/kiln-$1' " "$folder/commands"; } # a stage's line

# The command that gives up the claim that read_claim has read.
break_command() {
    scene=''
    if [ "$claim_stage" = import ]; then
        eval "set -- $(command_of import)"
        scene=$(quote "${2:-SCENE}")
    fi
    echo "kiln $claim_stage $scene$(quote "$manifest")--break-claim"
}

# The numbers of the tasks of the claimed round that have left no part, a line each.
missing_tasks() {
    i=1
    while [ "$i" -le "$n" ]; do
        [ -e "$folder/parts/$claim_stage-$key-$i-of-$n.part" ] || echo "$i"
        i=$((i + 1))
    done
}

# ---- jobs -------------------------------------------------------------------------------------------------------------

# A line for each job of this bake that has not ended: id, state, "round" or "task", stage, the plan's key or "-", Slurm's reason why
# it does not run, with _ for blanks. A job is known by its comment, which names the bake.
jobs_now() {
    answer=$(patiently squeue --noheader --array --user="$(id -u)" --format='%i|%T|%r|%k') || return 1
    printf '%s\n' "$answer" | KILN_FOLDER=$folder awk -F '|' '
        {
            comment = $0
            sub(/^[^|]*[|][^|]*[|][^|]*[|]/, "", comment)
            sub(/ +$/, "", comment)
            split(comment, word, " ")
            if (word[1] != "kiln" || $2 == "COMPLETING") next
            place = comment
            sub(/^kiln [^ ]+ [^ ]+ [^ ]+ /, "", place)
            gsub(/ /, "_", $3)
            if (place == ENVIRON["KILN_FOLDER"]) print $1, $2, word[2], word[3], word[4], $3
        }'
}

# Of these jobs those that Slurm holds for ever, because no node could start them: after a controller has lost what it knew, for
# example, two jobs may have one id.
HELD='launch_failed_requeued_held'
held_jobs() { printf '%s\n' "$1" | awk -v held=$HELD '$6 == held { print $1 }'; }

# submit KIND STAGE KEY WORD...: prints the job's id. The words are options of sbatch, a script and its arguments. What the user gave
# with --sbatch comes first, so that it cannot replace what these scripts need. A job that submits another one keeps
# its own memory, GPUs and restarts to itself.
submit() {
    kind=$1 stage=$2 submit_key=$3; shift 3
    logs=$(printf '%s' "$folder" | sed 's/%/%%/g')
    case $kind in task) log=$logs/$stage-tasks-%A_%a.log ;; *) log=$logs/$stage-round-%j.log ;; esac
    (
        for name in $(env | sed -n 's/^\(SLURM_[A-Z0-9_]*\)=.*/\1/p') CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ROCR_VISIBLE_DEVICES; do
            [ "$name" = SLURM_CONF ] || unset "$name"
        done
        if [ -n "$tmpdir" ]; then export TMPDIR="$tmpdir"; else unset TMPDIR; fi
        eval "patiently sbatch $sbatch_options"' --parsable --requeue --open-mode=append --job-name="kiln-$stage-$kind" --output="$log" \
            --error="$log" --comment="kiln $kind $stage $submit_key $folder" "$@"'
    ) | sed 's/;.*//' | grep .
}

# Submits the tasks whose numbers are on stdin, as arrays that the cluster accepts (MaxArraySize is one more than the highest index):
# task = index + offset. Prints the arrays' ids with colons between.
submit_tasks() {
    most=$(patiently scontrol show config | sed -n 's/^MaxArraySize *= *\([0-9]*\).*/\1/p')
    [ "${most:-0}" -gt 1 ] || fail 74 "this cluster has no job arrays (MaxArraySize is ${most:-not known})"
    awk -v most=$((most - 1)) '
        function flush() { if (n) print offset, list (first < last ? "-" last : ""); n = 0 }
        {
            o = int(($1 - 1) / most) * most; i = $1 - o
            if (n && o == offset && i == last + 1) { last = i; next }
            if (n && o == offset) list = list (first < last ? "-" last : "") "," i
            else { flush(); offset = o; list = i; n = 1 }
            first = last = i
        }
        END { flush() }' >"$folder/arrays"
    ids=
    while read -r offset list <&4; do
        id=$(submit task "$claim_stage" "$key" --array="$list" "$scripts/task.sh" "$folder" "$claim_stage" "$key" "$n" "$offset") || return 1
        ids=$ids:$id
    done 4<"$folder/arrays"
    rm -f "$folder/arrays"
    echo "${ids#:}"
}

# The manifest is held by another process: this job goes back into the queue. Does not return.
requeue() {
    [ "${SLURM_RESTART_COUNT:-0}" -lt $RESTARTS ] || fail 75 "the manifest was busy $RESTARTS times"
    id=$SLURM_JOB_ID
    [ -z "${SLURM_ARRAY_JOB_ID:-}" ] || id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    say "the manifest is busy, so this job goes back into the queue"
    patiently scontrol requeue "$id" || exit 75
    sleep 300 # Slurm ends this process
    exit 75
}
