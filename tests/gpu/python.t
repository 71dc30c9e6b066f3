#!/bin/bash
# python/splatkiln with PyTorch on the last GPU while the first is current: what tests/e2e/python_torch.py says, on the default and a
# side stream and in four threads, a training loop of 3,000 iterations, nothing on another GPU; times (V=1 shows them). The wheel of
# $O/wheel is installed where there is one; then no other build is needed. PYTHON names the interpreter.
# time-limit: 3600
. tests/gpu/lib.sh
: "${PYTHON:=$(for p in python3 /usr/bin/python3 /usr/local/bin/python3; do
    "$p" -c 'import numpy, torch' 2>/dev/null && { echo "$p"; break; }
done)}"
[ -n "$PYTHON" ] || skip "no Python with numpy and PyTorch"
O=${KILN_BIN%/bin} device=cuda:$(($(nvidia-smi -L | wc -l) - 1))
unset CUDA_VISIBLE_DEVICES
wheel=$(ls "$O"/wheel/splatkiln-*.whl 2>/dev/null | tail -1)
if [ -n "$wheel" ] && "$PYTHON" -m venv --system-site-packages "$KILN_TMP/venv" 2>/dev/null; then
    # A PyTorch that is in an environment of its own is not the system's.
    site=$("$PYTHON" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
    python=$KILN_TMP/venv/bin/python
    "$python" -m pip install --no-index --no-deps "$wheel" >"$KILN_TMP/said" 2>&1 || { cat "$KILN_TMP/said"; fail "pip install $wheel"; }
    export PYTHONPATH=$site
elif [ -n "$wheel" ]; then
    echo "no venv: the wheel is unpacked"
    python=$PYTHON
    "$PYTHON" -m zipfile -e "$wheel" "$KILN_TMP/unpacked" || fail "cannot unpack $wheel"
    export PYTHONPATH=$KILN_TMP/unpacked
else
    python=$PYTHON
    for lib in "$O/libsplatkiln.so.1" "$O/lib/libkiln.so"; do
        [ ! -e "$lib" ] || { SPLATKILN_LIBRARY=$(realpath "$lib"); break; }
    done
    export SPLATKILN_LIBRARY PYTHONPATH=$PWD/python
fi
"$python" -c 'import splatkiln, torch
print(splatkiln.__file__, splatkiln.library()._name, torch.__version__, torch.cuda.get_device_name())'
asked() {
    local code=0
    "$@" tests/e2e/python_torch.py "${what[@]}" || code=$?
    [ $code != 77 ] || skip "PyTorch has no $device"
    [ $code = 0 ] || fail "${what[*]}: $code"
}

test_case 'values, gradients, streams, threads, and nothing on another GPU' && (
    what=(checks "$device")
    asked "$python"
); result

test_case 'a training loop of 3,000 iterations with both drop-ins' && (
    what=(train "$device" 3000)
    asked "$python"
); result

test_case 'times beside plain torch' && (
    what=(times "$device")
    asked "$python"
); result

test_case 'compute-sanitizer finds nothing in a training loop' && (
    [ -n "${KILN_THOROUGH:-}${KILN_NO_SKIP:-}" ] || skip 'KILN_THOROUGH=1 asks compute-sanitizer'
    command -v compute-sanitizer >/dev/null || skip 'no compute-sanitizer'
    what=(train "$device" 120)
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 asked compute-sanitizer --tool memcheck --error-exitcode 99 "$python"
); result

test_case 'no process is left' && (
    nothing_left
); result
