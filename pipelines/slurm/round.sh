#!/bin/sh
# round.sh FOLDER STAGE TRY -- the job between two arrays: gathers the parts of the round that is open, plans what comes next, and
# submits that: an array of tasks and, behind it, this script again. How many rounds a bake has is not known beforehand.
#
#   STAGE  the first stage that may have something to do
#   TRY    how often the tasks of the open round were submitted; 0: no round is known to be open
#
# It may be killed anywhere and started again: what it finds (claim, parts, manifest, jobs that have not ended) says where it was.
. "$1/settings"
. "$scripts/shared.sh"
first=$2 try=$3

finish() { # CODE STAGE: nothing more is submitted
    echo "$1 $2" >"$folder/ended.new" && mv "$folder/ended.new" "$folder/ended"
    [ "$1" -eq 0 ] || say "kiln-$2 ended with exit code $1; the same kiln slurm goes on from there" >&2
    exit "$1"
}

# The round is open: its tasks are submitted, then this script behind them, whatever becomes of them.
go_on() { # TRY
    [ ! -e "$folder/cancelled" ] || finish 143 "$claim_stage"
    ids=$(missing_tasks | submit_tasks) && [ -n "$ids" ] || finish 74 "$claim_stage"
    follow "$1" "$ids"
}
follow() { # TRY IDS
    next=$(submit round "$claim_stage" "$key" --dependency="afterany:$2" "$scripts/round.sh" "$folder" "$first" "$1") || finish 74 "$claim_stage"
    say "$claim_stage: $n tasks, array $2; then job $next"
    [ ! -e "$folder/cancelled" ] || scancel "$next" $(printf '%s' "$2" | tr ':' ' ')
    exit 0
}

# Gathers or plans STAGE, whose command follows; returns when the stage is finished.
advance() {
    stage=$1; shift
    if ! "$1" --help-json | grep -q '"name": "plan"'; then
        "$@" --allow-network-fs # this job is the only one that writes, so only this host does
    elif read_claim && [ "$claim_stage" = "$stage" ]; then
        waiting=$(jobs_now) || finish 74 "$stage"
        waiting=$(printf '%s\n' "$waiting" | awk -v key="$key" '$3 == "task" && $5 == key { sub(/_.*/, "", $1); print $1 }' | sort -u | paste -sd :)
        [ -z "$waiting" ] || follow "$try" "$waiting"
        [ -z "$(missing_tasks)" ] || [ "$try" -ge $TRIES ] || go_on $((try + 1))
        "$@" --gather "$folder/parts" --remove-parts --tasks "$tasks"
    else
        "$@" --plan --tasks "$tasks"
    fi
    code=$?
    case $code in
    0) ;;
    7) case " $* " in *' --allow-partial'*) ;; *) finish 7 "$stage" ;; esac ;;
    75) requeue ;;
    *) finish $code "$stage" ;;
    esac
    if read_claim && [ "$claim_stage" = "$stage" ]; then go_on 1; fi
    try=0
}

# A round that an earlier call has left open keeps every other stage from writing, so it comes first; then all stages are looked at.
if read_claim && [ "$claim_stage" != "$first" ]; then
    line=$(command_of "$claim_stage") || {
        say "a plan of $claim_stage stands, which is none of the stages asked for" >&2
        finish 75 "$claim_stage"
    }
    eval "set -- $line"
    advance "$claim_stage" "$@"
fi
skipping=yes
while IFS= read -r line <&3; do
    eval "set -- $line"
    stage=${1##*/kiln-}
    [ "$stage" != "$first" ] || skipping=no
    [ $skipping = no ] || continue
    first=$stage
    advance "$stage" "$@"
done 3<"$folder/commands"
say "the bake is finished"
finish 0 "$stage"
