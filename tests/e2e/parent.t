#!/bin/bash
# Promise 5: the parent of a stage never touches CUDA, on any device: no libcuda, no libcudart in its maps while it runs.
# Its worker on the CPU does not either.
. tests/e2e/lib.sh
read -ra cc <<<"${CC:-cc}" # make CC='ccache gcc' has two words
scene "$KILN_TMP/s" 12000 3 320x240
db=$KILN_TMP/x.db
looks=0 worker_looks=0
clean() { # WHO MAPS
    ! grep -qE 'libcuda(rt)?[.-]' "$2" || fail "$1 maps $(grep -oE '[^ ]*libcuda[^ ]*' "$2" | head -n 1)"
}
look() { # PID of a parent
    local maps=$KILN_TMP/maps child
    cat "/proc/$1/maps" >"$maps" 2>/dev/null && grep -q '/kiln-' "$maps" || return
    clean "the parent" "$maps"
    looks=$((looks + 1))
    [ "$devices" = cpu ] || return
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        cat "/proc/$child/maps" >"$maps" 2>/dev/null && [ -s "$maps" ] || continue
        clean "a worker on the CPU" "$maps"
        worker_looks=$((worker_looks + 1))
    done
}
watch() { # program arguments...: it runs to its end, looked at all the time
    "$KILN_BIN/kiln-$1" --quiet --devices "$devices" "${@:2}" >/dev/null 2>"$KILN_TMP/err" & local pid=$!
    while kill -0 $pid 2>/dev/null; do look $pid; done
    wait $pid || fail "$1 with --devices $devices: $(cat "$KILN_TMP/err")"
}

test_case 'neither a parent nor a worker on the CPU maps CUDA' && (
    for devices in cpu auto; do
        rm -f "$db"*
        watch import "$KILN_TMP/s" "$db"
        for s in $STAGES; do watch "$s" "$db"; done
    done
    if command -v "${cc[0]}" >/dev/null; then # an NVML that stays where it was loaded, by a name that is looked for
        "${cc[@]}" -shared -fPIC -Wl,-z,nodelete -o "$KILN_TMP/libcuda-fake.so" tests/unit/fake_nvml.c || fail "cc"
        for s in knn tiles; do KILN_NVML=$KILN_TMP/libcuda-fake.so FAKE_GPUS=0 watch "$s" "$db" --force; done
    fi
    [ $looks -ge 14 ] && [ $worker_looks -ge 3 ] || fail "only $looks and $worker_looks looks at running processes"
    echo "$looks looks at parents, $worker_looks at workers"
); result
