#!/bin/bash
# SOG: what is read back is what was baked, within half a step of the codes; the bytes are the same for any threads, workers and
# --ram; a file that was read from SOG keeps its codes; the folder has the archive's files; a folder with other files is left alone.
# The flag of an antialiased scene comes back, and what is above degree 3 is left out with a sentence.
steps="python3 $PWD/tests/e2e/spz_steps.py"
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
command -v python3 >/dev/null || skip 'no python3'
digest_of() { kiln verify "$1" --digest | grep '^layer source'; }
scene s 4000 1 32x24
kiln import s b.db >/dev/null && kiln knn b.db >/dev/null && kiln prune b.db >/dev/null && kiln chunk b.db --max 1500 >/dev/null ||
    fail 'chunk'
must 0 kiln export b.db --order baked -o b.ply

for degree in 0 1 2 3; do
    test_step "degree $degree: the same bytes, and what is read is written again as it was" && (
        must 0 kiln export b.db --sh-degree $degree -o one.sog --threads 1
        for how in '--threads 2' '--workers 3' '--ram 300M'; do
            # shellcheck disable=SC2086
            must 0 kiln export b.db --sh-degree $degree -o other.sog $how
            cmp one.sog other.sog || fail "degree $degree: other bytes with $how"
        done
        cp one.sog $degree.sog
        kiln import $degree.sog $degree.db >/dev/null || fail "import of degree $degree"
        must 0 kiln export $degree.db --layer source -o $degree.ply
        must 0 kiln export $degree.db --layer source -o again$degree.sog
        kiln import again$degree.sog again$degree.db >/dev/null || fail 'import again'
        [ "$(digest_of $degree.db)" = "$(digest_of again$degree.db)" ] ||
            fail "degree $degree: what was read is written as something else"
    ); result
done

test_case 'values are within half a step of the codes, and the archive is plain' && (
    py values_and_archive || fail 'values or archive'
); result

test_step 'degree 4 is cut to 3, which is said' && (
    $steps make flat.ply 4 1500 && sed '0,/^format.*/s//&\ncomment SplatRenderMode: mip/' flat.ply >mip.ply ||
        fail 'cannot write the scene'
    kiln import mip.ply mip.db >/dev/null || fail 'import of degree 4'
    must 0 "$KILN_BIN/kiln-export" mip.db --layer source -o mip.sog
    grep -q 'SOG holds no spherical harmonics above degree 3' err || fail "degree 4: $(cat err)"
    must 0 "$KILN_BIN/kiln-export" mip.db --layer source --sh-degree 3 -o cut.sog
    ! grep -q 'warning' err && cmp mip.sog cut.sog || fail "degree 3 of it: $(cat err)"
    must 0 kiln export mip.db --layer source --format sog-folder -o mip
); result

for word in both model antialias; do
    test_case "the flag of an antialiased scene: $word" && (
        py flag $word || fail "the flag in meta.json with $word: $(head -c 200 mip/meta.json)"
        cp -r mip one-word && cp meta.json one-word/
        kiln import one-word flag.db --force >/dev/null || fail "import with $word"
        must 0 kiln export flag.db --layer source -o flag.sog
        grep -aq '"model":"antialiased","antialias":true' flag.sog || fail "the flag is lost with $word"
        must 0 kiln export flag.db --layer source -o flag.ply
        head -c 400 flag.ply | grep -aq 'SplatRenderMode: mip' || fail "the flag is lost in a PLY with $word"
        rm -r one-word flag.db
    ); result
done

# the folder: the same files; replaced where all is ours, else left alone
must 0 kiln export b.db --format sog-folder -o folder
must 0 kiln export b.db --format sog-folder -o folder
python3 -c 'import zipfile; zipfile.ZipFile("3.sog").extractall("out-of-zip")'

test_case "the folder has the archive's files, and one with other files is left alone" && (
    diff -r folder out-of-zip || fail 'folder and archive differ'
    kiln import folder folder.db >/dev/null && [ "$(digest_of folder.db)" = "$(digest_of 3.db)" ] ||
        fail 'the folder is another scene'
    touch folder/mine
    must 2 kiln export b.db --format sog-folder -o folder
    [ -e folder/mine ] && grep -q "holds 'mine'" err || fail "a folder with other files: $(cat err)"
); result

test_case 'an image that is gone or emptied is written again' && (
    must 0 kiln export b.db --format sog-folder
    for image in means_l.webp shN_labels.webp; do
        cp export/sog/$image kept.webp
        for damage in rm 'truncate -s 0'; do
            $damage export/sog/$image
            must 0 kiln export b.db --format sog-folder
            cmp export/sog/$image kept.webp || fail "$damage $image: it is not written again"
        done
    done
    "$KILN_BIN/kiln-export" b.db --format sog-folder 2>&1 | grep -q 'nothing to do' || fail 'a whole folder is written again'
); result

test_case 'the --ram that the first refusal names is enough for all rounds' && (
    for format in sog sog-folder; do
        must 5 kiln export b.db --format $format -o capped/$format --ram 8M --threads 1
        least=$(sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err)
        [ -n "$least" ] || fail "$format: the least --ram is not named: $(cat err)"
        must 0 kiln export b.db --format $format -o capped/$format --ram "${least}M" --threads 1
    done
    cmp capped/sog 3.sog && diff -r capped/sog-folder out-of-zip || fail 'other bytes with the least --ram'
); result

test_case 'the folder where one is' && (
    mkdir empty link-to && ln -s link-to link
    (cd empty && kiln export ../b.db --format sog-folder -o .) || fail '-o . in an empty folder'
    kiln export b.db --format sog-folder -o link || fail 'a link to a folder'
    for to in empty link-to; do diff -r out-of-zip $to || fail "$to is another scene"; done
    [ -L link ] && [ -z "$(find . -name '*.tmp.*')" ] || fail "left: $(ls -la . empty)"
); result

# files of other programs keep their codes: rows equal, whatever the order of the palette
for sample in ${KILN_SHARED:+"$KILN_SHARED"/samples/golden_sog_v2_sh?.sog "$KILN_SHARED"/scenes/files/*.sog}; do
    test_case "${sample##*/} keeps its codes" && (
        kiln import "$sample" sample.db --force >/dev/null || fail "import of $sample"
        must 0 kiln export sample.db --layer source -o sample.sog
        kiln import sample.sog back.db --force >/dev/null || fail "import of what $sample became"
        must 0 kiln export sample.db --layer source -w -o x.csv
        must 0 kiln export back.db --layer source -w -o y.csv
        py kept "$sample" || fail "$sample is not kept"
        rm -rf sample.db back.db
    ); result
done
