#!/usr/bin/env bash
# pipelines/profile.sh over stand-ins for nsys, ncu and nvidia-smi: a sentence where nothing can be profiled, else the command
# under each tool.
set -u
. tests/cases.sh
stand=$KILN_TMP/bin
mkdir -p "$stand"
script() { printf '#!/bin/sh\n%s\n' "$2" >"$stand/$1" && chmod +x "$stand/$1"; }
for tool in dirname mkdir grep bash env; do ln -s "$(command -v $tool)" "$stand/$tool"; done
run() { out=$(PATH=$stand O=$KILN_TMP/o bash pipelines/profile.sh "$@" 2>&1); code=$?; }

test_case 'without tools' && (
    run 'nsys ncu' true
    [ $code = 0 ] && [[ $out == 'profile did not run: none of nsys ncu is installed'* ]] || fail "without tools: $code $out"
); result

script nsys 'echo "nsys $*"'

test_case 'without a GPU' && (
    run 'nsys ncu' true
    [ $code = 0 ] && [[ $out == 'profile did not run: no GPU' ]] || fail "without a GPU: $code $out"
); result

script nvidia-smi 'echo "GPU 0: Fake"'

test_case 'the command under nsys' && (
    run 'nsys ncu' kiln-x --force
    [ $code = 0 ] || fail "ends with $code: $out"
    [[ $out == *'nsys profile '*' kiln-x --force'*'nsys stats '* ]] || fail "the command is not run under nsys: $out"
    [[ $out != *'== ncu'* ]] || fail "ncu is not there: $out"
); result

script ncu 'echo "ncu $*"; exit 1'

test_case 'ncu that may not count' && (
    run 'nsys ncu' kiln-x
    [ $code = 1 ] && [[ $out == *'counters that only root may'* ]] || fail "a failed ncu: $code $out"
); result

script nsys 'exit 1'
script ncu 'echo "ncu $*"'

test_case 'nsys that fails' && (
    run 'nsys ncu' kiln-x
    [ $code = 1 ] && [[ $out != *'counters that only root may'* ]] || fail "nsys failed, and ncu is blamed: $code $out"
    [[ $out == *'ncu --clock-control none --target-processes all '*' kiln-x'*'ncu --import '* ]] ||
        fail "ncu did not run behind nsys: $out"
); result

test_case 'an unknown tool' && (
    run 'perf' kiln-x
    [ $code = 2 ] && [[ $out == *"not 'perf'"* ]] || fail "an unknown tool: $code $out"
); result
