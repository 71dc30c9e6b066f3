#!/bin/bash
# A bake does not depend on which GPU makes it, on how many do, nor on --sync; and one that was given the second GPU never
# touches the first. One GPU: only --sync.
# time-limit: 900
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES # --devices are numbers of the machine here
CONTEXT_MIB=400            # a context takes 500 and more
mapfile -t uuids < <(nvidia-smi --query-gpu=uuid --format=csv,noheader)
used_mib() { nvidia-smi -i "$1" --query-gpu=memory.used --format=csv,noheader,nounits; }
scene "$KILN_TMP/s" 100000 12 640x360
bake_on 0 "$KILN_TMP/s" "$KILN_TMP/first.db" --max 4096
EACH=--sync bake_on 0 "$KILN_TMP/s" "$KILN_TMP/sync.db" --max 4096
same "$KILN_TMP/first.db" "$KILN_TMP/sync.db"
if [ ${#uuids[@]} -lt 2 ]; then
    echo 'one GPU: the second and both together were not asked for'
    exit 0
fi

before=$(used_mib 0) most=0 seen=0
bake_on 1 "$KILN_TMP/s" "$KILN_TMP/second.db" --max 4096 & baking=$!
while kill -0 $baking 2>/dev/null; do
    [ -z "$(on_gpu 0)" ] || fail 'with --devices 1 a process is on GPU 0'
    [ -z "$(on_gpu 1)" ] || seen=$((seen + 1))
    grown=$(($(used_mib 0) - before))
    [ $grown -le $most ] || most=$grown
done
wait $baking || fail 'the bake with --devices 1'
echo "with --devices 1: at most $most MiB more on GPU 0, our processes seen on GPU 1 $seen times"
# In a container nvidia-smi may list no process at all; then the memory that a context takes decides.
[ $seen -gt 0 ] || [ $most -lt $CONTEXT_MIB ] || fail 'with --devices 1 there is a context more on GPU 0'
case $(field device) in *"${uuids[0]}"*) fail "--devices 1 computed on $(field device)" ;; *"${uuids[1]}"*) ;; *) fail "--devices 1 computed on $(field device)" ;; esac
same "$KILN_TMP/first.db" "$KILN_TMP/second.db"

both=0
count_both() { case $(field device) in *"${uuids[0]}"*"${uuids[1]}"* | *"${uuids[1]}"*"${uuids[0]}"*) both=$((both + 1)) ;; esac }
LOOK=count_both bake_on all "$KILN_TMP/s" "$KILN_TMP/all.db" --max 4096
echo "with --devices all: $both stages computed on both"
[ $both -gt 0 ] || fail '--devices all never used both GPUs'
same "$KILN_TMP/first.db" "$KILN_TMP/all.db"
nothing_left
