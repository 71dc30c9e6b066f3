#!/bin/bash
# Several files as one scene, and scenes that are moved: --add, --translate, --rotate, --scale, --parts. What is moved with its
# cameras is seen as before; what is joined is what one file with all rows is.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to make files and cameras with"
T=$KILN_TMP
tool() { python3 tests/e2e/join.py "$@" || fail "join.py $*"; }
says() { grep -qF -- "$1" "$T/err" || fail "stderr lacks '$1': $(cat "$T/err")"; }
imported() { must 0 kiln import "$@"; }
baked() { imported "$@"; for s in knn prune chunk; do must 0 kiln "$s" "$2"; done; } # SCENE MANIFEST options
draw() { must 0 kiln render "$1" --camera "$2" -o "$3" "${@:4}"; }                    # MANIFEST CAMERA PICTURE
source_ply() { must 0 kiln export "$1" --layer source -o "$2"; }
at_least() { # DB A B: likeness of two pictures
    must 0 kiln compare "$2" "$3" --json
    python3 -c 'import json, sys
v = json.load(sys.stdin)["psnr"]
sys.exit(not (v is None or v >= float(sys.argv[1])))' "$1" <"$T/out" ||
        fail "$2 and $3 are less alike than $1 dB: $(cat "$T/out")"
}
ask() { python3 -c 'import sqlite3, sys
print(*(x for r in sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True).execute(sys.argv[2]) for x in r))' "$@"; }
scene "$T/a" 3000 3 160x100
scene "$T/b" 2000 3 160x100 --seed 7

baked "$T/a" "$T/a.db"
baked "$T/a" "$T/quarter.db" --translate 3,-2,5 --rotate 0,0,90 --scale 2
baked "$T/a" "$T/turned.db" --translate 3,-2,5 --rotate 20,-130,77 --scale 2

test_step 'a scene that is moved with its cameras is drawn alike' && (
    for camera in 0 1 2; do
        draw "$T/a.db" "#$camera" "$T/a$camera.npy"
        draw "$T/quarter.db" "#$camera" "$T/q$camera.npy"
        draw "$T/turned.db" "#$camera" "$T/t$camera.npy"
        at_least 100 "$T/a$camera.npy" "$T/q$camera.npy"
        # camera 1 sees a background Gaussian that lies across its near plane, and float coordinates are too coarse for that one
        [ $camera = 1 ] || at_least 80 "$T/a$camera.npy" "$T/t$camera.npy"
    done
); result

test_case 'the move is recorded' && (
    [ "$(ask "$T/turned.db" 'SELECT transforms FROM scene')" = \
        '[{"rotate":[20.0,-130.0,77.0],"scale":2.0,"translate":[3.0,-2.0,5.0]}]' ] ||
        fail "the move is not recorded: $(ask "$T/turned.db" 'SELECT transforms FROM scene')"
); result

test_step 'cameras of the unmoved world that were moved elsewhere see the moved rows alike' && (
    tool cameras "$T/moved.json" "$T/a/cameras.json" 3,-2,5 20,-130,77 2
    baked "$T/a/scene.ply" "$T/rows.db" --translate 3,-2,5 --rotate 20,-130,77 --scale 2
    source_ply "$T/rows.db" "$T/rows.ply"
    baked "$T/rows.ply" "$T/still.db"
    must 0 kiln render "$T/still.db" --cameras "$T/moved.json" --camera '#0' -o "$T/r.npy"
    at_least 80 "$T/a0.npy" "$T/r.npy"
); result

test_case 'a file of cameras means the same to render and to import' && (
    must 0 kiln render "$T/rows.db" --cameras "$T/a/cameras.json" --camera '#0' -w -o "$T/r.npy"
    at_least 80 "$T/a0.npy" "$T/r.npy"
    baked "$T/a/scene.ply" "$T/rows2.db" --translate 3,-2,5 --rotate 20,-130,77 --scale 2 --cameras "$T/a/cameras.json"
    draw "$T/rows2.db" '#0' "$T/r2.npy"
    cmp "$T/r.npy" "$T/r2.npy" || fail "cameras of a file are elsewhere in render than in import"
); result

