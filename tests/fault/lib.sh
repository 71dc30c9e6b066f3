# lib -- loops that make the n-th call of a kind fail, n = 1, 2, ... until a clean pass. Sourced by the tests of this folder.
#
# A case is STAGE KIND N WHO, as KILN_TEST_FAIL of fail_nth.c has them. The stage runs on a bake that is ready for it, with
# that fault. It must end in time, with a documented code and one sentence; kiln-verify must find nothing wrong; the same
# command once more must give the digest, the pictures and the exports of a bake without faults, and leave nothing else.
#
# GAUSSIANS, CAMERAS, SIZE, MAX before `prepare`: another scene.
# Each loop takes a few cases, spread over all calls. Environment: FAULT_MOST=n: about n cases of each loop; FAULT_ALL=1: none is
# left out, the full sweep; SEED: others are left out; FAULT='STAGE KIND N WHO': just this case.
. tests/e2e/lib.sh
read -ra cc <<<"${CC:-cc}" # make CC='ccache gcc' has two words

WITHIN=60 # seconds a stage may take with a fault in it; without it takes a tenth of one
ALL_STAGES="import $STAGES"

# command STAGE FOLDER: what runs it there, into the array `run`
command_of() {
    run=("$KILN_BIN/kiln-$1" --quiet)
    case $1 in
    import) run+=("$KILN_TMP/s" "$2/x.db") ;;
    chunk) run+=("$2/x.db" --max "${MAX:-64}") ;;
    *) run+=("$2/x.db") ;;
    esac
    run+=(--threads 1)
}

# Builds the library, bakes a scene stage by stage, and keeps what is there before each (before.STAGE) and after (after.STAGE).
prepare() {
    local s
    "${cc[@]}" -std=gnu11 -O1 -g -shared -fPIC -o "$KILN_TMP/fail_nth.so" tests/fault/fail_nth.c -ldl || fail "cc"
    scene "$KILN_TMP/s" "${GAUSSIANS:-160}" "${CAMERAS:-1}" "${SIZE:-40x24}"
    mkdir "$KILN_TMP/bake"
    for s in $ALL_STAGES; do
        cp -a "$KILN_TMP/bake" "$KILN_TMP/before.$s"
        (cd "$KILN_TMP/bake" && find . | sort) >"$KILN_TMP/list.$s"
        command_of "$s" "$KILN_TMP/bake"
        "${run[@]}" >/dev/null || fail "$s without a fault"
        "$KILN_BIN/kiln-verify" --quiet "$KILN_TMP/bake/x.db" >/dev/null || fail "$s without a fault leaves a manifest that is not whole"
        digest "$KILN_TMP/bake/x.db" >"$KILN_TMP/digest.$s"
        cp -a "$KILN_TMP/bake" "$KILN_TMP/after.$s"
    done
}

counted() { local n; read -ra n < <(od -An -tu8 "$1"); echo "${n[$2 - 1]}"; } # counter file of fail_nth, 1: calls, 2: failures

# wrong WHAT: the case in hand is wrong
wrong() {
    echo "FAULT='$stage $kind $n $who': $*"
    sed 's/^/    stderr: /' "$dir.err" | head -n 5
}

# Codes that a fault may give; 70 would be a bug of ours and 3 a lie about the input.
code_is_right() { case $code in 0 | 5 | 6 | 7 | 74) ;; *) wrong "exit code $code" && return 1 ;; esac; }
one_sentence() {
    [ "$code" = 0 ] && return
    [ "$(grep -vc ": worker: " "$dir.err")" = 1 ] && grep -q "^kiln-$stage: ..*" "$dir.err" || { wrong "not one sentence"; return 1; }
}
# Nothing happened: the bake is, byte for byte, what it was before.
is_untouched() {
    [ "$code" != 0 ] && [ "$(cd "$dir" && find . | sort)" = "$(cat "$KILN_TMP/list.$stage")" ] &&
        { [ ! -e "$dir/x.db" ] || cmp -s "$dir/x.db" "$KILN_TMP/before.$stage/x.db"; }
}
is_whole() {
    [ -e "$dir/x.db" ] || { [ "$stage" = import ] && return; wrong "the manifest is gone"; return 1; }
    "$KILN_BIN/kiln-verify" --quiet "$dir/x.db" >"$dir.said" 2>&1 || { wrong "verify: $(head -n 3 "$dir.said")"; return 1; }
}
goes_on() {
    command_of "$stage" "$dir"
    "${run[@]}" >"$dir.said" 2>&1 || { wrong "the same command again: $? $(head -n 3 "$dir.said")"; return 1; }
    "$KILN_BIN/kiln-verify" --quiet "$dir/x.db" --digest 2>&1 | cmp -s - "$KILN_TMP/digest.$stage" || { wrong "another digest"; return 1; }
    # dates are in the manifest, so it differs; all else does not, and there is nothing else
    diff -rq -x x.db "$dir" "$KILN_TMP/after.$stage" >"$dir.said" || { wrong "$(head -n 3 "$dir.said")"; return 1; }
}

