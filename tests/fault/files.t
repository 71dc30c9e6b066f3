#!/bin/bash
# time-limit: 600
# Promise 3: the n-th sync, rename, open, close or short write fails.
. tests/fault/lib.sh
prepare
loops 20 fsync rename open close process short
