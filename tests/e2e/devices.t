#!/bin/bash
# Devices are looked for only when a unit is due; --devices auto is content with a picture of either kind, a kind that is
# named is not; a device that cannot be used is said in one sentence.
. tests/e2e/lib.sh
read -ra cc <<<"${CC:-cc}" # make CC='ccache gcc' has two words
export CUDA_VISIBLE_DEVICES=-1 # with a GPU or without: the same answers
one_sentence() { [ "$(grep -c . "$KILN_TMP/err")" = 1 ] || fail "not one sentence: $(cat "$KILN_TMP/err")"; }
looked() { grep -q 'computing on the CPU: ' "$KILN_TMP/err"; }
loud() { "$KILN_BIN/kiln-$1" --verbose "${@:2}"; }
scene "$KILN_TMP/s" 3000 2 80x60
db=$KILN_TMP/x.db

test_step 'each stage says why it computes on the CPU, and looks for no GPU where nothing is due' && (
    must 0 loud import "$KILN_TMP/s" "$db"; looked || fail "import does not say why it computes on the CPU"
    for s in knn prune chunk tiles render; do
        must 0 loud "$s" "$db"; looked || fail "$s does not say why it computes on the CPU"
        ! grep -q 'this build has no CUDA' "$KILN_TMP/err" || touch "$KILN_TMP/without_cuda"
        must 0 loud "$s" "$db"
        grep -q 'nothing to do' "$KILN_TMP/err" || fail "$s again: $(cat "$KILN_TMP/err")"
        ! looked || fail "$s had nothing to do and looked for a GPU"
    done
); result

test_case 'the record of a run says its device' && (
    kiln info "$db" --json | grep -q '"device": "cpu' || fail "no run says its device"
); result

before=$(digest "$db")

test_case 'a picture that is due has a device looked for, and is the same' && (
    picture=$(find "$KILN_TMP/renders" -name '*.png' | sort | head -n 1)
    rm "$picture"
    must 0 loud render "$db"; looked || fail "a picture was due and no device looked for"
    [ -s "$picture" ] && [ "$before" = "$(digest "$db")" ] || fail "the picture that was drawn again is another"
); result

test_case 'a device that cannot be used is told in one sentence' && (
    must 0 kiln render "$db" --force
    must 0 kiln render "$db" --devices cpu
    must 6 kiln render "$db" --devices cuda; one_sentence
    must 6 kiln tiles "$db" --devices 0 --force; one_sentence
    must 0 kiln tiles "$db" --devices cuda # nothing is due
    must 2 kiln tiles "$db" --devices none; one_sentence
    must 0 kiln export "$db" --devices cuda # it runs no operation
    must 0 kiln verify "$db"
); result

# GPUs that NVML shows and CUDA does not find
needs_cuda() { [ ! -e "$KILN_TMP/without_cuda" ] || skip 'this build has no CUDA'; }
"${cc[@]}" -shared -fPIC -o "$KILN_TMP/libfake.so" tests/unit/fake_nvml.c || fail "cc"
export KILN_NVML=$KILN_TMP/libfake.so FAKE_GPUS=2
unset CUDA_VISIBLE_DEVICES

test_case "what the CPU does before a GPU is open is the CPU's" && (
    needs_cuda
    # work that the CPU has done before a GPU is open is the CPU's, pictures too; nothing is drawn twice because of that
    must 0 loud render "$db" --force --threads 2
    grep -q 'render has about [0-9.e-]* s of work for 2 threads, less than opening a GPU takes (0.4 s)' "$KILN_TMP/err" ||
        fail "render does not say why: $(cat "$KILN_TMP/err")"
    kiln render "$db" --force --json --threads 2 | grep -q '"device_why": "render has about' || fail "the report does not say why"
    must 6 kiln render "$db" --force --devices cuda
); result

test_step 'no GPU is opened for little work' && (
    needs_cuda
    must 0 "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/small" --verbose
    ! grep -q 'worker on GPU\|CUDA' "$KILN_TMP/err" || fail "a GPU is opened for little work: $(cat "$KILN_TMP/err")"
); result

