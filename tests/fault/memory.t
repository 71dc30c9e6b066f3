#!/bin/bash
# time-limit: 600
# Promise 3: the n-th allocation, mapping or write to shared memory fails, in the parent or in a worker.
. tests/fault/lib.sh
prepare
loops 25 malloc mmap memfd
