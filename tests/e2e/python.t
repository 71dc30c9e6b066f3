#!/bin/bash
# python/splatkiln reads the bits of kiln-export, kiln-tiles and kiln-render, by Python's modules and by libsplatkiln,
# and refuses damaged manifests; gsplat_from_bake.py draws as gsplat and as kiln-render where gsplat and a GPU are.
. tests/e2e/lib.sh
needs_numpy
O=${KILN_BIN%/bin}
db=$KILN_TMP/b/manifest.db at=$KILN_TMP/at
mkdir "$at"
env -u CUDA -u CUDA_ARCHS PATH=/usr/bin:/bin make -s O="$KILN_MAKE_O" lib >"$at/make" 2>&1 || { cat "$at/make"; fail "make lib"; }
export SPLATKILN_LIBRARY=$O/libsplatkiln.so.1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH}
case $SPLATKILN_LIBRARY in /*) ;; *) SPLATKILN_LIBRARY=$PWD/$SPLATKILN_LIBRARY ;; esac

scene "$KILN_TMP/s" 20000 2 200x120
kiln import "$KILN_TMP/s" "$db" >/dev/null && kiln knn "$db" >/dev/null && kiln prune "$db" >/dev/null &&
    kiln chunk "$db" --max 4096 >/dev/null ||
    fail "bake"
"$KILN_BIN/kiln-tiles" "$db" --quiet --json --profile gsplat-1.5 >"$at/tiles.json" || fail "kiln-tiles"
kiln render "$db" --profile gsplat-1.5 --camera cam1 --devices cpu -o "$at/cam1.npy" >/dev/null || fail "kiln-render"
kiln export "$db" --format chunks -o "$at/chunks" >/dev/null && kiln export "$db" -o "$at/scene.ply" >/dev/null ||
    fail "kiln-export"
kiln info "$db" --json >"$at/info.json" || fail "kiln-info"

test_case 'every array has the digest of kiln-verify, and reading leaves the folder as it was' && (
    digest "$db" | grep -v '^image' >"$at/digests"
    [ "$(grep -c '^table' "$at/digests")" = 2 ] || fail "no tables: $(cat "$at/digests")"
    before=$(cd "$KILN_TMP/b" && find . -type f -printf '%p %s %T@\n' | grep -v -- '-shm' | sort)
    python3 -m splatkiln "$db" >"$at/mine" || fail "python3 -m splatkiln"
    diff "$at/digests" "$at/mine" >&2 || fail "other digests than kiln-verify's"
    [ "$before" = "$(cd "$KILN_TMP/b" && find . -type f -printf '%p %s %T@\n' | grep -v -- '-shm\|-wal' | sort)" ] ||
        fail "reading changes the bake"
); result

ways=library
python3 -c 'import zstandard, xxhash' 2>/dev/null && ways='library modules'
for how in $ways; do
    test_case "the bits of kiln-export, kiln-tiles and kiln-render, by $how" && (
        python3 tests/e2e/python.py "$db" "$at" "$how" || fail "see above"
    ); result
done

test_case 'no zstandard and no library: a sentence, no stack of calls' && (
    SPLATKILN_LIBRARY=/nowhere/lib.so must 1 py no_library "$db"
    grep -q '^splatkiln: cannot load SPLATKILN_LIBRARY' "$KILN_TMP/err" || fail "without a library: $(cat "$KILN_TMP/err")"
); result

test_case 'a copy right below the root looks where the system has libraries' && (
    must 0 env -u SPLATKILN_LIBRARY python3 tests/e2e/python_cases.py library_elsewhere
); result

test_case 'no manifest' && (
    must 1 python3 -m splatkiln "$KILN_TMP/no.db"
    grep -q "^splatkiln: there is no manifest" "$KILN_TMP/err" || fail "no manifest: $(cat "$KILN_TMP/err")"
); result

test_case 'gsplat draws the same pictures' && (
    python3 examples/python/gsplat_from_bake.py "$db" --camera cam1 --reference "$at/cam1.npy" >"$at/gsplat" 2>&1 && code=0 ||
        code=$?
    case $code in
    0) cat "$at/gsplat" ;;
    77) grep -q '^SKIP: .*\(PyTorch\|gsplat\)' "$at/gsplat" || fail "skipped without a reason: $(cat "$at/gsplat")"
    skip "$(sed -n 's/^SKIP: //p' "$at/gsplat")" ;;
    *) cat "$at/gsplat"; fail "gsplat_from_bake.py" ;;
    esac
); result
