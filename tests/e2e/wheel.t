#!/bin/bash
# make wheel: one file, for any Python, that pip installs without a network into an environment which has numpy; the package there
# finds its own library and kiln, reads a bake as kiln-verify does, and draws with kiln-render's bits.
# starts first
. tests/e2e/lib.sh
needs_numpy
O=${KILN_BIN%/bin} at=$KILN_TMP/at db=$KILN_TMP/b/manifest.db
mkdir "$at"
python3 -m venv --system-site-packages "$at/venv" >"$at/said" 2>&1 || skip "no venv: $(tail -1 "$at/said")"
unset PYTHONPATH SPLATKILN_LIBRARY SPLATKILN_BIN
wheel_made() { env -u CUDA -u CUDA_ARCHS SOURCE_DATE_EPOCH=1700000000 make -s O="$KILN_MAKE_O" PYTHON=python3 wheel; }
wheel_made >"$at/said" 2>&1 || { cat "$at/said"; fail "make wheel"; }
wheel=$(tail -1 "$at/said")
version=$("$KILN_BIN/kiln" --version); version=${version#kiln }
"$at/venv/bin/pip" install --no-index "$wheel" >"$at/said" 2>&1 || { cat "$at/said"; fail "pip install"; }
package=$at/venv/lib/$(ls "$at/venv/lib")/site-packages/splatkiln
# Away from the source tree, whose package must not be found.
installed() { (cd / && "$at/venv/bin/python" "$@"); }

test_case 'the name says any Python, and made again it has the same bytes' && (
    [ "${wheel##*/}" = "splatkiln-$version-py3-none-linux_$(uname -m).whl" ] || fail "another name: $wheel"
    mv "$wheel" "$at"
    wheel_made >/dev/null
    cmp "$wheel" "$at/${wheel##*/}" || fail "other bytes"
); result

test_case 'pip has installed a package that needs nothing but glibc and libstdc++ from elsewhere' && (
    [ "$(installed -c 'import splatkiln; print(splatkiln.__file__)')" = "$package/__init__.py" ] || fail "another package"
    for file in "$package/lib/libsplatkiln.so.1" "$package/bin/kiln"; do
        ! ldd "$file" | grep -vE "$package/|linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so" || fail "$file needs more"
    done
    [ "$("$at/venv/bin/kiln" --version)" = "kiln $version" ] || fail "the command kiln"
    echo "$(du -k "$at/${wheel##*/}" "$wheel" 2>/dev/null | sed -n '1s/\t.*//p') KiB, $(find "$package/lib" -type f | wc -l) libraries"
); result

test_case 'no library of the wheel is under the GPL alone' && (
    py libraries "$package" >"$at/said" || fail "$(cat "$at/said")"
    ls "$package"/../splatkiln-*.dist-info/licenses >"$at/said"
    ! grep -q jbig "$at/said" || fail "a licence of libjbig"
); result

test_case 'a wheel with the libjbig of the system is refused' && (
    ldd "$KILN_BIN/kiln" | grep -q libjbig || skip 'libtiff of this machine needs no libjbig'
    cp -r "${KILN_BIN%/bin}/wheel/stage" "$at/stage"
    rm "$at/stage/lib/libjbig.so.0"
    ! python3 python/build_wheel.py "$at/stage" "$at" >"$at/said" 2>&1 || fail "a wheel with libjbig is made"
    grep -q 'needs libjbig.so.0, whose licence' "$at/said" || fail "$(cat "$at/said")"
); result

test_case 'its programs bake, its package reads and draws the bake' && (
    scene "$KILN_TMP/s" 2000 2 64x48
    env -i PATH=/usr/bin:/bin "$at/venv/bin/kiln" import "$KILN_TMP/s" "$db" --quiet >/dev/null
    for stage in knn prune chunk tiles; do env -i PATH=/usr/bin:/bin "$at/venv/bin/kiln" $stage "$db" --quiet >/dev/null || fail "$stage"; done
    digest "$db" | grep -v '^image' >"$at/digests"
    installed -m splatkiln "$db" >"$at/mine" || fail "python -m splatkiln"
    diff "$at/digests" "$at/mine" >&2 || fail "other digests than kiln-verify's"
    kiln render "$db" --camera cam1 --devices cpu -o "$at/cam1.npy" >/dev/null || fail "kiln-render"
    installed "$PY_FILE" drawn "$db" "$at/cam1.npy" || fail "another picture than kiln-render's"
); result
