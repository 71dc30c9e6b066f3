#!/usr/bin/env bash
# kiln-info --plots: what a person sees at 80 columns and at fewer, with blocks and without, and the same numbers as JSON; a
# manifest of a stranger moves no cursor and makes it wait for nothing.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
info() { "$KILN_BIN/kiln-info" "$@"; }
plots() { sed -n '/^Longest axis/,$p' out; }
widest() { python3 -c 'import sys; print(max(len(l.rstrip("\n")) for l in open(sys.argv[1], encoding="utf-8")))' "$1"; }
scene scene 2000 9 96x64 # no photos
bake scene m.db --max 512
kiln prune m.db --min-opacity 0.3 >/dev/null && kiln chunk m.db --max 512 >/dev/null || fail 'prune again'

test_step 'plots below the table' && (
    must 0 info m.db
    cp out without
    must 0 env LC_ALL=C.UTF-8 "$KILN_BIN/kiln-info" m.db --plots
    [ "$(head -n "$(wc -l <without)" out)" = "$(cat without)" ] || fail 'the table is another one beside plots'
    plots >blocks
    [ "$(grep -cE '^(Longest axis|Opacity|Needle ratio|Spacing|Rows of a chunk) \(' blocks)" = 5 ] || fail "titles: $(cat blocks)"
    ! grep -q '^PSNR' blocks || fail 'a plot of nothing'
    grep -q '█' blocks || fail 'no blocks in UTF-8'
    [ "$(widest blocks)" -le 80 ] || fail "wider than 80 columns: $(widest blocks)"
    grep -qxE 'before: 2000 Gaussians, median [0-9.]+, from [0-9.]+ to [0-9.]+' blocks || fail "no summary: $(cat blocks)"
); result

test_step 'in other locales plots are ASCII' && (
    for locale in C POSIX xx_XX.nowhere; do # the last is not installed
        must 0 env LC_ALL=$locale "$KILN_BIN/kiln-info" m.db --plots
        plots >ascii
        grep -q '#' ascii && ! grep -q '[^ -~]' ascii || fail "not ASCII alone with LC_ALL=$locale"
    done
); result

test_case '--ascii' && (
    must 0 env LC_ALL=C.UTF-8 "$KILN_BIN/kiln-info" m.db --plots --ascii
    plots | cmp - ascii || fail '--ascii is not what the locale C shows'
); result

test_case '--no-ascii' && (
    must 0 env LC_ALL=C "$KILN_BIN/kiln-info" m.db --plots --no-ascii
    plots | cmp - blocks || fail '--no-ascii is not what UTF-8 shows'
); result

test_case 'no plots unasked' && (
    must 0 info m.db --json
    ! grep -q '"plots"' out || fail 'plots that nobody asked for'
); result

test_case 'the same numbers as JSON, and they add up' && (
    must 0 info m.db --plots --json
    py plots out blocks || fail 'info --plots --json'
); result

for columns in 20 40 80 200; do
    test_case "on a terminal of $columns columns" && (
        py terminal "$KILN_BIN/kiln-info" m.db $columns >seen || fail "on a terminal of $columns columns"
    ); result
done

test_case 'what does not go together' && (
    must 2 info m.db --ascii
    must 2 info m.db --plots --cameras
    must 0 info m.db --plots --lod
); result

test_case 'a bake that has only begun' && (
    kiln import scene begun.db >/dev/null || fail import
    must 0 info begun.db --plots --ascii
    plots | grep -qE '^before: 2000 Gaussians' && ! grep -qE '^after:|^Rows of a chunk|^Spacing' out ||
        fail "an import alone: $(cat out)"
); result

test_case 'points have nothing to plot' && (
    ascii_ply 'float x float y float z' '0 0 0' '1 1 1' >points.ply
    kiln import points.ply points.db >/dev/null || fail 'import of points'
    must 0 info points.db --plots
    grep -qx 'nothing to plot yet: the bake has no Gaussians, no measured pictures and no chunks' out || fail "points: $(cat out)"
); result

# ---- a stranger's manifest: names that move the cursor are refused, numbers are any ----
odd() { # the exit code, SQL...
    local want=$1; shift
    cp m.db odd.db
    py odd odd.db "$@" || fail 'odd.db'
    must "$want" timeout 20 "$KILN_BIN/kiln-info" odd.db --plots --no-ascii
    ! LC_ALL=C grep -q $'\x1b' out err || fail "an escape reaches the terminal after $*"
}

test_case "a stranger's name that moves the cursor is refused" && (
    odd 3 "UPDATE camera SET name = 'x' || char(27) || '[2J' WHERE name = 'cam5'"
); result

test_case "a stranger's number without end" && (
    # equal to its photo
    odd 0 "UPDATE image SET psnr = 30 + substr(camera, 4)" "UPDATE image SET psnr = 9e999 WHERE camera = 'cam1'"
    grep -qE '^others: 6 of 7 views, median 3[0-9.]+, from' out || fail "a number without end: $(grep views out)"
); result

test_case "a stranger's number below all" && (
    odd 3 "UPDATE image SET psnr = -9e999 WHERE camera = 'cam2'"
); result

test_case "a stranger's numbers of any size" && (
    odd 0 "UPDATE image SET psnr = 1e308" "UPDATE image SET psnr = -1e308 WHERE camera = 'cam3'"
    grep -qx 'others: 7 views, median 1e+308, from -1e+308 to 1e+308' out || fail "numbers of any size: $(grep views out)"
); result