export KILN_GPU_MS=0 # from here on all work is worth a GPU

test_case 'no stage is run again where auto would choose otherwise' && (
    needs_cuda
    must 0 "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/small"
    [ "$(grep -c 'nothing to do' "$KILN_TMP/err")" = 7 ] ||
        fail "a stage is run again where auto would choose otherwise: $(cat "$KILN_TMP/err")"
); result

test_case 'a GPU that cannot be used: the sentence has the way out' && (
    needs_cuda
    must 6 kiln tiles "$db" --force --threads 7; one_sentence
    grep -q -- '; --devices cpu needs no GPU$' "$KILN_TMP/err" || fail "no advice: $(cat "$KILN_TMP/err")"
); result

test_case 'what packs more than it computes is on the CPU, but a device that is named must be there' && (
    needs_cuda
    must 0 loud chunk "$db" --force --threads 2; looked || fail "chunk does not say that it takes the CPU"
    must 0 kiln chunk "$db" --force --threads 2 --devices all
    must 6 kiln chunk "$db" --force --devices 2; one_sentence
    must 6 kiln render "$db" --force --threads 8
); result

test_case 'a GPU that was opened ahead is worth no word until a stage wants it' && (
    needs_cuda
    # a GPU that was opened ahead and cannot be used is worth no word until a stage wants it; what kiln pipeline says is that
    # stage's (of the scene, later pictures are worth 2 ms of 8 threads, knn and tiles are not)
    KILN_GPU_MS=2 must 0 "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/ahead" --threads 8 --stages \
        import,knn,prune,chunk,tiles
    ! grep -qi 'worker\|CUDA\|GPU' "$KILN_TMP/err" || fail "what no stage wanted is told: $(cat "$KILN_TMP/err")"
    must 6 "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/ahead" --threads 8 --prune-min-opacity 0.01
    grep -q '^kiln-prune: the worker on GPU ' "$KILN_TMP/err" || fail "prune does not say it: $(cat "$KILN_TMP/err")"
); result

test_case 'a GPU is opened ahead for a stage that will take it' && (
    needs_cuda
    command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null || skip 'no strace'
    opened_ahead() { # MILLISECONDS
        rm -rf "$KILN_TMP/ahead"
        KILN_GPU_MS=$1 strace -f -e trace=execve -o "$KILN_TMP/calls" "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/ahead" \
            --threads 8 --stages import,knn,prune,chunk,tiles -q ||
            fail strace
        grep -q 'worker=cuda:[0-9]*:rest' "$KILN_TMP/calls"
    }
    opened_ahead 2 || fail "no GPU is opened ahead for a later stage"
    ! opened_ahead 4 || fail "a GPU is opened ahead that no stage will take"
); result

test_case 'GPUs that auto passes over are worth one warning' && (
    needs_cuda
    warned() { # SENTENCE
        [ "$(grep -c 'warning: computing on the CPU: ' "$KILN_TMP/err")" = 1 ] && grep -q "$1" "$KILN_TMP/err" ||
            fail "no warning of $1: $(cat "$KILN_TMP/err")"
    }
    run_tiles() { must 0 "$KILN_BIN/kiln-tiles" "$db" --force --threads 7; }
    FAKE_CUDA=5000 run_tiles; warned 'the driver has CUDA 5.0'
    FAKE_CUDA=0 run_tiles; warned 'not its CUDA library'
    FAKE_GPUS=1 FAKE_ARCH=35 run_tiles; warned 'its compute capability is 3.5'
    FAKE_END=11 run_tiles; warned 'failed when asked for GPUs (signal 11)'
    FAKE_GPUS=0 run_tiles; ! looked || fail "no GPU, and it is said without --verbose: $(cat "$KILN_TMP/err")"
    FAKE_CUDA=5000 must 6 kiln tiles "$db" --force --devices cuda; one_sentence
); result
