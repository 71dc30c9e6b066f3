#!/usr/bin/env bash
# A view whose Gaussians do not fit into the GPU's memory is drawn in slabs of depth: within the cap, the bits of one pass.
. tests/gpu/lib.sh
cd "$KILN_TMP" || exit 1
scene s 300000 2 640x400
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null && kiln prune base.db >/dev/null || fail 'bake'
kiln chunk base.db --max 16000 >/dev/null || fail 'chunk'
cp base.db free.db
on cuda render free.db --depth --format npy
[ -z "$(field slabs)" ] || fail 'slabs with all memory'
for mib in 20 12; do
    mkdir "$mib" && cp base.db "$mib/capped.db"
    on cuda render "$mib/capped.db" --depth --format npy --vram "${mib}M"
    peak=$(field vram_peak_bytes) slabs=$(field slabs)
    echo "$mib MiB: $slabs slabs, at most $peak bytes of the GPU, $(field ran_on_cpu_for_memory) operations on the CPU, $(field draw_s) s"
    [ "${slabs:-0}" -gt 1 ] || fail "no slabs in $mib MiB"
    [ "$peak" -le $((mib << 20)) ] || fail "more than $mib MiB were taken"
    same free.db "$mib/capped.db"
    diff -r renders "$mib/renders" || fail "pictures in $mib MiB differ"
done
