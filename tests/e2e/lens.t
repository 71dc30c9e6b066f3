#!/bin/bash
# Cameras with lenses: drawn as the pinhole of their undistorted photos and measured, whatever the model; --undistort-blank,
# --undistort-filter and --ignore-distortion; --write-undistorted, which leaves nothing half-written. (e2e/lens_colmap.t compares
# with COLMAP's image_undistorter, unit/lens has the arithmetic.)
# time-limit: 1200
# starts first
. tests/e2e/lib.sh
read -ra cc <<<"${CC:-gcc}" # make CC='ccache gcc' has two words
command -v python3 >/dev/null && command -v "${cc[0]}" >/dev/null || skip "no python3 or C compiler to make photos with"
root=$PWD
cd "$KILN_TMP" || exit 1
says() { grep -qE -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }
lens() { python3 "$root/tests/e2e/lens.py" "$@" || fail "lens.py $1"; }
# every view of a report is measured; with a number, by so many dB at least
measured() { py measured "$1" "${2:-0}" || fail "not measured: $1"; }

kiln generate demo s --gaussians 500 --cameras 4 --size 64x48 >/dev/null || fail generate
mkdir d d/images && mv s/images/*.png d/images && cp s/scene.ply d
frames() { # k1: a data set with that lens
    py data_set "$1"
}
camera() { python3 -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT width, height, fx, distorted FROM camera").fetchone())' "$1"; }
frames -0.2

test_step 'photos are undistorted for metrics' && (
    must 0 "$KILN_BIN/kiln-import" d d.db
    says '^kiln-import: lens: OPENCV, 4 of 4 distorted: photos are undistorted for metrics$' err
    for s in knn prune chunk tiles; do kiln "$s" d.db >/dev/null || fail "$s"; done
    must 0 "$KILN_BIN/kiln-render" d.db --json
    measured out
    cp out first
    ! grep -i distort err || fail "render speaks of distortion"
    digest d.db >undistorted
    must 0 "$KILN_BIN/kiln-render" d.db
    says 'nothing' err
); result

test_case 'a lens that is a little another one has the same pinhole and other numbers' && (
    frames -0.201
    must 0 "$KILN_BIN/kiln-import" d d.db
    for s in knn prune chunk tiles; do kiln "$s" d.db >/dev/null || fail "$s"; done
    must 0 "$KILN_BIN/kiln-render" d.db --json
    measured out
    ! grep -F 'nothing to do' err || fail "another lens, and nothing is done"
    digest d.db | diff undistorted - || fail "a lens with the same pinhole changes pictures"
    python3 -c 'import json
a, b = ([v["psnr"] for v in json.load(open(f))["views"]] for f in ("first", "out"))
assert a != b, a' || fail "the lens is not in the key"
    frames -0.2
    must 0 "$KILN_BIN/kiln-import" d d.db
    for s in knn prune chunk tiles; do kiln "$s" d.db >/dev/null || fail "$s"; done
    must 0 "$KILN_BIN/kiln-render" d.db
); result

test_case 'another filter: other numbers, the same pictures' && (
    must 0 "$KILN_BIN/kiln-render" d.db --json --undistort-filter lanczos
    measured out
    digest d.db | diff undistorted - || fail "a filter changes pictures"
); result

test_case '--undistort-blank 1 takes all of the photo' && (
    must 0 "$KILN_BIN/kiln-import" d d.db --undistort-blank 1
    for s in knn prune chunk tiles; do kiln "$s" d.db >/dev/null || fail "$s"; done
    must 0 "$KILN_BIN/kiln-render" d.db --json
    measured out
    read -r w h f distorted < <(camera d.db)
    [ "$w" -gt 64 ] && [ "$h" -gt 48 ] && [ "$f $distorted" = "50.0 1" ] || fail "the pinhole is not larger: $(camera d.db)"
); result

test_case '--ignore-distortion compares photos as they are' && (
    must 0 "$KILN_BIN/kiln-import" d d.db --ignore-distortion
    says 'lens: OPENCV, 4 of 4 distorted: photos are compared as they are$' err
    for s in knn prune chunk tiles; do kiln "$s" d.db >/dev/null || fail "$s"; done
    must 0 "$KILN_BIN/kiln-render" d.db --json
    measured out
    [ "$(camera d.db)" = "64 48 50.0 0" ] || fail "it is not as it is: $(camera d.db)"
); result

test_case 'wrong values of --undistort-blank and --undistort-filter' && (
    must 2 kiln import d e.db --undistort-blank 1.5
    must 2 kiln import d e.db --undistort-filter cubic
); result

test_step '--write-undistorted writes a data set, the same with any threads' && (
    must 0 "$KILN_BIN/kiln-import" d none.db --write-undistorted u --threads 1
    says '4 photos \(4 undistorted\) and a COLMAP model of pinholes: u$' err
    [ ! -e none.db ] || fail "--write-undistorted imported"
    must 0 kiln import d none.db --write-undistorted ./u2/ --threads 3
    diff -r u u2 || fail "threads change the files"
); result

test_case 'what is written is a data set of pinholes' && (
    must 0 kiln import u u.db # which is a data set of pinholes
    must 0 kiln info u.db --json
    python3 - <<'P' || fail "the model is no model of pinholes"
import json
cameras = json.load(open('out'))['cameras']
assert len(cameras) == 4 and all(not c['distorted'] and c['photo'] for c in cameras), cameras
P
); result

test_case 'filter and blank change what is written' && (
    must 0 kiln import d none.db --write-undistorted u3 --undistort-filter lanczos --undistort-blank 0.5
    ! cmp -s u/images/view_00.png u3/images/view_00.png || fail "filter and blank change nothing"
); result

test_case 'leftovers of a killed process go' && (
    mkdir -p "u9${LEFT}999999999/images" "u9${LEFT}1/images" # of a process that was killed; of one that lives
    must 0 kiln import d none.db --write-undistorted u9
    [ ! -e "u9${LEFT}999999999" ] && [ -d "u9${LEFT}1/images" ] || fail "leftovers: $(ls -d u9*)"
); result

test_case 'a folder that is there' && (
    must 3 kiln import d none.db --write-undistorted u # it is there
    says "'u' exists already and is not empty" err
    mkdir empty && must 0 kiln import d none.db --write-undistorted empty
    diff -r u empty || fail "another folder, other files"
); result

test_case '--translate moves nothing of what is written' && (
    must 0 kiln import d none.db --write-undistorted moved --translate 1,2,3 # points and poses stay in one world
    diff -r u moved || fail "--translate moves the poses and not the points"
); result

test_case 'without a lens photos are written as they are' && (
    frames 0
    must 0 kiln import d none.db --write-undistorted same # no lens: the photos as they are
    must 0 kiln compare d/images same/images
    frames -0.2
); result

test_case 'lenses that leave nothing of a photo, and those that fold it' && (
    frames 1e300
    must 0 "$KILN_BIN/kiln-import" d none.db --write-undistorted blind
    says 'warning: the undistorted photos of 4 of 4 lenses are empty' err
    frames -5
    must 0 "$KILN_BIN/kiln-import" d none.db --write-undistorted folded
    says 'warning: the lens models of 4 of 4 lenses fold back inside the photo' err
    frames -0.2
); result

test_case 'a sound lens is not warned of' && (
    frames -0.2
    must 0 "$KILN_BIN/kiln-import" d none.db --write-undistorted sound
    ! grep lenses err || fail "a sound lens is warned of"
); result

test_case 'SIGTERM leaves nothing half-written' && (
    KILN_FAULT='unit=0:hang' "$KILN_BIN/kiln-import" d none.db --write-undistorted ended 2>err &
    pid=$!
    for _ in $(seq 200); do pgrep -P $pid >/dev/null && break; sleep 0.05; done
    kill -s TERM $pid
    wait $pid && code=0 || code=$?; [ $code = 143 ] || fail "SIGTERM: $(cat err)"
    says "nothing of 'ended' was written" err
    ! grep kept err || fail "units of --write-undistorted are said to be kept"
    ! ls | grep -F ended || fail "a half-written folder stays after SIGTERM"
); result

test_case '--list writes nothing' && (
    must 2 kiln import d none.db --list --write-undistorted both
    [ ! -e both ] || fail "--list wrote"
); result

test_case 'a photo that is damaged, and a full disk, leave nothing half-written' && (
    mv d/images/view_02.png good && head -c 900 good >d/images/view_02.png
    frames -0.2
    must 3 kiln import d none.db --write-undistorted u4
    ! ls | grep -F u4 || fail "a half-written folder stays"
    mv good d/images/view_02.png
    (ulimit -f 1; must 74 kiln import d none.db --write-undistorted u4) 2>/dev/null
    ! ls | grep -F u4 || fail "a half-written folder stays where there is no room"
); result

[ -d "$KILN_SHARED/scenes/chair" ] || skip "the rest needs scenes/chair and scenes/colmap_sculpture"
cp -rL "$KILN_SHARED/scenes/colmap_sculpture" c && chmod -R u+w c
lens bend c/sparse/0/cameras.bin 4 -0.1 0.02 0.001 -0.001

test_case 'a COLMAP model with lenses is measured' && (
    must 0 "$KILN_BIN/kiln-import" c c.db
    says 'lens: OPENCV, 23 of 23 distorted: photos are undistorted for metrics$' err
    for s in knn prune chunk; do kiln "$s" c.db >/dev/null || fail "$s"; done
    must 0 kiln render c.db --json --format none
    measured out
); result

test_step 'a COLMAP model keeps ids, keypoints and tracks' && (
    must 0 kiln import c none.db --write-undistorted cu
    cmp c/sparse/0/points3D.bin cu/sparse/points3D.bin || fail "other points"
    py records c/sparse/0/images.bin cu/sparse/images.bin || fail "the images' records"
); result

test_case 'a model in text gives the same files' && (
    mkdir -p t/sparse/0 && ln -s ../c/images t/images
    lens text c/sparse/0 t/sparse/0
    must 0 kiln import t none.db --write-undistorted tu
    diff -r cu tu || fail "a model in text is written otherwise"
); result

test_case 'every model: photos bent from a drawing are undistorted to the picture of the pinhole' && (
    "${cc[@]}" -O2 -o bend "$root/tests/e2e/bend.c" -lm || fail "compile bend.c"
    chair=$KILN_SHARED/scenes/chair focal=630 size=1500 # 8 poses, one of them for each model; KILN_LENS_EACH=8: each for each
    mkdir draw chair
    must 0 kiln import "$chair/chair.ply" draw.db
    for s in knn prune chunk; do kiln "$s" draw.db >/dev/null || fail "$s"; done
    lens paths "$chair/cameras.json" 8 "$focal" "$size" path.json
    must 0 kiln render draw.db --cameras path.json -o draw/ --format npy --profile gsplat-1.6
    lens model "$chair/cameras.json" 8 chair draw ./bend "$focal" "${KILN_LENS_EACH:-1}" >commands
    bash -e commands || fail "bend"
    cp "$chair/chair.ply" chair
    must 0 "$KILN_BIN/kiln-import" chair chair.db
    says 'lens: [A-Z_]+ and others, [0-9]+ of 18 distorted' err
    for s in knn prune chunk; do kiln "$s" chair.db >/dev/null || fail "$s"; done
    must 0 kiln render chair.db --json --format none --profile gsplat-1.6
    py models
    measured out 38
); result
