#!/bin/bash
# The installed library is all that another program needs: public headers alone, C and C++, shared and static, and its
# picture of a bake has the values of kiln-render's. (tests/gpu/example.t draws on GPUs.)
. tests/e2e/lib.sh
read -ra cc <<<"${CC:-gcc}" # make CC='ccache gcc' has two words
read -ra cxx <<<"${CXX:-g++}"
command -v pkg-config >/dev/null && command -v "${cc[0]}" >/dev/null && command -v "${cxx[0]}" >/dev/null ||
    skip "no pkg-config, C or C++ compiler"
O=${KILN_BIN%/bin}
usr=$KILN_TMP/usr src=$KILN_TMP/src db=$KILN_TMP/b/manifest.db
settings=(O="$O" PREFIX="$usr")
before=$(cat "$O/cuda-archs") || fail "no library in $O"
# As under sudo: neither nvcc nor nvidia-smi, and the build stays what it is.
env -u CUDA -u CUDA_ARCHS PATH=/usr/bin:/bin make -s "${settings[@]}" install >"$KILN_TMP/install" 2>&1 ||
    { cat "$KILN_TMP/install"; fail "make install"; }

test_case 'installing compiles nothing' && (
    [ "$before" = "$(cat "$O/cuda-archs")" ] || fail "installing compiles for $(cat "$O/cuda-archs"), not for $before"
); result

test_case 'pages and examples are installed, and links between pages lead to files' && (
    doc=$usr/share/doc/splatkiln
    python3 tests/e2e/docs.py links "$doc" || fail "links"
    [ -x "$doc/examples/gnu-parallel.sh" ] && [ -e "$doc/examples/python/gsplat_from_bake.py" ] || fail "no examples"
); result

export PKG_CONFIG_PATH=$usr/lib/pkgconfig
mkdir "$src"
cp examples/draw_camera.c "$src"
root=$PWD
cd "$src" || fail "cd" # away from the tree: what compiles here needs the installed headers alone

# shellcheck disable=SC2046,SC2086 # flags are words
build() { # compiler, file, program, shared|static
    local libs
    libs=$(pkg-config --libs splatkiln libpng)
    [ "$4" = shared ] || libs=$(pkg-config --static --libs splatkiln libpng | sed 's/-lsplatkiln/-l:libsplatkiln.a/')
    $1 -Wall -Wextra -Werror -O1 $(pkg-config --cflags splatkiln) "$2" $libs -o "$3" || fail "$1 $2, $4"
}

(cd "$usr/include/splatkiln" && find . -name '*.h' -printf '%P\n') >headers

test_case 'every header alone, in both languages' && (
    while read -r h; do
        printf '#include "%s"\n#include "%s"\n' "$h" "$h" >one.c
        cp one.c one.cc
        "${cc[@]}" -std=c11 -Wall -Wextra -Werror -I"$usr/include/splatkiln" -fsyntax-only one.c || fail "$h in C"
        "${cxx[@]}" -std=c++17 -Wall -Wextra -Werror -I"$usr/include/splatkiln" -fsyntax-only one.cc || fail "$h in C++"
    done <headers
); result

test_case 'a header of C functions that forgot C++' && (
    plain=$(cd "$usr/include/splatkiln" && xargs grep -L KILN_C_BEGIN <"$src/headers" | sort | tr '\n' ' ')
    [ "$plain" = 'base/hd.h kernels/exec.h ' ] || fail "without extern C: $plain"
); result

test_case 'what the shared library shows and needs' && (
    shown=$(nm -D --defined-only "$usr/lib/libsplatkiln.so.1" | awk '$3 !~ /^(kiln_|SPLATKILN_)/ {print $3}')
    [ -z "$shown" ] || fail "the shared library shows more than kiln_*: $shown"
    readelf -d "$usr/lib/libsplatkiln.so.1" >needed || fail "readelf"
    grep -q 'soname: \[libsplatkiln.so.1\]' needed || fail "no soname"
    ! grep NEEDED needed | grep -E 'cuda|png|jpeg|jansson' || fail "the shared library needs what it should not"
); result

