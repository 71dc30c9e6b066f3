# ram.sh -- stages that run under a cap and are watched from outside; what tests/e2e/ram_outside.t and tests/bench/soak share. Behind
# lib.sh, in a scratch folder.
RAM_WATCH=${KILN_BIN%/bin}/tests/bench/ram_watch

# watched CAP THREADS STAGE [arguments]: runs it, CAP '' for none. Afterwards ram_cap, ram_predicted, ram_told (by the program itself)
# and ram_outside are its numbers in bytes, ram_slabs the most slabs of a picture, ram_ms
# milliseconds of the processor, out and err what it said. Returns its exit code.
watched() {
    local cap=$1 threads=$2 stage=$3 code; shift 3
    "$RAM_WATCH" peak "$KILN_BIN/kiln-$stage" "$@" --devices cpu --threads "$threads" ${cap:+--ram "$cap"} --json >out 2>err
    code=$?
    read -r ram_outside _ _ ram_looks ram_ms <peak
    [ $code = 0 ] || return $code
    read -r ram_cap ram_predicted ram_told ram_slabs < <(python3 -c 'import json
d = json.load(open("out"))
print(*[d["ram_%s_bytes" % k] for k in ("cap", "predicted", "peak")], max([v.get("slabs", 0) for v in d.get("views", [])], default=0))')
}

# The least --ram that a refusal has named, in MiB; nothing where none is.
least_named() { sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err; }

# refused CAP THREADS STAGE [arguments]: what the refusal names is in ram_least.
refused() {
    local code
    watched "$@"; code=$?
    [ $code = 5 ] || { cat err >&2; fail "exit $code, not 5: $*"; }
    ram_least=$(least_named)
    [ -n "$ram_least" ] || fail "the least that works is not named: $(cat err)"
}

# stage_line STAGE SCENE DB: the arguments of a stage over a bake that is there, which it makes again; import: into again.db.
stage_line() {
    case $1 in
    import) rm -f again.db*; echo "import $2 again.db" ;;
    tiles) echo "tiles $3 --force --tables all" ;;
    render) echo "render $3 --force --format none" ;;
    export) echo "export $3 -w -o again.ply" ;;
    *) echo "$1 $3 --force" ;;
    esac
}
