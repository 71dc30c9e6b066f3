#!/usr/bin/env bash
# Who may include whom (CONTRIBUTING, The house: stages -> kernels, schema -> base), and headers that compile alone.
set -u
bad=0
forbid() { # pattern in an #include, files, the rule
    local pattern=$1 rule=$2 hits
    shift 2
    hits=$(grep -nE "^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*[<\"]$pattern" "$@" /dev/null)
    [ -z "$hits" ] || { printf '%s:\n%s\n' "$rule" "$hits"; bad=1; }
}
shopt -s nullglob globstar
base=(base/*.[ch]) schema=(schema/*.[ch]) kernels=(kernels/**/*.[ch] kernels/**/*.cu kernels/**/*.cuh) all_c=({base,schema,kernels,stages}/**/*.[ch])
[ ${#base[@]} -gt 0 ] && [ ${#kernels[@]} -gt 0 ] || { echo 'no sources found'; exit 1; }
forbid '(schema|kernels|stages|tests)/' 'base is the leaf' "${base[@]}"
forbid '(sqlite3|zstd|png|jpeglib|jansson|xxhash|zlib)' 'base includes libc only' "${base[@]}"
forbid '(cuda|cub|nvml|thrust)' 'no CUDA in base and schema' "${base[@]}" "${schema[@]}"
forbid '(kernels|stages|tests)/' 'schema knows neither kernels nor stages' "${schema[@]}"
forbid '(schema|stages|tests)/' 'kernels know neither schema nor stages' "${kernels[@]}"
forbid '(sqlite3|zstd|png|jpeglib|jansson|stdio|fcntl)' 'kernels know no SQL and no files' "${kernels[@]}"
forbid '(cuda|cub/|thrust)' 'CUDA is in .cu and .cuh files only' "${all_c[@]}"
forbid 'tests/' 'nothing includes tests' "${all_c[@]}"
# Rooms of stages: whoever includes a room is not included by it, in however many steps.
arrows=$(grep -oE '^#include "stages/[a-z]+/' stages/*/**/*.[ch] | sed -E 's@^stages/([a-z]+)/[^:]*:#include "stages/([a-z]+)/@\1 \2@' | sort -u)
printf '%s\n' "$arrows" | tsort >/dev/null 2>&1 || { printf 'rooms of stages include each other in a circle:\n%s\n' "$(printf '%s\n' "$arrows" | tsort 2>&1 >/dev/null)"; bad=1; }

# Wings of the engine (stages/engine/parent): likewise. A file that is in the room itself is a wing of its own, because some are below all
# wings and one is above them.
wing='s@stages/engine/([a-z]+/)?([a-z_]+)\.[ch]@\1 \2@g; s@([a-z]+)/ [a-z_]+@\1@g'
arrows=$(grep -oE '^#include "stages/engine/[^"]*"' stages/engine/**/*.[ch] | sed -E "s/:#include|\"//g; $wing" | sort -u)
printf '%s\n' "$arrows" | tsort >/dev/null 2>&1 || { printf 'wings of the engine include each other in a circle:\n%s\n' "$(printf '%s\n' "$arrows" | tsort 2>&1 >/dev/null)"; bad=1; }
for c in stages/engine/**/*.c; do
    [ "$(grep -m1 '^#include' "$c")" = "#include \"${c%.c}.h\"" ] || { echo "what $c includes first is not a header of its own"; bad=1; }
done

# Files of a room: likewise, where they once were one knot. A file is a .c with its header.
for room in kernels/draw stages/frame; do
    arrows=$(grep -oE "^#include \"$room/[a-z0-9_]+\.h" $room/*.[ch] | sed -E "s@^$room/([a-z0-9_]+)\.[ch]:#include \"$room/([a-z0-9_]+)\.h@\1 \2@" | awk '$1 != $2' | sort -u)
    [ -n "$arrows" ] || { echo "no includes found in $room"; bad=1; }
    printf '%s\n' "$arrows" | tsort >/dev/null 2>&1 || { printf 'files of %s include each other in a circle:\n%s\n' $room "$(printf '%s\n' "$arrows" | tsort 2>&1 >/dev/null)"; bad=1; }
done

hits=$(grep -nE '\bjson_(load|dump)(s|b|f|fd|_file|_callback)? *\(' "${all_c[@]}" | grep -v '^stages/engine/json_text\.c:')
[ -z "$hits" ] || { printf 'JSON is parsed and written by stages/engine/json_text.h:\n%s\n' "$hits"; bad=1; }
hits=$(grep -nE '\bjson_real *\(|"[^"]*(s:|\[)f[],}][^"]*"' "${all_c[@]}" | grep -v '^stages/engine/json_text\.c:')
[ -z "$hits" ] || { printf 'a real becomes JSON by kiln_json_real alone, as JSON has no infinity:\n%s\n' "$hits"; bad=1; }
hits=$(grep -nE '\b(v?printf|puts|putchar|fputs|fprintf|fputc|putc) *\(' stages/**/*.[ch] | grep -vE '^stages/(generate/(inputs\.h|points\.c|generate_scene\.c)):.*fprintf\(f, "|^stages/front/') # front: tables of programs, the command line
[ -z "$hits" ] || { printf 'texts of files are quoted on their way out; base/quote.h prints, base/log.h tells:\n%s\n' "$hits"; bad=1; }

# No libm call decides a stored bit: math.h's last digits are each libc's own. kernels/math has what has the same bits everywhere;
# levels_info.c writes for people.
libm='\b(a?(sin|cos|tan)h?|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erf|tgamma)[fl]? *\('
hits=$(grep -nE "$libm" "${kernels[@]}" stages/lod.c stages/{lod,frame}/*.[ch] | sed -E 's@/\*.*@@' | grep -E "$libm" | grep -vE '^[^:]*:[0-9]+: \*|^stages/lod/levels_info\.c:')
[ -z "$hits" ] || { printf 'libm decides no bit (kernels/math):\n%s\n' "$hits"; bad=1; }

# A name in a message, a backtrace or a search is one file.
hits=$(printf '%s\n' {base,schema,kernels,stages,tests,examples}/**/*.{c,h,cc,cu,cuh} stages/*.c | sort -u | grep -v '^stages/[a-z]*\.c$\|^stages/tools/' |
    awk -F/ '{ paths[$NF] = paths[$NF] " " $0; n[$NF]++ } END { for (f in n) if (n[f] > 1) print f ":" paths[f] }')
[ -z "$hits" ] || { printf 'file names are unique, but for programs, which have the name of their command:\n%s\n' "$hits"; bad=1; }

# A function of one file says its object (read_header), or a search for it finds all files.
hits=$(grep -E '^static ' {base,schema,kernels,stages}/**/*.{c,cu} | sed -nE 's/^([^:]+):static [^(=]*[ *]([a-z0-9_]+)\(.*/\2 \1/p' | grep -v '^__attribute__ ' |
    sort -u | awk '{ n[$1]++; files[$1] = files[$1] " " $2 } END { for (f in n) if (n[f] > 3) print f ":" files[f] }')
[ -z "$hits" ] || { printf 'static functions of one name in more than three files:\n%s\n' "$hits"; bad=1; }

# A type has one meaning, whichever header one comes from.
hits=$({ grep -hoE '^\} kiln_[a-z0-9_]+;' {base,schema,kernels,stages}/**/*.{c,h,cuh}
    grep -hoE '^typedef struct kiln_[a-z0-9_]+ kiln_[a-z0-9_]+;' {base,schema,kernels,stages}/**/*.h | sort -u; } | sed 's/.* //' | sort | uniq -d)
[ -z "$hits" ] || { printf 'types have one meaning; these have several:\n%s\n' "$hits"; bad=1; }

# Who has installed the library has no other headers.
public=$(make -s --no-print-directory --eval='public_headers: ; @echo $(PUBLIC)' public_headers) || { echo 'no list of public headers'; bad=1; }
# shellcheck disable=SC2086 # names are words
hits=$(grep -HoE '^#include "[^"]+"' $public | while IFS=: read -r header include; do
    include=${include#*\"}
    [[ " $public " == *" ${include%\"} "* ]] || echo "$header includes ${include%\"}"
done)
[ -z "$hits" ] || { printf 'public headers include public headers (PUBLIC in pipelines/library.mk):\n%s\n' "$hits"; bad=1; }

# Two makes may run at once over one build folder: tests install and pack beside each other.
hits=$(grep -nE '> *\$@\.[a-z]+( |$)' Makefile {pipelines,python,stages/*}/*.mk)
[ -z "$hits" ] || { printf 'what a command prints goes to a file of one name for every make; $(put) of the Makefile has its own:\n%s\n' "$hits"; bad=1; }

# make test CC='ccache gcc': one word in quotes is no program.
hits=$(grep -nE '[^<]"\$\{?(CC|CXX)(:-[a-z+]*)?\}?" ' tests/*/*.{t,sh} | grep -v '^tests/unit/layers.t:')
[ -z "$hits" ] || { printf 'a compiler may have several words (read -ra cc <<<"${CC:-cc}"):\n%s\n' "$hits"; bad=1; }

# One compiler run a header, some at a time; a header that needs another include first fails here.
headers=({base,schema,kernels,stages}/**/*.h)
flags='-std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-const-variable -fsyntax-only -x c'
# shellcheck disable=SC2086
printf '%s\0' "${headers[@]}" | xargs -0 -n 16 -P "$(nproc)" ${CC:-gcc} $flags || { echo 'a header does not compile alone'; bad=1; }
exit $bad
