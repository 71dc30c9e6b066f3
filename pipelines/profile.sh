#!/usr/bin/env bash
# profile.sh TOOLS [COMMAND...] -- what `make profile` runs: COMMAND, or else a stage over a small scene, under each of the tools
# nsys and ncu that is installed. Their reports go to $O/profile, the summaries to stdout.
#   nsys: what ran when, on CPU and GPU; its ranges (NVTX) are the stage, the unit, the operation
#   ncu:  what one kernel is bound by
# Environment: O, the build folder; STAGE, the stage. Where nothing can be profiled: a sentence, and 0.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${O:=build}" "${STAGE:=render}"
tools=$1
shift
none() { echo "profile did not run: $1"; exit; }
found=
for tool in $tools; do
    case $tool in
    nsys | ncu) command -v "$tool" >/dev/null && found="$found $tool" ;;
    *) echo "profile: PROFILERS are nsys and ncu, not '$tool'" >&2; exit 2 ;;
    esac
done
[ -n "$found" ] || none "none of $tools is installed; they come with the CUDA toolkit, as nsight-systems and nsight-compute"
tests/gpu/has_gpu || none 'no GPU'

out=$O/profile
mkdir -p "$out" || exit 74
if [ $# -eq 0 ]; then
    db=$out/scene/bake/manifest.db
    rm -rf "$out/scene"
    echo "profile: kiln-$STAGE over 200,000 Gaussians and 8 cameras" >&2
    "$O/bin/kiln-generate" scene "$out/scene" --gaussians 200000 --cameras 8 --size 1280x720 --quiet || exit
    for stage in import knn prune chunk tiles render; do
        case $stage in import) at=("$out/scene" "$db") ;; *) at=("$db") ;; esac
        [ "$stage" = "$STAGE" ] && break
        "$O/bin/kiln-$stage" "${at[@]}" --devices cuda --quiet || exit
    done
    set -- "$O/bin/kiln-$STAGE" "${at[@]}" --devices cuda --force
fi

bad=0
for tool in $found; do
    report=$out/$STAGE-$tool
    echo "== $tool $*"
    case $tool in
    nsys) # workers are children of the program; nsys follows them
        nsys profile --trace=cuda,nvtx,osrt --force-overwrite=true -o "$report" "$@" &&
            nsys stats --force-export=true --report nvtx_sum --report cuda_gpu_kern_sum --report cuda_gpu_mem_time_sum \
                "$report.nsys-rep" || bad=1
        ;;
    ncu) # the card's clocks stay as they are: others may be computing on it, and figures are those of make bench
        ncu --clock-control none --target-processes all --nvtx --launch-count 40 --force-overwrite -o "$report" "$@" &&
            ncu --import "$report.ncu-rep" --print-summary per-kernel && continue
        bad=1
        echo 'profile: ncu reads counters that only root may read, unless the driver has NVreg_RestrictProfilingToAdminUsers=0' >&2
        ;;
    esac
done
[ $bad != 0 ] || echo "profile: reports are in $out, nsys-ui and ncu-ui open them"
exit $bad
