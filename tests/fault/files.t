#!/bin/bash
# starts first
# Promise 3: the n-th write, read, sync, rename, open or close of files, or call that makes or talks to a process, fails.
. tests/fault/lib.sh
prepare
loops 2 fsync rename
loops 1 write short read open close process
