#!/bin/bash
# kiln-export --format html without a browser: what is in the page, that nothing of a bake is markup or script in it, and that the
# scene inside is the .sog of the same rows. tests/e2e/viewers.t opens such pages.
. tests/e2e/lib.sh
# py page FILE: checks the policy and prints the scene's JSON; the archive goes to FILE.sog
cd "$KILN_TMP" || exit 1
scene s 600 3 48x32
bake s x.db

test_step 'the page is as it should be, and the scene inside is the .sog' && (
    must 0 kiln export x.db -o x.html
    must 0 kiln export x.db -o x.sog
    py page x.html >scene.json || fail 'the page is not as it should be'
    cmp x.html.sog x.sog || fail 'the scene inside is not the .sog'
    [ -z "$(find . -name '*.tmp.*')" ] || fail "left: $(find . -name '*.tmp.*')"
); result

test_case "cameras are the bake's, moved as the rows are" && (
    must 0 kiln export x.db -o moved.html --rotate 20,-30,40 --scale 2 --translate 5,6,7
    py page moved.html >moved.json || fail 'the moved page'
    kiln info x.db --cameras >cameras.json || fail 'kiln-info --cameras'
    py cameras || fail 'cameras'
); result

test_case 'names of the scene and of cameras are text' && (
    hostile='</script><script>alert(1)</script><img src=x onerror=alert(1)>&quot;"<!--'
    cp x.db hostile.db
    py hostile_names "$hostile" || fail 'names'
    must 0 kiln export hostile.db -o hostile.html
    py page hostile.html >hostile.json || fail 'a name is more than a text'
    py names_kept "$hostile" || fail 'names are not what they were'
); result

test_case 'without a viewer there is a sentence, and a new one makes the page due' && (
    KILN_VIEWER=$PWD/none must 3 kiln export x.db -o none.html
    grep -q 'make viewer' err && [ "$(grep -c . err)" = 1 ] && [ ! -e none.html ] || fail "without the viewer: $(cat err)"
    mkdir v && cp "$KILN_VIEWER"/viewer.* v
    said() { KILN_VIEWER=$PWD/v "$KILN_BIN/kiln-export" x.db --format html 2>&1; }
    [[ $(said) == *'written to'* && $(said) != *'written to'* ]] || fail 'a page that is there is written again, or was not written'
    echo '// newer' >>v/viewer.js
    [[ $(said) == *'written to'* ]] || fail 'a new viewer does not make the page due'
    for text in '</script>' '<!--' $'\303\244' $'\r'; do
        printf '"%s"' "$text" >v/viewer.js
        KILN_VIEWER=$PWD/v must 3 kiln export x.db -o bad.html
        grep -q 'make viewer' err && [ ! -e bad.html ] || fail "viewer.js with $text: $(cat err)"
    done
); result

test_case 'a scene of several pieces' && (
    [ -n "$KILN_SHARED" ] || skip 'no reference data'
    kiln import "$KILN_SHARED/scenes/files/guitar_90854.compressed.ply" g.db >/dev/null || fail 'import'
    must 0 kiln export g.db --layer source -o g.html --add g.db --add g.db
    must 0 kiln export g.db --layer source -o g.sog --add g.db --add g.db
    py page g.html >g.json || fail 'the large page'
    cmp g.html.sog g.sog || fail 'the large scene inside is not the .sog'
    python3 -c 'import json; assert json.load(open("g.json"))["pieces"] > 1' || fail 'one piece'
); result
