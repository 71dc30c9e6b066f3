#!/bin/bash
# starts first
# time-limit: 600
# Hostile manifests: some mutations of three bakes from a fixed seed, and on each of them some programs (tests/mutate/DESIGN.md).
# `make mutate` runs all programs on as many as there is time for, from a new seed.
. tests/e2e/lib.sh
SEED=${SEED:-17} N=${N:-120} SOME=${SOME-9} tests/mutate/run || fail "see above"
