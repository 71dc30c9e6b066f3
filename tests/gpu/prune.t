#!/usr/bin/env bash
# Forecasts of pairs on a GPU: the CPU's numbers, of sound scenes and of those that the rules change, with planes on the device and
# without; rules by what cameras see, on two GPUs as well; and auto counts on the GPU where that is long, although it prunes on the CPU.
. tests/gpu/lib.sh
numbers() { python3 -c "
import json, sys
r = json.load(open(sys.argv[1]))
print(*(json.dumps(r[k], sort_keys=True) for k in ('rows', 'kept', 'rules', 'scales', 'opacities', 'cameras')), sep='\n')" "$1"; }
# case NAME MANIFEST ARGUMENTS...: the same on the CPU and on a GPU, and on those that DEVICES names
case_of() {
    local name=$1 from=$2 devices db; shift 2
    for devices in cpu cuda ${DEVICES:-}; do
        db=$KILN_TMP/$name.$devices.db
        cp "$from" "$db" || fail copy
        on "$devices" prune "$db" "$@"
        numbers "$KILN_TMP/report.json" >"$KILN_TMP/$name.$devices"
        digest "$db" >>"$KILN_TMP/$name.$devices"
        echo "$name on $devices: $(field wall_s) s, at most $(field vram_peak_bytes) bytes of the GPU"
    done
    for devices in cuda ${DEVICES:-}; do
        diff "$KILN_TMP/$name.cpu" "$KILN_TMP/$name.$devices" >&2 || fail "$name: --devices $devices counts otherwise"
    done
}
for kind in sound broken most; do # by default rules rest on the second and act on the third
    case $kind in sound) explode=0 ;; broken) explode=1 ;; most) explode='400 --explode-by 6' ;; esac
    rows=400000; [ $kind != most ] || rows=12000
    scene "$KILN_TMP/$kind" $rows 24 1280x720 --explode $explode
    kiln import "$KILN_TMP/$kind" "$KILN_TMP/$kind.db" >/dev/null && kiln knn "$KILN_TMP/$kind.db" >/dev/null || fail "bake $kind"
done
case_of sound "$KILN_TMP/sound.db"
case_of acts "$KILN_TMP/most.db"
case_of rests "$KILN_TMP/broken.db"
case_of broken "$KILN_TMP/broken.db" --max-spacing 32 --max-extent 0.5
case_of broken-vram "$KILN_TMP/broken.db" --max-spacing 32 --vram 24M
case_of faint "$KILN_TMP/broken.db" --min-opacity 0.3 --sizes 64,640
case_of clamped "$KILN_TMP/broken.db" --max-spacing 32 --max-spacing-policy clamp --filter-box '-,-,-,-,-,0'
case_of merged "$KILN_TMP/sound.db" --merge --merge-distance 1
case_of dry "$KILN_TMP/broken.db" --max-spacing 32 --dry-run

# Rules that go by what cameras see, and by neighbours: on the second GPU alone and on all of them, too.
seen() {
    case_of keep "$KILN_TMP/sound.db" --keep 50% --min-contribution 0.001 --outlier-sor 8,2
    case_of visibility "$KILN_TMP/broken.db" --min-visibility 0.05
    case_of keep-vram "$KILN_TMP/sound.db" --keep 100000 --vram 256M --threads 2
}
if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
    echo 'one GPU: the second and both together were not asked for'
    seen
else # --devices are numbers of the machine here
    (unset CUDA_VISIBLE_DEVICES; DEVICES='1 all' seen) || fail 'rules on two GPUs'
fi

# 144 views of 400,000 rows are long for 8 threads, 24 are not
export KILN_GPU_MS= # what opening a GPU takes is as it is
on auto prune "$KILN_TMP/sound.db" --threads 8 --dry-run
case $(field device) in *cuda*) fail "a short forecast took the GPU: $(field device)" ;; esac
on auto prune "$KILN_TMP/sound.db" --threads 8 --sizes 64,128,256,512,1024,2048
case $(field device) in *cuda*) ;; *) fail "a long forecast was not counted on the GPU: $(field device)" ;; esac
numbers "$KILN_TMP/report.json" >"$KILN_TMP/auto"
on cpu prune "$KILN_TMP/sound.db" --force --sizes 64,128,256,512,1024,2048
diff "$KILN_TMP/auto" <(numbers "$KILN_TMP/report.json") >&2 || fail 'auto counts otherwise'
nothing_left
