#!/bin/bash
# examples/kubernetes: what is submitted is a Job by the API's models (Kubernetes 1.22, python3-kubernetes), and a stand-in for a cluster
# that runs it comes to the digest of a bake in one go; a pod that always dies costs its part; the same command again goes on.
. tests/e2e/lib.sh
/usr/bin/python3 -c 'import yaml, kubernetes' 2>/dev/null || skip 'there is no python3-yaml or python3-kubernetes (apt-get install)'
example=$PWD/examples/kubernetes
mkdir "$KILN_TMP/data" "$KILN_TMP/state" "$KILN_TMP/bin"
export DATA=$KILN_TMP/data STATE=$KILN_TMP/state KUBECTL="/usr/bin/python3 $PWD/tests/soak/kubectl_stand_in.py" PAUSE=0
export IMAGE=registry.example/splatkiln:1 TASKS=3 NAME=kiln-test PATH=$KILN_TMP/bin:$KILN_BIN:$PATH
cd "$DATA" || fail "cd"
$KUBECTL apply -f "$example/volume.yaml" || fail "volume.yaml"
sed 's/completionMode/completionsMode/' "$example/job.yaml" | $KUBECTL apply -f - 2>/dev/null && fail "a field that is none is applied"
scene "it's a scene" 5000 3 160x100
must 0 "$KILN_BIN/kiln" pipeline "it's a scene" --out one
# kiln-tiles through a script: its second task always dies
cat >"$KILN_TMP/bin/kiln-tiles" <<E1
#!/bin/sh
case "\$*" in *'--shard 2/3'*) echo >>'$KILN_TMP/died'; kill -KILL \$\$ ;; esac
case "\$*" in *--gather*) [ ! -e '$KILN_TMP/broken' ] || exit 74 ;; esac
exec '$KILN_BIN/kiln-tiles' "\$@"
E1
cat >"$KILN_TMP/bin/kiln" <<E2
#!/bin/sh
'$KILN_BIN/kiln' "\$@" | sed 's|$KILN_BIN/kiln-tiles|$KILN_TMP/bin/kiln-tiles|'
E2
chmod +x "$KILN_TMP"/bin/*
touch "$KILN_TMP/broken"
must 1 "$example/bake.sh" "it's a scene" --out many --threads 1
[ -e many/manifest.db.claim ] || fail "no round is open"
rm "$KILN_TMP/broken"
must 0 "$example/bake.sh" "it's a scene" --out many --threads 1
same one/manifest.db many/manifest.db
diff -r one/renders many/renders || fail "pictures differ"
[ -z "$(ls many/parts)" ] && [ ! -e many/manifest.db.claim ] || fail "left: $(ls many many/parts)"
[ -s "$KILN_TMP/died" ] || fail "no task died"
# Units are given up: it stops at their stage, or with --allow-partial at its end.
export KILN_FAULT='unit=pairs*cam2*:exit'
must 7 "$example/bake.sh" "it's a scene" --out part --threads 1
[ ! -e part/export ] || fail "it went on without --allow-partial"
must 7 "$example/bake.sh" "it's a scene" --out part --threads 1 --allow-partial
[ -n "$(ls part/export)" ] || fail "--allow-partial did not go on"
exit 0
