#!/bin/bash
# starts first
# time-limit: 600
# Hostile manifests: each kind of change to one of three bakes twice, from a fixed seed, and on each of them some programs
# (tests/mutate/DESIGN.md). A mutation takes two seconds of the processor: `N=120 tests/run e2e/mutation` takes more of them,
# `make mutate` all programs on as many as there is time for, from a new seed.
. tests/e2e/lib.sh

test_case 'hostile manifests' && (
    SEED=${SEED:-17} N=${N:-40} SOME=${SOME-9} tests/mutate/run || fail "see above"
); result