test_case 'what moves nothing changes nothing: not a bit, and no key' && (
    before=$(digest "$T/a.db")
    must 0 "$KILN_BIN/kiln-import" "$T/a" "$T/a.db" --translate 0,0,0 --rotate 0,0,0 --scale 1
    says 'nothing to do'
    imported "$T/a" "$T/round.db" --rotate 360,-720,0
    source_ply "$T/round.db" "$T/round.ply"
    source_ply "$T/a.db" "$T/a.ply"
    cmp "$T/a.ply" "$T/a/scene.ply" && cmp "$T/round.ply" "$T/a/scene.ply" || fail "no turn at all changes rows"
    [ "$before" = "$(digest "$T/a.db")" ] || fail "options that do nothing changed the bake"
); result

test_case 'far away digits are kept by an origin' && (
    baked "$T/a" "$T/far.db" --translate 1000000,0,-3000000 --rotate 90,0,0
    draw "$T/far.db" '#0' "$T/f0.npy"
    at_least 70 "$T/a0.npy" "$T/f0.npy"
    [ "$(ask "$T/far.db" 'SELECT abs(origin_x - 1000000) < 100 AND abs(origin_z + 3000000) < 100 FROM scene')" = 1 ] ||
        fail "no origin of a scene that is far away"
); result

test_case 'what a file had of its own is not written again' && (
    mip=tests/data/ply/golden_ply_mip_filter3d_sh0.ply
    imported $mip "$T/mip.db" --rotate 0,90,0
    source_ply "$T/mip.db" "$T/mip1.ply"
    imported "$T/mip1.ply" "$T/mip2.db"
    source_ply "$T/mip2.db" "$T/mip2.ply"
    cmp "$T/mip1.ply" "$T/mip2.ply" || fail "a moved file with filter_3D does not come back"
    [ "$(ask "$T/mip.db" "SELECT count(*) FROM plane WHERE name IN ('extra/filter_3D', 'extra/scale_0', 'extra/opacity')")" = 0 ] ||
        fail "raw columns of moved rows are kept"
); result

test_step 'two files are one with the rows of both' && (
    imported "$T/a/scene.ply" "$T/ab.db" --add "$T/b/scene.ply"
    tool together "$T/both.ply" "$T/a/scene.ply" "$T/b/scene.ply"
    source_ply "$T/ab.db" "$T/ab.ply"
    python3 - "$T/ab.ply" "$T/both.ply" <<'P' || fail "joined rows are not those of both files in their order"
import sys
a, b = (open(p, 'rb').read() for p in sys.argv[1:])
sys.exit(a[a.index(b'end_header'):] != b[b.index(b'end_header'):])
P
    [ "$(ask "$T/ab.db" 'SELECT rows_read, source_format FROM scene')" = '5000 joined' ] || fail "not 5000 rows of a joined scene"
    ask "$T/ab.db" 'SELECT notes FROM scene' | python3 -c '
import json, sys
f = json.load(sys.stdin)["files"]
assert [(x["first_row"], x["rows"]) for x in f] == [(0, 3000), (3000, 2000)] and f[1]["path"].endswith("/b/scene.ply"), f' || fail "no rows of each file"
); result

test_case 'the list of added files is kept, can be emptied, and has absolute paths' && (
    must 0 "$KILN_BIN/kiln-import" "$T/a/scene.ply" "$T/ab.db"
    says 'nothing to do' # the list is kept,
    must 0 kiln import "$T/a/scene.ply" "$T/ab.db" --add ''
    source_ply "$T/ab.db" "$T/ab.ply"
    cmp "$T/ab.ply" "$T/a/scene.ply" || fail "an empty list leaves rows" # emptied,
    (cd "$T/b" && must 0 kiln import ../a/scene.ply ../ab.db --add scene.ply) || exit 1
    # and its paths are absolute
    [ "$(ask "$T/ab.db" "SELECT value FROM parameter WHERE name = 'add'")" = "$T/b/scene.ply" ] ||
        fail "the stored path is not absolute"
); result

