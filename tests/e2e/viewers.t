#!/bin/bash
# What kiln-export writes looks right in web viewers, and other programs read it: the part of tests/viewers that --quick names.
# starts first
# time-limit: 1800
O=${KILN_BIN%/bin} tests/viewers/run --quick
