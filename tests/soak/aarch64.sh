# aarch64 -- builds SplatKiln for aarch64 and runs it under emulation. Sourced by soak/arm.t, which makes the sysroot and builds, and
# by e2e/aarch64.t, which runs some tests of kernels where that has been done.
#
# The sysroot is Debian's packages for arm64, downloaded by an apt with folders of its own and unpacked. Nothing for arm64 is
# installed: libisal-dev:arm64 would remove this machine's own, and a foreign architecture would stay in its dpkg.
#
# All of it is in a folder beside the build folder. In that the Makefile would take it for its own: it reads any file NAME.d there.
aarch64=${KILN_BIN%/bin}-aarch64
aarch64_root=$aarch64/root
aarch64_bin=$aarch64/build/bin
aarch64_cc=aarch64-linux-gnu-gcc
aarch64_qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)

aarch64_needs_tools() {
    [ "$(uname -m)" = x86_64 ] || skip "this machine is not x86-64"
    command -v "$aarch64_cc" >/dev/null || skip "no cross compiler: apt-get install gcc-aarch64-linux-gnu"
    [ -n "$aarch64_qemu" ] || skip "no qemu: apt-get install qemu-user-static"
}

aarch64_apt() { # command of apt-get
    local apt=$aarch64/apt
    mkdir -p "$apt"/{etc,log,state/lists/partial,cache/archives/partial}
    : >>"$apt/status"
    cat >"$apt/conf" <<E1
Dir::Etc "$apt/etc";
Dir::Etc::sourcelist "/etc/apt/sources.list";
Dir::Etc::sourceparts "/etc/apt/sources.list.d";
Dir::Etc::trustedparts "/etc/apt/trusted.gpg.d";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Log "$apt/log";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
E1
    APT_CONFIG=$apt/conf apt-get -q "$@" >"$aarch64/apt.log" 2>&1 || { cat "$aarch64/apt.log"; skip "apt-get $1 gives no packages for arm64"; }
}

# Makes the sysroot, once.
aarch64_make_root() {
    local file target new=$aarch64_root.new
    [ ! -e "$aarch64_root" ] || return 0
    rm -rf "$new" && mkdir -p "$new"
    aarch64_apt update
    # shellcheck disable=SC2046 # names are words
    aarch64_apt install --download-only -y --no-install-recommends libgomp1 $(sed -nE 's/^(TEST_)?DEBS +:= //p' Makefile | tr ' ' '\n' | grep '^lib\|^zlib')
    for file in "$aarch64"/apt/cache/archives/*.deb; do dpkg-deb -x "$file" "$new" || fail "$file"; done
    # A link to /lib/... would lead out of it: libm.so, without which programs get a libm of their own.
    find "$new" -type l -lname '/*' | while read -r file; do
        target=$(readlink "$file")
        ln -sfnr "$new$target" "$file"
    done
    mv "$new" "$aarch64_root"
}

aarch64_make() { # goals
    make -s O="$aarch64/build" CUDA=0 DEBS= TEST_DEBS= LDFLAGS= CC="$aarch64_cc --sysroot=$aarch64_root" AR=aarch64-linux-gnu-ar "$@" \
        >"$KILN_TMP/made" 2>&1 || { tail -n 40 "$KILN_TMP/made"; fail "make $*"; }
}

# A library with which programs under emulation start each other.
aarch64_make_exec() {
    "$aarch64_cc" --sysroot="$aarch64_root" -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -shared -fPIC tests/soak/aarch64_exec.c \
        -o "$aarch64/exec.so" || fail "aarch64_exec.c"
}

# Runs a program for aarch64. LD_PRELOAD is the program's: qemu itself may be linked statically, or for this machine.
emulated() {
    QEMU_LD_PREFIX=$aarch64_root KILN_QEMU=$aarch64_qemu QEMU_SET_ENV=LD_PRELOAD=$aarch64/exec.so "$aarch64_qemu" "$@"
}
