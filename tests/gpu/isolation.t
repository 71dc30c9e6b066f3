#!/bin/bash
# A bake with --devices N leaves every other GPU alone, during it and afterwards: no process of ours, no memory; and the
# parent has no CUDA library. Needs two GPUs, and has nothing to say where there is one; of four it takes number 2.
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES # --devices are numbers of the machine here
SLACK_MIB=16               # what a driver may take by itself; a context takes 500 and more
mapfile -t uuids < <(nvidia-smi --query-gpu=uuid --format=csv,noheader)
n=${#uuids[@]}
[ "$n" -ge 2 ] || { echo 'SKIP: one GPU: there is no other to leave alone'; exit 78; }
ours=$((n > 2 ? 2 : n - 1))
others=(); for ((i = 0; i < n; i++)); do [ $i = $ours ] || others+=("$i"); done
list=$(IFS=,; echo "${others[*]}")
used() { nvidia-smi -i "$list" --query-gpu=memory.used --format=csv,noheader,nounits | tr '\n' ' '; }
most=0
look() { # at the others: processes and growth of each
    local i k=0 now
    read -r -a now <<<"$(used)"
    for i in "${others[@]}"; do
        [ -z "$(on_gpu "$i")" ] || fail "with --devices $ours a process of this test is on GPU $i"
        [ $((now[k] - before[k])) -le $most ] || most=$((now[k] - before[k]))
        k=$((k + 1))
    done
    [ $most -le $SLACK_MIB ] || fail "with --devices $ours another GPU holds $most MiB more than before"
}
# A GPU that no program has open is put to sleep and holds some MiB less, and any program that looks at devices wakes all of them:
# this one keeps them awake, so that what is measured is of the bake.
nvidia-smi --loop=1 >/dev/null 2>&1 & awake=$!
trap 'kill $awake 2>/dev/null' EXIT
# Waking takes a driver seconds at times: it is over when the memory in use has stayed the same for two.
was= stable=0
for ((i = 0; i < 60 && stable < 4; i++)); do
    sleep 0.5
    now=$(used)
    if [ "$now" = "$was" ]; then stable=$((stable + 1)); else stable=0; fi
    was=$now
done
[ $stable -ge 4 ] || fail "the memory in use on the other GPUs changes before the bake: $now"
scene "$KILN_TMP/s" 400000 24 1280x720
read -r -a before <<<"$(used)"
bake_on "$ours" "$KILN_TMP/s" "$KILN_TMP/m.db" --max 8192 & baking=$!
looked=0 parents=0 seen=0
while kill -0 $baking 2>/dev/null; do
    look
    looked=$((looked + 1))
    [ -z "$(on_gpu "$ours")" ] || seen=$((seen + 1))
    for parent in $(pgrep -P $baking); do # the programs: children of the shell that bakes
        tr '\0' ' ' <"/proc/$parent/cmdline" 2>/dev/null | grep -q "/kiln-" || continue
        ! tr '\0' ' ' <"/proc/$parent/cmdline" 2>/dev/null | grep -q -- '--worker=' || continue
        ! grep -qE 'libcuda\.|libcudart' "/proc/$parent/maps" 2>/dev/null || fail "the parent $parent has a CUDA library in its maps"
        parents=$((parents + 1))
    done
done
wait $baking || fail "the bake with --devices $ours"
look
[ $looked -gt 3 ] && [ $parents -gt 3 ] || fail "looked $looked times, at parents $parents times: too seldom to say anything"
on "$ours" render "$KILN_TMP/m.db" --force --format none
case $(field device) in *"${uuids[ours]}"*) ;; *) fail "--devices $ours computed on $(field device)" ;; esac
look
nothing_left
echo "looked $looked times, at parents $parents times; our processes seen on GPU $ours $seen times (0 in a container that hides them)"
echo "at most $most MiB more on the others"
