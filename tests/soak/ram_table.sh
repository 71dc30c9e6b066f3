#!/usr/bin/env bash
# ram_table -- the memory promise, stage by stage, for scenes of many cameras and of many Gaussians: what the least --ram is that a
# refusal names, how many tries it takes until that works, what the program predicts and tells, and what another program sees from
# outside (tests/bench/ram_watch.c). In MiB. Ends with 1 where a number is above its cap, or where the first least does not work.
#
#   O=build SCENES='cams20k g2m' STAGES='import knn ...' SCRATCH=dir tests/soak/ram_table.sh
#
# A scene is GAUSSIANS:CAMERAS:WxH, or one of the names below. Its bake stays in SCRATCH, if that is given, for the next time.
# BIN=dir measures the programs there; the bake that it starts from is theirs too.
#
# Rows: `least` is the stage over a bake that is there, with --force (import: a new bake), under the least that it names; `none` the
# same without --ram; `rest` the stage with nothing to do; `option` with one option changed, under the least.
set -u
stages=${STAGES:-import knn prune chunk tiles render lod} # lib.sh has STAGES of its own
cd "$(dirname "$0")/../.." || exit 1
KILN_BIN=$(cd "${BIN:-${O:-build}/bin}" && pwd)
tools=$(cd "${O:-build}" && pwd)/tests/bench
if [ -n "${SCRATCH:-}" ]; then
    mkdir -p "$SCRATCH" && KILN_TMP=$(cd "$SCRATCH" && pwd)
else
    KILN_TMP=$(mktemp -d "${TMPDIR:-/tmp}/kiln-ram.XXXXXX") && trap 'rm -rf "$KILN_TMP"' EXIT
fi
. tests/e2e/lib.sh
. tests/e2e/ram.sh
RAM_WATCH=$tools/ram_watch
THREADS=${THREADS:-2}
bad=0

scene_of() {
    case $1 in
    cams20k) echo 20000:20000:64x64 ;;
    cams5k) echo 20000:5000:64x64 ;;
    g1m) echo 1000000:2:1280x720 ;;
    g2m) echo 2000000:2:1280x720 ;;
    *) echo "$1" ;;
    esac
}

mib() { echo "$((($1 + 1048575) >> 20))"; }

# again STAGE: the arguments of the stage over the bake, all of it once more; changed: with another option
again() {
    case $1 in
    lod) cp base.db again.db && echo "lod again.db" ;; # base.db has none, for tiles and render
    *) stage_line "$1" s base.db ;;
    esac
}
changed() {
    cp base.db option.db
    case $1 in
    knn) echo "knn option.db --neighbors 4" ;;
    prune) echo "prune option.db --min-opacity 0.01" ;;
    chunk) echo "chunk option.db --max 30000" ;;
    tiles) echo "tiles option.db --tables all --near 0.3" ;;
    render) echo "render option.db --format none --background white" ;;
    lod) echo "lod option.db --levels 3" ;;
    esac
}

# line ROW CAP STAGE ...: runs it and prints its line; the tries that came before are in `tries`
line() {
    local row=$1 cap=$2 code verdict=; shift 2
    watched "$cap" "$THREADS" "$@"; code=$?
    if [ $code != 0 ]; then
        verdict="exit $code after $(mib "$ram_outside"): $(tail -n 1 err | cut -c1-150)"
        bad=1
        printf '%-8s %-7s %-7s %5s  %s\n' "$scene" "$1" "$row" "${cap:-none}" "!$verdict"
        return $code
    fi
    if [ -n "$cap" ]; then
        [ "$ram_outside" -le "$ram_cap" ] || verdict="$verdict above the cap" bad=1
        [ "$ram_predicted" = 0 ] || [ "$ram_outside" -le "$ram_predicted" ] || verdict="$verdict above the prediction" bad=1
    fi
    [ "$ram_slabs" = 0 ] || verdict="$verdict ($ram_slabs slabs)"
    printf '%-8s %-7s %-7s %5s %9s %5s %7s %7s %s\n' "$scene" "$1" "$row" "${cap:-none}" "$(mib "$ram_predicted")" "$(mib "$ram_told")" \
        "$(mib "$ram_outside")" "$((ram_ms / 1000)).$(printf %03d $((ram_ms % 1000)))" "$verdict"
}

# least ROW FUNCTION STAGE: from --ram 1M on, under what is named until that works
least() {
    local row=$1 args=$2 cap=1 tries=0
    shift 2
    while :; do
        # shellcheck disable=SC2046,SC2086 # words
        watched "${cap}M" "$THREADS" $($args "$1") && break
        cap=$(least_named)
        [ -n "$cap" ] || break
        tries=$((tries + 1))
        # shellcheck disable=SC2046
        line "$row $tries" "${cap}M" $($args "$1") && break
    done
    [ "$tries" = 1 ] || bad=1
}

printf '%-8s %-7s %-7s %5s %9s %5s %7s %7s\n' scene stage row ram predicted told outside cpu_s
for scene in ${SCENES:-cams20k cams5k g1m g2m}; do
    mkdir -p "$KILN_TMP/$scene" && cd "$KILN_TMP/$scene" || exit 1
    IFS=: read -r gaussians cameras size < <(scene_of "$scene")
    [ -d s ] || scene s "$gaussians" "$cameras" "$size"
    if [ ! -f base.db ]; then
        kiln import s new.db >/dev/null && for s in knn prune chunk tiles render; do
            case $s in tiles) more='--tables all' ;; render) more='--format none' ;; *) more= ;; esac
            # shellcheck disable=SC2086
            kiln $s new.db $more >/dev/null || fail "$s"
        done && sqlite3 new.db 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null && mv new.db base.db || fail "bake"
    fi
    for stage in $stages; do
        case " ${ROWS:-rest least option none} " in *" rest "*)
            # shellcheck disable=SC2046
            case $stage in
            import) line rest 150M import s base.db ;;
            lod) ;;
            tiles) line rest 150M tiles base.db --tables all ;;
            render) line rest 150M render base.db --format none ;;
            *) line rest 150M $stage base.db ;;
            esac ;;
        esac
        case " ${ROWS:-rest least option none} " in *" least "*) least least again "$stage" ;; esac
        case " ${ROWS:-rest least option none} " in *" option "*) [ "$stage" = import ] || least option changed "$stage" ;; esac
        # shellcheck disable=SC2046
        case " ${ROWS:-rest least option none} " in *" none "*) line none '' $(again "$stage") ;; esac
    done
    rm -f again.db* option.db*
    cd "$OLDPWD" || exit 1
done
exit $bad
