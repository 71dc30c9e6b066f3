#!/bin/bash
# The suffix of -o decides the format, and one that is not written is refused with the list of those that are. A folder may have
# dots.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 500 2 48x32
bake s m/manifest.db
db=m/manifest.db
refused() { # words of the sentence, command...
    local words=$1 before; shift
    before=$(find . -type f ! -name out ! -name err | sort)
    must 2 "$@"
    [ "$(grep -c . err)" = 1 ] || fail "not one sentence: $(cat err)"
    for word in $words; do grep -qF -- "$word" err || fail "no '$word' in: $(cat err)"; done
    [ "$before" = "$(find . -type f ! -name out ! -name err | sort)" ] || fail "a refused command wrote a file: $*"
}
is() { # format, file
    case $1 in png) head -c 8 "$2" | grep -qa PNG ;; npy) head -c 6 "$2" | grep -qa NUMPY ;; ply) head -c 3 "$2" |
        grep -q ply ;; esac ||
        fail "'$2' is no $1"
}

# export: what kiln-export --list-formats has is written, not refused
written=,$("$KILN_BIN/kiln-export" --list-formats | awk '{ print $2 }' | paste -sd ,),
for suffix in spz SPZ splat ksplat sog glb gltf ply.gz ply.zst compressed.ply Compressed.PLY csv html xyz v2; do
    [[ $written != *,"${suffix,,}",* ]] || continue

    test_case "export to NAME.$suffix is refused" && (
        refused "NAME.ply chunks" kiln export $db -o "o.$suffix"; grep -qiF ".$suffix" err || fail "no .$suffix in: $(cat err)"
        [ ! -e "o.$suffix" ] || fail "o.$suffix was made"
    ); result
done

test_case 'export: suffixes that do not fit the format' && (
    refused 'NAME.ply chunks' kiln export $db -o o.none
    refused 'NAME.ply chunks' kiln export $db --format ply -o o.none
    refused 'compressed-ply chunks --format' kiln export $db --format chunks -o o.compressed.ply
    refused 'ply chunks --format' kiln export $db --format chunks -o o.ply
    refused "'.' NAME.ply chunks" kiln export $db -o x.png.
    refused "'.' NAME.ply chunks" kiln export $db -o x.ply.
    refused "'.' NAME.png" kiln render $db --camera cam0 -o x.png.
); result

test_case 'export: suffixes that decide the format' && (
    must 0 kiln export $db -o O.PLY && is ply O.PLY
    must 0 kiln export $db -o plain && is ply plain
    must 0 kiln export $db -o new.v2/ && is ply new.v2/scene.ply
    mkdir there.spz && must 0 kiln export $db -o there.spz && is ply there.spz/scene.ply
    must 0 kiln export $db --format chunks -o raw.v2 && [ -s raw.v2/index.json ] || fail 'no raw.v2/index.json'
    must 0 kiln export $db --format chunks && must 0 kiln export $db -o o.ply && is ply o.ply # the suffix is before what is stored
    must 0 kiln export $db -o raw && [ -s raw/index.json ] || fail 'the stored format was forgotten'
); result

# render
for suffix in gif BMP mp4 exr v2; do
    test_case "a picture in NAME.$suffix is refused" && (
        refused "NAME.png NAME.npy .$suffix" kiln render $db --camera cam0 -o "v.$suffix"
        refused "NAME.png NAME.npy .$suffix" kiln render $db --cameras s/cameras.json -o "v.$suffix"
        [ ! -e "v.$suffix" ] || fail "v.$suffix was made"
    ); result
done

test_case 'render: suffixes that do not fit' && (
    refused 'npy --format' kiln render $db --camera cam0 --format png16 -o v.npy
    refused 'png --format' kiln render $db --camera cam0 --format npy -o v.png
    refused '2 cameras' kiln render $db -o v.png
); result

test_case 'render: suffixes that decide the format' && (
    must 0 kiln render $db --camera cam0 -o V.PNG && is png V.PNG
    must 0 kiln render $db --camera cam0 -o V.NPY && is npy V.NPY
    must 0 kiln render $db --camera cam0 --format png16 -o w.png && is png w.png
    [ "$(od -A n -t u1 -j 24 -N 1 w.png | tr -d ' ')" = 16 ] || fail 'w.png has no 16 bits'
    must 0 kiln render $db --camera cam0 --format png16 --depth -o depth.png && is png depth.png && is png depth.depth.png
    must 0 kiln render $db --camera cam0 --format npy -o plain.bare/ && is npy plain.bare/cam0.npy
    must 0 kiln render $db --camera cam0 --format npy -o bare && is npy bare
    must 0 kiln render $db -o frames.v2/ && is png frames.v2/cam1.png
    must 0 kiln render $db -o frames.v2 && is png frames.v2/cam1.png # which is there now
    mkdir there.mp4 && must 0 kiln render $db --camera cam0 -o there.mp4 && is png there.mp4/cam0.png
    must 0 kiln render $db -o frames && is png frames/cam1.png
); result

test_case 'render: JPEG and WebP where a file is named so' && (
    must 0 kiln render $db --camera cam0 -o look.png
    for name in look.jpg look.JPEG look.webp; do
        must 0 kiln render $db --camera cam0 -o $name
        must 2 kiln render $db --camera cam0 -o $name # it says not whose it is
        must 0 kiln compare look.png $name --json
        python3 -c 'import json, sys; p = json.load(open("out"))["psnr"]
sys.exit(not (p is None or p == "inf" or p >= (1000 if sys.argv[1] == "look.webp" else 35)))' $name || fail "$name: $(cat out)"
    done
    [ "$(head -c 3 look.jpg | od -An -tx1 | tr -d ' ')" = ffd8ff ] && [ "$(head -c 4 look.webp)" = RIFF ] || fail 'other formats'
    must 0 kiln render $db --camera cam0 --depth -o deep.jpg && is png deep.depth.png
    must 0 kiln render $db --camera cam0 --crop 8x8+1+1 -o cut.webp
    refused 'alpha PNGs' kiln render $db --camera cam0 --alpha -o a.webp
    refused 'png --format' kiln render $db --camera cam0 --format jpg
    refused '16383 .webp' kiln render $db --camera cam0 --size 16384x1 -o wide.webp
    refused '2 cameras' kiln render $db -o v.jpg
); result

test_case 'generate writes a folder' && (
    refused 'folder' kiln generate scene g.ply --gaussians 10
    must 0 kiln generate scene g.v2 --gaussians 10 --cameras 1 --size 16x16
    [ -s g.v2/scene.ply ] || fail 'no scene in g.v2'
); result
