#!/bin/bash
# A SOG folder, its meta.json and an archive of the same files are one scene, under --ram, with nothing left in scratch. Each of its
# images is a source: another one means another scene. Levels of detail are chosen and said.
data=$PWD/tests/data/sog
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
says() { grep -qE -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }
noted() { python3 -c 'import json, sys
n = [f["notes"] for f in json.load(open("out"))["findings"] if f["used"] and f["role"] == "splats"]
assert len(n) == 1 and sys.argv[1] in n[0], n' "$1" || fail "no '$1' in the findings: $(cat out)"; }
cp -r "$data/golden_lod" lod && cp -r lod/0_0 folder && chmod -R u+w lod folder
py pack || fail 'cannot pack'
mkdir scratch
for scene in folder folder/meta.json archive.sog; do
    test_step "$scene is one scene" && (
        db=$(tr / - <<<"$scene").db
        must 0 kiln import $scene "$db" --ram 120M --scratch-dir scratch --json
        grep -q '"rows_read": 32,' out || fail "$scene: $(cat out)"
        same folder.db "$db"
        [ -z "$(ls scratch)" ] || fail "scratch keeps $(ls scratch)"
        must 0 kiln import $scene "$db" --json && grep -q 'nothing to do' out || fail "imported twice: $(cat out)"
    ); result
done

test_case 'packed once more' && (
    gzip -k archive.sog && gzip -k folder/meta.json
    must 0 kiln import archive.sog.gz packed.db && same folder.db packed.db
    mv folder/meta.json.gz folder/other.json.gz
    must 3 kiln import folder/other.json.gz bad.db && says 'is a packed meta.json, whose images are not looked for; unpack it' err
    rm folder/other.json.gz
); result

test_case 'an image that changes is noticed, although meta.json stays as it is' && (
    sources=$(python3 -c 'import sqlite3
print(*sorted(r[0].rsplit("/", 1)[1] for r in sqlite3.connect("folder.db").execute("SELECT path FROM source_file")))')
    [ "$sources" = 'means_l.webp means_u.webp meta.json quats.webp scales.webp sh0.webp' ] || fail "sources are: $sources"
    cp folder/means_l.webp folder/scales.webp
    must 0 kiln import folder folder.db --json && ! grep -q 'nothing to do' out || fail 'another image is not noticed'
    digest folder.db >changed && digest archive.sog.db >first && ! cmp -s changed first || fail 'another image gives the same rows'
); result

test_case 'a whole set is not spoken of' && (
    must 0 "$KILN_BIN/kiln-import" lod lod.db && ! grep -q 'level' err || fail "a whole set is spoken of: $(cat err)"
); result

test_step 'a level is chosen and said' && (
    must 0 "$KILN_BIN/kiln-import" lod coarse.db --lod 1 && says 'level 1 is read, 16 Gaussians' err
    ! grep 'warning' err || fail 'a whole set that is read as wished is warned of'
); result

test_case '--list says which level is read' && (
    must 0 "$KILN_BIN/kiln-import" lod no.db --list --lod 1 &&
        says '^notes +Gaussians +lod-meta.json: .*level 1 is read, 16 Gaussians; its environment of 12' out
); result

rm -r lod/0_1

test_case '--list says which files are missing' && (
    must 0 "$KILN_BIN/kiln-import" lod no.db --list &&
        says '^notes +Gaussians +lod-meta.json: .*because 1 file is missing: 0_1/meta.json' out
    must 0 kiln import lod no.db --list --json && noted 'because 1 file is missing: 0_1/meta.json'
); result

test_case '--list has no notes without a word' && (
    must 0 "$KILN_BIN/kiln-import" folder no.db --list && ! grep -q '^notes' out || fail "notes without a word: $(cat out)"
); result

test_case "without a level's files the next one is read" && (
    must 0 "$KILN_BIN/kiln-import" lod lod.db &&
        says 'without level 0 \(60 Gaussians\), because 1 file is missing: 0_1/meta.json' err
    same coarse.db lod.db
); result

test_case 'a level that there is not' && (
    must 3 kiln import lod none.db --lod 7 && says 'has the levels 0 to 1' err
    [ ! -e none.db ] || fail 'a refused level leaves a manifest'
); result
