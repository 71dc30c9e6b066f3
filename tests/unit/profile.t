#!/usr/bin/env bash
# pipelines/profile.sh over stand-ins for nsys, ncu and nvidia-smi: a sentence where nothing can be profiled, else the command
# under each tool.
set -u
bad=0
fail() { echo "$*"; bad=1; }
stand=$KILN_TMP/bin
mkdir -p "$stand"
script() { printf '#!/bin/sh\n%s\n' "$2" >"$stand/$1" && chmod +x "$stand/$1"; }
for tool in dirname mkdir grep bash env; do ln -s "$(command -v $tool)" "$stand/$tool"; done
run() { out=$(PATH=$stand O=$KILN_TMP/o bash pipelines/profile.sh "$@" 2>&1); code=$?; }

run 'nsys ncu' true
[ $code = 0 ] && [[ $out == 'profile did not run: of nsys ncu none is installed'* ]] || fail "without tools: $code $out"
script nsys 'echo "nsys $*"'
run 'nsys ncu' true
[ $code = 0 ] && [[ $out == 'profile did not run: no GPU' ]] || fail "without a GPU: $code $out"
script nvidia-smi 'echo "GPU 0: Fake"'
run 'nsys ncu' kiln-x --force
[ $code = 0 ] || fail "ends with $code: $out"
[[ $out == *'nsys profile '*' kiln-x --force'*'nsys stats '* ]] || fail "the command is not run under nsys: $out"
[[ $out != *'== ncu'* ]] || fail "ncu is not there: $out"
script ncu 'echo "ncu $*"; exit 1'
run 'nsys ncu' kiln-x
[ $code = 1 ] && [[ $out == *'counters that only root may'* ]] || fail "a failed ncu: $code $out"
script nsys 'exit 1'
script ncu 'echo "ncu $*"'
run 'nsys ncu' kiln-x
[ $code = 1 ] && [[ $out != *'counters that only root may'* ]] || fail "nsys failed, and ncu is blamed: $code $out"
[[ $out == *'ncu --clock-control none --target-processes all '*' kiln-x'*'ncu --import '* ]] || fail "ncu did not run behind nsys: $out"
run 'perf' kiln-x
[ $code = 2 ] && [[ $out == *"not 'perf'"* ]] || fail "an unknown tool: $code $out"
exit $bad
