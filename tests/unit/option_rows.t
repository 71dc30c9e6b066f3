#!/usr/bin/env bash
# A row of an option table compiles with storage of its kind and with named fields, and with nothing else (base/option.h).
set -u
read -ra cc <<<"${CC:-gcc}"
bad=0
compiles() { # a row
    "${cc[@]}" -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only -x c - <<END
#include "base/option.h"
static struct {
    bool flag;
    uint32_t u32;
    uint64_t u64;
    int i32;
    float f32;
    double f64, three[3], four[4];
    kiln_size size;
    const char *text;
    char *owned;
} o;
extern const kiln_opt options[];
const kiln_opt options[] = {$1, KILN_OPTION_END};
END
}
good() { # a row
    compiles "$1" || { echo "does not compile: $1"; bad=1; }
}
wrong() { # what is wrong, what the compiler says of it, a row
    local said
    if said=$(compiles "$3" 2>&1); then
        echo "$1, but it compiles: $3"
        bad=1
    elif ! grep -qE "$2" <<<"$said"; then
        printf '%s, but this is said of %s:\n%s\n' "$1" "$3" "$said"
        bad=1
    fi
}
good 'KILN_OPTION_BOOL("x", &o.flag, "help")'
good 'KILN_OPTION_BOOL("x", &o.flag, "help", .letter = '\''x'\'', .def = "yes", .flags = KILN_KEYED)'
for storage in u32 u64 f64 three size; do
    good "KILN_OPTION_NUMBER(\"x\", &o.$storage, \"N\", \"help\", .def = \"1\", .range = \"0..2\")"
done
good 'KILN_OPTION_ENUM("x", &o.u32, "WORD", "a|b", "help", .def = "b")'
for kind in TEXT LIST PATH; do
    good "KILN_OPTION_$kind(\"x\", &o.text, \"WORD\", \"help\")"
done

generic='not compatible with any (generic )?association' override='overwritten|overrides'
for storage in u32 text; do
    wrong 'a switch is a bool' "$generic" "KILN_OPTION_BOOL(\"x\", &o.$storage, \"help\")"
done
for storage in flag i32 f32 four text; do
    wrong 'no number' "$generic" "KILN_OPTION_NUMBER(\"x\", &o.$storage, \"N\", \"help\")"
done
wrong 'an enum is a uint32_t' "$generic" 'KILN_OPTION_ENUM("x", &o.u64, "WORD", "a|b", "help")'
for kind in TEXT LIST PATH; do
    wrong 'a text is const' "$generic" "KILN_OPTION_$kind(\"x\", &o.owned, \"WORD\", \"help\")"
    wrong 'a text is a pointer' "$generic" "KILN_OPTION_$kind(\"x\", o.text, \"WORD\", \"help\")"
done
wrong 'a flag without a name' "$override" 'KILN_OPTION_BOOL("x", &o.flag, "help", KILN_KEYED)'
wrong 'a switch has no word for its value' "$override" 'KILN_OPTION_BOOL("x", &o.flag, "N", "help")'
wrong 'a range besides its words' "$override" 'KILN_OPTION_ENUM("x", &o.u32, "WORD", "a|b", "help", .range = "c|d")'
exit $bad
