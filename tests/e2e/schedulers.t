#!/bin/bash
# examples/aws-batch and examples/openjd: stand-ins for these schedulers, which refuse a field that is none, come to the digest of a
# bake in one go. Each task is a container of its own, which shares a store alone with the others.
# starts first
. tests/e2e/lib.sh
unshare -m true 2>/dev/null || skip 'this machine allows no mount namespaces'
command -v python3 >/dev/null || skip "no python3"
examples=$PWD/examples stand_ins="python3 $PWD/tests/e2e/scheduler_stand_ins.py"
cd "$KILN_TMP" || fail "cd"
mkdir bin data store
scene data/city 3000 2 64x64
must 0 "$KILN_BIN/kiln" pipeline data/city --out "$KILN_TMP/alone" --devices cpu
printf '#!/bin/sh\nexec %s "$@"\n' "$stand_ins" >bin/aws
chmod +x bin/aws
ln -s "$examples/object-store.sh" bin/
export PATH=$KILN_TMP/bin:$KILN_BIN:$PATH DATA=$KILN_TMP/data HOSTS=$KILN_TMP/hosts DEFINITION=$KILN_TMP/definition.json POLL=1 \
    PATIENCE=60
check() { # LEAD'S FOLDER
    same alone/manifest.db "$1/manifest.db"
    diff -r alone/renders "$1/renders" || fail "pictures differ"
    [ "$(cat hosts.*.log | grep -c ': part [0-9]* of [0-9]*: [1-9]')" -ge 4 ] || fail "tasks did nothing: $(cat hosts.*.log)"
    [ -z "$(tar -tf store/scene-* | grep bake)" ] || fail "the bake travels with the scene"
    rm -rf hosts hosts.*.log store/* "$1"
}

test_case 'AWS Batch: the digest of a bake in one go' && (
    mkdir hosts
    sed "s|/data|$DATA|; s|s3://bucket/city|$KILN_TMP/store|" "$examples/aws-batch/job-definition.json" >definition.json
    (cd data && STORE=$KILN_TMP/store SUBMIT="'$examples/aws-batch/submit.sh' \"\$1\"" TASKS=3 must 0 object-store.sh lead city --devices cpu) ||
        exit 1
    check data/city/bake
); result

test_case 'AWS Batch: what is refused' && (
    must 2 "$examples/aws-batch/submit.sh" 'x'
    sed 's/"retryStrategy"/"retriesStrategy"/' "$examples/aws-batch/job-definition.json" >definition.json
    must 1 "$examples/aws-batch/submit.sh" 2; grep -q "has no field 'retriesStrategy'" err || fail "$(cat err)"
); result

test_case 'OpenJD: the digest of a bake in one go' && (
    mkdir hosts
    must 0 $stand_ins openjd "$examples/openjd/bake.json" Scene=city "Data=$DATA" "Store=$KILN_TMP/store" Hosts=2 Tasks=2
    check data/city/bake
); result

test_case 'OpenJD: a field that is none' && (
    sed 's/"onRun"/"onRunning"/' "$examples/openjd/bake.json" >other.json
    must 1 $stand_ins openjd other.json Scene=city "Store=$KILN_TMP/store"
    grep -q "has no field 'onRunning'" err || fail "$(cat err)"
); result
