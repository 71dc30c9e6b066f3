#!/bin/sh
# task.sh FOLDER STAGE KEY N OFFSET -- one task of an array: computes its part of what the plan KEY shares out, into FOLDER/parts.
# Ends with the program's exit code. Killed, it leaves nothing; a part that is there is whole.
. "$1/settings"
. "$scripts/shared.sh"
stage=$2 wanted=$3 tasks_of_plan=$4
task=$((SLURM_ARRAY_TASK_ID + $5))

# Somebody may have finished the round meanwhile.
if ! read_claim || [ "$claim_stage $key $n" != "$stage $wanted $tasks_of_plan" ]; then
    say "the round of $stage that this task belongs to is over"
    exit 0
fi
while IFS= read -r line <&3; do
    eval "set -- $line"
    [ "${1##*/kiln-}" = "$stage" ] || continue
    "$@" --shard "$task/$n" --part "$folder/parts"
    code=$?
    [ $code -ne 75 ] || requeue
    exit $code
done 3<"$folder/commands"
fail 70 "there is no command of $stage in '$folder/commands'"