test_case 'one of two is moved by itself, and seen as it was alone' && (
    baked "$T/b" "$T/b.db"
    draw "$T/b.db" '#2' "$T/b0.npy" # the profile's near plane stays: others have a background Gaussian between it and twice as far
    tool small "$T/small.ply" "$T/a/scene.ply"
    baked "$T/small.ply" "$T/one.db" --add "$T/b/scene.ply;scale=2;translate=300,0,40;rotate=0,90,0"
    tool cameras "$T/moved.json" "$T/b/cameras.json" 300,0,40 0,90,0 2
    must 0 kiln render "$T/one.db" --cameras "$T/moved.json" --camera '#2' -o "$T/one0.npy"
    at_least 70 "$T/b0.npy" "$T/one0.npy"
); result

test_case 'a file moved by itself has the rows of one moved as a whole' && (
    imported "$T/b/scene.ply" "$T/two.db" --add "$T/b/scene.ply;scale=2;translate=300,0,40;rotate=0,90,0"
    imported "$T/b/scene.ply" "$T/alone.db" --translate 300,0,40 --rotate 0,90,0 --scale 2
    source_ply "$T/alone.db" "$T/alone.ply"
    source_ply "$T/two.db" "$T/one.ply"
    tool together "$T/both.ply" "$T/b/scene.ply" "$T/alone.ply"
    python3 - "$T/one.ply" "$T/both.ply" <<'P' || fail "a file moved by itself has other rows than one moved as a whole"
import sys
a, b = (open(p, 'rb').read() for p in sys.argv[1:])
sys.exit(a[a.index(b'end_header'):] != b[b.index(b'end_header'):])
P
); result

test_case 'both moves: first its own, then that of all' && (
    imported "$T/b/scene.ply" "$T/both.db" --add "$T/b/scene.ply;rotate=0,0,90" --scale 2 --translate 1,2,3
    [ "$(ask "$T/both.db" 'SELECT transforms FROM scene')" = \
        '[{"file":1,"rotate":[0.0,0.0,90.0],"scale":1.0,"translate":[0.0,0.0,0.0]},{"rotate":[0.0,0.0,0.0],"scale":2.0,"translate":[1.0,2.0,3.0]}]' ] ||
        fail "two moves: $(ask "$T/both.db" 'SELECT transforms FROM scene')"
); result

test_case 'the degree of joined files is the largest' && (
    tool degree "$T/flat.ply" "$T/b/scene.ply" 1
    imported "$T/flat.ply" "$T/degree.db" --add "$T/a/scene.ply" --rotate 10,20,30
    [ "$(ask "$T/degree.db" 'SELECT sh_degree FROM scene')" = 3 ] || fail "the degree of joined files is not the largest"
); result

tool column "$T/uchar.ply" "$T/b/scene.ply" uchar label 9
tool column "$T/float.ply" "$T/b/scene.ply" float label 9

test_case 'a column that one file lacks is 0 in its rows' && (
    must 0 "$KILN_BIN/kiln-import" "$T/uchar.ply" "$T/label.db" --add "$T/a/scene.ply"
    says "'$T/a/scene.ply' lacks columns that other files have; its rows have 0 there: label"
    source_ply "$T/label.db" "$T/label.ply"
    py labels "$T/label.ply" || fail "a missing column is not 0"
); result

test_case 'files that cannot be joined' && (
    must 3 kiln import "$T/uchar.ply" "$T/x.db" --add "$T/float.ply"; says "column 'label'"
    tool points "$T/points.ply" "$T/b/scene.ply"
    must 3 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/points.ply"; says 'cannot be joined'
    tool comment "$T/mip.ply" "$T/b/scene.ply" 'SplatRenderMode: mip'
    must 3 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/mip.ply"; says antialiasing
    must 3 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/none.ply"; says none.ply
); result

