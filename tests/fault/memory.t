#!/bin/bash
# starts first
# Promise 3: the n-th allocation, mapping or write to shared memory fails, in the parent or in a worker.
. tests/fault/lib.sh
grep -qa __cudaRegisterFatBinary "$KILN_BIN/kiln-knn" && skip "CUDA's runtime is in these programs, and crashes by itself before main when memory is gone; make CUDA=0 test"
prepare
loops 4 malloc mmap memfd
