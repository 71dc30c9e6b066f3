#!/bin/bash
# make wheel: one file, for any Python, that pip installs without a network into an environment which has numpy; the package there
# finds its own library and kiln, reads a bake as kiln-verify does, and draws with kiln-render's bits. Made again it has the same bytes.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import numpy' 2>/dev/null || skip "no numpy in $(command -v python3)"
O=${KILN_BIN%/bin} at=$KILN_TMP/at db=$KILN_TMP/b/manifest.db
mkdir "$at"
python3 -m venv --system-site-packages "$at/venv" >"$at/said" 2>&1 || skip "no venv: $(tail -1 "$at/said")"
unset PYTHONPATH SPLATKILN_LIBRARY SPLATKILN_BIN
env -u CUDA -u CUDA_ARCHS SOURCE_DATE_EPOCH=1700000000 make -s O="$O" PYTHON=python3 wheel >"$at/said" 2>&1 || { cat "$at/said"; fail "make wheel"; }
wheel=$(tail -1 "$at/said")
version=$("$KILN_BIN/kiln" --version); version=${version#kiln }
[ "${wheel##*/}" = "splatkiln-$version-py3-none-linux_$(uname -m).whl" ] || fail "another name: $wheel"
cp "$wheel" "$at" && env -u CUDA -u CUDA_ARCHS SOURCE_DATE_EPOCH=1700000000 make -s O="$O" PYTHON=python3 wheel >/dev/null || fail "make wheel again"
cmp "$wheel" "$at/${wheel##*/}" || fail "made again, it has other bytes"
"$at/venv/bin/pip" install --no-index "$at/${wheel##*/}" >"$at/said" 2>&1 || { cat "$at/said"; fail "pip install"; }

# nothing but glibc and libstdc++ comes from elsewhere
package=$(cd / && "$at/venv/bin/python" -c 'import splatkiln, os; print(os.path.dirname(splatkiln.__file__))')
case $package in "$at"/venv/*) ;; *) fail "another package: $package" ;; esac
for file in "$package/lib/libsplatkiln.so.1" "$package/bin/kiln"; do
    ! ldd "$file" | grep -vE "$package/|linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so" || fail "$file needs what the wheel lacks"
done
[ "$("$at/venv/bin/kiln" --version)" = "kiln $version" ] || fail "the command kiln"

# bakes by the wheel's programs alone, read and drawn by its package
scene "$KILN_TMP/s" 2000 2 64x48
for stage in import knn prune chunk tiles; do
    args=("$db"); [ $stage != import ] || args=("$KILN_TMP/s" "$db")
    env -i PATH=/usr/bin:/bin "$at/venv/bin/kiln" $stage "${args[@]}" --quiet >/dev/null || fail "kiln $stage of the wheel"
done
digest "$db" | grep -v '^image' >"$at/digests"
(cd / && "$at/venv/bin/python" -m splatkiln "$db") >"$at/mine" || fail "python -m splatkiln"
diff "$at/digests" "$at/mine" >&2 || fail "other digests than kiln-verify's"
kiln render "$db" --camera cam1 --devices cpu -o "$at/cam1.npy" >/dev/null || fail "kiln-render"
(cd / && "$at/venv/bin/python" - "$db" "$at/cam1.npy") <<'P' || fail "another picture than kiln-render's"
import sys, numpy, splatkiln
picture = splatkiln.open(sys.argv[1]).draw("cam1")
assert picture[..., 3].mean() > 0.1 and picture.tobytes() == numpy.load(sys.argv[2]).tobytes()
P
echo "$(du -k "$wheel" | cut -f1) KiB, $(unzip -l "$wheel" 2>/dev/null | grep -c 'splatkiln/lib/') libraries"
