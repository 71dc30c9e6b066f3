#!/bin/bash
# starts first
# Promise 3: the n-th step of SQLite fails, in the parent or in a worker: disk full, unreadable, out of memory.
. tests/fault/lib.sh
prepare
loops 4 step
