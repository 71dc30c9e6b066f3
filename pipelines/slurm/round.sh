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

finish() { # CODE STAGE [WHY]: nothing more is submitted
    why=${3:-"kiln-$2 ended with exit code $1"}
    case $1 in
    0) why= ;;
    2 | 4 | 7) ;; # the same again does not mend it
    *) why="$why; the same kiln slurm goes on from there" ;;
    esac
    echo "$1 $2${why:+ $why}" >"$folder/ended.new" && mv "$folder/ended.new" "$folder/ended"
    [ -z "$why" ] || say "$why" >&2
    exit "$1"
}

# The round is open: its tasks are submitted, then this script behind them, whatever becomes of them.
go_on() { # TRY
    [ ! -e "$folder/cancelled" ] || finish 143 "$claim_stage" 'cancelled'
    ids=$(missing_tasks | submit_tasks) && [ -n "$ids" ] || finish 74 "$claim_stage" "the tasks of $claim_stage could not be submitted"
    follow "$1" "$ids"
}
follow() { # TRY IDS
    next=$(submit round "$claim_stage" "$key" --dependency="afterany:$2" "$scripts/round.sh" "$folder" "$first" "$1") ||
        finish 74 "$claim_stage" "the job behind the tasks of $claim_stage could not be submitted"
    say "$claim_stage: $n tasks, array $2; then job $next"
    [ ! -e "$folder/cancelled" ] || scancel "$next" $(printf '%s' "$2" | tr ':' ' ')
    exit 0
}

stands() { read_claim && [ "$claim_stage" = "$stage" ]; }

# settle COMMAND...: runs a step of STAGE; returns where the bake may go on.
settle() {
    code=0
    "$@" || code=$?
    case $code in
    0) ;;
    4) ! stands || finish 4 "$stage" "the open plan of $stage is of other options or files: give the old ones again, or give the plan up with $(break_command)"
        finish 4 "$stage" ;;
    7) case " $* " in *' --allow-partial=yes '*) : >"$folder/partial-$stage" ;; *) finish 7 "$stage" "kiln-$stage gave units up (exit code 7); the same kiln slurm tries them again, --allow-partial goes on without them" ;; esac ;;
    75) requeue ;;
    *) finish $code "$stage" ;;
    esac
}

# Gathers or plans STAGE, whose command follows; returns when the stage is finished.
advance() {
    stage=$1 fresh=no; shift # fresh: none of the plan's tasks was submitted
    if ! "$1" --help-json | grep -q '"name": "plan"'; then
        rm -f "$folder/partial-$stage"
        settle "$@" --allow-network-fs # this job is the only one that writes, so only this host does
    elif ! stands; then
        rm -f "$folder/partial-$stage"
        settle "$@" --plan --tasks "$tasks"
        try=0 fresh=yes
    fi
    while stands; do
        if [ $fresh = no ]; then
            waiting=$(jobs_now) || finish 74 "$stage" 'Slurm does not answer'
            waiting=$(printf '%s\n' "$waiting" | awk -v key="$key" '$3 == "task" && $5 == key { sub(/_.*/, "", $1); print $1 }' | sort -u | paste -sd :)
            [ -z "$waiting" ] || follow "$try" "$waiting"
        fi
        # All parts may be there: those of a plan like this one that was given up, for example.
        if [ -n "$(missing_tasks)" ] && [ "$try" -lt $TRIES ]; then
            # Planned once more, a plan that stands stays as it is: options that are others are refused before tasks are submitted, and
            # what a killed gather has left in the manifest's log does not keep them from reading.
            [ $fresh = yes ] || settle "$@" --plan --tasks "$n"
            ! stands || go_on $((try + 1))
        else
            settle "$@" --gather "$folder/parts" --remove-parts --tasks "$tasks"
            try=0 fresh=yes
        fi
    done
    try=0
}

# A round that an earlier call has left open keeps every other stage from writing, so it comes first; then all stages are looked at.
if read_claim && [ "$claim_stage" != "$first" ]; then
    line=$(command_of "$claim_stage") || {
        finish 75 "$claim_stage" "a plan of $claim_stage stands, which is none of the stages asked for"
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
partial=$(find "$folder" -maxdepth 1 -name 'partial-*' | sed 's/.*partial-//' | paste -sd ' ')
[ -z "$partial" ] || finish 7 "${partial%% *}" "baked in part: units of $partial were given up; the same kiln slurm tries them again"
say "the bake is finished"
finish 0 "$stage"
