#!/bin/bash
# The Debian packages in a bare Debian: apt installs them, kiln bakes the demo, writes a page with the viewer inside and serves the bake;
# both pages are opened in this machine's Chromium. The Python package is installed beside it and draws the same picture.
#
# The packages are those in DEB_FOLDER (build-release/deb, which `make deb` makes; without any: `make deb CUDA=0`). SUITE and MIRROR as
# in tests/container. Needs root, debootstrap, a mirror, and for the pages npm and Chromium. PICTURES=dir keeps what the pages drew.
# time-limit: 18000
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
[ "$(id -u)" = 0 ] || skip "not root, which chroot needs"
command -v debootstrap >/dev/null || skip "no debootstrap: apt-get install debootstrap"
: "${SUITE:=bookworm}" "${MIRROR:=http://deb.debian.org/debian}" "${DEB_FOLDER:=build-release/deb}"
if [ ! -e "$DEB_FOLDER" ]; then
    make -s -j"$(nproc)" deb CUDA=0 >"$KILN_TMP/made" 2>&1 || { tail -n 30 "$KILN_TMP/made"; fail "make deb"; }
fi
# Not in memory, which may be mounted with nodev.
root=$(mktemp -d /var/tmp/kiln-bare.XXXXXX)
at_exit 'umount "$root/proc" "$root/dev/shm" 2>/dev/null; rm -rf --one-file-system "$root"'
debootstrap --variant=minbase "$SUITE" "$root" "$MIRROR" >"$KILN_TMP/bare" 2>&1 || { tail -n 5 "$KILN_TMP/bare"; skip "debootstrap gives no $SUITE"; }
mount -t proc none "$root/proc" && mount -t tmpfs none "$root/dev/shm" || fail "mount"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/debs" && cp "$DEB_FOLDER"/*.deb "$root/debs"
bare=(chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin)
inside() { "${bare[@]}" bash -euc "cd; $1"; }
must 0 inside 'apt-get update -q'

test_case 'apt installs the programs' && (
    must 0 inside 'apt-get install -y --no-install-recommends /debs/splatkiln_*.deb'
    must 0 inside 'kiln --version && kiln help && kiln doctor'
); result

test_case 'copyright has the licences of what the viewer contains' && (
    for name in three spark fflate esbuild; do
        grep -qx "License: $name" "$root/usr/share/doc/splatkiln/copyright" || fail "no licence of $name"
    done
); result

test_case 'the demo' && (
    must 0 inside 'kiln pipeline --demo'
    must 0 inside 'kiln verify kiln-demo/bake/manifest.db'
    must 0 inside 'kiln verify kiln-demo/bake/manifest.db --digest'
    must 0 kiln generate demo "$KILN_TMP/demo"
    diff -r "$KILN_TMP/demo" "$root/root/kiln-demo" -x bake || fail "another demo than this build's"
); result
bake=$root/root/kiln-demo/bake

test_case 'a page with the viewer inside' && (
    must 0 inside 'kiln export kiln-demo/bake/manifest.db --format html -o page.html'
    grep -q 'viewer.js is a part of SplatKiln (MIT) and contains' "$root/root/page.html" || fail "no viewer, or no licences, in the page"
); result

test_case 'both pages in a browser' && (
    command -v npm >/dev/null || skip 'no npm'
    [ -n "${KILN_CHROMIUM:-$(command -v chromium)}" ] || skip 'no Chromium'
    O=${KILN_BIN%/bin} tests/viewers/run --install >"$KILN_TMP/npm" 2>&1 || skip "no packages of npm: $(tail -n 1 "$KILN_TMP/npm")"
    "${bare[@]}" kiln serve /root/kiln-demo/bake/manifest.db >"$KILN_TMP/address" 2>"$KILN_TMP/served" &
    server=$! got=0
    for _ in $(seq 600); do [ ! -s "$KILN_TMP/address" ] || break; sleep 0.1; done
    node tests/soak/deb_pages.mjs "${KILN_BIN%/bin}/viewers/node_modules" "${PICTURES:-$KILN_TMP}" "$bake/renders/view_00.png" \
        "file://$root/root/page.html" "$(head -n 1 "$KILN_TMP/address")" || got=$?
    kill $server
    [ $got = 0 ] || fail "pages"
); result

test_case 'the Python package beside it' && (
    must 0 inside 'apt-get install -y --no-install-recommends /debs/libsplatkiln1_*.deb /debs/python3-splatkiln_*.deb'
    must 0 inside 'kiln render kiln-demo/bake/manifest.db --camera view_00 -o one.npy'
    must 0 inside "python3 -c 'import numpy, splatkiln; bake = splatkiln.open(\"kiln-demo\")
assert bake.draw(\"view_00\").tobytes() == numpy.load(\"one.npy\").tobytes()'"
); result