cat >points.cc <<'E2'
#include "kernels/runner.h"
#include "schema/manifest.h"
#include <cstdio>
int main(int argc, char **argv)
{
    kiln_error err = {};
    kiln_manifest *m = nullptr;
    kiln_layer *layer = nullptr;
    kiln_runner *runner = nullptr;
    kiln_runner_options cpu = {};
    cpu.device = KILN_RUNNER_CPU;
    const float means[12] = {0, 1, 2, 3}; /* x of four points in a row */
    float spacing2[4] = {};
    kiln_knn_args knn = {};
    knn.n = 4, knn.k = 1, knn.means = means, knn.spacing2 = spacing2;
    if (argc != 2 || kiln_manifest_open(argv[1], KILN_OPEN_READ, "points", false, &m, &err) != KILN_OK ||
        kiln_layer_get_drawn(m, &layer, &err) != KILN_OK || kiln_runner_new(&cpu, &runner, &err) != KILN_OK ||
        kiln_runner_run(runner, KILN_OP_knn, &knn, &err) != KILN_OK) {
        std::fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (kiln_ops_cpu() == nullptr) return 1;
    std::printf("%llu %g\n", (unsigned long long)layer->count, spacing2[0] + spacing2[3]);
    kiln_runner_free(runner);
    kiln_layer_free(layer);
    kiln_manifest_close(m);
}
E2
for kind in shared static; do
    build "${CC:-gcc} -std=gnu11" draw_camera.c "draw-$kind" $kind
    build "${CXX:-g++} -std=c++17" points.cc "points-$kind" $kind
done
export LD_LIBRARY_PATH=$usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

test_case 'programs use the library that they were linked with' && (
    ldd draw-shared | grep -q "$usr/lib/libsplatkiln.so.1" || fail "draw-shared does not use the shared library"
    ! ldd draw-static | grep -q libsplatkiln || fail "draw-static uses the shared library"
); result

# the same values as kiln-render, whose .npy is rounded as the example rounds
cd "$root" || fail "cd"
scene "$KILN_TMP/s" 20000 2 200x120
bake "$KILN_TMP/s" "$db" --max 4096
kiln render "$db" --camera cam1 --devices cpu -o "$KILN_TMP/cam1.npy" >/dev/null || fail "kiln-render"

test_case 'the example draws the values of kiln-render' && (
    for kind in shared static; do
        must 0 "$src/draw-$kind" "$db" cam1 -1 "$KILN_TMP/$kind.png"
        py same "$KILN_TMP/cam1.npy" "$KILN_TMP/$kind.png" || fail "another picture: $kind"
    done
); result

test_case 'a program in C++' && (
    [ "$("$src/points-shared" "$db")" = '20000 2' ] && [ "$("$src/points-static" "$db")" = '20000 2' ] || fail "the C++ program"
); result

test_case "the example's exit codes" && (
    must 2 "$src/draw-shared" "$db" nowhere -1 "$KILN_TMP/no.png"
    grep -q "no camera 'nowhere'; its 2 are cam0, cam1\$" "$KILN_TMP/err" ||
        fail "the cameras are not named: $(cat "$KILN_TMP/err")"
    for device in '' gpu 0x -2 99999999999; do must 2 "$src/draw-shared" "$db" cam1 "$device" "$KILN_TMP/no.png"; done
    must 6 "$src/draw-shared" "$db" cam1 1000 "$KILN_TMP/no.png"
    must 74 "$src/draw-shared" "$db" cam1 -1 "$KILN_TMP/no/such/folder.png"
); result

test_case 'make uninstall leaves nothing' && (
    make -s "${settings[@]}" uninstall >/dev/null || fail "make uninstall"
    [ -z "$(find "$usr" ! -type d)" ] || fail "uninstall leaves $(find "$usr" ! -type d)"
); result