test_case 'moves that are mistyped' && (
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/b/scene.ply;scale=0"; says '--scale takes'
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/b/scene.ply;rotate=1,2"; says '--rotate takes'
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --add ';scale=2'; says 'names no file'
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --translate 1,2; says '--translate takes three numbers'
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --scale -1
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --translate 1e300,0,0; says '--translate takes three numbers'
    for part in 'rotatte=1,0,0' 'Scale=2' '' 'scale=2;scale=3'; do # mistyped
        must 2 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/b/scene.ply;$part"
        says "';${part%;scale=3}' is none of ;translate=X,Y,Z ;rotate=X,Y,Z ;scale=S"
    done
); result

test_case 'what --add cannot take' && (
    must 3 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/none;x;scale=2"; says "cannot open '$T/none;x'"
    mkdir "$T/sog" && : >"$T/sog/meta.json"
    must 3 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/sog"; says "name its meta.json: '$T/sog/meta.json'"
    must 3 kiln import "$T/a/scene.ply" "$T/x.db" --add "$T/b"; says "'$T/b' of --add is a folder; --add takes a file"
    [ ! -e "$T/x.db" ] || fail "a refusal left a manifest"
); result

test_case 'names of added files hold what they like' && (
    odd="$T/o;scale=3|\\ ;x"
    cp "$T/b/scene.ply" "$odd"; cp "$T/b/scene.ply" "$T/p;scale=3"
    imported "$T/a/scene.ply" "$T/odd.db" --add "$odd" --add "$T/p;scale=3;rotate=0,0,0;scale=1" --add "$odd;scale=2"
    must 0 "$KILN_BIN/kiln-import" "$T/a/scene.ply" "$T/odd.db"; says 'nothing to do'
    [ "$(ask "$T/odd.db" 'SELECT rows_read FROM scene')" = 9000 ] || fail "files of odd names are not all there"
    [ "$(ask "$T/odd.db" 'SELECT transforms FROM scene')" = \
        '[{"file":3,"rotate":[0.0,0.0,0.0],"scale":2.0,"translate":[0.0,0.0,0.0]}]' ] ||
        fail "a name is taken for a move: $(ask "$T/odd.db" 'SELECT transforms FROM scene')"
); result

test_step 'what was joined and moved is said' && (
    cp tests/data/sog/golden_sog_v2_sh3.sog "$T/x.sog" && gzip "$T/x.sog"
    cp "$T/b/scene.ply" "$T/n.ply"
    must 0 "$KILN_BIN/kiln-import" "$T/a" "$T/said.db" --add "$T/n.ply;translate=1,0,0" --add "$T/x.sog.gz" --scale 2 --rotate \
        0,90,0
    says "$T/x.sog.gz (sog, packed, added)"
    says "only '$T/n.ply' is moved: translate 1,0,0"
    says 'moved: all: scale 2, rotate 0,90,0'
    must 0 "$KILN_BIN/kiln-info" "$T/said.db"
    for line in '3 files joined' "file 2: $T/x.sog.gz, 48 rows" 'moved: file 1: translate 1,0,0' 'moved: scale 2, rotate 0,90,0'; do
        grep -qxF "$line" "$T/out" || fail "kiln-info does not say '$line': $(cat "$T/out")"
    done
); result

test_case 'an added file that is gone' && (
    rm "$T/n.ply"
    must 3 kiln import "$T/a" "$T/said.db"; says "--add '' forgets that list"
    must 0 "$KILN_BIN/kiln-import" "$T/a" "$T/said.db" --add ''
    says 'moved: scale 2, rotate 0,90,0'
    must 0 "$KILN_BIN/kiln-import" "$T/b" "$T/said.db"
    says "was made from '$T/a/scene.ply' and is replaced by '$T/b/scene.ply'"
); result

test_case 'of a bake that was neither moved nor joined nothing is said' && (
    must 0 "$KILN_BIN/kiln-info" "$T/a.db"
    ! grep -qE 'moved|joined' "$T/out" || fail "nothing was moved or joined: $(cat "$T/out")"
); result

