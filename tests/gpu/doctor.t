#!/bin/bash
# kiln-doctor on a machine with GPUs: each computes the CPU's bits, and is the one that nvidia-smi shows under its number; the
# parent of a stage and of --list-gpus takes no memory of any; a worker runs on the CPUs near its GPU.
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits; }
if [ "$(nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader | grep -c Enabled)" != 0 ]; then skip 'a GPU is cut into instances'; fi
n=$(smi index | wc -l)
must 0 kiln doctor --json; mv "$KILN_TMP/out" "$KILN_TMP/doctor.json"
must 0 kiln knn --list-gpus --json; mv "$KILN_TMP/out" "$KILN_TMP/gpus.json"
smi index,uuid,memory.total,pci.bus_id >"$KILN_TMP/smi"
python3 - "$KILN_TMP" <<'PY' || fail "what kiln-doctor says: $(cat "$KILN_TMP/doctor.json")"
import json, sys
doctor, gpus = (json.load(open(f"{sys.argv[1]}/{f}.json")) for f in ("doctor", "gpus"))
smi = [line.strip().split(", ") for line in open(f"{sys.argv[1]}/smi")]
assert len(gpus) == len(smi) == len(doctor["tried"]), (gpus, smi)
assert [g["uuid"] for g in doctor["gpus"]] == [g["uuid"] for g in gpus]
for g, tried, (index, uuid, total, bus) in zip(gpus, doctor["tried"], smi):
    assert (g["number"], g["uuid"], g["state"]) == (int(index), uuid, "visible"), (g, uuid)
    assert abs(g["total_bytes"] / 2**20 - int(total)) < 0.02 * int(total), (g, total)
    assert 0 < g["free_bytes"] <= g["total_bytes"], g
    assert g["pci"] == bus.lower()[4:], (g, bus)
    assert tried["works"] and "gives the CPU's bits" in tried["text"], tried
assert [g["chosen"] for g in gpus] == [i == 0 for i in range(len(gpus))], gpus
assert doctor["cuda"]["driver"] != "none" and doctor["cuda"]["archs"], doctor["cuda"]
PY
nothing_left
# the last of those visible, alone
CUDA_VISIBLE_DEVICES=$((n - 1)) must 0 kiln doctor; mv "$KILN_TMP/out" "$KILN_TMP/one"
[ "$(grep -c 'GPU [0-9]* works: ' "$KILN_TMP/one")" = 1 ] || fail "one is visible: $(cat "$KILN_TMP/one")"
CUDA_VISIBLE_DEVICES='' must 0 kiln doctor; mv "$KILN_TMP/out" "$KILN_TMP/none"
grep -q 'every GPU here is hidden' "$KILN_TMP/none" || fail "all are hidden: $(cat "$KILN_TMP/none")"

# where a worker runs: as the table says, looked at while it works
cpus=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[0]["cpus"] or "")' "$KILN_TMP/gpus.json")
[ -n "$cpus" ] || { echo 'the kernel does not say which CPUs are near'; exit 0; }
db=$KILN_TMP/x.db
scene "$KILN_TMP/s" 200000 1 64x64
kiln import "$KILN_TMP/s" "$db" --devices cpu >/dev/null || fail import
"$KILN_BIN/kiln-knn" "$db" --devices 0 --quiet --force >/dev/null 2>&1 &
parent=$!
seen=
while kill -0 $parent 2>/dev/null; do
    for pid in $(cat "/proc/$parent/task/$parent/children" 2>/dev/null); do
        grep -qz -- '--worker=cuda' "/proc/$pid/cmdline" 2>/dev/null || continue
        seen=$(sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' "/proc/$pid/status" 2>/dev/null)
        [ -z "$seen" ] || [ "$seen" = "$cpus" ] || fail "the worker may run on $seen, near are $cpus"
    done
    sleep 0.01
done
wait $parent || fail 'knn'
[ -n "$seen" ] || echo 'the worker was too quick to be looked at'
