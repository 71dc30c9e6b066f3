#!/bin/bash
# time-limit: 3000
# KILN_FAULT's whole list on every stage: each word once for every unit (times=1); and each time for the first unit of each list, at
# every third pair of a word and a stage, in which each of them comes up; FAULT_ALL=1: at all pairs, the full sweep. What the
# engine can contain is tried again and ends well, or ends with 7; what it cannot has its own code. The same command without the
# fault gives the digest, the pictures and the exports of a bake without faults. FAULT='STAGE WORD once|always': just this case.
# starts first
. tests/fault/lib.sh
prepare

# The words are those of the program: one that is added is tried here, and fails until it has a row below.
WORDS=$("$KILN_BIN/kiln-knn" --man | tr '\n' ' ' | sed -n 's/.*ACTION: \([a-z, ]*\); then perhaps.*/\1/p' | tr -d ,)
[ "$(wc -w <<<"$WORDS")" -ge 9 ] || fail "the man page names too few words: $WORDS"

# right_code WORD WHEN: the documented one. A worker that ends, or a device that fails, costs an attempt of three; a full disk is
# nobody's unit and ends the run; a lost device gets no more work, and on the CPU it was the only one.
right_code() {
    case $1 in
    enospc) echo 74 ;;
    lost) echo 6 ;;
    exit | kill | hang | illegal | abort | nomem | device) [ "$2" = once ] && echo 0 || echo 7 ;;
    *) echo "no rule for this word" ;;
    esac
}

# word STAGE WORD WHEN: one case; a line of the table
word() {
    local stage=$1 kind=$2 n=- who=$3 dir="$KILN_TMP/work.$1.$2.$3" code again digest=equal
    local unit='*' times=',times=1' late=()
    [ "$who" = once ] || times=
    # a unit that hangs takes the whole deadline, so there are few
    [ "$who" = once ] && [ "$kind" != hang ] || unit=0
    [ "$kind" != hang ] || late=(--deadline 1)
    rm -rf "$dir"
    cp -a "$KILN_TMP/before.$stage" "$dir"
    command_of "$stage" "$dir"
    KILN_FAULT="unit=$unit:$kind$times" timeout -k 1 600 "${run[@]}" "${late[@]}" >/dev/null 2>"$dir.err"
    code=$?
    [ $code = "$(right_code "$kind" "$who")" ] || { wrong "exit code $code, not $(right_code "$kind" "$who")"; return 1; }
    [ $code = 0 ] || [ -s "$dir.err" ] || { wrong 'it says nothing'; return 1; }
    is_whole && goes_on || return
    printf '%-8s %-7s %-6s %3d  0, digest equal\n' "$stage" "$kind" "$who" $code >>"$KILN_TMP/table"
    rm -rf "$dir" "$dir".*
}

if [ -n "${FAULT:-}" ]; then
    # shellcheck disable=SC2086 # three words
    word $FAULT || fail 'as above'
    cat "$KILN_TMP/table"
    exit
fi
export -f word right_code command_of counted wrong is_whole goes_on fail case_place
export KILN_TMP KILN_BIN MAX
pairs() { # STAGE WORD WHEN, a line each
    local stage kind when
    for when in once always; do for kind in $WORDS; do for stage in $ALL_STAGES; do echo "$stage $kind $when"; done; done; done |
        awk -v all="${FAULT_ALL:-}" '$3 == "once" || all != "" || always++ % 3 == 0'
}
: >"$KILN_TMP/table"
pairs | while read -r stage kind when; do
    ! case_is_wanted "$kind $when: $stage" || echo "$stage $kind $when"
done | xargs -r -P "$(nproc)" -n 3 bash -c 'word "$@"' word >"$KILN_TMP/wrong"
sort "$KILN_TMP/table"
while read -r stage kind when; do
    test_case "$kind $when: $stage" && (
        ! grep -A 5 "^FAULT='$stage $kind - $when'" "$KILN_TMP/wrong" || fail 'see above'
        grep -q "^$stage  *$kind  *$when " "$KILN_TMP/table" || fail 'it did not come to its end'
    ); result
done < <(pairs)
