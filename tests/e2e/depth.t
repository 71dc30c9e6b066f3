#!/bin/bash
# Depth as numbers whose scale is said, and in colours.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
scene s 3000 2 96x64
mkdir m && bake s m/x.db
before=$(digest m/x.db)
must 0 kiln render m/x.db --camera cam0 --depth --format npy -o a.npy
must 0 "$KILN_BIN/kiln-render" m/x.db --camera cam0 --depth -o b.png
printed=$(sed -n 's/^cam0: depth in scene units = value \* \([^ ]*\)  -> b.depth.png$/\1/p' out)

test_case 'the scale of the numbers is printed, and in the report' && (
    [ -n "$printed" ] || fail "the scale is not printed: $(cat out)"
    must 0 kiln render m/x.db --camera cam0 --depth -o b.png --json
    json 'd["views"][0]["depth_file"] == "b.depth.png" and abs(d["views"][0]["depth_step"] / '"$printed"' - 1) < 1e-8'
); result

test_case 'depth as numbers' && (
    py numbers "$printed" || fail 'depth as numbers'
); result

test_case 'depth in colours' && (
    must 0 kiln render m/x.db --camera cam0 --depth-colours --format npy -o c.npy # numbers for programs, and colours to look at
    py colours || fail 'depth in colours'
); result

test_case 'depth of a part of the picture' && (
    must 0 kiln render m/x.db --camera cam0 --crop 32x16+8+24 --depth --format npy -o d.npy
    py cut_out || fail 'the depth is not cut out'
); result

test_case '--depth is stored like other options, and pictures keep their keys' && (
    must 0 kiln render m/x.db --depth-colours
    [ -e m/renders/cam1.depth.png ] || fail 'no colours'
    must 0 "$KILN_BIN/kiln-render" m/x.db
    grep -q 'nothing to do' err || fail "--depth-colours is not kept: $(cat err)"
    must 0 kiln render m/x.db --no-depth-colours --json
    json 'd["frames_drawn"] == 0'
    [ "$(digest m/x.db)" = "$before" ] || fail 'depth changes the bake'
); result
