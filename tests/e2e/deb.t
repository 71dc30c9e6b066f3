#!/bin/bash
# The Debian packages of a build: what is in them, what they depend on, and that `kiln` bakes from the unpacked package alone; with
# KILN_THOROUGH=1 that lintian finds no error and that the same build gives the same bytes. (make deb packs a release; installing
# needs root.)
# time-limit: 1800
# starts first
. tests/e2e/lib.sh
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || skip "no dpkg-deb or dpkg-shlibdeps"
version=$("$KILN_BIN/kiln" --version); version=${version#kiln }
soname=$(sed -n 's/^SONAME := //p' pipelines/library.mk)
export SOURCE_DATE_EPOCH=1700000000 DEBFULLNAME='A Packager' DEBEMAIL=packager@debian.org
pack() { # folder
    env -u CUDA -u CUDA_ARCHS O="${KILN_BIN%/bin}" OUT_DIR="$1" MAKE=make VERSION="$version" SONAME="$soname" DEB_FLAGS=-z0 \
        pipelines/deb.sh >"$KILN_TMP/pack" 2>&1 || { cat "$KILN_TMP/pack"; fail "deb.sh"; }
}
pack "$KILN_TMP/one"
cd "$KILN_TMP/one" || fail "cd"
lib=libsplatkiln${soname##*.so.}
set -- *.deb

test_case 'there are four packages, and the work folder is gone' && (
    arch=$(dpkg --print-architecture)
    libraries="libsplatkiln-dev_$version-1_$arch.deb ${lib}_$version-1_$arch.deb"
    [ "$*" = "$libraries python3-splatkiln_$version-1_all.deb splatkiln_$version-1_$arch.deb" ] || fail "packages: $*"
    [ -z "$(find . -type d -name work)" ] || fail "the work folder is left"
); result

dev=$1 shared=$2 python=$3 programs=$4

field() { dpkg-deb -f "$1" "$2"; }

test_case 'what the packages depend on' && (
    [[ $(field "$programs" Depends) == *libsqlite3-0*libzstd1* ]] || fail "the programs depend on $(field "$programs" Depends)"
    [[ $(field "$programs" Depends) != *-dev* ]] || fail "the programs need a -dev package"
    [[ $(field "$shared" Depends) != *libpng* ]] || fail "the library depends on $(field "$shared" Depends)"
    [ "$(field "$dev" Depends)" = "$lib (= $version-1)" ] || fail "-dev depends on $(field "$dev" Depends)"
    [ "$(field "$python" Depends)" = "python3 (>= 3.10), python3-numpy, $lib (>= $version-1)" ] ||
        fail "python3-splatkiln depends on $(field "$python" Depends)"
    for p; do [ "$(field "$p" Maintainer)" = 'A Packager <packager@debian.org>' ] || fail "maintainer of $p"; done
    dpkg-deb --ctrl-tarfile "$shared" | tar -xO ./shlibs ./triggers >control || fail "control files of the library"
    grep -qx "libsplatkiln ${soname##*.so.} $lib (>= $version)" control && grep -qx 'activate-noawait ldconfig' control ||
        fail "$(cat control)"
); result

for p; do mkdir "${p%%_*}.d" && dpkg-deb -x "$p" "${p%%_*}.d" || fail "unpack $p"; done
have() { [ -e "$1" ] || fail "no $1"; }
doc=splatkiln.d/usr/share/doc/splatkiln

test_case 'licence, manual pages and completions' && (
    for f in copyright changelog.gz changelog.Debian.gz README.md GLOSSARY.md docs/README.md schema/SCHEMA.md; do have $doc/$f; done
    grep -q 'Permission is hereby granted' $doc/copyright || fail "no licence"
    for path in "$KILN_BIN"/kiln*; do
        name=${path##*/}
        have "splatkiln.d/usr/bin/$name"; have "splatkiln.d/usr/share/man/man1/$name.1.gz"
        [ -s "splatkiln.d/usr/share/bash-completion/completions/$name" ] || fail "no completion of $name"
    done
); result

test_case 'licences of what the interactive viewer contains' && (
    [ -e "${KILN_BIN%/bin}/share/splatkiln/viewer/viewer.js" ] || skip 'no viewer: make viewer'
    for name in three spark fflate esbuild; do grep -qx "License: $name" $doc/copyright || fail "no licence of $name"; done
    ! grep -q viewer.js libsplatkiln-dev.d/usr/share/doc/libsplatkiln-dev/copyright || fail "a package without it speaks of it"
); result

test_case 'packing without the interactive viewer says what makes it' && (
    [ ! -e "${KILN_BIN%/bin}/share/splatkiln/viewer/viewer.js" ] || skip 'the viewer is here'
    grep -q '^deb: splatkiln has no interactive viewer .* make viewer makes it; Debian: apt-get install npm$' "$KILN_TMP/pack" ||
        fail "$(cat "$KILN_TMP/pack")"
); result

test_case 'scripts and examples of the programs' && (
    have splatkiln.d/usr/share/man/man1/kiln-pipeline.1.gz
    have splatkiln.d/usr/share/zsh/vendor-completions/_kiln
    have splatkiln.d/usr/share/splatkiln/slurm/job.sh
    have splatkiln.d/usr/share/doc/splatkiln/examples/kubernetes/job.yaml
    for file in object-store.sh aws-batch/job-definition.json aws-batch/submit.sh openjd/bake.json; do
        have "splatkiln.d/usr/share/doc/splatkiln/examples/$file"
    done
); result

test_case 'headers, examples and the pkg-config file of the library' && (
    have libsplatkiln-dev.d/usr/include/splatkiln/schema/manifest.h
    have libsplatkiln-dev.d/usr/share/doc/libsplatkiln-dev/examples/draw_camera.c
    have libsplatkiln-dev.d/usr/share/doc/libsplatkiln-dev/examples/python/gsplat_from_bake.py
    have python3-splatkiln.d/usr/share/doc/python3-splatkiln/python.md
    have libsplatkiln-dev.d/usr/share/doc/libsplatkiln-dev/SCHEMA.md
    (shopt -s nullglob; set -- libsplatkiln-dev.d/usr/lib/*/libsplatkiln.a "$lib".d/usr/lib/*/"$soname"; [ $# = 2 ]) ||
        fail "no libraries"
    grep -qx 'libdir=${prefix}/lib/.*' libsplatkiln-dev.d/usr/lib/*/pkgconfig/splatkiln.pc || fail "libdir of the pkg-config file"
); result

test_case 'no path of this machine is in a file' && (
    ! grep -r -e "$KILN_TMP" -e '-L/' --include=*.pc . || fail "a path of this machine is in a file"
); result

# A minute more, for the same packages each time: KILN_THOROUGH=1 asks lintian, and packs once more.
thorough=${KILN_THOROUGH:-}${KILN_NO_SKIP:-}

test_case 'lintian finds no error' && (
    [ -n "$thorough" ] || skip 'KILN_THOROUGH=1 asks lintian'
    command -v lintian >/dev/null || skip 'no lintian'
    lintian -- "$@" >lintian 2>&1
    ! grep '^E:' lintian || fail "lintian"
); result

cd - >/dev/null || fail "cd"

test_case 'links of the pages lead to files of the package' && (
    python3 tests/e2e/docs.py links "$KILN_TMP/one/$doc" || fail "links"
); result

test_case 'the same build packs the same bytes' && (
    [ -n "$thorough" ] || skip 'KILN_THOROUGH=1 packs once more'
    pack "$KILN_TMP/two"
    for p; do cmp "$KILN_TMP/one/$p" "$KILN_TMP/two/$p" || fail "packed again, $p has other bytes"; done
); result

test_case 'the Python package loads the library of these packages' && (
    python3 -c 'import numpy' 2>/dev/null || skip 'no numpy'
    folder=$(dirname "$KILN_TMP"/one/"$lib".d/usr/lib/*/"$soname")
    said=$(cd / && env -u SPLATKILN_LIBRARY LD_LIBRARY_PATH="$folder" \
        PYTHONPATH="$KILN_TMP/one/python3-splatkiln.d/usr/lib/python3/dist-packages" python3 -c '
import splatkiln
print(splatkiln.__file__, splatkiln.library()._name)') || fail "it cannot be imported"
    case $said in "$KILN_TMP/one/python3-splatkiln.d/"*" $soname") ;; *) fail "the Python package: $said" ;; esac
); result

test_case 'kiln bakes from the unpacked package alone' && (
    kiln generate scene "$KILN_TMP/s" --gaussians 2000 --cameras 2 --size 64x48 >/dev/null || fail "generate"
    must 0 "$KILN_TMP/one/splatkiln.d/usr/bin/kiln" pipeline "$KILN_TMP/s"
    must 0 kiln verify "$KILN_TMP/s/bake/manifest.db"
); result
