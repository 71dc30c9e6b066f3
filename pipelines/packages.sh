#!/bin/sh
# packages.sh install|tell PACKAGE... -- looks whether these Debian packages are there.
#   install: installs what is missing with apt-get (through sudo unless root), saying the command first
#   tell:    names what is missing in one sentence
# Exit 1 when something is missing and was not installed. `make DEBS=` builds with libraries of your own.
set -u
mode=$1
shift

if ! command -v dpkg-query >/dev/null; then
    echo "make: this is not Debian or Ubuntu, so packages are not checked; needed are what Debian calls $*" >&2
    exit 0
fi
have=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n${db:Status-Abbrev}${Provides}\n' 2>/dev/null |
    sed -n 's/^ii *//p' | sed 's/([^)]*)//g' | tr ',\n' '  ' | tr -s ' ') "
missing=
for package; do
    case $have in *" $package "*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0

if [ "$mode" = tell ]; then
    echo "make: packages are missing: apt-get install$missing (or make DEBS= with libraries of your own)" >&2
    exit 1
fi
root=
if [ "$(id -u)" -ne 0 ]; then
    root='sudo '
    if ! command -v sudo >/dev/null; then
        echo "make: these packages are missing and there is no sudo; ask an administrator to run: apt-get install$missing" >&2
        exit 1
    fi
fi
install="${root}env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends$missing"
echo "make: missing packages, so this runs: ${root}apt-get update && $install" >&2
if ! { ${root}apt-get update -q && $install; } >&2; then
    echo "make: apt-get could not install$missing; install them by hand and run make again" >&2
    exit 1
fi
