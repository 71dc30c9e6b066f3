#!/bin/bash
# SIGINT, SIGTERM and SIGHUP at random moments of each stage: exit 130, 143 or 129, soon (it says how soon), and one sentence; nothing wrong is
# visible, the same command goes on. What killed processes leave beside pictures and exports goes with the next run.
# starts first
. tests/fault/lib.sh
GAUSSIANS=20000 CAMERAS=3 SIZE=480x320 MAX=512
prepare
RANDOM=${SEED:-5}
caught=0 slowest=0

# interrupt STAGE SIGNAL MS: 0 when the signal came in time
interrupt() {
    local stage=$1 who=$2 n=$3 kind=signal dir=$KILN_TMP/signal code began ms
    rm -rf "$dir"; cp -a "$KILN_TMP/before.$stage" "$dir"
    command_of "$stage" "$dir"
    "${run[@]}" >/dev/null 2>"$dir.err" & pid=$!
    sleep "$((n / 1000)).$(printf %03d $((n % 1000)))"
    began=$(date +%s%N)
    kill -s "$who" $pid 2>/dev/null || { wait $pid; return 1; }
    wait $pid; code=$?
    ms=$((($(date +%s%N) - began) / 1000000))
    [ $code != 0 ] || return 1 # it had just finished
    # before its handler stands, a program ends as any other does
    [ $code = $((128 + $(kill -l "$who"))) ] || fail "$stage ended with $code after SIG$who: $(cat "$dir.err")"
    [ $ms -le $slowest ] || slowest=$ms
    [ "$(grep -c . "$dir.err")" -le 1 ] || fail "$stage, SIG$who: $(cat "$dir.err")"
    { is_whole && goes_on; } || fail "see above (SEED=${SEED:-5})"
}

test_case 'SIGINT, SIGTERM and SIGHUP at random moments of each stage' && (
    for stage in $ALL_STAGES; do
        dir=$KILN_TMP/signal
        rm -rf "$dir"; cp -a "$KILN_TMP/before.$stage" "$dir"
        command_of "$stage" "$dir"
        began=$(date +%s%N)
        "${run[@]}" >/dev/null || fail "$stage"
        takes=$((($(date +%s%N) - began) / 1000000)) # a moment is one of these, so that most come in time on any machine
        for signal in INT TERM HUP; do
            for try in 1 2; do interrupt "$stage" $signal $((RANDOM % takes)) && caught=$((caught + 1)); done
        done
    done
    [ $caught -ge 10 ] || fail "only $caught signals came in time"
    echo "$caught signals in time, the slowest end took $slowest ms"
); result

"$KILN_BIN/kiln-info" --version >/dev/null & gone=$!
wait $gone
for stage in render export; do
    test_case "$stage: what a killed process has left goes, and nothing else" && (
        n=leftovers kind=kill who=$stage dir=$KILN_TMP/left code=0
        rm -rf "$dir"; cp -a "$KILN_TMP/before.$stage" "$dir"; : >"$dir.err"
        file=$(cd "$KILN_TMP/after.$stage" && find . -name "$([ $stage = render ] && echo '*.png' || echo '*.ply')" | head -n 1)
        mkdir -p "$(dirname "$dir/$file")"
        touch "$dir/$file$LEFT$gone" "$dir/$file$LEFT$$" "$dir/$file${LEFT}mine"
        command_of $stage "$dir"
        "${run[@]}" >/dev/null || fail "$stage beside leftovers"
        [ ! -e "$dir/$file$LEFT$gone" ] || fail "$stage left what a killed process had left"
        [ -e "$dir/$file$LEFT$$" ] || fail "$stage took the file of a running process away"
        [ -e "$dir/$file${LEFT}mine" ] || fail "$stage took a file away that is none of ours"
    ); result
done

# A worker that dies in the midst of a file leaves half of it: the same run takes it away, whether it fails for another's sake, is
# ended by a signal, or goes on with another worker.
cp -a "$KILN_TMP/after.export" "$KILN_TMP/raw"
# begin_raw OPTION...: an export of raw planes by two workers, the first of which hangs in its first file; its process is in $pid
begin_raw() {
    rm -rf "$KILN_TMP/raw/out" "$KILN_TMP/raw.count"
    KILN_TEST_FAIL=hang:1:worker:$KILN_TMP/raw.count LD_PRELOAD=$KILN_TMP/fail_nth.so timeout --foreground -k 9 $WITHIN \
        "$KILN_BIN/kiln-export" \
        --quiet "$KILN_TMP/raw/x.db" --format chunks -o "$KILN_TMP/raw/out" --workers 2 --threads 2 "$@" 2>"$KILN_TMP/err" & pid=$!
}
# end_raw CODE WHAT: it ends with that, and nothing half-written lies there
end_raw() {
    local got
    wait $pid; got=$?
    [ $got = "$1" ] || fail "an export $2 ended with $got: $(cat "$KILN_TMP/err")"
    [ "$(counted "$KILN_TMP/raw.count" 2)" = 1 ] || fail "no worker hung in an export $2"
    [ -z "$(find "$KILN_TMP/raw/out" -name '*.tmp.*')" ] || fail "an export $2 left $(find "$KILN_TMP/raw/out" -name '*.tmp.*')"
}
# The smallest chunks are written last: the other worker comes to one of three, of which the first can have two at most.
"$KILN_BIN/kiln-export" --quiet "$KILN_TMP/raw/x.db" --format chunks -o "$KILN_TMP/raw/out" || fail "export of chunks"
KILN_FAULT=$(python3 -c 'import json, sys
for c in sorted(json.load(open(sys.argv[1]))["chunks"], key=lambda c: c["count"])[:3]: print("unit=chunk %s:enospc;" % c["name"])' \
    "$KILN_TMP/raw/out/index.json" | tr -d '\n')

test_case 'a worker that died in a file: on a full disk' && (
    export KILN_FAULT
    begin_raw
    unset KILN_FAULT
    end_raw 74 "on a full disk"
); result

test_case 'a worker that died in a file: the export is ended' && (
    begin_raw
    for _ in $(seq 3000); do [ -s "$KILN_TMP/raw.count" ] && [ "$(counted "$KILN_TMP/raw.count" 2)" = 1 ] && break; sleep 0.02; done
    kill -TERM $pid # passed on by timeout, once: a second one would end the export where it is
    end_raw 143 "that was ended"
); result

test_case 'a worker that died in a file: another one goes on' && (
    begin_raw --deadline 2
    end_raw 0 "whose worker was replaced"
    [ -f "$KILN_TMP/raw/out/index.json" ] || fail "no index after a worker was replaced"
); result