# one STAGE KIND N WHO: runs the case; hits: how often it failed, calls: how many there were
one() {
    local stage=$1 kind=$2 n=$3 who=$4 dir="$KILN_TMP/work.$1.$2.$4" code
    rm -rf "$dir" "$dir.count"
    cp -a "$KILN_TMP/before.$stage" "$dir"
    command_of "$stage" "$dir"
    KILN_TEST_FAIL=$kind:$n:$who:$dir.count \
        timeout -k 1 $WITHIN env LD_PRELOAD="$KILN_TMP/fail_nth.so" "${run[@]}" >/dev/null 2>"$dir.err"
    code=$?
    calls=0 hits=0
    [ ! -s "$dir.count" ] || read -r calls hits < <(od -An -tu8 "$dir.count")
    code_is_right || return
    # a run in which nothing failed is one of `prepare`, which looked at what it leaves
    [ "$hits" != 0 ] || { [ $code = 0 ] || wrong "exit code $code without a fault"; return $((code != 0)); }
    one_sentence || return
    is_untouched || { is_whole && goes_on; }
}

# loop STAGE KIND WHO MOST: every n, or about MOST of them at random; one line of what went wrong for each
loop() {
    local stage=$1 kind=$2 who=$3 most=$4 n=0 step=1 calls hits total tried=0 bad=0
    RANDOM=${SEED:-1}
    one "$stage" "$kind" 0 "$who" || return
    total=$calls
    while [ "$total" != 0 ]; do
        n=$((n + step))
        # threads and time make counts vary: the end is where nothing failed any more
        one "$stage" "$kind" $n "$who" || bad=$((bad + 1))
        [ "$hits" != 0 ] || break
        tried=$((tried + 1))
        [ -n "${FAULT_ALL:-}" ] || [ "$total" -le "$most" ] || step=$((1 + RANDOM % (2 * total / most)))
    done
    rm -rf "$KILN_TMP/work.$stage.$kind.$who"*
    echo "$stage $kind $who: $tried of $total, $bad wrong" >>"$KILN_TMP/loops"
    [ $bad = 0 ]
}

# loops MOST KIND...: over all stages, in parent and worker, as many beside each other as there are cores; a case for each loop
loops() {
    local most=${FAULT_MOST:-$1} kind stage who name; shift
    if [ -n "${FAULT:-}" ]; then
        # shellcheck disable=SC2086 # four words
        one $FAULT || fail "as above"
        return
    fi
    export -f one loop command_of counted wrong code_is_right one_sentence is_untouched is_whole goes_on fail case_place
    export KILN_TMP KILN_BIN WITHIN most
    for kind; do for stage in $ALL_STAGES; do for who in parent worker; do
        ! case_is_wanted "$(loop_name "$stage" "$kind" "$who")" || echo "$stage $kind $who"
    done; done; done | xargs -r -P "$(nproc)" -n 3 bash -c 'loop "$@" "$most"' loop >"$KILN_TMP/wrong"
    for kind; do for stage in $ALL_STAGES; do for who in parent worker; do
        test_case "$(loop_name "$stage" "$kind" "$who")" && (
            ! grep -A 5 "^FAULT='$stage $kind [0-9]* $who'" "$KILN_TMP/wrong" || fail "see above"
            grep "^$stage $kind $who: " "$KILN_TMP/loops" || fail "the loop did not come to its end"
        ); result
    done; done; done
    [ ! -s "$KILN_TMP/loops" ] ||
        awk -v seed="${SEED:-1}" '{ n += $4; all += $6 } END { print n " faults tried of " all ", SEED=" seed }' "$KILN_TMP/loops"
}
loop_name() { echo "the n-th $2 fails: $1, $3"; } # STAGE KIND WHO
