# cases -- a test script in cases, which are counted and selected one by one. Sourced by bash scripts, as a rule through
# tests/e2e/lib.sh.
#
#   scene s 2000 2 64x48                          what stands outside of a case runs whichever cases are selected: what several need
#   test_case 'a second run does nothing' && (    the name is unique in its file; `case` is a word of the shell
#       must 0 kiln import s x.db
#       grep -q 'nothing to do' err || fail "$(cat err)"
#   ); result
#
# A case runs in a subshell, so a failure ends it alone, and the next one is run. It keeps no variables and leaves files. One that
# leaves files which later cases need is a `test_step` in place of test_case: it is run, but not counted, where only later ones are
# selected. A case fails by `fail`, by ending with another status than 0, and by a command of its own that fails unasked, as
# `set -e` has it. Functions that it calls are not looked into: their status decides. A failure outside of cases ends the file.
#
# KILN_TEST: a pattern of the names to run, as tests/run sets it (make test T=e2e/prune CASE=forecast). The output has a line of TAP
# for each case, "ok 1 - NAME", "not ok 1 - NAME" or "ok 1 - NAME # SKIP why", which tests/run counts.

# py FUNCTION [argument...]: a function of the script's own python, NAME_cases.py beside NAME.t, for what takes more than three
# lines
case $0 in /*) PY_FILE=${0%.t}_cases.py ;; *) PY_FILE=$PWD/${0%.t}_cases.py ;; esac
py() { python3 "$PY_FILE" "$@"; }
export PYTHONDONTWRITEBYTECODE=1

cases_wanted=${KILN_TEST:-}
unset KILN_TEST # C tests that a script runs have other names
cases_run=0 cases_failed=0 cases_names=$'\n'
case_name= case_kind= case_depth=0 case_subshell=0
at_exit_commands=
case_skip=$(mktemp) # why a case was skipped: its subshell cannot tell it otherwise

# The caller of this library, FILE:LINE.
case_place() {
    local i
    for ((i = 1; i < ${#BASH_SOURCE[@]}; i++)); do
        case ${BASH_SOURCE[i]} in
        *cases.sh | */lib.sh | */pruning.sh) ;;
        *) echo "${BASH_SOURCE[i]}:${BASH_LINENO[i - 1]}"; return ;;
        esac
    done
    echo "${0}"
}
fail() { echo "FAIL: $(case_place): $*" >&2; exit 1; }
# skip WHY: the case, or outside of one all that follows
skip() {
    if [ -z "$case_name" ] && [ $cases_run != 0 ]; then
        [ -n "$cases_wanted" ] || case_line ok "what follows # SKIP $*"
        exit 0
    fi
    [ -z "$case_name" ] || echo "$*" >"$case_skip"
    echo "SKIP: $*"
    exit 77
}
# at_exit COMMAND: in place of `trap COMMAND EXIT`, which would take the count of cases away; the last one is run first
at_exit() { at_exit_commands="$1"$'\n'"$at_exit_commands"; }

case_line() { cases_run=$((cases_run + 1)); echo "$1 $cases_run - $2"; }
# case_is_wanted NAME: it is among those that are selected
# shellcheck disable=SC2053 # a pattern on purpose
case_is_wanted() { [[ -z $cases_wanted || $1 == $cases_wanted ]]; }
case_begin() { # kind, name
    [ -z "$case_name" ] || fail "'$case_name' ends without '); result'"
    [[ $cases_names != *$'\n'"$2"$'\n'* ]] || fail "two cases are named '$2'"
    cases_names+=$2$'\n'
    case_name=$2 case_kind=$1
    case_depth=$((${#FUNCNAME[@]} - 1)) case_subshell=$((BASH_SUBSHELL + 1))
    case_is_wanted "$2" && return
    [ "$1" = step ] && { case_kind=needed; return; }
    case_kind=
    return 1
}
test_case() { case_begin case "$1"; }
test_step() { case_begin step "$1"; }
result() {
    local got=$? name=$case_name
    [ -n "$name" ] || fail "'result' without a case before it"
    case_name=
    case $case_kind:$got in
    :*) ;;
    needed:0 | needed:77) ;;
    *:0) case_line ok "$name" ;;
    *:77) case_line ok "$name # SKIP $(cat "$case_skip")" ;;
    *) cases_failed=$((cases_failed + 1)); case_line 'not ok' "$name" ;;
    esac
}

# A command of a case has failed and nothing asks for its status. Not one of a function, where the caller asks.
case_unasked() { # status, command
    [ -n "$case_name" ] && [ "$BASH_SUBSHELL" = "$case_subshell" ] && [ ${#FUNCNAME[@]} = "$case_depth" ] || return 0
    echo "FAIL: $(case_place): status $1: $2" >&2
    exit 1
}
set -E
trap 'case_unasked $? "$BASH_COMMAND"' ERR

cases_end() {
    local got=$?
    eval "$at_exit_commands"
    rm -f "$case_skip"
    if [ -n "$case_name" ]; then
        [ $got -gt 128 ] && echo "FAIL: ended by a signal in '$case_name'" >&2 || echo "FAIL: '$case_name' ends without '); result'" >&2
        got=1
    fi
    [ $cases_run != 0 ] || exit $got
    [ $got = 0 ] || case_line 'not ok' 'what stands outside of the cases'
    exit $((got != 0 || cases_failed != 0))
}
trap cases_end EXIT
