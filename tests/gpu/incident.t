#!/bin/bash
# tests/e2e/incident.t on a GPU: its bakes within 256 MiB of host and of device memory have the bytes of those without a cap on
# host memory, and the tables of the CPU. KILN_THOROUGH=1, or SHARED of make gpu-test, takes the true sizes.
# time-limit: 900
. tests/gpu/lib.sh
KILN_TMP=$KILN_TMP/gpu INCIDENT_EACH='--devices cuda --vram 256M' && mkdir -p "$KILN_TMP" && export KILN_TMP INCIDENT_EACH
tests/e2e/incident.t || fail 'see above'
for s in healthy some all; do
    for stage in knn prune chunk tiles; do
        more=() # as in the e2e test
        [ $stage != prune ] || more=(--max-extent off --max-spacing off)
        [ $stage != tiles ] || more=(--tables all)
        [ $stage != knn ] || kiln import "$KILN_TMP/$s" "$KILN_TMP/$s.cpu.db" >/dev/null || fail "import $s"
        on cpu $stage "$KILN_TMP/$s.cpu.db" "${more[@]}"
    done
    same_tables "$KILN_TMP/$s.cpu.db" "$KILN_TMP/$s.db"
done
on cuda render "$KILN_TMP/all.db" --force --vram 256M
peak=$(field vram_peak_bytes)
[ -n "$peak" ] && [ "$peak" -gt 0 ] && [ "$peak" -le $((256 << 20)) ] || fail "render took $peak bytes of the GPU"
nothing_left
