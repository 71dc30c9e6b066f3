# lib -- what the GPU's scripts share beside tests/e2e/lib.sh. Sourced.
. tests/e2e/lib.sh
tests/gpu/has_gpu || skip 'no GPU'
export KILN_GPU_MS=0 # scenes of tests are small; auto opens a GPU for them all the same
export KILN_TMP # processes of this test are those that have it in their environment
# KILN_NO_SKIP comes with SHARED of make gpu-test: then everything runs.
thorough() { [ -n "${KILN_THOROUGH:-}${KILN_NO_SKIP:-}" ]; }
# field NAME: the number or text of that name in the last report
field() { sed -n "s/.*\"$1\": \(\"[^\"]*\"\|[^,]*\).*/\1/p" "$KILN_TMP/report.json" | head -n 1 | tr -d '"'; }
# on_gpu NUMBER: this test's processes on that GPU, as nvidia-smi lists them. Others may be using it, too.
on_gpu() {
    local pid
    nvidia-smi -i "$1" --query-compute-apps=pid --format=csv,noheader | while read -r pid; do
        ! grep -qzFx "KILN_TMP=$KILN_TMP" "/proc/$pid/environ" 2>/dev/null || echo "$pid"
    done
}
nothing_left() {
    local gpu left
    for gpu in $(nvidia-smi --query-gpu=index --format=csv,noheader); do
        left=$(on_gpu "$gpu" | wc -l)
        [ "$left" = 0 ] || fail "$left processes of this test are still on GPU $gpu"
    done
}
# on DEVICES PROGRAM ARGUMENTS...
on() {
    local devices=$1 program=$2; shift 2
    kiln "$program" "$@" --devices "$devices" --json >"$KILN_TMP/report.json" || fail "$program $* on $devices: $(field error)"
}
# bake_on DEVICES SCENE MANIFEST [options of chunk]: up to the pictures. EACH='option value' is for every stage,
# LOOK=command is run after each.
bake_on() {
    local devices=$1 from=$2 db=$3 s more; shift 3
    for s in import knn prune chunk tiles render; do
        more=("$db")
        [ "$s" != import ] || more=("$from" "$db")
        [ "$s" != chunk ] || more+=("$@")
        # shellcheck disable=SC2086 # words on purpose
        on "$devices" "$s" "${more[@]}" ${EACH:-}
        ${LOOK:-:} "$s"
    done
}
# Layers and tile tables must be equal; pictures are compared as pictures.
tables() { digest "$1" | grep -v '^image '; }
same_tables() {
    [ "$(tables "$1" | wc -l)" -ge 3 ] || fail "$1 has no layers and tables"
    diff <(tables "$1") <(tables "$2") >&2 || fail "$1 and $2 differ"
}
# same_pictures A B: each camera's picture in float, at least 85 dB
same_pictures() {
    local name n=0 equal=0 db
    on cpu render "$1" --format npy -o "$1.pictures/"
    on cuda render "$2" --format npy -o "$2.pictures/"
    while read -r name; do
        cmp -s "$1.pictures/$name" "$2.pictures/$name" && equal=$((equal + 1))
        kiln compare "$1.pictures/$name" "$2.pictures/$name" --json >"$KILN_TMP/report.json" || fail "compare $name"
        db=$(field psnr)
        [ "$db" = null ] || awk -v v="$db" 'BEGIN { exit !(v >= 85) }' || fail "$name: $db dB"
        n=$((n + 1))
    done < <(cd "$1.pictures" && find . -name '*.npy')
    [ $n -gt 0 ] || fail "there are no pictures in $1.pictures"
    echo "$n pictures of at least 85 dB, $equal of them equal to the bit"
}
