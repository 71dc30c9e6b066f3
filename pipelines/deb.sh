#!/bin/bash
# deb.sh -- Debian packages of a finished build, into $O/deb (or OUT_DIR); `make deb` calls it behind `make release`.
#
#   splatkiln          programs, man pages, completion, pages, examples of baking over hosts: all that somebody needs who bakes
#   libsplatkiln1      the shared library; the number is its SONAME's
#   libsplatkiln-dev   headers, static library, pkg-config file, SCHEMA.md, examples in C and Python
#   python3-splatkiln  python/splatkiln, for any architecture; it loads the shared library
#
# Needs O (the build folder), MAKE, VERSION, SONAME; dpkg-deb and dpkg-shlibdeps (dpkg-dev, a part of build-essential). No root: files
# belong to root in the package. DEBFULLNAME and DEBEMAIL name the maintainer, SOURCE_DATE_EPOCH the date; else the last commit
# does. DEB_FLAGS goes to dpkg-deb. The same build gives the same bytes. Dependencies are those of the distribution that this runs on.
set -euo pipefail
revision=1
arch=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
full=$VERSION-$revision
abi=${SONAME##*.so.}
lib=libsplatkiln$abi
mkdir -p "$O"
out=${OUT_DIR:-$(cd "$O" && pwd)/deb}
work=$out/work
commit() { git log -1 --format="$1" 2>/dev/null || true; }
name=${DEBFULLNAME:-$(commit %an)} mail=${DEBEMAIL:-$(commit %ae)}
maintainer="${name:-The SplatKiln authors} <${mail:-maintainers@splatkiln.example}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(commit %ct)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}
umask 022

viewer=$O/share/splatkiln/viewer
[ -e "$viewer/viewer.js" ] ||
    echo "deb: splatkiln has no interactive viewer (kiln serve, --format html): make viewer makes it; Debian: apt-get install npm" >&2
rm -rf "$out"
mkdir -p "$work/debian"
root=$work/root
"$MAKE" -s O="$O" PREFIX=/usr LIBDIR="/usr/lib/$triplet" ZSH_DIR=share/zsh/vendor-completions DESTDIR="$root" install
find "$root/usr/share/man" -type f -exec gzip -9n {} +

# move PACKAGE PATH...: from what was installed into a package
move() {
    local to=$work/$1 path; shift
    for path; do
        mkdir -p "$to/$(dirname "$path")"
        mv "$root/$path" "$to/$path"
    done
}
examples=$work/libsplatkiln-dev/usr/share/doc/libsplatkiln-dev/examples
mkdir -p "$examples"
mv "$root"/usr/share/doc/splatkiln/examples/{*.c,python} "$examples"
move splatkiln usr/bin usr/share/man usr/share/bash-completion usr/share/zsh usr/share/splatkiln usr/share/doc
move libsplatkiln-dev usr/include "usr/lib/$triplet/libsplatkiln.a" "usr/lib/$triplet/libsplatkiln.so" "usr/lib/$triplet/pkgconfig"
move "$lib" "usr/lib/$triplet/$SONAME"
left=$(find "$root" ! -type d)
[ -z "$left" ] || { echo "deb: make install has put something here that is in no package: $left" >&2; exit 1; }
modules=usr/lib/python3/dist-packages
install -d "$work/python3-splatkiln/$modules/splatkiln"
install -m 644 python/splatkiln/*.py python/splatkiln/py.typed "$work/python3-splatkiln/$modules/splatkiln"
install -d "$work/python3-splatkiln/$modules/splatkiln-$VERSION.dist-info" # so that pip knows it
printf 'Metadata-Version: 2.1\nName: splatkiln\nVersion: %s\n' "$VERSION" >"$work/python3-splatkiln/$modules/splatkiln-$VERSION.dist-info/METADATA"
# Where this machine has a CUDA toolkit says nothing about others: who links statically names theirs.
sed -i 's| -L/[^ ]*||g' "$work/libsplatkiln-dev/usr/lib/$triplet/pkgconfig/splatkiln.pc"
strip "$work/splatkiln/usr/bin/"* # those who package a release find it stripped already
strip --strip-unneeded "$work/$lib/usr/lib/$triplet/$SONAME"
strip --strip-debug --enable-deterministic-archives "$work/libsplatkiln-dev/usr/lib/$triplet/libsplatkiln.a"
chmod 644 "$work/$lib/usr/lib/$triplet/$SONAME"

# ---- documents ----
copyright() {
    printf '%s\n' 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/' 'Upstream-Name: SplatKiln' \
        'Source: the repository of SplatKiln' '' 'Files: *' 'Copyright: 2026 The SplatKiln authors' 'License: Expat'
    sed -n '/^Permission/,$s/^/ /p' LICENSE | sed 's/^ $/ ./'
    [ "$(cat "$O/cuda-archs")" = none ] ||
        printf '%s\n' 'Comment: This build holds a part of the CUDA Runtime (libcudart_static), copyright NVIDIA Corporation,' \
            ' which its EULA lets programs ship that are linked with it.'
}
# Of the libraries in viewer.js, which make viewer has left with their licences: LICENSE.NAME, a title and the text.
viewer_copyright() {
    local file text names='Expat'
    [ -e "$viewer/viewer.js" ] || return 0
    for file in "$viewer"/LICENSE.*; do names="$names and ${file##*.}"; done
    printf '\nFiles: viewer/viewer.js\nCopyright: 2026 The SplatKiln authors\n'
    cat "$viewer"/LICENSE.* | sed -nE 's/^ *(Copyright.*)/ \1/p'
    printf 'License: %s\nComment: It contains %s.\n' "$names" "$(head -qn 1 "$viewer"/LICENSE.* | paste -sd , | sed 's/,/, /g')"
    for file in "$viewer"/LICENSE.*; do
        printf '\nLicense: %s\n' "${file##*.}"
        sed -e '1,2d' -e 's/^[[:blank:]]*$/./' -e 's/^/ /' "$file"
    done
}
changelog() {
    printf 'splatkiln (%s) unstable; urgency=medium\n\n  * Release %s; what it changes is in changelog.gz.\n\n -- %s  %s\n' \
        "$full" "$VERSION" "$maintainer" "$(date -uRd "@$SOURCE_DATE_EPOCH")"
}
for package in python3-splatkiln splatkiln "$lib" libsplatkiln-dev; do
    doc=$work/$package/usr/share/doc/$package
    mkdir -p "$doc"
    copyright >"$doc/copyright"
    [ "$package" != splatkiln ] || viewer_copyright >>"$doc/copyright"
    changelog | gzip -9n >"$doc/changelog.Debian.gz"
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
done
install -m 644 docs/python.md "$work/python3-splatkiln/usr/share/doc/python3-splatkiln"
install -m 644 schema/SCHEMA.md "$doc"

# ---- control ----
printf 'Source: splatkiln\n\nPackage: splatkiln\nArchitecture: any\n' >"$work/debian/control"
# What these files link to, as the packages of this distribution.
needs() { (cd "$work" && dpkg-shlibdeps -O "${@/#/-e}" 2>"$work/shlibdeps") | sed -n 's/^shlibs:Depends=//p'; }
# control PACKAGE SECTION DEPENDS OTHER-FIELDS; its description on stdin
control() {
    local dir=$work/$1 size
    mkdir -p "$dir/DEBIAN"
    size=$(du -k -s --apparent-size --exclude=DEBIAN "$dir" | cut -f1)
    {
        printf 'Package: %s\nSource: splatkiln\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %s\nSection: %s\nPriority: optional\n' \
            "$1" "$full" "$arch" "$maintainer" "$size" "$2"
        [ -z "$3" ] || printf 'Depends: %s\n' "$3"
        [ -z "$4" ] || printf '%s\n' "$4"
        cat
    } >"$dir/DEBIAN/control"
    (cd "$dir" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$dir/DEBIAN/md5sums"
}
depends=$(needs "$work/splatkiln/usr/bin/"*)
[ -n "$depends" ] || { cat "$work/shlibdeps" >&2; echo 'deb: what the programs link to is not known' >&2; exit 1; }
control splatkiln graphics "$depends" 'Suggests: bash-completion' <<'E1'
Description: bakes scenes of 3D Gaussian Splatting
 SplatKiln reads what trainers and photogrammetry write, gives points a
 scale, repairs and prunes what breaks renderers, cuts the scene into spatial
 chunks, precomputes tile tables, renders, measures against the photos, and
 hands the chunks to other renderers. One SQLite file holds the bake; the same
 input gives the same bits everywhere.
 .
 "kiln pipeline --demo" shows what it does; "kiln help" lists its commands.
E1
control "$lib" libs "$(needs "$work/$lib/usr/lib/$triplet/$SONAME")" 'Multi-Arch: same' <<'E2'
Description: reads and draws bakes of SplatKiln - shared library
 The library that other programs read a bake with, draw a camera of it, or
 get its visible Gaussians in drawing order.
E2
control libsplatkiln-dev libdevel "$lib (= $full)" 'Recommends: libsqlite3-dev, libzstd-dev, libxxhash-dev' <<'E3'
Description: reads and draws bakes of SplatKiln - development files
 Headers for C and C++, the static library, the pkg-config file, an example
 that draws a camera, and the format of a bake byte by byte.
E3
arch=all control python3-splatkiln python "python3 (>= 3.10), python3-numpy, $lib (>= $full)" "$(printf 'Recommends: splatkiln\nSuggests: python3-torch')" <<'E4'
Description: reads and draws bakes of SplatKiln - Python
 Layers, cameras and tile tables of a bake as numpy arrays or torch tensors,
 pictures, scene files of every format that kiln knows, and distCUDA2 and
 fused_ssim on any device.
E4
printf 'libsplatkiln %s %s (>= %s)\n' "$abi" "$lib" "$VERSION" >"$work/$lib/DEBIAN/shlibs"
printf 'activate-noawait ldconfig\n' >"$work/$lib/DEBIAN/triggers"

for package in python3-splatkiln splatkiln "$lib" libsplatkiln-dev; do
    find "$work/$package" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    # shellcheck disable=SC2086 # flags are words
    dpkg-deb --root-owner-group ${DEB_FLAGS:-} --build "$work/$package" "$out" >/dev/null
done
rm -rf "$work"
(cd "$out" && ls -l -- *.deb)
