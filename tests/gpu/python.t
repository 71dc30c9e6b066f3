#!/bin/bash
# python/splatkiln with PyTorch on the last GPU while the first is current: what tests/e2e/python_torch.py says, on the default and a
# side stream and in four threads, a training loop of 3,000 iterations, nothing on another GPU; with KILN_THOROUGH=1 both once more
# under compute-sanitizer, shorter. The wheel is installed where there is one. PYTHON names the interpreter.
# time-limit: 1800
. tests/gpu/lib.sh
: "${PYTHON:=$(for p in python3 /usr/bin/python3 /usr/local/bin/python3; do "$p" -c 'import numpy, torch' 2>/dev/null && { echo "$p"; break; }; done)}"
[ -n "$PYTHON" ] || skip "no Python with numpy and PyTorch"
O=${KILN_BIN%/bin} last=$(($(nvidia-smi -L | wc -l) - 1))
export PYTHONDONTWRITEBYTECODE=1
unset CUDA_VISIBLE_DEVICES
wheel=$(ls "$O"/wheel/splatkiln-*.whl 2>/dev/null | tail -1)
if [ -n "$wheel" ] && "$PYTHON" -m venv --system-site-packages "$KILN_TMP/venv" 2>/dev/null; then
    python=$KILN_TMP/venv/bin/python
    unset PYTHONPATH
    "$python" -m pip install --no-index "$wheel" >"$KILN_TMP/said" 2>&1 || { cat "$KILN_TMP/said"; fail "pip install $wheel"; }
else
    python=$PYTHON
    for lib in "$O/libsplatkiln.so.1" "$O/lib/libkiln.so"; do [ ! -e "$lib" ] || { SPLATKILN_LIBRARY=$(realpath "$lib"); break; }; done
    export SPLATKILN_LIBRARY PYTHONPATH=$PWD/python
fi
"$python" -c 'import splatkiln, torch; print(splatkiln.__file__, splatkiln.library()._name, torch.__version__, torch.cuda.get_device_name())'
for what in checks 'train 3000'; do
    # shellcheck disable=SC2086 # words
    set -- $what
    "$python" tests/e2e/python_torch.py "$1" "cuda:$last" ${2:-}
    case $? in 0) ;; 77) exit 77 ;; *) fail "$what on cuda:$last" ;; esac
done
"$python" tests/e2e/python_torch.py times "cuda:$last" || fail "times"
if [ -n "${KILN_THOROUGH:-}" ] && command -v compute-sanitizer >/dev/null; then
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck --error-exitcode 99 "$python" tests/e2e/python_torch.py train "cuda:$last" 120 || fail "compute-sanitizer"
fi
nothing_left