test_case 'a folder of parts' && (
    tool parts "$T/parts" "$T/a/scene.ply" 3
    cp "$T/a/cameras.json" "$T/parts"
    imported "$T/parts" "$T/parts.db" --parts
    source_ply "$T/parts.db" "$T/parts.ply"
    python3 - "$T/parts.ply" "$T/a/scene.ply" <<'P' || fail "parts are not the whole"
import sys
a, b = (open(p, 'rb').read() for p in sys.argv[1:])
sys.exit(a[a.index(b'end_header'):] != b[b.index(b'end_header'):])
P
    [ "$(ask "$T/parts.db" 'SELECT count(*) FROM camera WHERE NOT synthetic')" = 3 ] || fail "parts have no cameras"
); result

test_case 'a file has no parts' && (
    must 2 kiln import "$T/a/scene.ply" "$T/x.db" --parts; says 'a file'
); result

test_case 'a folder with cameras alone: the rows are added ones' && (
    mkdir "$T/views"; cp "$T/a/cameras.json" "$T/views"
    imported "$T/views" "$T/views.db" --add "$T/a/scene.ply;translate=1,0,0" --add "$T/b/scene.ply"
    [ "$(ask "$T/views.db" 'SELECT rows_read, source_path FROM scene')" = "5000 $T/a/scene.ply" ] ||
        fail "a scene of added rows alone"
    [ "$(ask "$T/views.db" 'SELECT transforms FROM scene')" = \
        '[{"file":0,"rotate":[0.0,0.0,0.0],"scale":1.0,"translate":[1.0,0.0,0.0]}]' ] ||
        fail "the first added file is not moved: $(ask "$T/views.db" 'SELECT transforms FROM scene')"
    must 0 "$KILN_BIN/kiln-import" "$T/views" "$T/views.db" --list --add "$T/b/scene.ply;scale=3"
    grep -q "uses .*$T/b/scene.ply: ply, 2000 Gaussians, added and moved" "$T/out" ||
        fail "--list has no added file: $(cat "$T/out")"
); result

test_case "kiln pipeline and make take these options with the stage's name alone" && (
    must 2 "$KILN_BIN/kiln" pipeline "$T/a" --out "$T/made" --scale 2; says "did you mean '--import-scale'"
    for name in ADD TRANSLATE ROTATE SCALE FRAME; do
        ! make -s O="$KILN_MAKE_O" import SCENE="$T/a" OUT="$T/made" "$name=2" >"$T/err" 2>&1 || fail "make took $name"
        says "IMPORT_$name"
    done
    [ ! -e "$T/made" ] || fail "a refused variable left a bake"
); result

test_step 'kiln pipeline and make join alike' && (
    cp "$T/b/scene.ply" "$T/b|2.ply"
    make -s O="$KILN_MAKE_O" import SCENE="$T/a" OUT="$T/made" IMPORT_SCALE=2 \
        IMPORT_ADD="$T/b/scene.ply;rotate=0,90,0|$T/b\\|2.ply" >"$T/err" 2>&1 ||
        { cat "$T/err"; fail "make IMPORT_ADD"; }
    must 0 "$KILN_BIN/kiln" pipeline "$T/a" --out "$T/front" --stages import --import-scale 2 --import-add \
        "$T/b/scene.ply;rotate=0,90,0" --import-add "$T/b|2.ply"
    same "$T/made/manifest.db" "$T/front/manifest.db"
    [ "$(ask "$T/made/manifest.db" 'SELECT rows_read FROM scene')" = 7000 ] || fail "make joined something else"
); result

test_case 'kiln pipeline can empty the list' && (
    must 0 "$KILN_BIN/kiln" pipeline "$T/a" --out "$T/front" --stages import --import-add ''
    [ "$(ask "$T/front/manifest.db" 'SELECT rows_read FROM scene')" = 3000 ] || fail "a pipeline cannot empty the list"
); result
