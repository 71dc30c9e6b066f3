#!/bin/bash
# kiln pipeline on a GPU: one process opens it once for all stages, its successor is a new process, the results are those of seven
# programs on the CPU, and nothing is left on it. With auto the first stages are on the CPU and a GPU is opened meanwhile, if a later
# one has so much to do that it is worth it.
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES # every GPU counts here
scene "$KILN_TMP/s" 30000 4 320x240
baked() { # NAME options...: bakes into $KILN_TMP/NAME
    local name=$1; shift
    "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/$name" --chunk-max 4096 --verbose "$@" >"$KILN_TMP/out" 2>"$KILN_TMP/err" ||
        { cat "$KILN_TMP/err" >&2; fail "kiln pipeline $*"; }
}
pids() { sed -n "s/.*: worker \([0-9]*\): $1.*/\1/p" "$KILN_TMP/err" | sort -u; } # of workers on that kind of device
stages_of() { sed -n "s/^kiln-\([a-z]*\): worker $1: .*/\1/p" "$KILN_TMP/err" | tr '\n' ' '; }

bake "$KILN_TMP/s" "$KILN_TMP/apart.db" --max 4096 --devices cpu
baked all --devices cuda
gpu=$(pids cuda)
[ "$(wc -w <<<"$gpu")" = 1 ] || fail "not one process on the GPU: $gpu: $(cat "$KILN_TMP/err")"
[ "$(stages_of "$gpu")" = 'knn prune tiles render ' ] || fail "the worker on the GPU computed for $(stages_of "$gpu"), not for all that computes and nothing else"
nothing_left
tables "$KILN_TMP/all/manifest.db" >"$KILN_TMP/a"
tables "$KILN_TMP/apart.db" >"$KILN_TMP/b"
diff "$KILN_TMP/a" "$KILN_TMP/b" >&2 || fail "one process on the GPU gives another bake than seven on the CPU"
for stage in knn prune tiles render; do # what the runtime takes does not count, in no stage
    kiln "$stage" "$KILN_TMP/all/manifest.db" --json >"$KILN_TMP/report.json" || fail "$stage again"
    held=$(field ram_cuda_bytes) peak=$(field ram_peak_bytes)
    [ "${held:-0}" -gt 0 ] || fail "$stage: the CUDA runtime takes '$held' bytes"
    echo "$stage: ram_cuda_bytes $held, ram_peak_bytes $peak"
done

before=$(digest "$KILN_TMP/all/manifest.db")
KILN_FAULT='unit=camera cam1:illegal,times=1' baked fault --devices cuda --render-format none
grep -q 'is tried again' "$KILN_TMP/err" || fail "no unit failed: $(cat "$KILN_TMP/err")"
[ "$(pids cuda | wc -w)" -gt 1 ] || fail "the process whose context was destroyed goes on"
tables "$KILN_TMP/fault/manifest.db" | cmp -s - "$KILN_TMP/a" || fail "a failure changes the bake"
nothing_left

# stages that end up on the CPU and a GPU that is opened beside them
export KILN_GPU_MS=10 # knn has 4 ms of work for 8 threads, tiles 22, render more
baked auto --threads 8
gpu=$(pids cuda)
[ "$(wc -w <<<"$gpu")" = 1 ] && [ "$(stages_of "$gpu" | cut -d ' ' -f 1)" = tiles ] ||
    fail "with auto the GPU has '$gpu' of '$(stages_of "${gpu:-0}")': $(cat "$KILN_TMP/err")"
tables "$KILN_TMP/auto/manifest.db" | cmp -s - "$KILN_TMP/a" || fail "auto changes the bake"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    strace -f -e trace=execve -o "$KILN_TMP/calls" "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/again" --chunk-max 4096 --threads 8 -q || fail strace
    grep -q 'worker=cuda:3:rest' "$KILN_TMP/calls" || fail "no GPU was opened ahead"
    [ "$(grep -c 'execve.*worker=cuda' "$KILN_TMP/calls")" = 1 ] || fail "the GPU that was opened ahead was not taken"
fi
nothing_left
unset KILN_GPU_MS # the CPU has done all of this before a GPU would be open; and what a GPU has drawn is not drawn again
baked small
[ -z "$(pids cuda)" ] || fail "a GPU was opened for a small bake: $(cat "$KILN_TMP/err")"
tables "$KILN_TMP/small/manifest.db" | cmp -s - "$KILN_TMP/a" || fail "a bake on the CPU is another"
for name in all auto small; do
    baked $name
    [ "$(grep -c 'nothing to do' "$KILN_TMP/err")" = 7 ] || fail "the bake '$name' is made again: $(cat "$KILN_TMP/err")"
done
[ "$before" = "$(digest "$KILN_TMP/all/manifest.db")" ] || fail "the first bake has changed"
for devices in cpu auto; do # times, for people
    rm -rf "$KILN_TMP/timed"
    begun=$(date +%s%N)
    "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/timed" --devices $devices -q || fail "$devices"
    echo "kiln pipeline --devices $devices: $((($(date +%s%N) - begun) / 1000000)) ms"
done
begun=$(date +%s%N)
"$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/timed" -q || fail again
echo "with nothing to do: $((($(date +%s%N) - begun) / 1000000)) ms"
