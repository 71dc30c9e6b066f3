#!/bin/bash
# Devices are looked for only when a unit is due; --devices auto is content with a picture of either kind, a kind that is
# named is not; a device that cannot be used is said in one sentence.
. tests/e2e/lib.sh
export CUDA_VISIBLE_DEVICES=-1 # with a GPU or without: the same answers
one_sentence() { [ "$(grep -c . "$KILN_TMP/err")" = 1 ] || fail "not one sentence: $(cat "$KILN_TMP/err")"; }
looked() { grep -q 'computing on the CPU: ' "$KILN_TMP/err"; }
loud() { "$KILN_BIN/kiln-$1" --verbose "${@:2}"; }
scene "$KILN_TMP/s" 3000 2 80x60
db=$KILN_TMP/x.db
must 0 loud import "$KILN_TMP/s" "$db"; looked || fail "import does not say why it computes on the CPU"
cuda=1
! grep -q 'this build has no CUDA' "$KILN_TMP/err" || cuda=
for s in knn prune chunk tiles render; do
    must 0 loud "$s" "$db"; looked || fail "$s does not say why it computes on the CPU"
    must 0 loud "$s" "$db"
    grep -q 'nothing to do' "$KILN_TMP/err" || fail "$s again: $(cat "$KILN_TMP/err")"
    ! looked || fail "$s had nothing to do and looked for a GPU"
done
kiln info "$db" --json | grep -q '"device": "cpu' || fail "no run says its device"
before=$(digest "$db")

picture=$(find "$KILN_TMP/renders" -name '*.png' | sort | head -n 1)
rm "$picture"
must 0 loud render "$db"; looked || fail "a picture was due and no device looked for"
[ -s "$picture" ] && [ "$before" = "$(digest "$db")" ] || fail "the picture that was drawn again is another"
must 0 kiln render "$db" --force
must 0 kiln render "$db" --devices cpu
must 6 kiln render "$db" --devices cuda; one_sentence
must 6 kiln tiles "$db" --devices 0 --force; one_sentence
must 0 kiln tiles "$db" --devices cuda # nothing is due
must 2 kiln tiles "$db" --devices none; one_sentence
must 0 kiln export "$db" --devices cuda # it runs no operation
must 0 kiln verify "$db"

if [ -n "$cuda" ]; then # a GPU that NVML shows and CUDA does not find
    "${CC:-cc}" -shared -fPIC -o "$KILN_TMP/libfake.so" tests/unit/fake_nvml.c || fail "cc"
    export KILN_NVML=$KILN_TMP/libfake.so FAKE_GPUS=2
    unset CUDA_VISIBLE_DEVICES
    must 6 kiln tiles "$db" --force; one_sentence
    FAKE_DRIVER=390.10 must 0 loud tiles "$db" --force
    grep -q 'the driver 390.10 is too old' "$KILN_TMP/err" || fail "an old driver: $(cat "$KILN_TMP/err")"
fi
